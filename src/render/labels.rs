//! What is written on the map and where: polities first, then towns, waters, ranges and summits by rank. A name that finds
//! no free place is left out with its sign, save those of polities, which end as a number explained in the legend.
//!
//! Invariant: no two boxes of labels and signs meet, and none crosses the frame.

use super::canvas::{Ink, Mark, circle, ink, path_through};
use super::curve::{Curve, Point, point};
use super::lettering::{CAP_EM, Fonts, Lettered, Line, Quad, Style, X_EM};
use super::names::{Area, NameFit, fit_name};
use super::placing::{Placing, bounds, upright};
use super::resample::scan_polygon;
use super::symbols::{MOUNTAIN_INK, symbol};
use super::tint::{Ground, INK, PAPER, WATER_INK, to_pixels};
use super::{LabelKind, PlacedLabel, SheetInput};
use crate::borders::{BorderLine, ClaimKind, PolityRegion};
use crate::pack::{Peak, PhysicalName, Place};
use crate::raster::Raster;
use crate::water::{River, WaterBody, WaterKind};
use geo::Area as _;
use geo::MultiPolygon;
use std::collections::HashSet;
use std::f32::consts::TAU;

/// The vectors of the sheet in pixels of the map window.
pub(super) struct Scene<'a> {
    /// Border lines inside the window.
    pub borders: Vec<(Curve, &'a BorderLine)>,
    /// Rivers inside the window, source first.
    pub rivers: Vec<(Curve, &'a River)>,
    /// Places inside the window.
    pub places: Vec<(Point, &'a Place)>,
    /// Summits inside the window.
    pub peaks: Vec<(Point, &'a Peak)>,
    /// Lettering lines; may reach beyond the window.
    pub physical: Vec<(Vec<Point>, &'a PhysicalName)>,
}

/// Letters to draw, with a halo of paper.
pub(super) struct Letters {
    /// Outlines.
    pub path: tiny_skia::Path,
    /// Colour of the letters.
    pub ink: Ink,
    /// Halo.
    pub halo: Ink,
    /// Width of the halo on each side, pixels.
    pub halo_px: f32,
}

/// All lettering and signs of the map window.
#[derive(Default)]
pub(super) struct Lettering {
    /// Signs and leaders, in drawing order.
    pub marks: Vec<Mark>,
    /// Letters, drawn over the signs.
    pub letters: Vec<Letters>,
    /// What stands where.
    pub placed: Vec<PlacedLabel>,
    /// Numbers that stand for polities, with the polity's code.
    pub keys: Vec<(u16, usize)>,
    /// Codes of the polities that have land in view.
    pub in_view: HashSet<u16>,
}

/// Places all names. `pt` is a printer's point in pixels.
pub(super) fn letter(
    input: &SheetInput,
    scene: &Scene,
    ground: &Ground,
    fonts: &Fonts,
    to_px: &impl Fn(f64, f64) -> (f64, f64),
    pt: f32,
) -> Lettering {
    let mut w = Writer {
        fonts,
        placing: Placing::new(ground.width, ground.height, 1.5 * pt),
        pt,
        year: input.year,
        sea: &ground.sea,
        out: Lettering::default(),
        reserved: HashSet::new(),
    };
    for (c, _) in &scene.borders {
        w.placing.mark_line(c.points(), 4);
    }
    for (c, r) in &scene.rivers {
        w.placing.mark_line(c.points(), if r.rank <= 2 { 2 } else { 1 });
    }
    for y in 1..ground.height {
        for x in 1..ground.width {
            let wet = |x: usize, y: usize| ground.sea.at(x, y) >= 0.5 || ground.lake.at(x, y) >= 0.5;
            if wet(x, y) != wet(x - 1, y) || wet(x, y) != wet(x, y - 1) {
                w.placing.mark_line(&[point(x as f32, y as f32); 2], 3);
            }
        }
    }
    // Signs that must show keep their ground before any name is set.
    let mut places: Vec<_> = scene.places.iter().collect();
    places.sort_by(|a, b| a.1.rank.cmp(&b.1.rank).then_with(|| a.1.name.cmp(&b.1.name)));
    for (k, (at, p)) in places.iter().enumerate().filter(|(_, p)| p.1.rank <= 2) {
        w.reserve(k, symbol(&p.kind, p.rank, *at, pt).quad);
    }
    let mut peaks: Vec<_> = scene.peaks.iter().collect();
    peaks.sort_by(|a, b| a.1.rank.cmp(&b.1.rank).then_with(|| b.1.height_m.total_cmp(&a.1.height_m)));
    for (k, (at, p)) in peaks.iter().enumerate().filter(|(_, p)| p.1.rank <= 1) {
        w.reserve(places.len() + k, symbol("peak", p.rank, *at, pt).quad);
    }
    // The others are missed the less the lower they rank.
    let weight = |rank: u8| [1.2, 1.2, 1.0, 0.8, 0.4][rank.min(4) as usize];
    let signs = places.iter().map(|(at, p)| (symbol(&p.kind, p.rank, *at, pt).quad, p.rank));
    for (quad, rank) in signs.chain(peaks.iter().map(|(at, p)| (symbol("peak", p.rank, *at, pt).quad, 4))) {
        w.placing.want(quad, weight(rank));
    }
    let mut polities: Vec<_> = input.polities.iter().collect();
    let class = |p: &PolityRegion| match p.claim.kind {
        ClaimKind::Part => 2,
        ClaimKind::People => 1,
        _ => 0,
    };
    polities.sort_by(|a, b| class(a).cmp(&class(b)).then(a.area_km2.total_cmp(&b.area_km2)).then(a.code.cmp(&b.code)));
    let (states, others): (Vec<&PolityRegion>, Vec<&PolityRegion>) = polities.into_iter().partition(|p| class(p) == 0);
    // Seats of rulers and great towns are where they are; names of states can give way. Small states have the least
    // choice.
    for (k, (at, p)) in places.iter().enumerate().filter(|(_, p)| p.1.rank <= 1 || p.1.kind == "capital") {
        w.place(k, *at, p);
    }
    for p in states {
        w.polity(p, ground, to_px);
    }
    w.out.in_view.extend(ground.contested.values.iter().copied().filter(|&c| c != 0));
    let physical = |w: &mut Writer, rank: u8| {
        for (line, name) in scene.physical.iter().filter(|p| p.1.rank.clamp(1, 4) == rank) {
            // "Lake Sevan" letters the lake "Sevan".
            let is_named = |b: &&WaterBody| match (b.kind, name.kind.as_str()) {
                (WaterKind::Sea, "sea") => b.name == name.name,
                (WaterKind::Lake, "lake") => b.name == name.name || name.name.split(' ').any(|w| w == b.name),
                _ => false,
            };
            let body = input.water_bodies.iter().find(is_named);
            w.physical(line, name, body.map(|b| to_pixels(&b.area, to_px)));
        }
    };
    let towns = |w: &mut Writer, rank: u8| {
        let others = places.iter().enumerate().filter(|(_, p)| p.1.kind != "capital");
        for (k, (at, p)) in others.filter(|(_, p)| p.1.rank.clamp(1, 4) == rank) {
            w.place(k, *at, p);
        }
    };
    let summits = |w: &mut Writer, rank: u8| {
        for (k, (at, p)) in peaks.iter().enumerate().filter(|(_, p)| p.1.rank.clamp(1, 4) == rank) {
            w.peak(places.len() + k, *at, p);
        }
    };
    physical(&mut w, 1);
    for p in others {
        w.polity(p, ground, to_px);
    }
    summits(&mut w, 1);
    towns(&mut w, 2);
    physical(&mut w, 2);
    w.lakes(input, to_px);
    summits(&mut w, 2);
    for rank in 3..=4 {
        towns(&mut w, rank);
        if rank == 3 {
            w.rivers(scene);
        }
        physical(&mut w, rank);
        summits(&mut w, rank);
    }
    w.out
}

struct Writer<'a> {
    fonts: &'a Fonts,
    placing: Placing,
    pt: f32,
    year: i32,
    /// Part of each pixel that is sea.
    sea: &'a Raster<f32>,
    out: Lettering,
    /// Signs whose ground is taken already.
    reserved: HashSet<usize>,
}

/// One way to set a name: its penalty, and what builds it.
type Way<'a> = (f32, Box<dyn Fn(&Writer) -> Option<Lettered> + 'a>);

impl Writer<'_> {
    /// Keeps the ground of a sign, if it is free.
    fn reserve(&mut self, sign: usize, quad: Quad) {
        if self.placing.is_free(&[quad]) {
            self.placing.take(&[quad]);
            self.reserved.insert(sign);
        }
    }

    /// Writes letters that have been found a place.
    fn write(&mut self, text: &str, kind: LabelKind, set: Lettered, colour: Ink, halo_pt: f32) {
        self.placing.take(&set.ground());
        let boxes = set.ground().iter().map(|q| q.map(|p| [p.x, p.y])).collect();
        self.out.placed.push(PlacedLabel { text: text.to_string(), kind, boxes });
        let halo = ink(PAPER).at(if kind == LabelKind::Polity { 0.6 } else { 0.78 });
        self.out.letters.push(Letters { path: set.path, ink: colour, halo, halo_px: halo_pt * self.pt });
    }

    /// The cheapest free one of `candidates` (letters, penalty).
    fn cheapest(&self, candidates: impl IntoIterator<Item = (Lettered, f32)>) -> Option<Lettered> {
        let mut best: Option<(Lettered, f32)> = None;
        for (set, penalty) in candidates {
            if best.as_ref().is_some_and(|b| b.1 <= penalty) || !self.placing.is_free(&set.ground()) {
                continue;
            }
            let cost = penalty + self.placing.cost_of(&set);
            if best.as_ref().is_none_or(|b| cost < b.1) {
                best = Some((set, cost));
            }
        }
        best.map(|b| b.0)
    }

    /// The cheapest free one of `ways`, built one by one until none can be cheaper; `more` adds to the cost of one that is
    /// free.
    fn cheapest_way(&self, mut ways: Vec<Way>, more: impl Fn(&Writer, &Lettered) -> f32) -> Option<Lettered> {
        ways.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut best: Option<(Lettered, f32)> = None;
        for (penalty, build) in ways {
            if best.as_ref().is_some_and(|b| b.1 <= penalty) {
                break;
            }
            let Some(set) = build(self).filter(|s| self.placing.is_free(&s.ground())) else { continue };
            let cost = penalty + self.placing.cost_of(&set) + more(self, &set);
            if best.as_ref().is_none_or(|b| cost < b.1) {
                best = Some((set, cost));
            }
        }
        best.map(|b| b.0)
    }

    /// A name over its region; a number where no name fits.
    fn polity(&mut self, p: &PolityRegion, ground: &Ground, to_px: &impl Fn(f64, f64) -> (f64, f64)) {
        let Some(area) = area_of(p, ground, to_px) else { return };
        self.out.in_view.insert(p.code);
        let pt = self.pt;
        let (kind, style) = match p.claim.kind {
            ClaimKind::People => (LabelKind::People, Style::Italic),
            ClaimKind::Part => (LabelKind::Part, Style::Regular),
            _ => (LabelKind::Polity, Style::Semibold),
        };
        let short = short_name(&p.claim.name);
        let text = if kind == LabelKind::Polity { short.to_uppercase() } else { short.to_string() };
        let (least, greatest, share, spacing) = match kind {
            LabelKind::Polity => (6.6, 25.0, 0.072, (0.10, 0.95)),
            LabelKind::People => (7.4, 17.0, 0.045, (0.14, 0.85)),
            _ => (6.4, 9.5, 0.04, (0.06, 0.5)),
        };
        let first = (share * area.area_px().sqrt() / pt).clamp(least * 1.25, greatest);
        let sizes: Vec<f32> =
            (0..).map(|k| first * 0.93f32.powi(k)).take_while(|s| *s >= least).map(|s| s * pt).collect();
        let colour = if kind == LabelKind::People { ink([84, 72, 60]) } else { ink(name_colour(p.colour)) };
        let breaks = self.line_breaks(&text, style);
        let halo = 0.9;
        let ribbon = if kind == LabelKind::Polity { 5.5 * pt } else { 1.5 * pt };
        for edge in [ribbon, 1.2 * pt] {
            let fit = NameFit { sizes: sizes.clone(), edge, spacing_em: spacing };
            if let Some(set) = fit_name(self.fonts, &area, &breaks, &fit, &self.placing) {
                return self.write(&p.claim.name, kind, set, colour, halo);
            }
        }
        if self.pointed_at(&text, &p.claim.name, kind, area.heart(), colour) {
            return;
        }
        let number = self.out.keys.len() + 1;
        self.out.keys.push((p.code, number));
        self.number(number, &p.claim.name, area.heart());
    }

    /// `text` on one line and, by words, on two and three.
    fn line_breaks(&self, text: &str, style: Style) -> Vec<Vec<Line>> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let shape = |w: &[&str]| self.fonts.shape(&w.join(" "), style, true);
        (1..=3.min(words.len()))
            .filter_map(|lines| {
                // The break that leaves the longest line shortest.
                let mut best: Option<(f32, Vec<Line>)> = None;
                for cuts in cuts(words.len(), lines) {
                    let set: Vec<Line> = cuts.windows(2).map(|c| shape(&words[c[0]..c[1]])).collect();
                    let longest = set.iter().map(|l| l.width_em).fold(0.0, f32::max);
                    if best.as_ref().is_none_or(|b| longest < b.0) {
                        best = Some((longest, set));
                    }
                }
                best.map(|b| b.1)
            })
            .collect()
    }

    /// A small label near `target`, with a leader where it stands off; false where none is free.
    fn pointed_at(&mut self, text: &str, name: &str, kind: LabelKind, target: Point, colour: Ink) -> bool {
        let pt = self.pt;
        let size = 6.8 * pt;
        let breaks = self.line_breaks(text, Style::Semibold);
        for reach in [0.0f32, 11.0, 16.0, 22.0, 30.0, 40.0, 55.0, 75.0] {
            for lines in &breaks {
                for k in 0..16 {
                    let a = k as f32 / 16.0 * TAU;
                    let centre = point(target.x + a.cos() * reach * 1.5 * pt, target.y + a.sin() * reach * pt);
                    let Some(set) = self.block(lines, size, centre) else { continue };
                    let leader = leader(&set.quads, target, pt);
                    let mut all = set.quads.clone();
                    all.extend(leader.map(|end| strip(target, end, pt)));
                    if self.placing.is_free(&all) {
                        if let Some(end) = leader {
                            self.placing.take(&[strip(target, end, pt)]);
                            self.draw_leader(end, target);
                        }
                        self.write(name, kind, set, colour, 0.8);
                        return true;
                    }
                    if reach == 0.0 {
                        break;
                    }
                }
            }
        }
        false
    }

    /// A thin line from a dot at `target` to `end`.
    fn draw_leader(&mut self, end: Point, target: Point) {
        let line = path_through(&[(target.x, target.y), (end.x, end.y)], false);
        let marks = [(1.3, PAPER), (0.45, INK)].map(|(w, c)| (w * self.pt, ink(c)));
        for (width, ink) in marks {
            self.out.marks.extend(line.clone().map(|p| Mark::line(p, ink, width)));
        }
        self.out.marks.extend(circle(target.x, target.y, 0.9 * self.pt).map(|p| Mark::Fill(p, ink(INK))));
    }

    /// A number in a ring, as near `target` as there is room; nowhere if the map is full (the legend still has it).
    fn number(&mut self, number: usize, name: &str, target: Point) {
        let pt = self.pt;
        let line = self.fonts.shape(&number.to_string(), Style::Semibold, false);
        let r = 5.2 * pt;
        for ring in 0..40 {
            let reach = ring as f32 * 3.0 * pt;
            for k in 0..if ring == 0 { 1 } else { 16 } {
                let a = k as f32 / 16.0 * TAU;
                let c = point(target.x + a.cos() * reach, target.y + a.sin() * reach);
                let quad = upright(c.x - r, c.y - r, c.x + r, c.y + r);
                if !self.placing.is_free(&[quad]) {
                    continue;
                }
                if reach > r {
                    self.draw_leader(nearest_on(&[quad], target), target);
                }
                let size = 7.0 * pt;
                let at = point(c.x - line.width(size, 0.0) / 2.0, c.y + CAP_EM * size / 2.0);
                if let Some(set) = self.fonts.straight(&line, size, 0.0, at, 0.0) {
                    self.out.marks.extend(circle(c.x, c.y, r).map(|p| Mark::Fill(p, ink(INK))));
                    self.out.marks.extend(circle(c.x, c.y, r - 0.6 * pt).map(|p| Mark::Fill(p, ink(PAPER))));
                    let set = Lettered { quads: vec![quad], ..set };
                    self.write(name, LabelKind::Key, set, ink(INK), 0.0);
                }
                return;
            }
        }
    }

    /// Lines centred on each other around `centre`.
    fn block(&self, lines: &[Line], size: f32, centre: Point) -> Option<Lettered> {
        let mut path = tiny_skia::PathBuilder::new();
        let mut quads = Vec::new();
        for (k, line) in lines.iter().enumerate() {
            let x = centre.x - line.width(size, 0.0) / 2.0;
            let row = k as f32 - (lines.len() as f32 - 1.0) / 2.0;
            let y = centre.y + row * 1.08 * size + (CAP_EM + X_EM) / 4.0 * size;
            let set = self.fonts.straight(line, size, 0.0, point(x, y), 0.0)?;
            path.push_path(&set.path);
            quads.extend(set.quads);
        }
        Some(Lettered { path: path.finish()?, quads, gaps: Vec::new() })
    }

    /// A sign with its name beside it, or nothing.
    fn place(&mut self, sign: usize, at: Point, p: &Place) {
        let pt = self.pt;
        let capital = p.kind == "capital";
        let (size, style) = match (p.rank, capital) {
            (0 | 1, _) => (9.4, Style::Semibold),
            (2, true) => (8.8, Style::Semibold),
            (2, false) => (8.4, Style::Regular),
            (3, _) => (7.5, Style::Regular),
            _ => (6.9, Style::Regular),
        };
        let style = if p.kind == "pass" { Style::Italic } else { style };
        let colour = if p.kind == "pass" { ink(MOUNTAIN_INK) } else { ink(INK) };
        let text = name_in_year(p, self.year);
        let s = symbol(&p.kind, p.rank, at, pt);
        self.beside(sign, &text, LabelKind::Place, s, at, (size * pt, style, colour));
    }

    /// A summit with name and height.
    fn peak(&mut self, sign: usize, at: Point, p: &Peak) {
        let size = [7.8, 7.8, 7.2, 6.7, 6.4][p.rank.min(4) as usize] * self.pt;
        let text = format!("{} {:.0}", p.name, p.height_m);
        let s = symbol("peak", p.rank, at, self.pt);
        self.beside(sign, text.trim(), LabelKind::Peak, s, at, (size, Style::Italic, ink(MOUNTAIN_INK)));
    }

    fn beside(
        &mut self,
        sign: usize,
        text: &str,
        kind: LabelKind,
        s: super::symbols::Symbol,
        at: Point,
        (size, style, colour): (f32, Style, Ink),
    ) {
        let mine = self.reserved.contains(&sign);
        if !mine && !self.placing.is_free(&[s.quad]) {
            return;
        }
        let line = self.fonts.shape(text, style, false);
        // The name must keep clear of its own sign too.
        let candidates = positions(line.width(size, 0.0), size, s.radius, self.pt)
            .into_iter()
            .filter_map(|(dx, dy, penalty)| {
                let set = self.fonts.straight(&line, size, 0.0, point(at.x + dx, at.y + dy), 0.0)?;
                (!set.quads.iter().any(|q| super::placing::overlap(q, &s.quad))).then_some((set, penalty))
            })
            .collect::<Vec<_>>();
        let Some(set) = self.cheapest(candidates) else { return };
        if !mine {
            self.placing.take(&[s.quad]);
        }
        let boxes = vec![s.quad.map(|p| [p.x, p.y])];
        self.out.placed.push(PlacedLabel { text: text.to_string(), kind: LabelKind::Symbol, boxes });
        self.out.marks.extend(s.marks);
        self.write(text, kind, set, colour, 0.75);
    }

    /// The name of a sea, lake, range or plain along what is in view of its line; a sea or lake whose line has no room
    /// there is named across what is in view of its `outline`.
    fn physical(&mut self, line: &[Point], name: &PhysicalName, outline: Option<MultiPolygon<f64>>) {
        let pt = self.pt;
        let rank = name.rank.clamp(1, 4) as usize - 1;
        let (style, colour, sizes, capitals, most) = match name.kind.as_str() {
            "sea" => (Style::Italic, ink(WATER_INK), [20.0, 13.0, 10.5, 8.5], true, 0.9),
            "lake" => (Style::Italic, ink(WATER_INK), [8.4, 7.6, 7.0, 6.6], false, 0.3),
            "range" => (Style::Regular, ink(MOUNTAIN_INK), [13.2, 10.0, 8.2, 7.2], true, 1.1),
            _ => (Style::Italic, ink([98, 82, 48]), [11.0, 9.4, 8.2, 7.2], false, 0.8),
        };
        let kind = match name.kind.as_str() {
            "sea" => LabelKind::Sea,
            "lake" => LabelKind::Lake,
            _ => LabelKind::Physical,
        };
        let text = if capitals { name.name.to_uppercase() } else { name.name.clone() };
        let shaped = self.fonts.shape(&text, style, true);
        let least = if capitals { 0.12 } else { 0.03 };
        let breaks = self.line_breaks(&text, style);
        let area = outline.and_then(|o| area_inside(&o, self.placing.size()));
        let (width, height) = self.placing.size();
        let whole = Curve::through(line.iter().copied());
        let course = whole.as_ref().and_then(|c| {
            let pieces = c.spline().readable().clipped(width as f32, height as f32);
            pieces.into_iter().max_by(|a, b| a.length().total_cmp(&b.length()))
        });
        let mut ways: Vec<Way> = Vec::new();
        for (shrink, penalty) in [(1.0, 0.0), (0.86, 0.6), (0.74, 1.4), (0.6, 2.4)] {
            let size = sizes[rank] * pt * shrink;
            if size < LEAST_PT * pt {
                continue;
            }
            if let Some(c) = &course {
                let course = c.smoothed(2.0 * pt, 8.0 * pt);
                let widest = shaped.spacing_for(size, course.length() * 0.86).clamp(least, most);
                let (a, b) = (course.point_at(0.0), course.point_at(course.length()));
                // Letters that stand on end are read last.
                let steep = kind == LabelKind::Lake && (b.x - a.x).abs() < 0.6 * (b.y - a.y).abs();
                let penalty = penalty + if steep { 0.9 } else { 0.0 };
                for (part, closer) in [(1.0, 0.0), (0.66, 0.3), (0.33, 0.7), (0.0, 1.2)] {
                    let spacing = least + part * (widest - least);
                    let set_width = shaped.width(size, spacing);
                    let short = (set_width - course.length()).max(0.0) / 2.0 + 2.0 * size;
                    let slack = ((course.length() - set_width) / 2.0).max(size);
                    for aside in [0.0f32, -1.0, 1.0, -2.0, 2.0, -3.2, 3.2] {
                        let run = course.beside(aside * size * 0.8).and_then(|c| lengthened(&c, short));
                        for along in [0.0f32, -0.33, 0.33, -0.66, 0.66, -1.0, 1.0] {
                            let (run, shaped) = (run.clone(), &shaped);
                            let penalty = penalty + closer + 0.5 * aside.abs() + 0.3 * along.abs();
                            ways.push((
                                penalty,
                                Box::new(move |w| {
                                    let run = run.as_ref()?;
                                    let middle = run.length() / 2.0 + along * slack;
                                    w.fonts.along(shaped, size, spacing, run, middle, CAP_EM * size / 2.0)
                                }),
                            ));
                        }
                    }
                    if widest <= least {
                        break;
                    }
                }
            } else if let (None, Some(&at)) = (&whole, line.first()) {
                let spacing = if capitals { 0.3f32.min(most) } else { least.max(0.08) };
                let width = shaped.width(size, spacing);
                for (dx, dy) in (-3..=3).flat_map(|x| (-3..=3).map(move |y| (x as f32, y as f32))) {
                    let c = point(at.x + dx * 1.5 * size, at.y + dy * size);
                    let p = point(c.x - width / 2.0, c.y + CAP_EM * size / 2.0);
                    let penalty = penalty + 0.2 * (dx.abs() + dy.abs());
                    let shaped = &shaped;
                    ways.push((penalty, Box::new(move |w| w.fonts.straight(shaped, size, spacing, p, 0.0))));
                    for lines in &breaks[1..] {
                        ways.push((penalty + 0.7, Box::new(move |w| w.block(lines, size, c))));
                    }
                }
            }
            if let (LabelKind::Lake, Some(area)) = (kind, &area) {
                let heart = area.heart();
                for lines in &breaks {
                    let widest = lines.iter().map(|l| l.width(size, 0.0)).fold(0.0, f32::max);
                    let spill = (widest / (2.0 * area.clearance_at(heart)).max(1.0) - 1.0).max(0.0);
                    ways.push((penalty + 0.5 + 1.5 * spill, Box::new(move |w| w.block(lines, size, heart))));
                }
            }
        }
        // Letters on land say the wrong thing about a sea.
        let land = |w: &Writer, set: &Lettered| {
            if kind == LabelKind::Sea { 6.0 * w.dry_part(&set.quads) } else { 0.0 }
        };
        let mut set = self.cheapest_way(ways, land);
        if let (None, Some(area)) = (&set, area) {
            let sizes =
                [1.0, 0.86, 0.74, 0.64, 0.55].map(|f| f * sizes[rank] * pt).into_iter().filter(|s| *s > LEAST_PT * pt);
            let fit = NameFit { sizes: sizes.collect(), edge: 2.0 * pt, spacing_em: (least, most) };
            set = fit_name(self.fonts, &area, &breaks, &fit, &self.placing);
        }
        if let Some(set) = set {
            self.write(&name.name, kind, set, colour, if kind == LabelKind::Sea { 0.0 } else { 0.7 });
        }
    }

    /// The part of some boxes that is not sea, 0 to 1.
    fn dry_part(&self, quads: &[Quad]) -> f32 {
        let (mut dry, mut all) = (0, 0);
        for q in quads {
            let (lo, hi) = bounds(q);
            for j in 0..5 {
                for i in 0..9 {
                    let x = lo.x + (hi.x - lo.x) * i as f32 / 8.0;
                    let y = lo.y + (hi.y - lo.y) * j as f32 / 4.0;
                    let is_in = x >= 0.0 && y >= 0.0 && x < self.sea.cols as f32 && y < self.sea.rows as f32;
                    all += 1;
                    dry += usize::from(!is_in || self.sea.at(x as usize, y as usize) < 0.5);
                }
            }
        }
        dry as f32 / all.max(1) as f32
    }

    /// Names of lakes, inside where they fit, beside where not.
    fn lakes(&mut self, input: &SheetInput, to_px: &impl Fn(f64, f64) -> (f64, f64)) {
        let pt = self.pt;
        // "Lake Sevan" among the lettering names the lake "Sevan" too.
        let is_lettered =
            |name: &str| input.physical.iter().any(|p| p.name.split(' ').any(|w| w == name) || p.name == name);
        let mut seen: HashSet<&str> = HashSet::new();
        for body in input.water_bodies {
            let there = body.since_year.is_none_or(|y| y <= input.year);
            if body.kind != WaterKind::Lake || body.name.is_empty() || !there || is_lettered(&body.name) {
                continue;
            }
            let area = to_pixels(&body.area, to_px);
            let extent = (area.unsigned_area() as f32).sqrt() / pt;
            if extent < 5.0 || !seen.insert(&body.name) {
                continue;
            }
            let Some(shape) = area_inside(&area, self.placing.size()) else { continue };
            let size = (extent * 0.09).clamp(6.8, 9.0) * pt;
            let heart = shape.heart();
            let line = self.fonts.shape(&body.name, Style::Italic, false);
            let half = extent * pt * 0.45;
            let mut candidates: Vec<(Lettered, f32)> = Vec::new();
            for lines in self.line_breaks(&body.name, Style::Italic) {
                let widest = lines.iter().map(|l| l.width(size, 0.0)).fold(0.0, f32::max);
                let spill = (widest / 2.0 / half.max(1.0) - 1.0).max(0.0);
                candidates.extend(self.block(&lines, size, heart).map(|s| (s, 1.5 * spill)));
            }
            for (dx, dy, penalty) in positions(line.width(size, 0.0), size, half, pt) {
                let set = self.fonts.straight(&line, size, 0.0, point(heart.x + dx, heart.y + dy), 0.0);
                candidates.extend(set.map(|s| (s, 0.8 + penalty)));
            }
            if let Some(set) = self.cheapest(candidates) {
                self.write(&body.name, LabelKind::Lake, set, ink(WATER_INK), 0.5);
            }
        }
    }

    /// Names along rivers, once, or twice on a long one.
    fn rivers(&mut self, scene: &Scene) {
        let pt = self.pt;
        let mut order: Vec<_> = scene.rivers.iter().filter(|r| !r.1.name.is_empty()).collect();
        order.sort_by(|a, b| {
            a.1.rank.cmp(&b.1.rank).then(b.0.length().total_cmp(&a.0.length())).then_with(|| a.1.name.cmp(&b.1.name))
        });
        let mut written: Vec<(&str, Point)> = Vec::new();
        for (curve, river) in order {
            let size = [8.4, 8.4, 7.8, 7.2, 6.8, 6.5][river.rank.min(5) as usize] * pt;
            let line = self.fonts.shape(&river.name, Style::Italic, true);
            let spacing = 0.09;
            let width = line.width(size, spacing);
            if curve.length() < width * 1.4 {
                continue;
            }
            let course = curve.smoothed(1.5 * pt, 5.0 * pt).readable();
            for _ in 0..if curve.length() > 420.0 * pt { 2 } else { 1 } {
                let apart = |p: Point| written.iter().all(|(n, q)| *n != river.name || q.to(p) > 170.0 * pt);
                let mut candidates = Vec::new();
                let step = 7.0 * pt;
                let n = ((course.length() - width) / step).max(0.0) as usize;
                for k in 0..=n {
                    let middle = width / 2.0 + k as f32 * step;
                    let (from, to) = (middle - width / 2.0, middle + width / 2.0);
                    let turning = course.turning(from, to, 3.0 * pt);
                    let (a, b) = (course.point_at(from), course.point_at(to));
                    if turning > 1.5 || !apart(course.point_at(middle)) || (b.x - a.x).abs() < 0.2 * width {
                        continue;
                    }
                    let Some(piece) = course.part(from - size, to + size) else { continue };
                    // A bend of the whole course may make this piece run leftward.
                    let piece = piece.readable().smoothed(pt, 6.0 * pt);
                    let off_middle = (middle / course.length() - 0.5).abs();
                    for (aside, penalty) in [(-1.0, 0.0), (1.0, 0.15)] {
                        let gap = 1.5 * pt;
                        let drop = if aside < 0.0 { -gap } else { gap + (CAP_EM + 0.06) * size };
                        let set = self.fonts.along(&line, size, spacing, &piece, piece.length() / 2.0, drop);
                        candidates.extend(set.map(|s| (s, penalty + 0.7 * turning + 0.6 * off_middle)));
                    }
                }
                let Some(set) = self.cheapest(candidates) else { break };
                let (lo, hi) = bounds(&set.quads[set.quads.len() / 2]);
                written.push((&river.name, point((lo.x + hi.x) / 2.0, (lo.y + hi.y) / 2.0)));
                self.write(&river.name, LabelKind::River, set, ink(WATER_INK), 0.6);
            }
        }
    }
}

/// The smallest letters of physical names, points.
const LEAST_PT: f32 = 6.1;

/// All ways to cut `words` words into `lines` runs: the positions of the cuts, ends included.
fn cuts(words: usize, lines: usize) -> Vec<Vec<usize>> {
    match lines {
        1 => vec![vec![0, words]],
        2 => (1..words).map(|a| vec![0, a, words]).collect(),
        _ => (1..words).flat_map(|a| (a + 1..words).map(move |b| vec![0, a, b, words])).collect(),
    }
}

/// Where a name of `width` may stand beside a sign of `radius`: offset of its baseline's left end, and a penalty (after
/// Imhof 1975: right before left, above before below).
fn positions(width: f32, size: f32, radius: f32, pt: f32) -> Vec<(f32, f32, f32)> {
    let mut all = Vec::new();
    for (gap, far) in [(1.6 * pt, 0.0), (4.2 * pt, 0.9)] {
        let g = radius + gap;
        let mid = X_EM * size / 2.0;
        let (up, down) = (-g - 0.22 * size, g + CAP_EM * size);
        let d = g * 0.72;
        let (up_d, down_d) = (-d * 0.62, d * 0.62 + CAP_EM * size);
        all.extend([
            (g, mid, far),
            (d, up_d, far + 0.10),
            (d, down_d, far + 0.16),
            (-g - width, mid, far + 0.30),
            (-d - width, up_d, far + 0.36),
            (-d - width, down_d, far + 0.42),
            (-width / 2.0, up, far + 0.28),
            (-width / 2.0, down, far + 0.34),
            (-width * 0.25, up, far + 0.4),
            (-width * 0.75, up, far + 0.5),
            (-width * 0.25, down, far + 0.46),
            (-width * 0.75, down, far + 0.56),
        ]);
    }
    all
}

/// The region of a polity on the map: its cells, or its outline where it has no cells of its own.
fn area_of(p: &PolityRegion, ground: &Ground, to_px: &impl Fn(f64, f64) -> (f64, f64)) -> Option<Area> {
    let owned = |x: usize, y: usize| ground.regions.at(x, y) == p.code && ground.sea.at(x, y) < 0.5;
    if matches!(p.claim.kind, ClaimKind::Polity | ClaimKind::Composite | ClaimKind::Claim)
        && let Some(a) = Area::largest(ground.width, ground.height, owned)
    {
        return Some(a);
    }
    area_inside(&to_pixels(&p.outline, to_px), (ground.width, ground.height))
        .or_else(|| Area::largest(ground.width, ground.height, owned))
}

fn area_inside(outline: &MultiPolygon<f64>, (width, height): (usize, usize)) -> Option<Area> {
    let mut inside = vec![false; width * height];
    for polygon in outline {
        scan_polygon(polygon, width, height, |row, a, b| inside[row * width + a..row * width + b].fill(true));
    }
    Area::largest(width, height, |x, y| inside[y * width + x])
}

/// The dated English name of the year, or the usual name.
fn name_in_year(p: &Place, year: i32) -> String {
    let holds = |from: Option<i32>, to: Option<i32>| from.is_none_or(|f| f <= year) && to.is_none_or(|t| year <= t);
    let dated = p.names.iter().find(|n| n.lang == "en" && holds(n.from_year, n.to_year));
    dated.map_or_else(|| p.name.clone(), |n| n.name.clone())
}

/// A polity's name without the explanation in brackets, which the legend gives.
fn short_name(name: &str) -> &str {
    match name.find(" (") {
        Some(k) if k > 0 => &name[..k],
        _ => name,
    }
}

/// A dark shade of a polity's colour.
fn name_colour(c: [u8; 3]) -> [u8; 3] {
    let dark = |k: usize| (0.62 * f32::from(INK[k]) + 0.38 * 0.55 * f32::from(c[k])) as u8;
    [dark(0), dark(1), dark(2)]
}

/// The point of the boxes' edges that is nearest to `target`.
fn nearest_on(quads: &[Quad], target: Point) -> Point {
    let mut best = quads[0][0];
    for q in quads {
        let (lo, hi) = bounds(q);
        let p = point(target.x.clamp(lo.x, hi.x), target.y.clamp(lo.y, hi.y));
        if p.to(target) < best.to(target) {
            best = p;
        }
    }
    best
}

/// The end of a leader from `target` to the boxes, short of the letters; `None` where they are so close
/// that a leader would be a stump.
fn leader(quads: &[Quad], target: Point, pt: f32) -> Option<Point> {
    let end = nearest_on(quads, target);
    let d = end.to(target);
    let length = d - 1.2 * pt;
    if length < 5.0 * pt {
        return None;
    }
    let t = length / d;
    Some(point(target.x + (end.x - target.x) * t, target.y + (end.y - target.y) * t))
}

/// The box of a line a point wide.
fn strip(from: Point, to: Point, pt: f32) -> Quad {
    let d = from.to(to).max(1e-3);
    let (nx, ny) = ((to.y - from.y) / d * 0.5 * pt, (from.x - to.x) / d * 0.5 * pt);
    [
        point(from.x - nx, from.y - ny),
        point(from.x + nx, from.y + ny),
        point(to.x + nx, to.y + ny),
        point(to.x - nx, to.y - ny),
    ]
}

/// The curve with straight ends longer by `by`.
fn lengthened(curve: &Curve, by: f32) -> Option<Curve> {
    let end = curve.length();
    let (a, b) = (curve.at(0.0, by.min(end / 3.0)), curve.at(end, by.min(end / 3.0)));
    let before = point(a.0.x - a.1.cos() * by, a.0.y - a.1.sin() * by);
    let after = point(b.0.x + b.1.cos() * by, b.0.y + b.1.sin() * by);
    Curve::through([before].into_iter().chain(curve.points().iter().copied()).chain([after]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::LonLat;
    use crate::pack::DatedName;

    #[test]
    fn names_follow_the_year() {
        let dated =
            |name: &str, from, to| DatedName { name: name.into(), lang: "en".into(), from_year: from, to_year: to };
        let p = Place {
            name: "Tbilisi".into(),
            kind: "capital".into(),
            rank: 1,
            from_year: None,
            to_year: None,
            names: vec![dated("Tiflis", Some(1100), Some(1936))],
            at: LonLat { lon: 44.8, lat: 41.7 },
        };
        assert_eq!(name_in_year(&p, 1200), "Tiflis");
        assert_eq!(name_in_year(&p, 1936), "Tiflis");
        assert_eq!(name_in_year(&p, -300), "Tbilisi");
    }

    #[test]
    fn explanations_stay_in_the_legend() {
        assert_eq!(short_name("Eldiguzids (Atabegs of Azerbaijan)"), "Eldiguzids");
        assert_eq!(short_name("(unnamed)"), "(unnamed)");
    }

    #[test]
    fn words_are_cut_every_way() {
        assert_eq!(cuts(3, 1), [vec![0, 3]]);
        assert_eq!(cuts(3, 2), [vec![0, 1, 3], vec![0, 2, 3]]);
        assert_eq!(cuts(3, 3), [vec![0, 1, 2, 3]]);
    }
}
