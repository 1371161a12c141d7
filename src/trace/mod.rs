//! Tracing: the picture of a map and its legend in, regions with shared borders out. No files, no GDAL; coordinates are columns
//! and lines of the picture, from its upper left corner.
//!
//! The way: uneven paper and printed dots evened out where that is asked for, colours to classes ([`Legend`]), thin structures and lines to gaps, gaps to the nearest region, specks to
//! their neighbours, borders to arcs that two regions share, arcs to smooth lines.
//!
//! Invariants: regions neither overlap nor leave gaps; the result depends on picture, legend and options alone, not on threads.

mod classify;
mod clean;
mod colour;
mod curve;
mod legend;
mod outline;
mod paper;
mod propose;
mod runs;

pub use colour::{Lab, Rgb, from_hex, to_hex};
pub use legend::{Class, ClassKind, Coordinates, DEFAULT_TOLERANCE, Legend, MOST_CLASSES};
pub use propose::{Proposed, propose};

use crate::error::{Error, Result};
use crate::grid::{Crs, GeoTransform, Grid};
use crate::rasterize::rasterize_mask;
use crate::words::counted;
use classify::Palette;
use geo::{Coord, LineString, MultiPolygon, Polygon};
use rayon::prelude::*;
use runs::Components;

/// A cell of what fits no class.
const UNKNOWN: u8 = 254;
/// A cell to be given to the nearest region.
const GAP: u8 = 255;
/// A cell that is no part of the map.
const OUTSIDE: u8 = 253;

/// How much farther than the width of a line a strip may be from its region.
const RESTORED_PX: usize = 2;

/// A picture in memory.
#[derive(Debug, Clone, PartialEq)]
pub struct Picture {
    /// Columns.
    pub cols: usize,
    /// Rows.
    pub rows: usize,
    /// Its pixels, row after row.
    rgb: Vec<Rgb>,
    /// 1 where a pixel is no part of the map; empty where all are.
    outside: Vec<u8>,
}

impl Picture {
    /// A picture of `cols` x `rows` pixels.
    ///
    /// # Panics
    /// When `rgb` is not `cols * rows` long: a programming error.
    pub fn new(cols: usize, rows: usize, rgb: Vec<Rgb>) -> Picture {
        assert_eq!(rgb.len(), cols * rows, "picture size");
        Picture { cols, rows, rgb, outside: Vec::new() }
    }

    /// The colour of a pixel.
    pub fn at(&self, col: usize, row: usize) -> Rgb {
        self.rgb[row * self.cols + col]
    }

    /// Whether a pixel is part of the map.
    #[inline]
    pub fn is_inside(&self, col: usize, row: usize) -> bool {
        self.outside.is_empty() || self.outside[row * self.cols + col] == 0
    }

    /// Takes a pixel out of the map: a transparent one, say.
    pub fn leave_out(&mut self, col: usize, row: usize) {
        if self.outside.is_empty() {
            self.outside = vec![0; self.rgb.len()];
        }
        self.outside[row * self.cols + col] = 1;
    }

    /// Takes the pixels that are not 0 in `marked` out of the map; an empty one takes none.
    ///
    /// # Panics
    /// When `marked` is of another size than the picture: a programming error.
    pub fn leave_out_marked(&mut self, marked: Vec<u8>) {
        assert!(marked.is_empty() || marked.len() == self.rgb.len(), "marks of {} pixels", marked.len());
        if self.outside.is_empty() {
            self.outside = marked;
        } else {
            self.outside.iter_mut().zip(&marked).filter(|(_, m)| **m != 0).for_each(|(o, _)| *o = 1);
        }
    }

    /// Takes what lies in `rings` out of the map; with `is_kept` what does not.
    ///
    /// # Errors
    /// [`Error::Argument`] for a coordinate that is not finite.
    pub fn leave_out_rings(&mut self, rings: &[Vec<[f64; 2]>], is_kept: bool) -> Result<()> {
        if rings.is_empty() {
            return Ok(());
        }
        let mask = mask(self.cols, self.rows, rings)?;
        if self.outside.is_empty() {
            self.outside = vec![0; self.rgb.len()];
        }
        self.outside.iter_mut().zip(&mask).filter(|(_, m)| (**m != 0) != is_kept).for_each(|(o, _)| *o = 1);
        Ok(())
    }
}

/// 1 in the cells whose centres lie in any of `rings`.
fn mask(cols: usize, rows: usize, rings: &[Vec<[f64; 2]>]) -> Result<Vec<u8>> {
    // Rows run down the page, y runs up.
    let ring = |r: &Vec<[f64; 2]>| {
        let line: Vec<Coord<f64>> = r.iter().map(|[x, y]| Coord { x: *x, y: -*y }).collect();
        Polygon::new(LineString::new(line), vec![])
    };
    let grid = Grid {
        crs: Crs { name: "picture".into(), wkt: String::new(), is_geographic: false },
        transform: GeoTransform { origin_x: 0.0, origin_y: 0.0, cell_width: 1.0, cell_height: 1.0 },
        cols,
        rows,
    };
    Ok(rasterize_mask(&MultiPolygon(rings.iter().map(ring).collect()), &grid, false)?.values)
}

/// How to trace.
#[derive(Debug, Clone, PartialEq)]
pub struct TraceOptions {
    /// Whether the light of the paper is divided out: yellowed, stained, unevenly lit.
    pub is_paper_uneven: bool,
    /// Period of printed dots or hatching, pixels: colours are judged over as much. 0 judges each pixel.
    pub screen_px: f64,
    /// What is narrower than this is a line or lettering, and removed; pixels. 0 and 1 remove nothing.
    pub line_width_px: usize,
    /// Areas of fewer pixels go to their neighbours.
    pub least_area_px: u64,
    /// Length of the tangents of smooth borders, 0 to 1; 0 gives the exact outlines of the pixels.
    pub smooth: f64,
    /// How far a border's key points may be from the line through the middles of pixel edges; pixels.
    pub simplify_px: f64,
}

impl Default for TraceOptions {
    fn default() -> Self {
        TraceOptions {
            is_paper_uneven: false,
            screen_px: 0.0,
            line_width_px: 2,
            least_area_px: 16,
            smooth: 1.0,
            simplify_px: 0.6,
        }
    }
}

/// All areas of one class.
#[derive(Debug, Clone, PartialEq)]
pub struct Region {
    /// Number of the class in the legend.
    pub class: usize,
    /// Its areas: column and line, borders shared with its neighbours vertex by vertex.
    pub area: MultiPolygon<f64>,
    /// Its pixels.
    pub pixels: u64,
    /// Those of its pixels that might as well be another's.
    pub doubtful_pixels: u64,
}

/// What a picture was traced to.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Traced {
    /// One entry per class of areas that occurs, in the legend's order, without those of kind `ignore`.
    pub regions: Vec<Region>,
    /// Pixels that fit no class and are no part of any region.
    pub unknown_pixels: u64,
    /// Pixels that are no part of the map.
    pub outside_pixels: u64,
    /// How many specks went to their neighbours.
    pub specks: usize,
    /// What the user should know.
    pub notes: Vec<String>,
}

/// Takes the colours of classes that are given by points from the picture: the median of 5 x 5 pixels around each; with a
/// screen of `screen_px` the mean light around it.
///
/// # Errors
/// [`Error::Argument`] for a point off the picture.
pub fn sample_colours(picture: &Picture, legend: &mut Legend, screen_px: f64) -> Result<()> {
    for class in &mut legend.classes {
        for [x, y] in std::mem::take(&mut class.points) {
            if !(x >= 0.0 && y >= 0.0 && x < picture.cols as f64 && y < picture.rows as f64) {
                return Err(Error::argument(
                    format!("legend, class '{}'", class.name),
                    format!(
                        "the point at column {x}, line {y} lies off the picture of {} x {}",
                        picture.cols, picture.rows
                    ),
                    "give column and line from its upper left corner, or coordinates = \"map\" and x, y in its CRS",
                ));
            }
            let (col, row) = (x as usize, y as usize);
            if screen_px > 0.0 {
                class.colours.push(paper::mean_around(picture, col, row, screen_px));
                continue;
            }
            let around = |at: usize, all: usize| at.saturating_sub(2)..(at + 3).min(all);
            let pixels: Vec<Rgb> = around(row, picture.rows)
                .flat_map(|r| around(col, picture.cols).map(move |c| (c, r)))
                .map(|(c, r)| picture.at(c, r))
                .collect();
            let colour: Rgb = std::array::from_fn(|band| {
                let mut values: Vec<u8> = pixels.iter().map(|p| p[band]).collect();
                values.sort_unstable();
                values[values.len() / 2]
            });
            class.colours.push(colour);
        }
    }
    Ok(())
}

/// The regions of `picture` by `legend`, whose classes must have their colours ([`sample_colours`]) and whose coordinates are
/// columns and lines.
///
/// Takes some 12 bytes per pixel beside the picture, which is given up for it.
///
/// # Errors
/// [`Error::Argument`] for options out of range; [`Error::Content`] when no colour of an area of the legend occurs.
pub fn trace(mut picture: Picture, legend: &Legend, options: &TraceOptions) -> Result<Traced> {
    check(options)?;
    let (cols, rows) = (picture.cols, picture.rows);
    picture.leave_out_rings(&legend.leave_out, false)?;
    let mut notes = legend::overlaps(legend);
    let palette = Palette::of(legend);
    if options.screen_px > 0.0 {
        paper::averaged(&mut picture, &palette, options.screen_px);
    }
    if options.is_paper_uneven {
        paper::evened(&mut picture, &palette);
    }
    // Between two areas the mean colour of a screen may be that of a third: what is no wider than the screen is no area.
    let line_width_px = options.line_width_px.max(options.screen_px.ceil() as usize);
    let classified = classify::classify(&picture, &palette);
    drop(picture);
    let (mut labels, mut doubt) = (classified.labels, classified.doubt);
    let counts = counts(&labels);
    notes.extend(absent(legend, &counts)?);

    labels.par_iter_mut().filter(|l| palette.is_line(**l)).for_each(|l| *l = GAP);
    if line_width_px >= 2 {
        let before = labels.clone();
        clean::remove_thin(&mut labels, cols, line_width_px);
        clean::restore_beside_own(&mut labels, &before, cols, line_width_px + RESTORED_PX);
    }
    if !clean::fill_gaps(&mut labels, &mut doubt, cols) {
        return Err(Error::content(
            "picture",
            format!("nothing is left of it: all is narrower than {}", counted(line_width_px, "pixel", "pixels")),
            "a smaller --line-width",
        ));
    }
    for (k, class) in (0u8..).zip(&legend.classes) {
        if let Some(parent) = class.part_of {
            let inside = mask(cols, rows, &class.within)?;
            labels
                .par_iter_mut()
                .zip(&inside)
                .filter(|(l, m)| **m != 0 && **l == parent as u8)
                .for_each(|(l, _)| *l = k);
        }
    }

    let mut components = Components::of(&labels, cols);
    drop(labels);
    let specks = clean::remove_specks(&mut components, options.least_area_px);
    let is_region = |label: u8| {
        legend.classes.get(usize::from(label)).is_some_and(|c| !matches!(c.kind, ClassKind::Ignore | ClassKind::Line))
    };
    // Regions are numbered in order of class, then of place.
    let mut roots = components.roots();
    let of_label = |wanted: u8| -> u64 {
        roots.iter().filter(|k| components.label(**k) == wanted).map(|k| components.area(*k)).sum()
    };
    let (unknown_pixels, outside_pixels) = (of_label(UNKNOWN), of_label(OUTSIDE));
    roots.retain(|k| is_region(components.label(*k)));
    roots.sort_by_key(|k| (components.label(*k), *k));
    let mut number = vec![outline::NOTHING; components.len()];
    (0u32..).zip(&roots).for_each(|(n, k)| number[*k as usize] = n);
    let cells = components.cells(|k| number[k as usize]);

    let doubtful = doubtful(&cells, &doubt, cols, roots.len());
    drop(doubt);
    let outlines = outline::outlines(&cells, cols, roots.len());
    drop(cells);
    let lines = match options.smooth > 0.0 {
        true => curve::smooth(&outlines, options.simplify_px, options.smooth),
        false => curve::exact(&outlines),
    };
    let mut regions: Vec<Region> = Vec::new();
    for (n, root) in roots.iter().enumerate() {
        let class = usize::from(components.label(*root));
        if regions.last().is_none_or(|r| r.class != class) {
            regions.push(Region { class, area: MultiPolygon(vec![]), pixels: 0, doubtful_pixels: 0 });
        }
        let Some(region) = regions.last_mut() else { continue };
        region.pixels += components.area(*root);
        region.doubtful_pixels += doubtful[n];
        region.area.0.push(polygon(&outlines.rings[n], &lines));
    }
    Ok(Traced { regions, unknown_pixels, outside_pixels, specks, notes })
}

fn check(options: &TraceOptions) -> Result<()> {
    if !(0.0..=1.0).contains(&options.smooth) {
        return Err(Error::argument("--smooth", options.smooth, "give 0 (the outlines of the pixels) to 1"));
    }
    if !(options.simplify_px >= 0.0 && options.simplify_px <= 100.0) {
        return Err(Error::argument("--simplify", options.simplify_px, "give pixels, 0 to 100"));
    }
    if !(options.screen_px >= 0.0 && options.screen_px <= 100.0) {
        return Err(Error::argument("--screen", options.screen_px, "give pixels, 0 to 100"));
    }
    if options.line_width_px > 200 {
        return Err(Error::argument("--line-width", options.line_width_px, "give pixels, 0 to 200"));
    }
    Ok(())
}

/// Cells of each label.
fn counts(labels: &[u8]) -> [u64; 256] {
    labels
        .par_chunks(1 << 16)
        .map(|chunk| {
            let mut counts = [0u64; 256];
            chunk.iter().for_each(|l| counts[usize::from(*l)] += 1);
            counts
        })
        .reduce(|| [0; 256], |a, b| std::array::from_fn(|k| a[k] + b[k]))
}

/// Says which classes do not occur.
fn absent(legend: &Legend, counts: &[u64; 256]) -> Result<Vec<String>> {
    let is_area = |c: &Class| c.kind != ClassKind::Line && c.part_of.is_none();
    let with_count = || legend.classes.iter().zip(counts);
    if !with_count().any(|(c, n)| is_area(c) && *n > 0) {
        let colours: Vec<String> = legend.classes.iter().flat_map(|c| &c.colours).map(|c| to_hex(*c)).collect();
        return Err(Error::content(
            "picture",
            format!("none of the legend's areas occurs in it ({})", colours.join(", ")),
            "a legend of its own colours; histmap trace --propose writes one",
        ));
    }
    let of = |c: &Class| c.colours.iter().map(|c| to_hex(*c)).collect::<Vec<_>>().join(", ");
    Ok(with_count()
        .filter(|(c, n)| **n == 0 && c.part_of.is_none())
        .map(|(c, _)| {
            format!("the colour of '{}' ({}) never occurs within its tolerance of {}", c.name, of(c), c.tolerance)
        })
        .collect())
}

/// Doubtful cells of each region.
fn doubtful(cells: &[u32], doubt: &[u8], cols: usize, count: usize) -> Vec<u64> {
    let rows_at_once = cols.max(1) * 64;
    cells
        .par_chunks(rows_at_once)
        .zip(doubt.par_chunks(rows_at_once))
        .fold(
            || vec![0u64; count],
            |mut sums, (cells, doubt)| {
                cells
                    .iter()
                    .zip(doubt)
                    .filter(|(c, d)| **d != 0 && **c != outline::NOTHING)
                    .for_each(|(c, _)| sums[*c as usize] += 1);
                sums
            },
        )
        .reduce(|| vec![0u64; count], |a, b| a.iter().zip(&b).map(|(x, y)| x + y).collect())
}

/// The polygon of a region's rings.
fn polygon(rings: &[Vec<outline::ArcUse>], lines: &[Vec<Coord<f64>>]) -> Polygon<f64> {
    let ring = |uses: &Vec<outline::ArcUse>| {
        let mut points: Vec<Coord<f64>> = Vec::new();
        for u in uses {
            points.pop();
            let line = lines[u.arc].iter().copied();
            if u.is_forward { points.extend(line) } else { points.extend(line.rev()) }
        }
        LineString::new(points)
    };
    let holes = rings.iter().skip(1).map(ring).collect();
    Polygon::new(rings.first().map_or(LineString::new(vec![]), ring), holes)
}
