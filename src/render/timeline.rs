//! The timeline of a region as a figure: a bar per polity over its years.

use super::figure::{Anchor, Figure, rectangle, text_width};
use crate::borders::{Timeline, TimelineEntry, TimelineRow, palette_colours};
use crate::year::{Span, YEAR_LIMIT, Year};
use std::collections::BTreeMap;

const INK: [u8; 3] = [38, 34, 32];
const FAINT: [u8; 3] = [120, 112, 102];
const GRID: [u8; 3] = [222, 214, 198];
/// What says that sources disagree.
const ALARM: [u8; 3] = [176, 30, 36];

/// Height of a bar and of its row.
const BAR: f64 = 11.0;
const ROW: f64 = 19.0;
/// Width of the years.
const PLOT: f64 = 1000.0;
const MARGIN: f64 = 24.0;
const SIZE: f64 = 12.0;

/// The figure of `timeline`: rows in its order. Of every claim the years beyond doubt are a full bar, those in doubt a pale one
/// with a broken edge; letters in the bars say which sources it rests on, where they are not the same everywhere; a red
/// line runs under years for which claims of different sources differ. `citations` explain sources by their keys.
pub fn timeline_figure(title: &str, timeline: &Timeline, citations: &[(String, String)]) -> Figure {
    let ((first, last), known) = (years(timeline), known_years(timeline));
    let x_of = |left: f64, year: i64| left + PLOT * (year - first) as f64 / (last - first) as f64;
    let label = |r: &TimelineRow| r.entries.last().map_or(String::new(), |e| shortened(&e.name));
    let left = MARGIN + timeline.rows.iter().map(|r| text_width(&label(r), SIZE)).fold(80.0, f64::max) * 1.08 + 12.0;
    let x = |year: i64| x_of(left, year);
    let letters = letters(timeline);
    let colours = palette_colours(
        &timeline.rows.iter().map(|r| (r.id.as_str(), r.entries.iter().find_map(|e| e.colour))).collect::<Vec<_>>(),
    );
    let lanes: Vec<Vec<usize>> = timeline.rows.iter().map(|r| lanes(&r.entries)).collect();
    let heights: Vec<f64> =
        lanes.iter().map(|l| ROW + (BAR + 2.0) * l.iter().copied().max().unwrap_or(0) as f64).collect();
    let top = MARGIN + 62.0;
    let bottom = top + heights.iter().sum::<f64>();
    let width = left + PLOT + MARGIN + 20.0;
    let legend = legend_lines(&letters, citations, width - 2.0 * MARGIN);
    let mut f =
        Figure::new(width, bottom + 78.0 + 17.0 * legend.len() as f64 + MARGIN, format!("{title}: polities by year"));
    f.bold(title, [MARGIN, MARGIN + 14.0], 20.0, Anchor::Start, INK);
    let subtitle = known.map_or("Polities by year".to_string(), |span| format!("Polities by year, {span}"));
    f.text(&subtitle, [MARGIN, MARGIN + 33.0], SIZE, Anchor::Start, FAINT);

    for year in ticks(first, last) {
        let at = x(i64::from(year.0));
        f.line(vec![[at, top - 6.0], [at, bottom + 4.0]], GRID, 1.0, &[]);
        for y in [top - 11.0, bottom + 17.0] {
            f.text(&year.to_string(), [at, y], 11.0, Anchor::Middle, FAINT);
        }
    }
    let mut y = top;
    for (((row, lanes), height), colour) in timeline.rows.iter().zip(&lanes).zip(&heights).zip(&colours) {
        f.text(&label(row), [left - 10.0, y + 13.0], SIZE, Anchor::End, INK);
        for (entry, lane) in row.entries.iter().zip(lanes) {
            let y0 = y + 4.0 + (BAR + 2.0) * *lane as f64;
            bar(&mut f, entry, *colour, (first, last), &x, y0);
        }
        let mut before: Option<&Vec<String>> = None;
        for (entry, lane) in row.entries.iter().zip(lanes) {
            let is_new = before.is_none_or(|b| *b != entry.sources);
            before = Some(&entry.sources);
            let (from, to) = (x(i64::from(entry.span.start.0).max(first)), x(i64::from(entry.span.end.0).min(last)));
            let Some(letter) = letters.get(&entry.sources).filter(|_| is_new && letters.len() > 1) else { continue };
            let wide = text_width(letter, 9.5);
            if to - from >= wide + 4.0 {
                let y0 = y + 4.0 + (BAR + 2.0) * *lane as f64;
                // Over years in doubt the bar is pale.
                let is_full = entry.certain_years().contains(entry.span.start);
                let ink = if is_full { readable_on(*colour) } else { INK };
                f.bold(letter, [from + 3.0, y0 + 8.8], 9.5, Anchor::Start, ink);
            }
        }
        for d in row.differences() {
            let (from, to) = (x(i64::from(d.start.0).max(first)), x(i64::from(d.end.0).min(last)));
            f.line(vec![[from, y + height - 2.5], [to.max(from + 2.0), y + height - 2.5]], ALARM, 1.6, &[]);
        }
        y += height;
    }

    let key_y = bottom + 44.0;
    let mut at = MARGIN;
    let grey = [150, 140, 128];
    let mut key = |f: &mut Figure, draw: &dyn Fn(&mut Figure, f64), text: &str| {
        draw(f, at);
        f.text(text, [at + 34.0, key_y], SIZE, Anchor::Start, INK);
        at += 34.0 + text_width(text, SIZE) * 1.1 + 24.0;
    };
    key(&mut f, &|f, x| f.area(rectangle(x, key_y - BAR + 1.0, x + 28.0, key_y + 1.0), grey, 1.0), "held");
    key(&mut f, &|f, x| doubtful(f, x, x + 28.0, key_y - BAR + 1.0, grey), "first or last year in doubt");
    if timeline.rows.iter().any(|r| !r.differences().is_empty()) {
        key(&mut f, &|f, x| f.line(vec![[x, key_y - 3.0], [x + 28.0, key_y - 3.0]], ALARM, 1.6, &[]), "sources differ");
    }
    if letters.len() > 1 {
        key(&mut f, &|f, x| f.bold("a", [x + 22.0, key_y], SIZE, Anchor::End, INK), "sources, where they change");
    }
    for (k, line) in legend.iter().enumerate() {
        f.text(line, [MARGIN, key_y + 24.0 + 17.0 * k as f64], 11.0, Anchor::Start, FAINT);
    }
    f
}

/// A name that fits the column.
fn shortened(name: &str) -> String {
    match name.char_indices().nth(46) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.to_string(),
    }
}

/// Ends that stand for "open": nobody knows years so far away.
fn is_open(year: Year) -> bool {
    year.0 <= -YEAR_LIMIT + 1 || year.0 >= YEAR_LIMIT
}

/// The years that any claim may have, open ends left out.
fn known_years(timeline: &Timeline) -> Option<Span> {
    let ends = timeline.rows.iter().flat_map(|r| &r.entries).flat_map(|e| {
        let possible = e.possible_years();
        [e.span.start, e.span.end, possible.start, possible.end]
    });
    let known: Vec<Year> = ends.filter(|y| !is_open(*y)).collect();
    Some(Span { start: *known.iter().min()?, end: *known.iter().max()? }).filter(|s| !s.is_empty())
}

/// The first year shown, and the one after the last.
fn years(timeline: &Timeline) -> (i64, i64) {
    let (first, last) = known_years(timeline).map_or((1, 2), |s| (i64::from(s.start.0), i64::from(s.end.0)));
    // A little room, so that a single year is not a wall.
    let room = ((last - first) / 40).max(2);
    (first - room, last + room)
}

/// Years for the axis: multiples of a round number, counted as historians do.
fn ticks(first: i64, last: i64) -> Vec<Year> {
    let span = last - first;
    let step = [1, 2, 5, 10, 20, 25, 50, 100, 200, 250, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000]
        .into_iter()
        .find(|s| span / s <= 12)
        .unwrap_or(100_000);
    let mut all: Vec<Year> = Vec::new();
    let from = (first - 1).div_euclid(step) * step;
    for n in (from..=last).step_by(step as usize) {
        // There is no year 0: the turn of the eras is 1 CE.
        let historian = if n == 0 { 1 } else { n };
        let Ok(year) = Year::from_historian(historian as i32) else { continue };
        if i64::from(year.0) >= first && i64::from(year.0) < last {
            all.push(year);
        }
    }
    all
}

/// A number for each entry such that those of one number do not overlap.
fn lanes(entries: &[TimelineEntry]) -> Vec<usize> {
    let mut ends: Vec<Year> = Vec::new();
    entries
        .iter()
        .map(|e| {
            let free = ends.iter().position(|end| *end <= e.span.start);
            let lane = free.unwrap_or(ends.len());
            if lane == ends.len() {
                ends.push(e.span.end);
            } else {
                ends[lane] = e.span.end;
            }
            lane
        })
        .collect()
}

/// One claim: pale over the years that it may have held, full over those beyond doubt.
fn bar(f: &mut Figure, e: &TimelineEntry, colour: [u8; 3], shown: (i64, i64), x: &impl Fn(i64) -> f64, y: f64) {
    let clamp = |year: Year| x(i64::from(year.0).clamp(shown.0, shown.1));
    let (possible, certain) = (e.possible_years(), e.certain_years());
    let (p0, p1) = (clamp(possible.start), clamp(possible.end));
    if certain.is_empty() {
        doubtful(f, p0, p1.max(p0 + 1.5), y, colour);
    } else {
        let (c0, c1) = (clamp(certain.start), clamp(certain.end));
        if c0 > p0 {
            doubtful(f, p0, c0, y, colour);
        }
        if p1 > c1 {
            doubtful(f, c1, p1, y, colour);
        }
        f.area(rectangle(c0, y, c1.max(c0 + 1.5), y + BAR), colour, 1.0);
    }
    // The years as the source counts them.
    let (s0, s1) = (clamp(e.span.start), clamp(e.span.end));
    for (at, is_open_end, way) in [(s0, is_open(e.span.start), -1.0), (s1, is_open(e.span.end), 1.0)] {
        if is_open_end {
            let tip = vec![(at, y), (at + way * 7.0, y + BAR / 2.0), (at, y + BAR)];
            f.area(geo::Polygon::new(tip.into(), vec![]).into(), colour, 1.0);
        } else {
            f.line(vec![[at, y], [at, y + BAR]], shade(colour), 1.0, &[]);
        }
    }
}

fn doubtful(f: &mut Figure, x0: f64, x1: f64, y: f64, colour: [u8; 3]) {
    f.area(rectangle(x0, y, x1, y + BAR), colour, 0.32);
    for edge in [y, y + BAR] {
        f.line(vec![[x0, edge], [x1, edge]], shade(colour), 0.8, &[3.0, 2.0]);
    }
}

fn shade(colour: [u8; 3]) -> [u8; 3] {
    colour.map(|c| (u16::from(c) * 3 / 5) as u8)
}

/// Black or white, whichever is read better.
fn readable_on([r, g, b]: [u8; 3]) -> [u8; 3] {
    let light = 0.299 * f64::from(r) + 0.587 * f64::from(g) + 0.114 * f64::from(b);
    if light > 135.0 { INK } else { [255, 255, 255] }
}

/// A letter for each set of sources, in order of their first appearance.
fn letters(timeline: &Timeline) -> BTreeMap<Vec<String>, String> {
    let mut found: BTreeMap<Vec<String>, String> = BTreeMap::new();
    for entry in timeline.rows.iter().flat_map(|r| &r.entries) {
        let n = found.len();
        found.entry(entry.sources.clone()).or_insert_with(|| {
            let letter = |k: usize| char::from(b'a' + k as u8);
            match n {
                0..26 => letter(n).to_string(),
                _ => format!("{}{}", letter((n / 26 - 1) % 26), letter(n % 26)),
            }
        });
    }
    found
}

/// What the letters stand for, broken into lines of `width`, and the citations of the sources that are named.
fn legend_lines(letters: &BTreeMap<Vec<String>, String>, citations: &[(String, String)], width: f64) -> Vec<String> {
    let mut sets: Vec<(&String, &Vec<String>)> = letters.iter().map(|(s, l)| (l, s)).collect();
    sets.sort_by_key(|(l, _)| (l.len(), l.to_string()));
    let text = |(letter, sources): &(&String, &Vec<String>)| {
        let named = if sources.is_empty() { "no source named".to_string() } else { sources.join(", ") };
        if letters.len() > 1 { format!("{letter}\u{a0}= {named}") } else { format!("Sources: {named}") }
    };
    let sets = sets.iter().map(text).collect::<Vec<_>>().join("; ");
    let used = |id: &String| letters.keys().any(|set| set.contains(id));
    let cited = citations.iter().filter(|(id, _)| used(id)).map(|(id, citation)| format!("{id}: {citation}"));
    let mut lines: Vec<String> = Vec::new();
    for text in std::iter::once(sets).chain(cited) {
        let mut line = String::new();
        for word in text.split(' ') {
            let longer = if line.is_empty() { word.to_string() } else { format!("{line} {word}") };
            if !line.is_empty() && text_width(&longer, 11.0) * 1.08 > width {
                lines.push(std::mem::replace(&mut line, format!("\u{a0}\u{a0}\u{a0}{word}")));
            } else {
                line = longer;
            }
        }
        lines.push(line);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::super::figure::Shape;
    use super::*;
    use crate::borders::tests::{claim, doubted};
    use crate::borders::{Claim, timeline};

    fn with(sources: &[&str], c: Claim) -> Claim {
        Claim { sources: sources.iter().map(|s| s.to_string()).collect(), ..c }
    }

    #[test]
    fn bars_show_doubt_letters_and_differences() {
        let claims = [
            with(&["x"], doubted(claim("a", "1100/1199"), [1090, 1110], [1190, 1199])),
            with(&["y"], claim("b", "1150/1200")),
            with(&["z"], claim("b", "1180/1250")),
        ];
        let f = timeline_figure("The <Test>", &timeline(&claims), &[("x".into(), "Book X".into())]);
        let pale = f.shapes.iter().filter(|s| matches!(s, Shape::Area { opacity, .. } if *opacity < 1.0)).count();
        // Two ends and the key.
        assert_eq!(pale, 3);
        let alarm = |s: &&Shape| matches!(s, Shape::Line { colour, .. } if *colour == ALARM);
        assert_eq!(f.shapes.iter().filter(alarm).count(), 2);
        let texts: Vec<&str> = f
            .shapes
            .iter()
            .filter_map(|s| if let Shape::Text { text, .. } = s { Some(text.as_str()) } else { None })
            .collect();
        for wanted in
            ["A", "B", "a", "b", "c", "1100 CE", "sources differ", "x: Book X", "a\u{a0}= x; b\u{a0}= y; c\u{a0}= z"]
        {
            assert!(texts.contains(&wanted), "{wanted}: {texts:?}");
        }
        // The bar of 1110..1190 has its length.
        let full = f.shapes.iter().find_map(|s| match s {
            Shape::Area { area, opacity, .. } if *opacity == 1.0 => geo::BoundingRect::bounding_rect(area),
            _ => None,
        });
        let (first, last) = years(&timeline(&claims));
        let expected = PLOT * 81.0 / (last - first) as f64;
        assert!((full.unwrap().width() - expected).abs() < 1e-6);
    }

    #[test]
    fn the_axis_has_no_year_0() {
        let years = |a, b| ticks(a, b).iter().map(Year::to_string).collect::<Vec<_>>();
        assert_eq!(
            years(-249, 260),
            [
                "250 BCE", "200 BCE", "150 BCE", "100 BCE", "50 BCE", "1 CE", "50 CE", "100 CE", "150 CE", "200 CE",
                "250 CE"
            ]
        );
        assert_eq!(years(1198, 1204), ["1198 CE", "1199 CE", "1200 CE", "1201 CE", "1202 CE", "1203 CE"]);
    }

    #[test]
    fn nothing_and_open_ends_are_drawn() {
        timeline_figure("t", &timeline(&[]), &[]);
        let open = Claim { span: Span::ALWAYS, ..claim("a", "1") };
        let f = timeline_figure("t", &timeline(&[open]), &[]);
        assert!(f.width.is_finite() && f.to_svg().contains("<path"));
    }
}
