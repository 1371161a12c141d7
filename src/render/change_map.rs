//! A map of what changed hands between two years.

use super::figure::{Anchor, Figure, Shape, rectangle, striped, text_width};
use crate::borders::Transfer;
use crate::grid::Extent;
use geo::{Area, BoundingRect, Coord, InteriorPoint, MapCoords, MultiPolygon, Polygon};

const INK: [u8; 3] = [38, 34, 32];
const FAINT: [u8; 3] = [112, 104, 94];
const SEA: [u8; 3] = [206, 226, 236];
const LAND: [u8; 3] = [244, 238, 224];
const GREY: [u8; 3] = [150, 140, 128];

/// Longer side of the map.
const MAP: f64 = 1100.0;
const MARGIN: f64 = 24.0;
const LEGEND: f64 = 430.0;
/// So many transfers have a number on the map and a line in the legend; the rest one line together.
const NUMBERED: usize = 36;

/// What the map shows, in the plane of a CRS.
pub struct ChangeMapInput<'a> {
    /// Title of the region.
    pub title: &'a str,
    /// The two years, printed.
    pub years: [String; 2],
    /// The frame.
    pub frame: Extent,
    /// The region's window.
    pub window: &'a MultiPolygon<f64>,
    /// Land inside it.
    pub land: &'a MultiPolygon<f64>,
    /// Who held land in the second year: name, colour, area.
    pub holdings: &'a [(String, [u8; 3], MultiPolygon<f64>)],
    /// What changed hands, the greatest first, each with its area in the plane.
    pub transfers: &'a [(&'a Transfer, MultiPolygon<f64>)],
    /// Colour of a polity by its id.
    pub colour_of: &'a dyn Fn(&str) -> [u8; 3],
}

/// The figure: land that was gained in the colour of who got it, land that nobody held afterwards striped in the colour of
/// who lost it, each with a number that the legend explains; what stayed is pale.
pub fn change_map(input: &ChangeMapInput) -> Figure {
    let (w, h) = (input.frame.max_x - input.frame.min_x, input.frame.max_y - input.frame.min_y);
    let scale = MAP / w.max(h);
    let (map_w, map_h) = (w * scale, h * scale);
    let top = MARGIN + 58.0;
    let place = |c: Coord<f64>| Coord {
        x: MARGIN + (c.x - input.frame.min_x) * scale,
        y: top + (input.frame.max_y - c.y) * scale,
    };
    let placed = |area: &MultiPolygon<f64>| area.map_coords(place);
    let rows = legend_rows(input);
    let legend_h = 40.0 + rows.len() as f64 * 21.0 + 150.0;
    let height = top + map_h.max(legend_h) + MARGIN;
    let [from, to] = &input.years;
    let mut f = Figure::new(
        MARGIN + map_w + 30.0 + LEGEND + MARGIN,
        height,
        format!("{}: what changed hands between {from} and {to}", input.title),
    );
    f.bold(input.title, [MARGIN, MARGIN + 16.0], 22.0, Anchor::Start, INK);
    f.text(&format!("What changed hands between {from} and {to}"), [MARGIN, MARGIN + 38.0], 14.0, Anchor::Start, FAINT);

    f.area(placed(input.window), SEA, 1.0);
    let land = placed(input.land);
    f.area(land.clone(), LAND, 1.0);
    for (_, colour, area) in input.holdings {
        f.area(placed(area), *colour, 0.30);
    }
    for (transfer, area) in input.transfers {
        let area = placed(area);
        match (&transfer.from, &transfer.to) {
            (_, Some((id, _))) => f.area(area.clone(), (input.colour_of)(id), 0.92),
            (Some((id, _)), None) => f.area(striped(&area, 9.0, 4.0), (input.colour_of)(id), 0.9),
            (None, None) => {}
        }
        outline(&mut f, &area, INK, 0.7);
    }
    for (_, colour, area) in input.holdings {
        outline(&mut f, &placed(area), colour.map(|c| (u16::from(c) * 11 / 20) as u8), 0.9);
    }
    outline(&mut f, &land, [96, 140, 170], 0.8);
    f.line(
        rectangle(MARGIN, top, MARGIN + map_w, top + map_h).0[0].exterior().coords().map(|c| [c.x, c.y]).collect(),
        INK,
        1.6,
        &[],
    );

    let mut taken: Vec<[f64; 4]> = Vec::new();
    let mut discs: Vec<([f64; 2], usize)> = Vec::new();
    for (k, (_, area)) in input.transfers.iter().take(NUMBERED).enumerate() {
        let Some((at, _)) = middle(&placed(area)) else { continue };
        taken.push([at[0] - 9.0, at[1] - 9.0, at[0] + 9.0, at[1] + 9.0]);
        discs.push((at, k + 1));
    }
    for (name, _, area) in input.holdings {
        let Some((middle, room)) = middle(&placed(area)) else { continue };
        let size = if room > 120.0 { 13.0 } else { 11.0 };
        let half = text_width(name, size) / 2.0;
        let spot_at = |y: f64| [middle[0] - half, y - size, middle[0] + half, y + 4.0];
        let is_free = |s: &[f64; 4]| {
            let is_inside = s[0] > MARGIN && s[2] < MARGIN + map_w && s[1] > top && s[3] < top + map_h;
            is_inside && !taken.iter().any(|t| meets(t, s))
        };
        // Where a number stands, below or above it.
        let tries = [middle[1], middle[1] + 24.0, middle[1] - 15.0];
        let found = tries.into_iter().map(|y| (y, spot_at(y))).find(|(_, s)| is_free(s)).filter(|_| room > 0.45 * half);
        let Some((y, spot)) = found else { continue };
        taken.push(spot);
        f.shapes.push(Shape::Text {
            text: name.clone(),
            at: [middle[0], y],
            size,
            anchor: Anchor::Middle,
            is_bold: false,
            colour: INK,
            has_halo: true,
        });
    }
    for (at, number) in discs {
        disc(&mut f, at, number);
    }

    let x = MARGIN + map_w + 30.0;
    let mut y = top + 14.0;
    f.bold("Land that changed hands", [x, y], 15.0, Anchor::Start, INK);
    y += 26.0;
    for row in &rows {
        if let Some((number, colour, is_striped)) = row.sign {
            let swatch = rectangle(x + 26.0, y - 11.0, x + 52.0, y + 2.0);
            if is_striped {
                f.area(striped(&swatch, 9.0, 4.0), colour, 0.9);
            } else {
                f.area(swatch.clone(), colour, 0.92);
            }
            outline(&mut f, &swatch, INK, 0.7);
            if let Some(n) = number {
                disc(&mut f, [x + 9.0, y - 4.5], n);
            }
        }
        f.text(&row.text, [x + 60.0, y], 12.0, Anchor::Start, INK);
        f.text(&row.km2, [x + LEGEND, y], 12.0, Anchor::End, INK);
        y += 21.0;
    }
    if rows.is_empty() {
        f.text("nothing", [x, y], 12.0, Anchor::Start, INK);
        y += 21.0;
    }
    y += 16.0;
    let keys = [
        (false, 0.92, "gained: the colour of who has it now"),
        (true, 0.9, "lost, and held by nobody known"),
        (false, 0.30, "held in both years"),
    ];
    for (is_striped, opacity, text) in keys {
        let swatch = rectangle(x + 26.0, y - 11.0, x + 52.0, y + 2.0);
        let inside = if is_striped { striped(&swatch, 9.0, 4.0) } else { swatch.clone() };
        f.area(inside, GREY, opacity);
        outline(&mut f, &swatch, INK, 0.7);
        f.text(text, [x + 60.0, y], 12.0, Anchor::Start, FAINT);
        y += 21.0;
    }
    f.text("Areas on the WGS 84 ellipsoid, without the sea.", [x + 26.0, y + 6.0], 11.0, Anchor::Start, FAINT);
    f
}

struct Row {
    /// Number, colour, striped.
    sign: Option<(Option<usize>, [u8; 3], bool)>,
    text: String,
    km2: String,
}

fn legend_rows(input: &ChangeMapInput) -> Vec<Row> {
    let name = |who: &Option<(String, String)>| who.as_ref().map_or("nobody known".to_string(), |(_, n)| n.clone());
    let mut rows: Vec<Row> = input
        .transfers
        .iter()
        .take(NUMBERED)
        .enumerate()
        .map(|(k, (t, _))| {
            let (id, is_striped) = match (&t.from, &t.to) {
                (_, Some((id, _))) => (id.as_str(), false),
                (Some((id, _)), None) => (id.as_str(), true),
                (None, None) => ("", true),
            };
            Row {
                sign: Some((Some(k + 1), (input.colour_of)(id), is_striped)),
                text: fitted(&format!("{} to {}", name(&t.from), name(&t.to)), LEGEND - 160.0),
                km2: format!("{} km²", grouped(t.area_km2)),
            }
        })
        .collect();
    let rest: f64 = input.transfers.iter().skip(NUMBERED).map(|t| t.0.area_km2).sum();
    if rest > 0.0 {
        let text = format!("{} smaller ones, not numbered", input.transfers.len() - NUMBERED);
        rows.push(Row { sign: None, text, km2: format!("{} km²", grouped(rest)) });
    }
    rows
}

/// A text cut to a width.
fn fitted(text: &str, width: f64) -> String {
    let mut kept = text.to_string();
    while text_width(&kept, 12.0) * 1.06 > width && kept.chars().count() > 4 {
        kept = kept
            .trim_end_matches('…')
            .chars()
            .collect::<Vec<_>>()
            .split_last()
            .map_or(String::new(), |(_, c)| c.iter().collect());
        kept.push('…');
    }
    kept
}

/// A whole number with thin gaps between thousands.
fn grouped(v: f64) -> String {
    let digits = format!("{v:.0}");
    let first = digits.len() % 3;
    let mut out = digits[..first].to_string();
    for chunk in digits.as_bytes()[first..].chunks(3) {
        if !out.is_empty() {
            out.push('\u{a0}');
        }
        out.extend(chunk.iter().map(|b| char::from(*b)));
    }
    out
}

fn meets(a: &[f64; 4], b: &[f64; 4]) -> bool {
    a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3]
}

/// A point inside the greatest part of an area, and the width of that part.
fn middle(area: &MultiPolygon<f64>) -> Option<([f64; 2], f64)> {
    let part: &Polygon<f64> = area.iter().max_by(|a, b| a.unsigned_area().total_cmp(&b.unsigned_area()))?;
    let p = part.interior_point()?;
    Some(([p.x(), p.y()], part.bounding_rect()?.width()))
}

fn outline(f: &mut Figure, area: &MultiPolygon<f64>, colour: [u8; 3], width: f64) {
    for ring in area.iter().flat_map(|p| std::iter::once(p.exterior()).chain(p.interiors())) {
        f.line(ring.coords().map(|c| [c.x, c.y]).collect(), colour, width, &[]);
    }
}

/// A number in a light disc.
fn disc(f: &mut Figure, [x, y]: [f64; 2], number: usize) {
    let ring: Vec<(f64, f64)> = (0..32)
        .map(|k| f64::from(k) / 32.0 * std::f64::consts::TAU)
        .map(|t| (x + 8.0 * t.cos(), y + 8.0 * t.sin()))
        .collect();
    let circle: MultiPolygon<f64> = Polygon::new(ring.into(), vec![]).into();
    f.area(circle.clone(), [255, 255, 255], 0.92);
    outline(f, &circle, INK, 0.8);
    f.bold(&number.to_string(), [x, y + 3.6], 10.0, Anchor::Middle, INK);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_transfer_has_its_colour_number_and_line() {
        let square = |x: f64| rectangle(x, 0.0, x + 10_000.0, 10_000.0);
        let who = |id: &str| Some((id.to_string(), id.to_uppercase()));
        let transfer = |from, to, x, km2| (Transfer { from, to, area: square(x), area_km2: km2 }, square(x));
        let all = [transfer(who("a"), who("b"), 0.0, 12_345.4), transfer(who("a"), None, 10_000.0, 100.0)];
        let land = rectangle(0.0, 0.0, 40_000.0, 10_000.0);
        let f = change_map(&ChangeMapInput {
            title: "T",
            years: ["1200 CE".into(), "1300 CE".into()],
            frame: Extent { min_x: 0.0, min_y: 0.0, max_x: 40_000.0, max_y: 20_000.0 },
            window: &land,
            land: &land,
            holdings: &[("B".into(), [0, 0, 255], square(0.0))],
            transfers: &all.iter().map(|(t, a)| (t, a.clone())).collect::<Vec<_>>(),
            colour_of: &|id| if id == "b" { [0, 0, 255] } else { [255, 0, 0] },
        });
        let texts: Vec<&str> = f
            .shapes
            .iter()
            .filter_map(|s| if let Shape::Text { text, .. } = s { Some(text.as_str()) } else { None })
            .collect();
        for wanted in ["A to B", "12\u{a0}345 km²", "A to nobody known", "100 km²", "2"] {
            assert!(texts.contains(&wanted), "{wanted} {texts:?}");
        }
        // Gained land is full, lost land striped: less than half of its square.
        let area_of = |rgb: [u8; 3]| -> f64 {
            let is_map = |a: &MultiPolygon<f64>| a.bounding_rect().is_some_and(|r| r.min().x < MARGIN + MAP);
            f.shapes
                .iter()
                .filter_map(|s| match s {
                    Shape::Area { area, fill, opacity } if *fill == rgb && *opacity > 0.5 && is_map(area) => {
                        Some(area.unsigned_area())
                    }
                    _ => None,
                })
                .sum()
        };
        let square_px = (MAP / 4.0).powi(2);
        assert!((area_of([0, 0, 255]) / square_px - 1.0).abs() < 1e-6);
        let share = area_of([255, 0, 0]) / square_px;
        assert!((share - 4.0 / 9.0).abs() < 0.02, "{share}");
    }
}
