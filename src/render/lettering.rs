//! Text as outlines: embedded OpenType fonts, shaping with kerning and joining, and glyphs set straight or along a curve.
//! Sizes and positions are sheet pixels, y down; a baseline runs left to right.

use super::curve::{Curve, Point, point};
use rustybuzz::ttf_parser::{GlyphId, OutlineBuilder};
use rustybuzz::{Direction, Face, Feature, UnicodeBuffer, ttf_parser::Tag};
use std::cell::RefCell;
use std::collections::HashMap;
use tiny_skia::{Path, PathBuilder, Transform};

/// A style of letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    /// Upright.
    Regular,
    /// Slanted: waters, peoples, heights.
    Italic,
    /// Heavier: polities, capitals, headings.
    Semibold,
}

/// The fonts, and outlines already drawn.
pub(super) struct Fonts {
    faces: Vec<Face<'static>>,
    outlines: RefCell<HashMap<(usize, u16), Option<Path>>>,
}

/// One glyph of a shaped line; lengths in ems.
#[derive(Debug, Clone, PartialEq)]
struct Glyph {
    face: usize,
    id: u16,
    advance: f32,
    dx: f32,
    dy: f32,
}

/// A line of text, shaped; its size comes later.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Line {
    /// What it says.
    pub text: String,
    glyphs: Vec<Glyph>,
    /// Ems from first to last advance, without letter-spacing.
    pub width_em: f32,
}

impl Line {
    /// How many gaps take letter-spacing.
    fn gaps(&self) -> usize {
        self.glyphs.iter().filter(|g| g.advance > 0.0).count().saturating_sub(1)
    }

    /// Width at `size` with `spacing_em` between letters.
    pub fn width(&self, size: f32, spacing_em: f32) -> f32 {
        size * (self.width_em + spacing_em * self.gaps() as f32)
    }

    /// The spacing in ems that stretches the line to `width`.
    pub fn spacing_for(&self, size: f32, width: f32) -> f32 {
        (width / size - self.width_em) / self.gaps().max(1) as f32
    }
}

/// Four corners of a convex box around drawn letters.
pub(super) type Quad = [Point; 4];

/// Letters in place: what to fill, and the boxes that nothing else may enter.
#[derive(Debug, Clone)]
pub(super) struct Lettered {
    /// Outlines in sheet pixels.
    pub path: Path,
    /// Tight boxes: one for a straight line, one per letter on a curve.
    pub quads: Vec<Quad>,
    /// Boxes between the letters of a spaced line: nothing else may break a name, though lines may run through it.
    pub gaps: Vec<Quad>,
}

impl Lettered {
    /// All that nothing else may enter: letters and what lies between them.
    pub fn ground(&self) -> Vec<Quad> {
        self.quads.iter().chain(&self.gaps).copied().collect()
    }
}

/// The boxes between neighbouring letters.
fn between(letters: &[Quad]) -> Vec<Quad> {
    letters.windows(2).map(|w| [w[0][1], w[1][0], w[1][3], w[0][2]]).collect()
}

/// Height of capitals in ems, for centring.
pub(super) const CAP_EM: f32 = 0.647;
/// Height of small letters in ems.
pub(super) const X_EM: f32 = 0.43;

const FILES: [&[u8]; 6] = [
    include_bytes!("../../data/fonts/serif-regular.otf"),
    include_bytes!("../../data/fonts/serif-italic.otf"),
    include_bytes!("../../data/fonts/serif-semibold.otf"),
    include_bytes!("../../data/fonts/georgian.ttf"),
    include_bytes!("../../data/fonts/armenian.ttf"),
    include_bytes!("../../data/fonts/arabic.ttf"),
];

impl Fonts {
    /// The embedded fonts.
    pub fn embedded() -> Fonts {
        // The files are part of the program and are parsed in a test.
        let faces = FILES.iter().filter_map(|f| Face::from_slice(f, 0)).collect();
        Fonts { faces, outlines: RefCell::default() }
    }

    /// The face for `c` in `style`; `None` where no font has it.
    fn face_for(&self, c: char, style: Style) -> Option<usize> {
        [style as usize, Style::Regular as usize, 3, 4, 5].into_iter().find(|&f| self.faces[f].glyph_index(c).is_some())
    }

    /// Whether every letter of `text` can be drawn.
    pub fn covers(&self, text: &str) -> bool {
        text.chars().all(|c| c.is_whitespace() || self.face_for(c, Style::Regular).is_some())
    }

    /// Shapes one line; letters that no font has are left out. `spaced` lines get no ligatures.
    pub fn shape(&self, text: &str, style: Style, spaced: bool) -> Line {
        let mut glyphs = Vec::new();
        let mut runs: Vec<(usize, String)> = Vec::new();
        for c in text.chars().filter(|c| !c.is_control()) {
            let last = runs.last().map(|r| r.0);
            // Spaces and marks stay in the run they stand in.
            let keep = last.filter(|&f| (c == ' ' || is_mark(c)) && self.faces[f].glyph_index(c).is_some());
            let Some(face) = keep.or_else(|| self.face_for(c, style)) else { continue };
            match runs.last_mut() {
                Some((f, run)) if *f == face => run.push(c),
                _ => runs.push((face, c.to_string())),
            }
        }
        // One direction a line: right to left where the first letter is Arabic, but for runs of other letters and digits.
        let is_leftward = text.chars().find(|c| c.is_alphabetic()).is_some_and(is_arabic);
        if is_leftward {
            runs.reverse();
        }
        for (face, run) in runs {
            let mut buffer = UnicodeBuffer::new();
            buffer.push_str(&run);
            if is_leftward && !run.chars().any(|c| c.is_alphanumeric() && !is_arabic(c)) {
                // Mirrors brackets.
                buffer.set_direction(Direction::RightToLeft);
            }
            buffer.guess_segment_properties();
            let off = |tag: &[u8; 4]| Feature::new(Tag::from_bytes(tag), 0, ..);
            let features = if spaced { vec![off(b"liga"), off(b"clig")] } else { Vec::new() };
            let shaped = rustybuzz::shape(&self.faces[face], &features, buffer);
            let em = self.faces[face].units_per_em() as f32;
            for (info, at) in shaped.glyph_infos().iter().zip(shaped.glyph_positions()) {
                glyphs.push(Glyph {
                    face,
                    id: info.glyph_id as u16,
                    advance: at.x_advance as f32 / em,
                    dx: at.x_offset as f32 / em,
                    dy: at.y_offset as f32 / em,
                });
            }
        }
        let width_em = glyphs.iter().map(|g| g.advance).sum();
        Line { text: text.to_string(), glyphs, width_em }
    }

    /// `line` with its baseline's left end at `at`, turned by `angle` radians (clockwise on the sheet). `None` where
    /// nothing shows.
    pub fn straight(&self, line: &Line, size: f32, spacing_em: f32, at: Point, angle: f32) -> Option<Lettered> {
        let mut flat = PathBuilder::new();
        let mut pen = 0.0;
        for g in &line.glyphs {
            self.push(&mut flat, g, Transform::from_row(size, 0.0, 0.0, size, pen + g.dx * size, -g.dy * size));
            pen += (g.advance + if g.advance > 0.0 { spacing_em } else { 0.0 }) * size;
        }
        let flat = flat.finish()?;
        let turn = rotation(angle, at);
        let quad = turned(&flat, turn);
        Some(Lettered { path: flat.transform(turn)?, quads: vec![quad], gaps: Vec::new() })
    }

    /// `line` with its middle at arc length `middle` of `curve`, letters upright on it, the baseline `drop` below the
    /// curve. `None` where nothing shows or the curve is too short.
    pub fn along(
        &self,
        line: &Line,
        size: f32,
        spacing_em: f32,
        curve: &Curve,
        middle: f32,
        drop: f32,
    ) -> Option<Lettered> {
        let width = line.width(size, spacing_em);
        let start = middle - width / 2.0;
        if start < 0.0 || start + width > curve.length() {
            return None;
        }
        let mut all = PathBuilder::new();
        let mut quads = Vec::new();
        let mut pen = start;
        for g in &line.glyphs {
            let (at, angle) = curve.at(pen + g.advance * size / 2.0, 0.5 * size);
            // The glyph's own middle stands on the curve.
            let local = Transform::from_row(size, 0.0, 0.0, size, (g.dx - g.advance / 2.0) * size, drop - g.dy * size);
            let mut one = PathBuilder::new();
            self.push(&mut one, g, local);
            if let Some(one) = one.finish() {
                let turn = rotation(angle, at);
                quads.push(turned(&one, turn));
                all.push_path(&one.transform(turn)?);
            }
            pen += (g.advance + if g.advance > 0.0 { spacing_em } else { 0.0 }) * size;
        }
        Some(Lettered { path: all.finish()?, gaps: between(&quads), quads })
    }

    fn push(&self, into: &mut PathBuilder, g: &Glyph, transform: Transform) {
        let mut outlines = self.outlines.borrow_mut();
        let outline = outlines.entry((g.face, g.id)).or_insert_with(|| {
            let face = &self.faces[g.face];
            let mut pen = Pen { path: PathBuilder::new(), em: face.units_per_em() as f32 };
            face.outline_glyph(GlyphId(g.id), &mut pen)?;
            pen.path.finish()
        });
        if let Some(path) = outline.clone().and_then(|p| p.transform(transform)) {
            into.push_path(&path);
        }
    }
}

fn is_arabic(c: char) -> bool {
    matches!(c, '\u{0600}'..='\u{06ff}')
}

fn is_mark(c: char) -> bool {
    matches!(c, '\u{0300}'..='\u{036f}')
}

/// Turned by `angle` about the origin, then moved to `at`.
fn rotation(angle: f32, at: Point) -> Transform {
    let (s, c) = angle.sin_cos();
    Transform::from_row(c, s, -s, c, at.x, at.y)
}

/// The bounds of `path`, turned.
fn turned(path: &Path, turn: Transform) -> Quad {
    let b = path.compute_tight_bounds().unwrap_or_else(|| path.bounds());
    let corner = |x: f32, y: f32| {
        let mut p = tiny_skia::Point::from_xy(x, y);
        turn.map_point(&mut p);
        point(p.x, p.y)
    };
    [corner(b.left(), b.top()), corner(b.right(), b.top()), corner(b.right(), b.bottom()), corner(b.left(), b.bottom())]
}

/// Collects an outline in ems, y down.
struct Pen {
    path: PathBuilder,
    em: f32,
}

impl OutlineBuilder for Pen {
    fn move_to(&mut self, x: f32, y: f32) {
        self.path.move_to(x / self.em, -y / self.em);
    }
    fn line_to(&mut self, x: f32, y: f32) {
        self.path.line_to(x / self.em, -y / self.em);
    }
    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        self.path.quad_to(x1 / self.em, -y1 / self.em, x / self.em, -y / self.em);
    }
    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let e = self.em;
        self.path.cubic_to(x1 / e, -y1 / e, x2 / e, -y2 / e, x / e, -y / e);
    }
    fn close(&mut self) {
        self.path.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn embedded_fonts_cover_the_scripts_of_the_region() {
        let fonts = Fonts::embedded();
        assert_eq!(fonts.faces.len(), FILES.len());
        for text in
            ["Bazardüzü", "Ġazna Ḥiṣn ʿĀna", "Трапезунд", "Τραπεζοῦς", "საქართველო", "Հայաստան", "شروانشاه", "Əhər"]
        {
            assert!(fonts.covers(text), "{text}");
            assert!(fonts.shape(text, Style::Italic, false).width_em > 1.0, "{text}");
        }
        assert!(!fonts.covers("漢"));
        assert_eq!(fonts.shape("漢", Style::Regular, false).width_em, 0.0);
    }

    #[test]
    fn arabic_lines_run_leftward_with_mirrored_brackets() {
        let fonts = Fonts::embedded();
        let line = fonts.shape("أب (ج)", Style::Regular, false);
        let bracket = |c: char| fonts.faces[0].glyph_index(c).unwrap().0;
        let found: Vec<u16> = line.glyphs.iter().filter(|g| g.face == 0).map(|g| g.id).collect();
        // Drawn from the left: the closing bracket of the text comes first, and opens to the right.
        assert_eq!(found, [bracket('('), bracket(')')]);
        assert_eq!(line.glyphs[0].face, 0);
    }

    #[test]
    fn kerning_draws_pairs_together_and_spacing_apart() {
        let fonts = Fonts::embedded();
        let w = |t: &str| fonts.shape(t, Style::Regular, false).width_em;
        assert!(w("AV") < w("A") + w("V"));
        let line = fonts.shape("ABC", Style::Regular, true);
        assert!((line.width(10.0, 0.5) - 10.0 * (line.width_em + 1.0)).abs() < 1e-4);
        let s = line.spacing_for(10.0, 50.0);
        assert!((line.width(10.0, s) - 50.0).abs() < 1e-3);
    }

    #[test]
    fn letters_stand_upright_on_a_baseline() {
        let fonts = Fonts::embedded();
        let line = fonts.shape("H", Style::Regular, false);
        let l = fonts.straight(&line, 100.0, 0.0, point(0.0, 0.0), 0.0).unwrap();
        let b = l.path.bounds();
        assert!(b.top() < -60.0 && b.bottom().abs() < 2.0, "{b:?}");
        assert!((-b.top() / 100.0 - CAP_EM).abs() < 0.02, "{b:?}");
    }
}
