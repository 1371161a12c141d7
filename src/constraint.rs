//! Which value binds where: rivers drawn into the valleys of the coarse elevation, their beds made to fall, summits put in
//! their cells.
//!
//! Everything here is worked out on the coarse raster and along whole rivers, never on a window: a window's constraints
//! are the same as the whole's.

use crate::raster::Raster;
use crate::terrain::{CoarseSurface, Uv, falling_profile};
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// A river on the coarse raster.
#[derive(Debug, Clone, PartialEq)]
pub struct RiverOnCoarse {
    /// Name, to find the rivers that flow into it; may be empty.
    pub name: String,
    /// Name of the water that takes it; may be empty.
    pub mouth: String,
    /// 1 (greatest) to 5.
    pub rank: u8,
    /// Course, source first.
    pub line: Vec<Uv>,
    /// Surface of the sea or lake that takes it, metres; `None` when another river does or it is not known.
    pub mouth_level_m: Option<f64>,
}

/// A river laid into its valley.
#[derive(Debug, Clone, PartialEq)]
pub struct LaidRiver {
    /// Course along the valley floor, source first, about half a coarse cell between points.
    pub line: Vec<Uv>,
    /// Height of the bed at each point, metres; falls all the way.
    pub bed_m: Vec<f64>,
    /// The largest cut through ground that the coarse elevation puts in the river's way, metres: large values mean that
    /// line and elevation contradict each other.
    pub worst_cut_m: f64,
    /// Where that is.
    pub worst_cut_at: Uv,
}

/// How rivers are laid.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RiverOptions {
    /// How far from the drawn line the valley is looked for, in coarse cells.
    pub corridor_cells: f64,
    /// Metres of climb that weigh as much as one cell of way.
    pub climb_m_per_cell: f64,
    /// Least fall between two points of a bed, metres.
    pub least_fall_m: f64,
}

impl Default for RiverOptions {
    fn default() -> Self {
        RiverOptions { corridor_cells: 3.0, climb_m_per_cell: 8.0, least_fall_m: 0.005 }
    }
}

/// Lays `rivers` into the valleys of `surface`, greater ones first, so that tributaries end on the rivers that take them.
///
/// Output order is input order. A river comes in reaches, source first: one where the elevation is known all along it, none
/// where it has no two points; it is cut where it leaves the raster or crosses a wide void, as nothing tells its height
/// there, and only the last reach knows the mouth. Cost: one shortest path within the corridor of each.
pub fn lay_rivers(rivers: &[RiverOnCoarse], surface: &CoarseSurface, options: &RiverOptions) -> Vec<Vec<LaidRiver>> {
    let mut laid: Vec<Vec<LaidRiver>> = vec![Vec::new(); rivers.len()];
    for index in downstream_first(rivers) {
        let river = &rivers[index];
        let takers: Vec<&LaidRiver> = rivers
            .iter()
            .zip(&laid)
            .enumerate()
            .filter(|(k, (r, _))| *k != index && !river.mouth.is_empty() && r.name == river.mouth)
            .flat_map(|(_, (_, reaches))| reaches)
            .collect();
        let reaches = known_reaches(&densified(&river.line, 0.25), surface);
        laid[index] =
            reaches.into_iter().filter_map(|reach| lay_reach(reach, river, &takers, surface, options)).collect();
    }
    laid
}

/// A run of a river's points over known elevation.
struct Reach {
    line: Vec<Uv>,
    /// Whether it holds the river's last point.
    has_mouth: bool,
}

/// A void at least this long along a river cuts it, coarse cells.
const WIDE_VOID_CELLS: f64 = 8.0;

/// The runs of `line` (densified) inside the raster of `surface` and not in a wide void of it.
fn known_reaches(line: &[Uv], surface: &CoarseSurface) -> Vec<Reach> {
    let mut reaches: Vec<Reach> = Vec::new();
    let mut run: Vec<Uv> = Vec::new();
    let mut void: Vec<Uv> = Vec::new(); // points after the run's last known one
    let mut close = |run: &mut Vec<Uv>, has_mouth: bool| {
        let line = std::mem::take(run);
        if line.len() > 1 {
            reaches.push(Reach { line, has_mouth });
        }
    };
    let length = |points: &[Uv]| points.windows(2).map(|p| distance2(p[0], p[1]).sqrt()).sum::<f64>();
    for &p in line {
        if !surface.contains(p) {
            void.clear();
            close(&mut run, false);
        } else if !surface.value_under(p).is_finite() {
            void.push(p);
        } else {
            if length(&void) >= WIDE_VOID_CELLS {
                close(&mut run, false);
                void.clear();
            }
            run.append(&mut void);
            run.push(p);
        }
    }
    // The last cells of a river may lie in the water that takes it, which the land elevation does not know.
    let ends_known = line.last().is_some_and(|&p| surface.contains(p)) && length(&void) < WIDE_VOID_CELLS;
    if ends_known {
        run.append(&mut void);
    }
    close(&mut run, ends_known);
    reaches
}

impl LaidRiver {
    /// The point of the course nearest to `p`, with the bed height there.
    fn nearest(&self, p: Uv) -> Option<(Uv, f64)> {
        self.line
            .iter()
            .zip(&self.bed_m)
            .map(|(&q, &z)| (distance2(p, q), q, z))
            .min_by(|a, b| a.0.total_cmp(&b.0))
            .map(|(_, q, z)| (q, z))
    }
}

/// Indices such that a river comes after the one that it flows into; circles are broken at their first member.
fn downstream_first(rivers: &[RiverOnCoarse]) -> Vec<usize> {
    fn visit(k: usize, rivers: &[RiverOnCoarse], seen: &mut [bool], out: &mut Vec<usize>) {
        if seen[k] {
            return;
        }
        seen[k] = true;
        if !rivers[k].mouth.is_empty() {
            for (m, r) in rivers.iter().enumerate() {
                if r.name == rivers[k].mouth {
                    visit(m, rivers, seen, out);
                }
            }
        }
        out.push(k);
    }
    let (mut seen, mut out) = (vec![false; rivers.len()], Vec::new());
    for k in 0..rivers.len() {
        visit(k, rivers, &mut seen, &mut out);
    }
    out
}

fn distance2(a: Uv, b: Uv) -> f64 {
    (a.u - b.u) * (a.u - b.u) + (a.v - b.v) * (a.v - b.v)
}

fn lay_reach(
    reach: Reach,
    river: &RiverOnCoarse,
    takers: &[&LaidRiver],
    surface: &CoarseSurface,
    options: &RiverOptions,
) -> Option<LaidRiver> {
    let Reach { mut line, has_mouth } = reach;
    let (&first, &last) = (line.first()?, line.last()?);
    let mut mouth = last;
    let mut mouth_m = f64::NEG_INFINITY;
    if has_mouth {
        mouth_m = river.mouth_level_m.unwrap_or(f64::NEG_INFINITY);
        let nearest = takers
            .iter()
            .filter_map(|t| t.nearest(last))
            .min_by(|a, b| distance2(a.0, last).total_cmp(&distance2(b.0, last)));
        if let Some((p, z)) = nearest.filter(|(p, _)| distance2(*p, last) < 36.0) {
            mouth = p;
            mouth_m = z;
            line.push(p);
        }
    }
    let course = smoothed(valley_path(&line, surface, options), first, mouth);
    let course = densified(&course, 0.5);
    let ground: Vec<f64> = course.iter().map(|&p| surface.elevation(p) - 0.5 * f64::from(surface.sigma(p))).collect();
    let bed = falling_profile(&ground, mouth_m, options.least_fall_m);
    let (worst, cut) = ground
        .iter()
        .zip(&bed)
        .map(|(g, b)| (g - b).abs())
        .enumerate()
        .fold((0, 0.0), |best, (k, d)| if d > best.1 { (k, d) } else { best });
    Some(LaidRiver { worst_cut_at: course[worst], line: course, bed_m: bed, worst_cut_m: cut })
}

/// `line` with points no further apart than `step`, its own points kept.
fn densified(line: &[Uv], step: f64) -> Vec<Uv> {
    let mut out = Vec::new();
    for pair in line.windows(2) {
        let n = (distance2(pair[0], pair[1]).sqrt() / step).ceil().max(1.0);
        for k in 0..n as usize {
            let t = k as f64 / n;
            out.push(Uv { u: pair[0].u + t * (pair[1].u - pair[0].u), v: pair[0].v + t * (pair[1].v - pair[0].v) });
        }
    }
    out.extend(line.last());
    out
}

/// A cell waiting in the shortest-path queue: least cost first, then lowest index, so that ties cannot matter.
#[derive(PartialEq)]
struct Waiting {
    cost: f64,
    index: usize,
}

impl Eq for Waiting {}

impl Ord for Waiting {
    fn cmp(&self, other: &Self) -> Ordering {
        other.cost.total_cmp(&self.cost).then(other.index.cmp(&self.index))
    }
}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The way from the first to the last point of `line` that climbs least within the corridor around it (Dijkstra 1959 over the
/// coarse cells), as points: where the drawn line passes through a cell of the way, its own mean position there, else the
/// cell's centre. `line` lies inside the raster.
fn valley_path(line: &[Uv], surface: &CoarseSurface, options: &RiverOptions) -> Vec<Uv> {
    let z = &surface.values;
    let cell = |p: &Uv| (p.u as usize, p.v as usize);
    let n = options.corridor_cells.ceil() as usize + 1;
    let c0 = line.iter().map(|p| cell(p).0).min().unwrap_or(0).saturating_sub(n);
    let r0 = line.iter().map(|p| cell(p).1).min().unwrap_or(0).saturating_sub(n);
    let c1 = (line.iter().map(|p| cell(p).0).max().unwrap_or(0) + n).min(z.cols - 1);
    let r1 = (line.iter().map(|p| cell(p).1).max().unwrap_or(0) + n).min(z.rows - 1);
    let (w, h) = (c1 - c0 + 1, r1 - r0 + 1);
    let mut away = Raster::filled(w, h, f64::INFINITY);
    let mut passes: Vec<(f64, f64, u32)> = vec![(0.0, 0.0, 0); w * h];
    for p in line {
        let (c, r) = cell(p);
        let pass = &mut passes[(r - r0) * w + c - c0];
        *pass = (pass.0 + p.u, pass.1 + p.v, pass.2 + 1);
        for y in r.saturating_sub(n).max(r0)..=(r + n).min(r1) {
            for x in c.saturating_sub(n).max(c0)..=(c + n).min(c1) {
                let d = distance2(*p, Uv { u: x as f64 + 0.5, v: y as f64 + 0.5 }).sqrt();
                if d <= options.corridor_cells && d < away.at(x - c0, y - r0) {
                    away.set(x - c0, y - r0, d);
                }
            }
        }
    }
    let at = |p: &Uv| (cell(p).1 - r0) * w + cell(p).0 - c0;
    let (start, goal) = (at(&line[0]), at(&line[line.len() - 1]));
    let ground = |k: usize| {
        let p = Uv { u: (c0 + k % w) as f64 + 0.5, v: (r0 + k / w) as f64 + 0.5 };
        let v = surface.value_under(p);
        if v.is_finite() { f64::from(v) } else { surface.elevation(p) }
    };
    let mut cost = vec![f64::INFINITY; w * h];
    let mut from = vec![usize::MAX; w * h];
    let mut queue = BinaryHeap::from([Waiting { cost: 0.0, index: start }]);
    cost[start] = 0.0;
    while let Some(Waiting { cost: here, index }) = queue.pop() {
        if index == goal {
            break;
        }
        if here > cost[index] {
            continue;
        }
        let (c, r) = ((index % w) as i64, (index / w) as i64);
        let z0 = ground(index);
        for (dc, dr) in [(-1, -1), (0, -1), (1, -1), (-1, 0), (1, 0), (-1, 1), (0, 1), (1, 1)] {
            let (x, y) = (c + dc, r + dr);
            if x < 0 || y < 0 || x >= w as i64 || y >= h as i64 {
                continue;
            }
            let next = y as usize * w + x as usize;
            let d = away.values[next];
            if !d.is_finite() && next != goal {
                continue;
            }
            let way = ((dc * dc + dr * dr) as f64).sqrt() * (1.0 + 0.3 * d.min(9.0));
            let climb = (ground(next) - z0).max(0.0) / options.climb_m_per_cell;
            if here + way + climb < cost[next] {
                cost[next] = here + way + climb;
                from[next] = index;
                queue.push(Waiting { cost: cost[next], index: next });
            }
        }
    }
    if !cost[goal].is_finite() {
        return line.to_vec();
    }
    let mut path = vec![goal];
    while let Some(&k) = path.last() {
        if k == start {
            break;
        }
        path.push(from[k]);
    }
    path.reverse();
    path.into_iter()
        .map(|k| {
            let (u, v, n) = passes[k];
            let centre = Uv { u: (c0 + k % w) as f64 + 0.5, v: (r0 + k / w) as f64 + 0.5 };
            if n == 0 {
                return centre;
            }
            // Half way to the drawn line: its detail, without its zigzag across the cell.
            Uv { u: 0.5 * (centre.u + u / f64::from(n)), v: 0.5 * (centre.v + v / f64::from(n)) }
        })
        .collect()
}

/// Corner cutting (Chaikin 1974), two rounds, with the ends fixed at `first` and `last`.
fn smoothed(mut line: Vec<Uv>, first: Uv, last: Uv) -> Vec<Uv> {
    if let Some(p) = line.first_mut() {
        *p = first;
    }
    if line.len() > 1
        && let Some(p) = line.last_mut()
    {
        *p = last;
    }
    for _ in 0..2 {
        let mut cut = vec![first];
        for pair in line.windows(2) {
            let at =
                |t: f64| Uv { u: pair[0].u + t * (pair[1].u - pair[0].u), v: pair[0].v + t * (pair[1].v - pair[0].v) };
            cut.push(at(0.25));
            cut.push(at(0.75));
        }
        cut.push(last);
        line = cut;
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terrain::{CoarseMode, RoughnessModel};

    /// A plane falling east with a valley along row 10.
    fn valley() -> CoarseSurface {
        let z = |k: usize| {
            let (c, r) = (k % 40, k / 40);
            1000.0 - 10.0 * c as f32 + 60.0 * (r as f32 - 10.0).abs()
        };
        CoarseSurface::new(
            Raster::from_values(40, 21, (0..840).map(z).collect()),
            900.0,
            CoarseMode::Mean,
            &RoughnessModel::default(),
        )
    }

    fn river(name: &str, mouth: &str, line: &[(f64, f64)]) -> RiverOnCoarse {
        RiverOnCoarse {
            name: name.into(),
            mouth: mouth.into(),
            rank: 1,
            line: line.iter().map(|&(u, v)| Uv { u, v }).collect(),
            mouth_level_m: None,
        }
    }

    #[test]
    fn a_line_drawn_beside_its_valley_is_laid_into_it() {
        let laid = lay_rivers(
            &[river("A", "", &[(2.5, 10.5), (20.0, 12.2), (37.5, 10.5)])],
            &valley(),
            &RiverOptions::default(),
        );
        let middle: Vec<_> = laid[0][0].line.iter().filter(|p| (10.0..30.0).contains(&p.u)).collect();
        assert!(!middle.is_empty());
        assert!(middle.iter().all(|p| (p.v - 10.5).abs() < 0.9), "{middle:?}");
        assert!(laid[0][0].bed_m.windows(2).all(|p| p[1] < p[0]));
    }

    #[test]
    fn a_tributary_ends_on_its_river_and_above_its_bed_there() {
        let rivers =
            [river("B", "A", &[(15.5, 2.5), (16.0, 9.0)]), river("A", "", &[(2.5, 10.5), (20.0, 10.5), (37.5, 10.5)])];
        let laid = lay_rivers(&rivers, &valley(), &RiverOptions::default());
        let end = *laid[0][0].line.last().unwrap();
        let (p, z) = laid[1][0].nearest(end).unwrap();
        assert_eq!(p, end);
        assert!(*laid[0][0].bed_m.last().unwrap() >= z);
    }

    #[test]
    fn a_river_is_cut_at_the_edge_and_its_mouth_level_binds_only_its_last_reach() {
        // Out over the north edge, back in, and out for good in the east: the sea there is 400 m lower.
        let there_and_back = [(2.5, 10.5), (10.0, 10.5), (12.0, -3.0), (16.0, -3.0), (18.0, 10.5), (45.0, 10.5)];
        let mut left = river("A", "Sea", &there_and_back);
        left.mouth_level_m = Some(100.0);
        let laid = lay_rivers(&[left], &valley(), &RiverOptions::default());
        assert_eq!(laid[0].len(), 2);
        let surface = valley();
        for reach in &laid[0] {
            assert!(reach.line.iter().all(|&p| surface.contains(p)));
            assert!(reach.bed_m.windows(2).all(|p| p[1] < p[0]));
        }
        assert!(*laid[0][1].bed_m.last().unwrap() > 550.0, "no trench towards a mouth beyond the edge");
    }

    #[test]
    fn a_narrow_void_is_crossed_and_a_wide_one_is_not() {
        let with_void = |cells: std::ops::Range<usize>| {
            let mut z = valley().values;
            cells.for_each(|c| (0..21).for_each(|r| z.set(c, r, f32::NAN)));
            CoarseSurface::new(z, 900.0, CoarseMode::Mean, &RoughnessModel::default())
        };
        let line = [river("A", "", &[(2.5, 10.5), (37.5, 10.5)])];
        assert_eq!(lay_rivers(&line, &with_void(14..18), &RiverOptions::default())[0].len(), 1);
        assert_eq!(lay_rivers(&line, &with_void(14..26), &RiverOptions::default())[0].len(), 2);
    }

    #[test]
    fn circles_and_empty_lines_do_no_harm() {
        let rivers = [
            river("A", "B", &[(1.0, 1.0), (5.0, 5.0)]),
            river("B", "A", &[(5.0, 5.0), (9.0, 9.0)]),
            river("C", "", &[]),
        ];
        let laid = lay_rivers(&rivers, &valley(), &RiverOptions::default());
        assert_eq!(laid.len(), 3);
        assert!(laid[2].is_empty());
    }
}
