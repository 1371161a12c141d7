//! All that surrounds the map: frame with degrees, title, legend, scale, north, imprint. Blocks of known height flow into
//! columns of paper beside or below the map, so that they hide no land.

use super::canvas::{Ink, Mark, ink, path_through, rectangle};
use super::curve::point;
use super::graticule::{Edge, Graticule};
use super::lettering::{CAP_EM, Fonts, Style};
use super::symbols::{KINDS, symbol};
use super::tint::{
    DEPTH_TINTS, HATCH_PT, HATCH_WIDE_PT, INK, LAND_TINTS, PAPER, RIBBON, Rgb, STRIPE, WASH, WATER_INK, land_tint,
    washed,
};
use super::{SheetInput, SheetOptions};
use crate::borders::{BorderLine, Certainty, ClaimKind, PolityRegion, Sureness};
use std::collections::HashSet;

/// Grey-brown of small print.
const FAINT: [u8; 3] = [96, 88, 78];

/// A rectangle of marks that stays together; its own upper-left corner is the origin.
#[derive(Default)]
pub(super) struct Block {
    /// What to draw.
    pub marks: Vec<Mark>,
    /// Pixels.
    pub height: f32,
    /// Whether a column may not end with it (headings).
    pub keeps_next: bool,
}

/// Draws text and shapes into blocks.
pub(super) struct Pen<'a> {
    /// The fonts.
    pub fonts: &'a Fonts,
    /// A printer's point in pixels.
    pub pt: f32,
}

/// Which point of a text its position is.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Align {
    Left,
    Centre,
    Right,
}

impl Pen<'_> {
    /// A line of text with its baseline at (`x`, `y`); size in points.
    #[allow(clippy::too_many_arguments)]
    pub fn text(
        &self,
        text: &str,
        style: Style,
        size_pt: f32,
        spacing_em: f32,
        x: f32,
        y: f32,
        align: Align,
        ink: Ink,
    ) -> Option<Mark> {
        let line = self.fonts.shape(text, style, spacing_em > 0.0);
        let size = size_pt * self.pt;
        let width = line.width(size, spacing_em);
        let x = match align {
            Align::Left => x,
            Align::Centre => x - width / 2.0,
            Align::Right => x - width,
        };
        let set = self.fonts.straight(&line, size, spacing_em, point(x, y), 0.0)?;
        Some(Mark::Fill(set.path, ink))
    }

    /// `text` broken at spaces into lines of at most `width` pixels; a longer word stands alone.
    pub fn wrap(&self, text: &str, style: Style, size_pt: f32, width: f32) -> Vec<String> {
        let measure = |t: &str| self.fonts.shape(t, style, false).width(size_pt * self.pt, 0.0);
        let mut lines: Vec<String> = Vec::new();
        for word in text.split_whitespace().flat_map(|w| self.broken(w, style, size_pt, width)) {
            match lines.last_mut() {
                Some(l) if measure(&format!("{l} {word}")) <= width => {
                    l.push(' ');
                    l.push_str(&word);
                }
                _ => lines.push(word),
            }
        }
        lines
    }

    /// A word, cut where it is wider than the column.
    fn broken(&self, word: &str, style: Style, size_pt: f32, width: f32) -> Vec<String> {
        let measure = |t: &str| self.fonts.shape(t, style, false).width(size_pt * self.pt, 0.0);
        if measure(word) <= width {
            return vec![word.to_string()];
        }
        let mut parts = vec![String::new()];
        for c in word.chars() {
            let last = parts.len() - 1;
            if !parts[last].is_empty() && measure(&format!("{}{c}", parts[last])) > width {
                parts.push(String::new());
            }
            let last = parts.len() - 1;
            parts[last].push(c);
        }
        parts
    }

    /// Wrapped text as a block; centred lines are centred in `width`.
    #[allow(clippy::too_many_arguments)]
    fn paragraph(
        &self,
        text: &str,
        style: Style,
        size_pt: f32,
        lead: f32,
        width: f32,
        align: Align,
        ink: Ink,
    ) -> Block {
        let mut b = Block::default();
        let x = match align {
            Align::Left => 0.0,
            Align::Centre => width / 2.0,
            Align::Right => width,
        };
        for l in self.wrap(text, style, size_pt, width) {
            b.height += lead * size_pt * self.pt;
            b.marks.extend(self.text(&l, style, size_pt, 0.0, x, b.height - 0.28 * size_pt * self.pt, align, ink));
        }
        b
    }

    fn heading(&self, text: &str, width: f32) -> Block {
        let pt = self.pt;
        let mut b = Block { height: 23.0 * pt, keeps_next: true, ..Block::default() };
        b.marks.extend(self.text(
            &text.to_uppercase(),
            Style::Semibold,
            7.6,
            0.16,
            0.0,
            16.0 * pt,
            Align::Left,
            ink(INK),
        ));
        b.marks.extend(
            path_through(&[(0.0, 19.2 * pt), (width, 19.2 * pt)], false).map(|p| Mark::line(p, ink(INK), 0.4 * pt)),
        );
        b
    }

    /// A largest size, at most `size_pt`, at which `text` fits `width` on one line.
    fn fitted(&self, text: &str, style: Style, size_pt: f32, spacing_em: f32, width: f32) -> f32 {
        let natural = self.fonts.shape(text, style, spacing_em > 0.0).width(size_pt * self.pt, spacing_em);
        size_pt * (width / natural.max(1.0)).min(1.0)
    }
}

/// Marks a border of the given certainty along a path: solid, long dashes, dots.
pub(super) fn border_marks(path: &tiny_skia::Path, certainty: Certainty, is_inner: bool, pt: f32) -> Vec<Mark> {
    let dash = |on: f32, off: f32| vec![on * pt, off * pt];
    let rgb = if is_inner { [96, 74, 74] } else { [84, 34, 44] };
    let (width, dash) = match (is_inner, certainty) {
        (true, Certainty::Conjectural) => (0.62, dash(0.0, 1.7)),
        (true, _) => (0.5, dash(2.6, 1.5)),
        (false, Certainty::Surveyed | Certainty::Treaty) => (0.95, Vec::new()),
        (false, Certainty::Approximate) => (0.95, dash(6.4, 2.6)),
        (false, Certainty::Conjectural) => (1.25, dash(0.0, 3.0)),
    };
    let mut marks = Vec::new();
    if !is_inner {
        marks.push(Mark::line(path.clone(), ink(PAPER).at(0.5), 2.0 * pt));
    }
    marks.push(Mark::Stroke { path: path.clone(), ink: ink(rgb), width: width * pt, dash });
    marks
}

/// Marks the outline of contested land along a path: short dashes.
pub(super) fn contested_marks(path: &tiny_skia::Path, pt: f32) -> Vec<Mark> {
    let dash = vec![2.8 * pt, 1.8 * pt];
    vec![
        Mark::line(path.clone(), ink(PAPER).at(0.5), 1.6 * pt),
        Mark::Stroke { path: path.clone(), ink: ink([84, 34, 44]), width: 0.6 * pt, dash },
    ]
}

/// Width of the frame's band, points.
pub(super) const FRAME_PT: f32 = 16.0;

/// The frame around a map window whose upper-left corner is at (`x`, `y`).
pub(super) fn frame(pen: &Pen, g: &Graticule, x: f32, y: f32, width: f32, height: f32) -> Vec<Mark> {
    let pt = pen.pt;
    let mut marks = Vec::new();
    let ring = |d: f32| rectangle(x - d, y - d, x + width + d, y + height + d);
    let zebra = 3.0 * pt;
    // The band of degrees: paper, then every second fine step in ink.
    for edge in [Edge::Top, Edge::Bottom, Edge::Left, Edge::Right] {
        let across = matches!(edge, Edge::Top | Edge::Bottom);
        let length = if across { width } else { height };
        let ticks: Vec<_> = g.ticks.iter().filter(|t| t.edge == edge).collect();
        let (near, far) = (1.1 * pt, zebra);
        let mut bar = |a: f32, b: f32, d0: f32, d1: f32| {
            let path = match edge {
                Edge::Top => rectangle(x + a, y - d1, x + b, y - d0),
                Edge::Bottom => rectangle(x + a, y + height + d0, x + b, y + height + d1),
                Edge::Left => rectangle(x - d1, y + a, x - d0, y + b),
                Edge::Right => rectangle(x + width + d0, y + a, x + width + d1, y + b),
            };
            marks.extend(path.map(|p| Mark::Fill(p, ink(INK))));
        };
        // Fine step k runs from degree k to k + 1, which lies to the right of it, or above.
        let dark = |count: i64| count.rem_euclid(2) == 0;
        let before = |count: i64| if across { count - 1 } else { count };
        let after = |count: i64| if across { count } else { count - 1 };
        if let Some(first) = ticks.first().filter(|t| dark(before(t.count))) {
            bar(0.0, first.along, near, far);
        }
        for (k, t) in ticks.iter().enumerate() {
            let end = ticks.get(k + 1).map_or(length, |n| n.along);
            if dark(after(t.count)) && end > t.along {
                bar(t.along, end, near, far);
            }
            if t.label.is_some() {
                bar(t.along - 0.25 * pt, t.along + 0.25 * pt, 0.0, far + 2.0 * pt);
            }
        }
        let mut last_end = f32::MIN;
        for t in ticks {
            let Some(label) = &t.label else { continue };
            let line = pen.fonts.shape(label, Style::Regular, false);
            let size = 7.0 * pt;
            let half = line.width(size, 0.0) / 2.0;
            let middle = t.along.clamp(half, (length - half).max(half));
            if middle - half < last_end + 3.0 * pt || 2.0 * half > length {
                continue;
            }
            last_end = middle + half;
            let off = zebra + 3.0 * pt;
            let cap = CAP_EM * size;
            let quarter = std::f32::consts::FRAC_PI_2;
            let (at, angle) = match edge {
                Edge::Top => (point(x + middle - half, y - off), 0.0),
                Edge::Bottom => (point(x + middle - half, y + height + off + cap), 0.0),
                Edge::Left => (point(x - off, y + middle + half), -quarter),
                Edge::Right => (point(x + width + off, y + middle - half), quarter),
            };
            marks.extend(pen.fonts.straight(&line, size, 0.0, at, angle).map(|s| Mark::Fill(s.path, ink(INK))));
        }
    }
    for (d, w) in
        [(0.0, 0.55), (zebra + 0.55 * pt, 0.4), (FRAME_PT * pt - 1.2 * pt, 1.9), (FRAME_PT * pt - 3.6 * pt, 0.4)]
    {
        marks.extend(ring(d).map(|p| Mark::line(p, ink(INK), w * pt)));
    }
    marks
}

/// The title: place, era, the part that is shown, rule.
pub(super) fn title(pen: &Pen, input: &SheetInput, width: f32, is_band: bool) -> Block {
    let pt = pen.pt;
    let mut b = Block::default();
    let name = input.title.to_uppercase();
    if is_band {
        // One line over the map.
        let text = if input.era.is_empty() { name } else { format!("{name}  ·  {}", input.era) };
        let size = pen.fitted(&text, Style::Regular, 30.0, 0.14, width);
        b.height = (1.5 * size + 6.0) * pt;
        b.marks.extend(pen.text(
            &text,
            Style::Regular,
            size,
            0.14,
            width / 2.0,
            1.1 * size * pt,
            Align::Centre,
            ink(INK),
        ));
        if !input.part.is_empty() {
            let size = pen.fitted(input.part, Style::Italic, 11.0, 0.02, width);
            b.height += 1.3 * size * pt;
            let y = b.height - 8.0 * pt;
            b.marks.extend(pen.text(input.part, Style::Italic, size, 0.02, width / 2.0, y, Align::Centre, ink(INK)));
        }
        return b;
    }
    let (size, lines) = title_lines(pen, &name, width);
    let mut y = 3.0 * pt;
    for line in &lines {
        y += (size * if y > 3.0 * pt { 1.05 } else { 0.75 }) * pt;
        b.marks.extend(pen.text(line, Style::Regular, size, 0.12, width / 2.0, y, Align::Centre, ink(INK)));
    }
    if !input.era.is_empty() {
        let era_size = pen.fitted(input.era, Style::Semibold, 40.0, 0.05, width * 0.9);
        y += (era_size * 0.75 + 11.0) * pt;
        let era =
            pen.text(input.era, Style::Semibold, era_size, 0.05, width / 2.0, y, Align::Centre, ink([122, 36, 40]));
        b.marks.extend(era);
    }
    if !input.part.is_empty() {
        let size = pen.fitted(input.part, Style::Italic, 11.0, 0.02, width * 0.9);
        y += (size + 5.0) * pt;
        b.marks.extend(pen.text(input.part, Style::Italic, size, 0.02, width / 2.0, y, Align::Centre, ink(INK)));
    }
    y += 10.0 * pt;
    // A tapering rule with a diamond.
    let (c, r) = (width / 2.0, 2.6 * pt);
    for side in [-1.0f32, 1.0] {
        let taper =
            [(c + side * 7.0 * pt, y - 0.45 * pt), (c + side * width * 0.32, y), (c + side * 7.0 * pt, y + 0.45 * pt)];
        b.marks.extend(path_through(&taper, true).map(|p| Mark::Fill(p, ink(INK))));
    }
    b.marks
        .extend(path_through(&[(c - r, y), (c, y - r), (c + r, y), (c, y + r)], true).map(|p| Mark::Fill(p, ink(INK))));
    b.height = y + 8.0 * pt;
    b
}

/// A title in at most three lines, with the greatest size in points at which they fit `width`.
fn title_lines(pen: &Pen, title: &str, width: f32) -> (f32, Vec<String>) {
    let measure = |t: &str, size: f32| pen.fonts.shape(t, Style::Regular, true).width(size * pen.pt, 0.12);
    // One line looks better than two that are a little larger.
    if let Some(size) = [27.0, 24.0, 21.0, 19.0].into_iter().find(|&size| measure(title, size) <= width) {
        return (size, vec![title.to_string()]);
    }
    for size in [27.0, 24.0, 21.0, 19.0, 17.0, 15.0] {
        let mut lines: Vec<String> = Vec::new();
        for word in title.split_whitespace() {
            match lines.last_mut().filter(|l| measure(&format!("{l} {word}"), size) <= width) {
                Some(l) => *l = format!("{l} {word}"),
                None => lines.push(word.to_string()),
            }
        }
        if lines.len() <= 3 && lines.iter().all(|l| measure(l, size) <= width) {
            return (size, lines);
        }
    }
    (pen.fitted(title, Style::Regular, 15.0, 0.12, width), vec![title.to_string()])
}

/// What the legend has to explain.
pub(super) struct Legend<'a> {
    /// The sheet.
    pub input: &'a SheetInput<'a>,
    /// How it is drawn.
    pub options: &'a SheetOptions,
    /// Numbers on the map, by polity code.
    pub keys: &'a [(u16, usize)],
    /// Codes of the polities in view.
    pub in_view: &'a HashSet<u16>,
    /// Border lines drawn, each with whether it is an inner one.
    pub borders: &'a [(&'a BorderLine, bool)],
    /// Kinds of signs that are on the map (`peak` among them).
    pub kinds: &'a [String],
    /// Greatest height and depth in view, metres; `None` where there is no land or sea.
    pub heights: (Option<(f32, f32)>, Option<f32>),
    /// Pairs of holder and rival that contest land in view, the greatest first; holder 0 is nobody.
    pub contests: &'a [((u16, u16), usize)],
    /// Whether rivers are in view.
    pub has_rivers: bool,
    /// Pixels per metre at the centre and direction of north.
    pub scale: (f64, f32),
}

/// The blocks of the legend in reading order, for columns of `width` pixels.
pub(super) fn legend(pen: &Pen, l: &Legend, width: f32) -> Vec<Block> {
    let mut blocks = Vec::new();
    let drawn: Vec<&PolityRegion> = l.input.polities.iter().filter(|p| l.in_view.contains(&p.code)).collect();
    let mut of = |title: &str, kinds: &[ClaimKind]| {
        let mut rows: Vec<_> = drawn.iter().filter(|p| kinds.contains(&p.claim.kind)).collect();
        rows.sort_by(|a, b| a.claim.name.cmp(&b.claim.name).then(a.code.cmp(&b.code)));
        if !rows.is_empty() {
            blocks.push(pen.heading(title, width));
            blocks.extend(rows.iter().map(|p| polity_row(pen, p, l, width)));
        }
    };
    of("Polities", &[ClaimKind::Polity, ClaimKind::Composite]);
    of("Claims", &[ClaimKind::Claim]);
    of("Parts", &[ClaimKind::Part]);
    of("Peoples", &[ClaimKind::People]);
    let rows = line_rows(pen, l);
    if !rows.is_empty() {
        blocks.push(pen.heading("Borders and waters", width));
        blocks.extend(rows);
    }
    if !l.kinds.is_empty() {
        blocks.push(pen.heading("Signs", width));
        blocks.extend(sign_rows(pen, l.kinds, width));
    }
    if l.heights != (None, None) {
        blocks.push(pen.heading("Heights and depths in metres", width));
        if let Some((lo, hi)) = l.heights.0 {
            blocks.push(land_scale(pen, lo, hi, width));
        }
        if let Some(depth) = l.heights.1 {
            blocks.push(depth_scale(pen, depth, width));
        }
    }
    blocks.push(scale_bar(pen, l, width));
    blocks
}

fn polity_row(pen: &Pen, p: &PolityRegion, l: &Legend, width: f32) -> Block {
    let pt = pen.pt;
    let swatch = 21.0 * pt;
    let x = swatch + 6.0 * pt;
    let c = &p.claim;
    let mut b = Block::default();
    let is_people = c.kind == ClaimKind::People;
    let style = if is_people { Style::Italic } else { Style::Regular };
    let mut y = 0.0;
    let number = l.keys.iter().find(|k| k.0 == p.code).map(|k| format!("{} ", k.1)).unwrap_or_default();
    let mut end = x;
    let doubt = if is_in_doubt(p) { " (years in doubt)" } else { "" };
    for line in pen.wrap(&format!("{number}{}{doubt}", c.name), style, 8.4, width - x) {
        y += 10.4 * pt;
        end = x + pen.fonts.shape(&line, style, false).width(8.4 * pt, 0.0);
        b.marks.extend(pen.text(&line, style, 8.4, 0.0, x, y - 2.4 * pt, Align::Left, ink(INK)));
    }
    if !c.name_local.is_empty() && c.name_local != c.name && pen.fonts.covers(&c.name_local) {
        // On the same line where there is room.
        let local = pen.fonts.shape(&c.name_local, Style::Regular, false).width(7.2 * pt, 0.0);
        if end + 7.0 * pt + local <= width {
            let at = end + 7.0 * pt;
            b.marks.extend(pen.text(
                &c.name_local,
                Style::Regular,
                7.2,
                0.0,
                at,
                y - 2.4 * pt,
                Align::Left,
                ink(FAINT),
            ));
        } else {
            for line in pen.wrap(&c.name_local, Style::Regular, 7.2, width - x) {
                y += 9.6 * pt;
                b.marks.extend(pen.text(&line, Style::Regular, 7.2, 0.0, x, y - 2.6 * pt, Align::Left, ink(FAINT)));
            }
        }
    }
    let h = 10.0 * pt;
    let top = 1.2 * pt;
    if is_people {
        let aa = pen.text(
            "Aa",
            Style::Italic,
            8.4,
            0.12,
            swatch / 2.0,
            top + h - 2.4 * pt,
            Align::Centre,
            ink([84, 72, 60]),
        );
        b.marks.extend(aa);
    } else {
        // A claim looks as on the map: hatched in both colours where it is contested.
        let is_of = |pair: (u16, u16)| pair.0 == p.code || pair.1 == p.code;
        if let Some((pair, _)) = l.contests.iter().find(|c| c.0.1 == p.code).or(l.contests.iter().find(|c| is_of(c.0)))
            && c.kind == ClaimKind::Claim
        {
            b.marks.extend(hatched(l, *pair, swatch, top, h, pt));
            b.height = y.max(h + top) + 2.6 * pt;
            return b;
        }
        // The swatch shows wash and ribbon as on the map, on pale land.
        let ground: Rgb = land_tint(350.0);
        let tone = |s: f32| ink(washed(ground, p.colour, s).map(|v| v as u8));
        b.marks.extend(rectangle(0.0, top, swatch, top + h).map(|r| Mark::Fill(r, tone(RIBBON))));
        let rim = 2.6 * pt;
        b.marks.extend(rectangle(rim, top + rim, swatch - rim, top + h - rim).map(|r| Mark::Fill(r, tone(WASH))));
        // Its frame has the pattern of its borders, which the key explains in words.
        let certainty = if is_in_doubt(p) { Certainty::Conjectural } else { c.certainty };
        let dash = match certainty {
            Certainty::Conjectural => vec![0.0, 1.9 * pt],
            Certainty::Approximate => vec![3.2 * pt, 1.3 * pt],
            Certainty::Treaty | Certainty::Surveyed => Vec::new(),
        };
        let width = if certainty == Certainty::Conjectural { 0.8 } else { 0.45 };
        let frame = rectangle(0.0, top, swatch, top + h);
        b.marks.extend(frame.map(|path| Mark::Stroke { path, ink: ink(INK), width: width * pt, dash }));
    }
    b.height = y.max(h + top) + 2.6 * pt;
    b
}

/// Whether it is not beyond doubt that the polity held in the era.
fn is_in_doubt(p: &PolityRegion) -> bool {
    p.standing.sureness != Sureness::Certain
}

/// A swatch of land that `pair` contests, as on the map, `width` by `height` from `top` down.
fn hatched(l: &Legend, (holder, rival): (u16, u16), width: f32, top: f32, height: f32, pt: f32) -> Vec<Mark> {
    let ground = land_tint(350.0);
    let colour = |code: u16| l.input.polities.iter().find(|p| p.code == code).map(|p| p.colour);
    let tone = |c: [u8; 3], s: f32| ink(washed(ground, c, s).map(|v| v as u8));
    let base = colour(holder).map_or(ink(ground.map(|v| v as u8)), |c| tone(c, WASH));
    let outline = rectangle(0.0, top, width, top + height);
    let mut marks: Vec<Mark> = outline.iter().map(|r| Mark::Fill(r.clone(), base)).collect();
    let (wide, step) = (HATCH_WIDE_PT * pt, HATCH_PT * pt);
    for (code, first) in [(holder, 0.0), (rival, 0.5)] {
        let Some(stripe) = colour(code).map(|c| tone(c, STRIPE)) else { continue };
        let mut x = first * step;
        while x < width + height {
            // Cut at the sides of the swatch, corner by corner.
            let at = |x: f32, y: f32| (x - (y - top)).clamp(0.0, width);
            let steps = 24;
            let side =
                |x: f32| (0..=steps).map(move |k| top + height * k as f32 / steps as f32).map(move |y| (at(x, y), y));
            let corners: Vec<(f32, f32)> =
                side(x).chain(side(x + wide).collect::<Vec<_>>().into_iter().rev()).collect();
            marks.extend(path_through(&corners, true).map(|p| Mark::Fill(p, stripe)));
            x += step;
        }
    }
    marks.extend(outline.iter().flat_map(|r| contested_marks(r, pt)));
    marks
}

/// Rows that explain border lines, hatching and rivers, as far as they are on the map.
fn line_rows(pen: &Pen, l: &Legend) -> Vec<Block> {
    let pt = pen.pt;
    let has = |inner: bool, c: &[Certainty]| l.borders.iter().any(|b| b.1 == inner && c.contains(&b.0.certainty));
    let sample = path_through(&[(0.0, 7.0 * pt), (28.0 * pt, 7.0 * pt)], false);
    let mut rows = Vec::new();
    let mut row = |marks: Vec<Mark>, text: &str| {
        let mut b = Block { marks, height: 12.0 * pt, ..Block::default() };
        b.marks.extend(pen.text(text, Style::Regular, 8.0, 0.0, 34.0 * pt, 9.6 * pt, Align::Left, ink(INK)));
        rows.push(b);
    };
    let styled = |c: Certainty, inner: bool| sample.as_ref().map(|p| border_marks(p, c, inner, pt)).unwrap_or_default();
    if has(false, &[Certainty::Surveyed, Certainty::Treaty]) {
        row(styled(Certainty::Treaty, false), "Border by survey or treaty");
    }
    if has(false, &[Certainty::Approximate]) {
        row(styled(Certainty::Approximate, false), "Border, approximate");
    }
    if has(false, &[Certainty::Conjectural]) {
        row(styled(Certainty::Conjectural, false), "Border, conjectural or in doubt");
    }
    if l.borders.iter().any(|b| b.1) {
        row(styled(Certainty::Approximate, true), "Border of a part");
    }
    if let Some((pair, _)) = l.contests.first() {
        row(hatched(l, *pair, 28.0 * pt, 1.6 * pt, 9.0 * pt, pt), "Contested, in the colours of both sides");
    }
    if l.has_rivers {
        let river =
            path_through(&[(0.0, 8.5 * pt), (9.0 * pt, 5.5 * pt), (18.0 * pt, 8.0 * pt), (28.0 * pt, 6.0 * pt)], false);
        row(river.map(|p| Mark::line(p, ink(WATER_INK), 0.9 * pt)).into_iter().collect(), "River");
    }
    rows
}

/// Signs in two columns.
fn sign_rows(pen: &Pen, kinds: &[String], width: f32) -> Vec<Block> {
    let pt = pen.pt;
    let mut entries: Vec<(&str, &str)> = KINDS.into_iter().filter(|k| kinds.iter().any(|h| h == k.0)).collect();
    if kinds.iter().any(|k| k == "peak") {
        entries.push(("peak", "Summit, height in metres"));
    }
    let columns = if width > 190.0 * pt { 2 } else { 1 };
    entries
        .chunks(columns)
        .map(|row| {
            let mut b = Block { height: 12.4 * pt, ..Block::default() };
            for (k, (kind, text)) in row.iter().enumerate() {
                let x = k as f32 * width / 2.0;
                b.marks.extend(symbol(kind, 1, point(x + 5.0 * pt, 6.6 * pt), pt).marks);
                b.marks.extend(pen.text(
                    text,
                    Style::Regular,
                    8.0,
                    0.0,
                    x + 13.0 * pt,
                    9.2 * pt,
                    Align::Left,
                    ink(INK),
                ));
            }
            b
        })
        .collect()
}

/// The land tints as a bar, from `lo` to `hi` metres, with the heights beneath.
fn land_scale(pen: &Pen, lo: f32, hi: f32, width: f32) -> Block {
    let pt = pen.pt;
    let stops: Vec<f32> = LAND_TINTS.iter().map(|t| t.0).filter(|z| *z >= 0.0).collect();
    let first = if lo < 0.0 { -100.0 } else { stops.iter().rev().find(|s| **s <= lo).copied().unwrap_or(0.0) };
    let last = stops.iter().find(|s| **s >= hi).copied().unwrap_or(5000.0).max(first + 200.0);
    let mut marks_at: Vec<f32> = stops.into_iter().filter(|s| *s >= first && *s <= last).collect();
    if marks_at.len() < 2 {
        marks_at = vec![first, last];
    }
    // Each step takes the same room.
    let mut b = Block { height: 22.0 * pt, ..Block::default() };
    let below = first < marks_at[0];
    let steps = marks_at.len() - 1 + usize::from(below);
    let w = width / steps as f32;
    let x_of = |k: usize| (k + usize::from(below)) as f32 * w;
    let parts = 24;
    let mut fill = |x: f32, w: f32, z: f32| {
        let c = land_tint(z).map(|v| v as u8);
        // Slivers overlap, so that no paper shows between them.
        b.marks.extend(rectangle(x, 2.0 * pt, (x + w + 0.7).min(width), 10.0 * pt).map(|p| Mark::Fill(p, ink(c))));
    };
    if below {
        fill(0.0, w, -28.0);
    }
    for (k, pair) in marks_at.windows(2).enumerate() {
        for i in 0..parts {
            let t = i as f32 / parts as f32;
            fill(x_of(k) + t * w, w / parts as f32, pair[0] + (t + 0.5 / parts as f32) * (pair[1] - pair[0]));
        }
    }
    b.marks.extend(rectangle(0.0, 2.0 * pt, width, 10.0 * pt).map(|p| Mark::line(p, ink(INK), 0.35 * pt)));
    if below {
        b.marks.extend(pen.text("< 0", Style::Regular, 6.3, 0.0, 0.0, 17.4 * pt, Align::Left, ink(INK)));
    }
    for (k, z) in marks_at.iter().enumerate() {
        let align = match k {
            0 if !below => Align::Left,
            _ if k + 1 == marks_at.len() => Align::Right,
            _ => Align::Centre,
        };
        b.marks.extend(pen.text(
            &grouped(f64::from(*z)),
            Style::Regular,
            6.3,
            0.0,
            x_of(k),
            17.4 * pt,
            align,
            ink(INK),
        ));
    }
    b
}

/// The depth tints as boxes, with the depth from which each holds.
fn depth_scale(pen: &Pen, greatest: f32, width: f32) -> Block {
    let pt = pen.pt;
    let shown: Vec<_> = DEPTH_TINTS.iter().filter(|t| t.0 == 0.0 || t.0 < greatest).collect();
    let mut b = Block { height: 21.0 * pt, ..Block::default() };
    let w = width / DEPTH_TINTS.len() as f32;
    for (k, (depth, colour)) in shown.iter().enumerate() {
        let x = k as f32 * w;
        b.marks.extend(rectangle(x, 1.0 * pt, x + w, 9.0 * pt).map(|p| Mark::Fill(p, ink(colour.map(|v| v as u8)))));
        b.marks.extend(rectangle(x, 1.0 * pt, x + w, 9.0 * pt).map(|p| Mark::line(p, ink(WATER_INK), 0.3 * pt)));
        let align = if k == 0 { Align::Left } else { Align::Centre };
        b.marks.extend(pen.text(
            &grouped(f64::from(*depth)),
            Style::Italic,
            6.3,
            0.0,
            x,
            16.2 * pt,
            align,
            ink(WATER_INK),
        ));
    }
    b
}

/// Scale bar, representative fraction and the direction of north.
fn scale_bar(pen: &Pen, l: &Legend, width: f32) -> Block {
    let pt = pen.pt;
    let mut b = Block { height: 50.0 * pt, ..Block::default() };
    let (px_per_m, north) = l.scale;
    // The longest bar of two to five round steps.
    let room = f64::from(width - 46.0 * pt) / px_per_m;
    let length = |n: u32| scale_step(room / f64::from(n)) * f64::from(n);
    let steps = [4u32, 5, 3, 2].into_iter().reduce(|a, b| if length(b) > length(a) { b } else { a }).unwrap_or(4);
    let step_m = length(steps) / f64::from(steps);
    let step = (step_m * px_per_m) as f32;
    let x0 = 4.0 * pt;
    let y = 24.0 * pt;
    let unit = if step_m >= 1000.0 { ("km", 1000.0) } else { ("m", 1.0) };
    let end = x0 + steps as f32 * step;
    for k in 0..steps {
        let x = x0 + k as f32 * step;
        let fill = if k % 2 == 0 { INK } else { PAPER };
        b.marks.extend(rectangle(x, y, x + step, y + 3.0 * pt).map(|p| Mark::Fill(p, ink(fill))));
    }
    b.marks.extend(rectangle(x0, y, end, y + 3.0 * pt).map(|p| Mark::line(p, ink(INK), 0.4 * pt)));
    for k in 0..=steps {
        let value = grouped(step_m * f64::from(k) / unit.1);
        let at = x0 + k as f32 * step;
        b.marks.extend(pen.text(&value, Style::Regular, 7.0, 0.0, at, y - 2.6 * pt, Align::Centre, ink(INK)));
        if k == steps {
            let half = pen.fonts.shape(&value, Style::Regular, false).width(3.5 * pt, 0.0);
            let at = at + half + 2.0 * pt;
            b.marks.extend(pen.text(unit.0, Style::Regular, 7.0, 0.0, at, y - 2.6 * pt, Align::Left, ink(INK)));
        }
    }
    let fraction = l.options.dpi / 0.0254 / px_per_m;
    let round = 10f64.powf((fraction.log10() - 2.0).floor());
    let text = format!("1 : {} printed at {:.0} dpi", grouped((fraction / round).round() * round), l.options.dpi);
    b.marks.extend(pen.text(&text, Style::Italic, 7.4, 0.0, x0, y + 14.0 * pt, Align::Left, ink(INK)));
    // The needle turns with the meridian.
    let (cx, cy, r) = (width - 11.0 * pt, 30.0 * pt, 13.0 * pt);
    let (s, c) = north.sin_cos();
    let turn = |x: f32, y: f32| (cx + c * x - s * y, cy + s * x + c * y);
    let half = |side: f32| path_through(&[turn(0.0, -r), turn(side * 0.3 * r, 0.75 * r), turn(0.0, 0.42 * r)], true);
    b.marks.extend(half(-1.0).map(|p| Mark::Fill(p, ink(INK))));
    b.marks.extend(half(1.0).map(|p| Mark::line(p, ink(INK), 0.5 * pt)));
    let tip = turn(0.0, -r - 3.2 * pt);
    b.marks.extend(pen.text("N", Style::Semibold, 8.0, 0.0, tip.0, tip.1 + 1.0 * pt, Align::Centre, ink(INK)));
    b
}

/// The greatest round length (1, 2, 5 or 10 times a power of ten) that is at most `room_m`.
fn scale_step(room_m: f64) -> f64 {
    let power = 10f64.powf(room_m.max(1e-3).log10().floor());
    [5.0, 2.0, 1.0].into_iter().map(|f| f * power).find(|s| *s <= room_m).unwrap_or(power)
}

/// A whole number with thin spaces between thousands.
fn grouped(v: f64) -> String {
    let digits = format!("{:.0}", v.abs());
    let mut out = String::new();
    for (k, c) in digits.chars().enumerate() {
        if k > 0 && (digits.len() - k).is_multiple_of(3) && digits.len() > 4 {
            out.push('\u{a0}');
        }
        out.push(c);
    }
    if v < 0.0 { format!("−{out}") } else { out }
}

/// The lines of small print.
pub(super) fn imprint(pen: &Pen, lines: &[String], width: f32) -> Block {
    let mut all = Block::default();
    for line in lines.iter().filter(|l| !l.trim().is_empty()) {
        let b = pen.paragraph(line, Style::Regular, 5.8, 1.22, width, Align::Left, ink(FAINT));
        all.marks.extend(b.marks.into_iter().filter_map(|m| m.moved(0.0, all.height)));
        all.height += b.height + 1.4 * pen.pt;
    }
    all
}

/// Blocks flowed into columns at most `height` high: for each block its column and top. Headings stay with what follows.
pub(super) fn flow(blocks: &[Block], height: f32) -> Vec<(usize, f32)> {
    let mut at = Vec::with_capacity(blocks.len());
    let (mut column, mut y) = (0, 0.0f32);
    for (k, b) in blocks.iter().enumerate() {
        let mut need = b.height;
        let mut next = k;
        while blocks[next].keeps_next && next + 1 < blocks.len() {
            next += 1;
            need += blocks[next].height;
        }
        if y > 0.0 && y + need > height {
            column += 1;
            y = 0.0;
        }
        at.push((column, y));
        y += b.height;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_and_steps_round() {
        assert_eq!(grouped(2_720_000.0), "2\u{a0}720\u{a0}000");
        assert_eq!(grouped(5000.0), "5000");
        assert_eq!(grouped(-28.0), "−28");
        assert_eq!(scale_step(73_000.0), 50_000.0);
        assert_eq!(scale_step(100.0), 100.0);
        assert_eq!(scale_step(0.19), 0.1);
    }

    #[test]
    fn long_titles_break_and_endless_ones_shrink() {
        let fonts = Fonts::embedded();
        let pen = Pen { fonts: &fonts, pt: 2.0 };
        assert_eq!(title_lines(&pen, "THE CAUCASUS", 460.0).1.len(), 1);
        assert_eq!(
            title_lines(&pen, "ARMENIA, IBERIA AND ALBANIA", 460.0),
            (27.0, vec!["ARMENIA,".into(), "IBERIA AND".into(), "ALBANIA".into()])
        );
        let (size, lines) = title_lines(&pen, &"X".repeat(200), 460.0);
        assert!(lines.len() == 1 && fonts.shape(&lines[0], Style::Regular, true).width(2.0 * size, 0.12) <= 461.0);
    }

    #[test]
    fn headings_stay_with_their_first_row() {
        let block = |height, keeps_next| Block { height, keeps_next, ..Block::default() };
        let blocks = [block(60.0, false), block(20.0, true), block(30.0, false), block(30.0, false)];
        assert_eq!(flow(&blocks, 100.0), [(0, 0.0), (1, 0.0), (1, 20.0), (1, 50.0)]);
    }

    #[test]
    fn long_words_and_lines_are_wrapped() {
        let fonts = Fonts::embedded();
        let pen = Pen { fonts: &fonts, pt: 2.0 };
        let lines = pen.wrap(
            "https://example.org/a/very/long/address/that/never/ends and more words",
            Style::Regular,
            6.0,
            100.0,
        );
        assert!(lines.len() > 3);
        for l in lines {
            assert!(fonts.shape(&l, Style::Regular, false).width(12.0, 0.0) <= 101.0, "{l}");
        }
    }
}
