//! The map sheet: a printed historical atlas page of one era. Owns the order of drawing and the layout of the page; the
//! parts come from the files beside it. Same input, same bytes, whatever the thread count.

use super::SheetInput;
use super::canvas::{Canvas, Ink, Mark, ink, path_of};
use super::curve::{Curve, Point, point};
use super::furniture::{
    Block, FRAME_PT, Legend, Pen, border_marks, contested_marks, flow, frame, imprint, legend, title,
};
use super::graticule::graticule;
use super::labels::{Lettering, Scene, letter};
use super::lettering::Fonts;
use super::tint::{Ground, PAPER, WATER_INK};
use crate::borders::{BorderLine, ClaimKind};
use crate::error::{Error, Result};
use crate::grid::{LonLat, Xy};
use crate::raster::Raster;
use crate::water::River;
use geo::LineString;
use image::codecs::png::{CompressionType, FilterType, PngEncoder};
use image::{ExtendedColorType, ImageEncoder};
use std::collections::BTreeSet;
use tiny_skia::PathBuilder;

/// How to draw the sheet.
#[derive(Debug, Clone, PartialEq)]
pub struct SheetOptions {
    /// Longer side of the map window in pixels, 100 to 16 000; default 3200. Frame and legend come on top.
    pub map_px: usize,
    /// Dots per inch when printed, 50 to 1200; default 200. Letters and lines are set in printer's points, so a higher
    /// number makes them larger in pixels; it is written into the PNG and gives the representative fraction.
    pub dpi: f64,
}

impl SheetOptions {
    /// The usual options for a map of `cols` x `rows` cells of `cell_m`: 3200 pixels for a country, fewer for a small
    /// district, where a large sheet would be empty, and for few cells, which would be blots.
    pub fn fitting(cols: usize, rows: usize, cell_m: f64) -> SheetOptions {
        let longer = cols.max(rows) as f64;
        let usual = SheetOptions::default();
        let by_ground = usual.map_px as f64 * (longer * cell_m / 600_000.0).sqrt();
        let map_px = by_ground.max(2.0 * longer).min(6.0 * longer).clamp(1200.0, usual.map_px as f64);
        SheetOptions { map_px: map_px as usize, ..usual }
    }
}

impl Default for SheetOptions {
    fn default() -> Self {
        SheetOptions { map_px: 3200, dpi: 200.0 }
    }
}

/// What a label names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LabelKind {
    /// A polity, across its land or beside it.
    Polity,
    /// A people without a known state.
    People,
    /// A part of a polity.
    Part,
    /// A number that stands for a polity; the legend has its name.
    Key,
    /// A town, fortress, pass, monastery or port.
    Place,
    /// A summit.
    Peak,
    /// A sea.
    Sea,
    /// A range, plain, plateau or the like.
    Physical,
    /// A river.
    River,
    /// A lake.
    Lake,
    /// The sign of a place or summit, under its name's text.
    Symbol,
}

/// A label or sign in its place.
#[derive(Debug, Clone, PartialEq)]
pub struct PlacedLabel {
    /// What it says, or names.
    pub text: String,
    /// What it names.
    pub kind: LabelKind,
    /// Corners of the boxes around its letters, x and y in pixels from the upper-left corner of the map window.
    pub boxes: Vec<[[f32; 2]; 4]>,
}

/// A finished sheet.
#[derive(Debug, Clone, PartialEq)]
pub struct Sheet {
    /// Pixels across.
    pub width: usize,
    /// Pixels down.
    pub height: usize,
    /// sRGB, row after row.
    pub rgb: Vec<[u8; 3]>,
    /// Size of the map window in pixels.
    pub map_size: [usize; 2],
    /// All labels and signs of the map window.
    pub labels: Vec<PlacedLabel>,
    /// Codes of polities that are on the map as a number, with the number.
    pub keys: Vec<(u16, usize)>,
    /// Dots per inch, as in the options.
    pub dpi: f64,
}

impl Sheet {
    /// The sheet as a PNG file with its print resolution (pHYs). The same sheet gives the same bytes.
    ///
    /// # Errors
    /// [`Error::Argument`] when the encoder refuses the size.
    pub fn to_png(&self) -> Result<Vec<u8>> {
        let mut png = Vec::new();
        let encoder = PngEncoder::new_with_quality(&mut png, CompressionType::Default, FilterType::Adaptive);
        encoder
            .write_image(self.rgb.as_flattened(), self.width as u32, self.height as u32, ExtendedColorType::Rgb8)
            .map_err(|e| Error::argument("map sheet", e, "choose a smaller size"))?;
        // Signature (8) and IHDR (25) come first; pHYs goes right behind them.
        let per_metre = ((self.dpi / 0.0254).round() as u32).to_be_bytes();
        let mut chunk = b"pHYs".to_vec();
        chunk.extend(per_metre);
        chunk.extend(per_metre);
        chunk.push(1);
        let check = crc32(&chunk).to_be_bytes();
        let whole = 9u32.to_be_bytes().into_iter().chain(chunk).chain(check);
        png.splice(33..33, whole);
        Ok(png)
    }
}

/// CRC-32 of PNG chunks (ISO 3309).
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0u32, |crc, &b| {
        (0..8).fold(crc ^ u32::from(b), |c, _| if c & 1 == 1 { 0xedb8_8320 ^ (c >> 1) } else { c >> 1 })
    })
}

/// The map sheet of one era: relief, waters, polities and borders under lettering, in a frame with degrees, beside a
/// legend.
///
/// Rasters of `input` lie on its grid; vectors are in the grid's CRS or lon/lat, as each field says. Every polity that
/// has land in view gets a name on the map, or a number that the legend explains. Cost: about 5 seconds of one core for a window of
/// 3200 x 2800 pixels, and some 50 bytes per pixel.
///
/// # Errors
/// [`Error::GridMismatch`] when a raster differs in size from the grid; [`Error::Argument`] for an empty grid or options
/// out of range.
pub fn draw_sheet(input: &SheetInput, options: &SheetOptions) -> Result<Sheet> {
    check(input, options)?;
    let grid = input.grid;
    let extent = grid.extent();
    let (ground_w, ground_h) = (extent.max_x - extent.min_x, extent.max_y - extent.min_y);
    let px_per_m = options.map_px as f64 / ground_w.max(ground_h);
    let width = ((ground_w * px_per_m).round() as usize).max(16);
    let height = ((ground_h * px_per_m).round() as usize).max(16);
    let (sx, sy) = (width as f64 / ground_w, height as f64 / ground_h);
    let to_px = |x: f64, y: f64| ((x - extent.min_x) * sx, (extent.max_y - y) * sy);
    let project =
        |at: LonLat| (input.project)(at).map(|Xy { x, y }| to_px(x, y)).filter(|p| p.0.is_finite() && p.1.is_finite());
    let pt = (options.dpi / 72.0) as f32;
    let fonts = Fonts::embedded();
    let pen = Pen { fonts: &fonts, pt };

    let ground = Ground::new(input, width, height, to_px);
    let scene = scene(input, width as f32, height as f32, &to_px, &project);
    let contested = away_from_borders(ground.contested_outlines(), &scene, [width, height], pt);
    let lines = graticule(&project, width, height, px_per_m, f64::from(100.0 * pt));
    let lettering = letter(input, &scene, &ground, &fonts, &to_px, pt);

    let too_large = || Error::argument("map sheet", format!("{width} x {height} pixels"), "choose a smaller size");
    let mut map = Canvas::new(width, height, PAPER).ok_or_else(too_large)?;
    map.set_rows(0, 0, width, &ground.paint(pt, 1.0 / px_per_m));
    for line in &lines.lines {
        stroke(&mut map, line, ink([70, 78, 92]).at(0.30), 0.35 * pt);
    }
    for (curve, river) in &scene.rivers {
        draw_river(&mut map, &ground, curve, river, pt);
    }
    let inner = |b: &BorderLine| {
        let whole = |c: u16| ground.drawn_as.get(c as usize).copied().unwrap_or(0);
        b.left != 0 && b.right != 0 && whole(b.left) == whole(b.right)
    };
    let mut drawn: Vec<(&BorderLine, bool)> = Vec::new();
    // Inner lines first, so that borders lie over their ends.
    for is_inner in [true, false] {
        for (curve, border) in scene.borders.iter().filter(|b| inner(b.1) == is_inner && !of_people(input, b.1)) {
            let smooth = curve.smoothed(1.0 * pt, 1.6 * pt);
            for m in path_of(&smooth).map(|p| border_marks(&p, border.certainty, is_inner, pt)).unwrap_or_default() {
                map.draw(&m);
            }
            drawn.push((border, is_inner));
        }
    }
    draw_parts(&mut map, input, &to_px, &mut drawn, pt);
    for curve in &contested {
        for m in path_of(curve).map(|p| contested_marks(&p, pt)).unwrap_or_default() {
            map.draw(&m);
        }
    }
    draw_lettering(&mut map, &lettering);

    let contests = ground.contests();
    let legend = Legend {
        input,
        options,
        keys: &lettering.keys,
        in_view: &lettering.in_view,
        borders: &drawn,
        kinds: &kinds(&lettering, &scene),
        heights: ground.ranges(),
        contests: &contests,
        has_rivers: !scene.rivers.is_empty(),
        scale: (lines.px_per_m.unwrap_or(px_per_m), lines.north),
    };
    let page = Page::lay_out(&pen, &legend, width as f32, height as f32);
    let mut sheet = Canvas::new(page.width, page.height, PAPER).ok_or_else(too_large)?;
    sheet.set_rows(page.map_x, page.map_y, width, &map.rgb());
    for mark in frame(&pen, &lines, page.map_x as f32, page.map_y as f32, width as f32, height as f32) {
        sheet.draw(&mark);
    }
    for mark in &page.marks {
        sheet.draw(mark);
    }
    Ok(Sheet {
        width: sheet.width(),
        height: sheet.height(),
        rgb: sheet.rgb(),
        map_size: [width, height],
        labels: lettering.placed,
        keys: lettering.keys,
        dpi: options.dpi,
    })
}

fn check(input: &SheetInput, options: &SheetOptions) -> Result<()> {
    let grid = input.grid;
    let sizes = [
        (input.elevation.cols, input.elevation.rows, "elevation"),
        (input.water.cols, input.water.rows, "water"),
        (input.regions.cols, input.regions.rows, "regions"),
        (input.contested.cols, input.contested.rows, "contested"),
    ];
    for (cols, rows, what) in sizes {
        if (cols, rows) != (grid.cols, grid.rows) {
            return Err(Error::GridMismatch {
                left: format!("{what}, {cols} x {rows} cells"),
                right: format!("the sheet's grid, {} x {} cells", grid.cols, grid.rows),
            });
        }
    }
    if grid.is_empty() {
        return Err(Error::argument("map sheet", "a grid without cells", "give an extent of at least one cell"));
    }
    if !(100..=16_000).contains(&options.map_px) {
        return Err(Error::argument("map width", options.map_px, "give 100 to 16000 pixels"));
    }
    if !(50.0..=1200.0).contains(&options.dpi) {
        return Err(Error::argument("dpi", options.dpi, "give 50 to 1200"));
    }
    Ok(())
}

/// The vectors of the input in pixels, cut to the window.
fn scene<'a>(
    input: &'a SheetInput,
    width: f32,
    height: f32,
    to_px: &impl Fn(f64, f64) -> (f64, f64),
    project: &impl Fn(LonLat) -> Option<(f64, f64)>,
) -> Scene<'a> {
    let curve = |line: &LineString<f64>| {
        Curve::through(line.coords().map(|c| {
            let p = to_px(c.x, c.y);
            point(p.0 as f32, p.1 as f32)
        }))
    };
    let pieces = |line: &LineString<f64>| curve(line).map(|c| c.clipped(width, height)).unwrap_or_default();
    let at = |at: LonLat| project(at).map(|p| point(p.0 as f32, p.1 as f32));
    let in_view = |p: &Point| p.x > 0.0 && p.y > 0.0 && p.x < width && p.y < height;
    Scene {
        borders: input.borders.iter().flat_map(|b| pieces(&b.line).into_iter().map(move |c| (c, b))).collect(),
        rivers: input.rivers.iter().flat_map(|r| pieces(&r.line).into_iter().map(move |c| (c, r))).collect(),
        places: input
            .places
            .iter()
            .filter(|p| p.stands_in(input.year))
            .filter_map(|p| Some((at(p.at).filter(in_view)?, p)))
            .collect(),
        peaks: input.peaks.iter().filter_map(|p| Some((at(p.at).filter(in_view)?, p))).collect(),
        physical: input
            .physical
            .iter()
            .map(|n| {
                let line = n.line.coords().filter_map(|c| at(LonLat { lon: c.x, lat: c.y })).collect();
                (line, n)
            })
            .collect(),
    }
}

/// The parts of outlines that no border line says already.
fn away_from_borders(outlines: Vec<Curve>, scene: &Scene, [width, height]: [usize; 2], pt: f32) -> Vec<Curve> {
    let cell = 2.5 * pt;
    let cell_of = |p: Point| ((p.x.max(0.0) / cell) as usize, (p.y.max(0.0) / cell) as usize);
    let cells = cell_of(point(width as f32, height as f32));
    let mut near = Raster::filled(cells.0 + 2, cells.1 + 2, false);
    for (border, _) in &scene.borders {
        let steps = (border.length() / (0.5 * cell)).ceil() as usize;
        for k in 0..=steps {
            let (c, r) = cell_of(border.point_at(border.length() * k as f32 / steps.max(1) as f32));
            for (c, r) in
                (0..3).flat_map(|i| (0..3).map(move |j| ((c + i).saturating_sub(1), (r + j).saturating_sub(1))))
            {
                if c < near.cols && r < near.rows {
                    near.set(c, r, true);
                }
            }
        }
    }
    let is_near = |p: &Point| {
        let (c, r) = cell_of(*p);
        near.at(c.min(near.cols - 1), r.min(near.rows - 1))
    };
    outlines
        .iter()
        .flat_map(|c| {
            let course = c.smoothed(pt, 2.0 * pt);
            let runs = course.points().split(is_near).filter_map(|run| Curve::through(run.iter().copied()));
            runs.filter(|run| run.length() > 8.0 * pt).collect::<Vec<_>>()
        })
        .collect()
}

fn stroke(canvas: &mut Canvas, curve: &Curve, ink: Ink, width: f32) {
    if let Some(path) = path_of(curve) {
        canvas.draw(&Mark::line(path, ink, width));
    }
}

/// A river on land, growing from its source to its mouth.
fn draw_river(map: &mut Canvas, ground: &Ground, curve: &Curve, river: &River, pt: f32) {
    let full = [1.5, 1.5, 1.15, 0.85, 0.66, 0.52][river.rank.min(5) as usize] * pt;
    let course = curve.smoothed(0.7 * pt, 0.9 * pt);
    let total = course.length();
    let wet = |p: &Point| {
        let (x, y) = ((p.x as usize).min(ground.width - 1), (p.y as usize).min(ground.height - 1));
        ground.sea.at(x, y) > 0.6 || ground.lake.at(x, y) > 0.6
    };
    // A piece for each tenth of a point of width.
    let pieces = ((0.65 * full / (0.04 * pt)).ceil() as usize).max(1);
    for k in 0..pieces {
        let (from, to) = (total * k as f32 / pieces as f32, total * (k + 1) as f32 / pieces as f32);
        let Some(piece) = course.part(from, to) else { continue };
        let width = full * (0.35 + 0.65 * (k as f32 + 0.5) / pieces as f32);
        let mut path = PathBuilder::new();
        let mut down = false;
        for p in piece.points() {
            if wet(p) {
                down = false;
            } else if down {
                path.line_to(p.x, p.y);
            } else {
                path.move_to(p.x, p.y);
                down = true;
            }
        }
        if let Some(path) = path.finish() {
            map.draw(&Mark::line(path, ink(WATER_INK), width));
        }
    }
}

/// Whether a border only bounds peoples, who have none.
fn of_people(input: &SheetInput, b: &BorderLine) -> bool {
    let open =
        |code: u16| code == 0 || input.polities.iter().any(|p| p.code == code && p.claim.kind == ClaimKind::People);
    open(b.left) && open(b.right)
}

/// Outlines of parts whose borders are not among the border lines.
fn draw_parts<'a>(
    map: &mut Canvas,
    input: &'a SheetInput,
    to_px: &impl Fn(f64, f64) -> (f64, f64),
    drawn: &mut Vec<(&'a BorderLine, bool)>,
    pt: f32,
) {
    for p in input.polities.iter().filter(|p| p.claim.kind == ClaimKind::Part) {
        if drawn.iter().any(|d| d.0.left == p.code || d.0.right == p.code) {
            continue;
        }
        for polygon in &p.outline {
            let ring = polygon.exterior().coords().map(|c| {
                let p = to_px(c.x, c.y);
                point(p.0 as f32, p.1 as f32)
            });
            let Some(path) = Curve::through(ring).and_then(|c| path_of(&c)) else { continue };
            for m in border_marks(&path, p.claim.certainty, true, pt) {
                map.draw(&m);
            }
        }
    }
}

fn draw_lettering(map: &mut Canvas, lettering: &Lettering) {
    for m in &lettering.marks {
        map.draw(m);
    }
    for l in lettering.letters.iter().filter(|l| l.halo_px > 0.0) {
        map.draw(&Mark::line(l.path.clone(), l.halo, 2.0 * l.halo_px));
    }
    for l in &lettering.letters {
        map.draw(&Mark::Fill(l.path.clone(), l.ink));
    }
}

/// Kinds of signs that found room on the map.
fn kinds(lettering: &Lettering, scene: &Scene) -> Vec<String> {
    let shown: BTreeSet<&str> =
        lettering.placed.iter().filter(|l| l.kind == LabelKind::Place).map(|l| l.text.as_str()).collect();
    let mut kinds: BTreeSet<String> = scene
        .places
        .iter()
        .filter(|p| shown.contains(p.1.name.as_str()) || p.1.names.iter().any(|n| shown.contains(n.name.as_str())))
        .map(|p| p.1.kind.clone())
        .collect();
    if lettering.placed.iter().any(|l| l.kind == LabelKind::Peak) {
        kinds.insert("peak".into());
    }
    kinds.into_iter().collect()
}

/// Where everything lies on the page.
struct Page {
    width: usize,
    height: usize,
    map_x: usize,
    map_y: usize,
    marks: Vec<Mark>,
}

/// Width of a legend column, points.
const COLUMN_PT: f32 = 226.0;
/// Margin of the page, points.
pub(super) const MARGIN_PT: f32 = 22.0;
/// Between map and legend and between columns, points.
const GAP_PT: f32 = 18.0;

impl Page {
    /// The legend beside the map, or below it where the map is low and wide.
    fn lay_out(pen: &Pen, legend_of: &Legend, width: f32, height: f32) -> Page {
        let pt = pen.pt;
        let (margin, gap, band, column) = (MARGIN_PT * pt, GAP_PT * pt, FRAME_PT * pt, COLUMN_PT * pt);
        let (framed_w, framed_h) = (width + 2.0 * band, height + 2.0 * band);
        let is_beside = framed_h > 420.0 * pt && framed_w < 2.3 * framed_h || framed_w < column;
        let build = |pen: &Pen| {
            let mut blocks = legend(pen, legend_of, column);
            let print_from = blocks.len();
            blocks.extend(legend_of.input.imprint.iter().map(|l| imprint(pen, std::slice::from_ref(l), column)));
            if is_beside {
                blocks.insert(0, title(pen, legend_of.input, column, false));
            }
            (blocks, print_from)
        };
        // A short legend beside the map may be set larger, one a little too long for its column smaller.
        let larger =
            [1.36f32, 1.28, 1.2, 1.12, 1.06, 1.0, 0.94, 0.88].into_iter().filter(|_| is_beside).find_map(|f| {
                let (blocks, from) = build(&Pen { fonts: pen.fonts, pt: f * pt });
                let fits = blocks.iter().map(|b| b.height).sum::<f32>() + 12.0 * pt <= framed_h;
                fits.then_some((blocks, from))
            });
        let (blocks, print_from) = larger.unwrap_or_else(|| build(pen));
        let mut marks = Vec::new();
        let mut put =
            |block: Block, x: f32, y: f32| marks.extend(block.marks.into_iter().filter_map(|m| m.moved(x, y)));
        if is_beside {
            let at = flow(&blocks, framed_h);
            let columns = at.last().map_or(1, |a| a.0 + 1);
            let ends = |(b, a): (&Block, &(usize, f32))| a.1 + b.height;
            let used = blocks.iter().zip(&at).map(ends).fold(framed_h, f32::max);
            // Small print stands at the foot of its column.
            let last_end = blocks.iter().zip(&at).filter(|(_, a)| a.0 + 1 == columns).map(ends).fold(0.0, f32::max);
            let sink = used - last_end;
            for (k, (block, (c, y))) in blocks.into_iter().zip(at).enumerate() {
                let is_print = k > print_from && c + 1 == columns;
                let x = margin + framed_w + gap + c as f32 * (column + gap);
                put(block, x, margin + y + if is_print { sink } else { 0.0 });
            }
            let panel = columns as f32 * (column + gap);
            return Page {
                width: (2.0 * margin + framed_w + panel).ceil() as usize,
                height: (2.0 * margin + used).ceil() as usize,
                map_x: (margin + band).round() as usize,
                map_y: (margin + band).round() as usize,
                marks,
            };
        }
        let inner = framed_w.max(column);
        let head = title(pen, legend_of.input, inner, true);
        let columns = (((inner + gap) / (column + gap)).floor() as usize).max(1);
        // The lowest height at which the blocks fit the columns.
        let total: f32 = blocks.iter().map(|b| b.height).sum();
        let mut room = total / columns as f32;
        let mut at = flow(&blocks, room);
        while at.last().is_some_and(|a| a.0 >= columns) {
            room += 6.0 * pt;
            at = flow(&blocks, room);
        }
        let used = blocks.iter().zip(&at).map(|(b, a)| a.1 + b.height).fold(0.0, f32::max);
        let top = margin + head.height;
        put(head, margin, margin);
        let below = top + framed_h + gap;
        let shift = (inner + gap - columns as f32 * (column + gap)) / 2.0;
        for (block, (c, y)) in blocks.into_iter().zip(at) {
            put(block, margin + shift + c as f32 * (column + gap), below + y);
        }
        Page {
            width: (2.0 * margin + inner).ceil() as usize,
            height: (below + used + margin).ceil() as usize,
            map_x: (margin + band + (inner - framed_w) / 2.0).round() as usize,
            map_y: (top + band).round() as usize,
            marks,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sheet_fits_the_map() {
        let px = |cols, rows, cell_m| SheetOptions::fitting(cols, rows, cell_m).map_px;
        // The whole Caucasus at 250 m and at 1 km, a district at 100 m, a valley, and a handful of cells.
        assert_eq!(px(4435, 3872, 250.0), 3200);
        assert_eq!(px(1109, 968, 1000.0), 3200);
        assert_eq!(px(1170, 1100, 100.0), 2340);
        assert_eq!(px(250, 220, 100.0), 1200);
        assert_eq!(px(3, 200, 1000.0), 1200);
    }
}
