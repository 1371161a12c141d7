//! Who has a cell where areas overlap: the order of precedence, and the rasters made by it.

use super::{Certainty, ClaimKind, PolityRegion, Sureness};
use crate::error::Result;
use crate::grid::Grid;
use crate::raster::Raster;
use crate::rasterize::paint_areas;
use crate::year::Year;
use geo::{Area, MultiPolygon};
use rayon::prelude::*;
use std::cmp::Reverse;
use std::collections::HashMap;

/// The order in which regions take a cell, and which of them do not contest each other.
///
/// The surer come first: those that held in the era beyond doubt, then those whose years are in doubt, then those that only
/// may have held. Then the earlier: the map of a span of years is that of its first, and who came later has what nobody held
/// then. Then by kind: polities (composites too, and parts whose parent is not on the map), then parts inside their
/// parent, then peoples, then mere claims. Within a kind the better known outline comes first, then the smaller area, which
/// is the more particular statement, then the id. A part is as sure and as early as its parent at the best.
///
/// Two contest each other when they hold in the same year of the era, both are sure, and neither stands above the other by
/// `parent`.
#[derive(Debug, Clone)]
pub struct Precedence {
    /// Indices into the regions, the first to take a cell first.
    pub order: Vec<usize>,
    /// By index: the indices of the regions above it, nearest first.
    above: Vec<Vec<usize>>,
    /// By index: whether it is a part whose parent is on the map.
    is_part: Vec<bool>,
    /// By index: sureness and years.
    standing: Vec<super::Standing>,
}

impl Precedence {
    /// The precedence among `regions`.
    pub fn among(regions: &[PolityRegion]) -> Precedence {
        let by_id: HashMap<&str, usize> = regions.iter().enumerate().map(|(i, r)| (r.claim.id.as_str(), i)).collect();
        let parent = |i: usize| regions[i].claim.parent.as_deref().and_then(|p| by_id.get(p).copied());
        let above: Vec<Vec<usize>> = (0..regions.len())
            .map(|i| {
                let mut chain = Vec::new();
                let mut next = parent(i);
                // A parent that comes round again ends the chain.
                while let Some(p) = next.filter(|p| *p != i && !chain.contains(p)) {
                    chain.push(p);
                    next = parent(p);
                }
                chain
            })
            .collect();
        let is_part: Vec<bool> =
            (0..regions.len()).map(|i| regions[i].claim.kind == ClaimKind::Part && !above[i].is_empty()).collect();
        let kind_rank = |i: usize| match regions[i].claim.kind {
            ClaimKind::Part if is_part[i] => 1,
            ClaimKind::Polity | ClaimKind::Part | ClaimKind::Composite => 0,
            ClaimKind::People => 2,
            ClaimKind::Claim => 3,
        };
        let standing: Vec<super::Standing> = regions.iter().map(|r| r.standing).collect();
        // With those above it, so that a part never comes before its whole.
        let place = |i: usize| -> (Sureness, Year) {
            let chain = std::iter::once(i).chain(above[i].iter().copied().filter(|_| is_part[i]));
            chain
                .map(|k| (standing[k].sureness, standing[k].years.start))
                .fold((Sureness::Certain, Year(i32::MIN)), |(s, y), (t, z)| (s.max(t), y.max(z)))
        };
        // The area as drawn, not as cut to the map, so that a smaller map has the same order.
        let areas: Vec<f64> = regions.iter().map(|r| r.claim.area.unsigned_area()).collect();
        let mut order: Vec<usize> = (0..regions.len()).collect();
        order.sort_by(|&i, &j| {
            let key = |i: usize| (place(i), kind_rank(i), Reverse::<Certainty>(regions[i].claim.certainty));
            let rest = || areas[i].total_cmp(&areas[j]).then_with(|| regions[i].claim.id.cmp(&regions[j].claim.id));
            key(i).cmp(&key(j)).then_with(rest)
        });
        Precedence { order, above, is_part, standing }
    }

    /// Whether one of the two stands above the other, so that they share land without contest.
    pub fn are_related(&self, i: usize, j: usize) -> bool {
        self.above[i].contains(&j) || self.above[j].contains(&i)
    }

    /// Whether land of both is contested.
    pub fn do_contest(&self, i: usize, j: usize) -> bool {
        let is_sure = |k: usize| self.standing[k].sureness == Sureness::Certain;
        i != j
            && is_sure(i)
            && is_sure(j)
            && self.standing[i].years.overlaps(&self.standing[j].years)
            && !self.are_related(i, j)
    }

    /// Whether `later` came after `earlier` in the era, so that land of both went from one to the other.
    fn is_succession(&self, earlier: usize, later: usize) -> bool {
        let (a, b) = (&self.standing[earlier], &self.standing[later]);
        let are_held = a.sureness != Sureness::Possible && b.sureness != Sureness::Possible;
        are_held && a.years.end <= b.years.start && !self.are_related(earlier, later)
    }

    /// Who of `candidates` (indices) holds the land.
    pub fn holder(&self, candidates: &[usize]) -> Option<usize> {
        self.order.iter().copied().find(|i| candidates.contains(i))
    }

    /// Whose border is drawn: the holder, or the innermost part of it among `candidates`.
    pub fn holder_or_part(&self, candidates: &[usize]) -> Option<usize> {
        let holder = self.holder(candidates)?;
        let parts = candidates.iter().copied().filter(|&i| self.is_part[i] && self.above[i].contains(&holder));
        Some(parts.max_by_key(|&i| (self.above[i].len(), Reverse(i))).unwrap_or(holder))
    }
}

/// Who has each cell.
#[derive(Debug, Clone, PartialEq)]
pub struct Stack {
    /// Code of the region that has the cell; 0 is unclaimed.
    pub holder: Raster<u16>,
    /// Code of the next that claims it in the same years; 0 is not contested.
    pub contested: Raster<u16>,
    /// Land that went from one to another within the era, in order of codes.
    pub successions: Vec<Succession>,
}

/// Land that goes from one region to another within an era.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Succession {
    /// Code of the holder that the map shows.
    pub earlier: u16,
    /// Code of the one after it.
    pub later: u16,
    /// Cells.
    pub cells: u64,
}

/// Cells of `grid` by [`Precedence`], whatever the order of `regions`; areas are their outlines, in the CRS of the grid.
///
/// Parts lie under their parent and show only where they reach beyond it. Successions count the cells for which `is_land`
/// holds. Cost: 4 bytes per cell, and one pass over the cells of every region.
///
/// # Errors
/// [`crate::Error::Argument`] when a vertex is not finite.
pub fn stack(grid: &Grid, regions: &[PolityRegion], is_land: impl Fn(usize) -> bool + Sync) -> Result<Stack> {
    let precedence = Precedence::among(regions);
    // By place in the order, from 1; in the end places become codes.
    let order = &precedence.order;
    let areas: Vec<&MultiPolygon<f64>> = order.iter().map(|&i| &regions[i].outline).collect();
    let (mut holder, mut contested) = paint_areas(&areas, grid, |number, first: &mut [u16], second: &mut [u16]| {
        let place = number as u16 + 1;
        // Cells in a row mostly have one holder.
        let (mut known, mut do_contest) = (0, false);
        for (a, b) in first.iter_mut().zip(second) {
            if *a == 0 {
                *a = place;
            } else if *b == 0 {
                if *a != known {
                    (known, do_contest) = (*a, precedence.do_contest(order[usize::from(*a) - 1], order[number]));
                }
                if do_contest {
                    *b = place;
                }
            }
        }
    })?;
    let successions = successions(&precedence, &areas, grid, &holder, is_land)?
        .into_iter()
        .map(|(a, b, cells)| Succession { earlier: regions[order[a]].code, later: regions[order[b]].code, cells });
    let mut successions: Vec<Succession> = successions.collect();
    successions.sort_by_key(|s| (s.earlier, s.later));
    let codes: Vec<u16> = std::iter::once(0).chain(order.iter().map(|&i| regions[i].code)).collect();
    // Where the order is that of the codes there is nothing to do.
    if codes.iter().enumerate().any(|(k, &code)| k != usize::from(code)) {
        for raster in [&mut holder, &mut contested] {
            raster.values.par_chunks_mut(1 << 16).for_each(|chunk| {
                chunk.iter_mut().for_each(|v| *v = codes[usize::from(*v)]);
            });
        }
    }
    Ok(Stack { holder, contested, successions })
}

/// Cells of holders (places in the order) that went to another within the era, by holder and successor. One raster per
/// region that comes after any: few eras have some.
fn successions(
    precedence: &Precedence,
    areas: &[&MultiPolygon<f64>],
    grid: &Grid,
    holder: &Raster<u16>,
    is_land: impl Fn(usize) -> bool + Sync,
) -> Result<Vec<(usize, usize, u64)>> {
    let mut found = Vec::new();
    for (b, &later) in precedence.order.iter().enumerate() {
        let follows: Vec<bool> =
            precedence.order.iter().map(|&earlier| precedence.is_succession(earlier, later)).collect();
        if !follows.contains(&true) {
            continue;
        }
        let mask = crate::rasterize::rasterize_mask(areas[b], grid, false)?;
        let mut cells = vec![0u64; follows.len()];
        for (k, (_, &a)) in mask.values.iter().zip(&holder.values).enumerate().filter(|(_, (m, _))| **m != 0) {
            if a != 0 && follows[usize::from(a) - 1] && is_land(k) {
                cells[usize::from(a) - 1] += 1;
            }
        }
        found.extend(cells.into_iter().enumerate().filter(|(_, n)| *n > 0).map(|(a, n)| (a, b, n)));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::borders::tests::{claim, region};
    use crate::borders::{Claim, Standing};
    use crate::grid::{Crs, Extent};
    use geo::polygon;
    use proptest::prelude::*;

    fn with_size(mut r: PolityRegion, size: f64) -> PolityRegion {
        r.claim.area = polygon![(x: 0.0, y: 0.0), (x: size, y: 0.0), (x: size, y: size), (x: 0.0, y: size)].into();
        r
    }

    /// One row of cells, each region with the cells that it covers.
    fn stack_row(regions: &[(PolityRegion, [u8; 4])]) -> (Vec<u16>, Vec<u16>) {
        let s = whole_stack(regions);
        (s.holder.values, s.contested.values)
    }

    fn whole_stack(regions: &[(PolityRegion, [u8; 4])]) -> Stack {
        let list: Vec<PolityRegion> = regions
            .iter()
            .map(|(r, mask)| {
                let cell = |k: usize| {
                    let x = k as f64;
                    polygon![(x: x, y: 0.0), (x: x + 1.0, y: 0.0), (x: x + 1.0, y: 1.0), (x: x, y: 1.0)]
                };
                let outline = (0..4).filter(|&k| mask[k] != 0).map(cell).collect();
                PolityRegion { outline, ..r.clone() }
            })
            .collect();
        let crs = Crs { name: "plane".into(), wkt: String::new(), is_geographic: false };
        let extent = Extent { min_x: 0.0, min_y: 0.0, max_x: 4.0, max_y: 1.0 };
        stack(&Grid::snapped(crs, extent, 1.0).unwrap(), &list, |_| true).unwrap()
    }

    fn of_kind(code: u16, id: &str, kind: ClaimKind) -> PolityRegion {
        region(code, Claim { kind, ..claim(id, "1200") })
    }

    #[test]
    fn polity_comes_before_people_before_claim() {
        let rows = stack_row(&[
            (of_kind(1, "a", ClaimKind::Claim), [1, 1, 1, 1]),
            (of_kind(2, "b", ClaimKind::People), [0, 1, 1, 0]),
            (of_kind(3, "c", ClaimKind::Polity), [0, 0, 1, 1]),
        ]);
        assert_eq!(rows, (vec![1, 2, 3, 3], vec![0, 1, 2, 1]));
    }

    #[test]
    fn the_better_known_then_the_smaller_takes_the_cell() {
        let small = with_size(of_kind(1, "small", ClaimKind::Polity), 1.0);
        let large = with_size(of_kind(2, "large", ClaimKind::Polity), 3.0);
        let mut known = with_size(of_kind(3, "known", ClaimKind::Polity), 9.0);
        known.claim.certainty = Certainty::Treaty;
        let rows = stack_row(&[(large, [1, 1, 0, 1]), (small, [0, 1, 1, 1]), (known, [0, 0, 0, 1])]);
        assert_eq!(rows, (vec![2, 1, 1, 3], vec![0, 2, 0, 1]));
    }

    #[test]
    fn a_part_lies_under_its_parent_and_contests_others_only() {
        let mut part = of_kind(1, "part", ClaimKind::Part);
        part.claim.parent = Some("whole".into());
        let rows = stack_row(&[
            (part.clone(), [1, 1, 1, 0]),
            (of_kind(2, "whole", ClaimKind::Polity), [1, 0, 0, 0]),
            (of_kind(3, "other", ClaimKind::Polity), [0, 1, 0, 0]),
        ]);
        assert_eq!(rows, (vec![2, 3, 1, 0], vec![0, 1, 0, 0]));
        // Without its parent it is a polity like others.
        assert_eq!(stack_row(&[(part, [1, 1, 0, 0])]).0, [1, 1, 0, 0]);
    }

    #[test]
    fn a_vassal_within_its_suzerain_is_not_contested() {
        let mut vassal = with_size(of_kind(1, "vassal", ClaimKind::Polity), 1.0);
        vassal.claim.parent = Some("suzerain".into());
        let suzerain = with_size(of_kind(2, "suzerain", ClaimKind::Polity), 5.0);
        assert_eq!(stack_row(&[(suzerain, [1, 1, 1, 1]), (vassal, [0, 1, 0, 0])]), (vec![2, 1, 2, 2], vec![0; 4]));
    }

    #[test]
    fn parents_in_a_circle_end() {
        let mut a = of_kind(1, "a", ClaimKind::Polity);
        let mut b = of_kind(2, "b", ClaimKind::Part);
        (a.claim.parent, b.claim.parent) = (Some("b".into()), Some("a".into()));
        assert_eq!(Precedence::among(&[a, b]).order.len(), 2);
    }

    /// A region that holds in the years of `span` in the era.
    fn in_years(code: u16, id: &str, span: &str, era: &str) -> PolityRegion {
        let c = claim(id, span);
        PolityRegion { standing: c.standing(&era.parse().unwrap()).unwrap(), ..region(code, c) }
    }

    #[test]
    fn who_comes_later_in_the_era_follows_and_does_not_contest() {
        let old = in_years(1, "old", "1150/1202", "1200/1210");
        let new = in_years(2, "new", "1203/1250", "1200/1210");
        let s = whole_stack(&[(new.clone(), [1, 1, 0, 1]), (old.clone(), [0, 1, 1, 1])]);
        assert_eq!((s.holder.values, s.contested.values), (vec![2, 1, 1, 1], vec![0; 4]));
        assert_eq!(s.successions, [Succession { earlier: 1, later: 2, cells: 2 }]);
        // A year in common makes a dispute of it.
        let rival = in_years(3, "rival", "1202/1250", "1200/1210");
        let s = whole_stack(&[(old.clone(), [0, 1, 1, 1]), (rival.clone(), [1, 1, 0, 0])]);
        assert_eq!((s.holder.values, s.contested.values), (vec![3, 1, 1, 1], vec![0, 3, 0, 0]));
        assert!(s.successions.is_empty());
        // The one after does not hide who contests the one before.
        let s = whole_stack(&[(old, [0, 1, 1, 1]), (new, [0, 1, 0, 0]), (rival, [0, 1, 0, 0])]);
        assert_eq!((s.holder.values[1], s.contested.values[1]), (1, 3));
    }

    #[test]
    fn doubtful_years_neither_win_nor_contest() {
        let of = |code, id: &str, sureness| {
            let r = of_kind(code, id, ClaimKind::Polity);
            PolityRegion { standing: Standing { sureness, ..r.standing }, ..r }
        };
        let sure = of(3, "sure", Sureness::Certain);
        let doubtful = of(2, "doubtful", Sureness::Doubtful);
        let possible = of(1, "possible", Sureness::Possible);
        let rows = stack_row(&[(possible, [1, 1, 1, 0]), (doubtful, [0, 1, 1, 1]), (sure, [0, 0, 1, 1])]);
        assert_eq!(rows, (vec![1, 2, 3, 3], vec![0; 4]));
    }

    #[test]
    fn a_part_never_comes_before_its_whole() {
        let era = "1200/1210";
        let mut part = in_years(1, "part", "1190/1250", era);
        part.claim.kind = ClaimKind::Part;
        part.claim.parent = Some("whole".into());
        let whole = in_years(2, "whole", "1205/1250", era);
        assert_eq!(stack_row(&[(part, [1, 1, 0, 0]), (whole, [1, 0, 0, 0])]).0, [2, 1, 0, 0]);
    }

    proptest! {
        #[test]
        fn order_of_regions_does_not_matter(
            masks in proptest::collection::vec((0usize..5, 0usize..4, any::<[bool; 4]>(), proptest::option::of(0usize..6)), 1..7),
        ) {
            let kinds = [ClaimKind::Polity, ClaimKind::Part, ClaimKind::Composite, ClaimKind::Claim, ClaimKind::People];
            let all: Vec<(PolityRegion, [u8; 4])> = masks
                .iter()
                .enumerate()
                .map(|(i, (kind, size, mask, parent))| {
                    let mut r = with_size(of_kind(i as u16 + 1, &format!("r{i}"), kinds[*kind]), *size as f64);
                    r.claim.parent = parent.map(|p| format!("r{p}"));
                    (r, mask.map(u8::from))
                })
                .collect();
            let mut reversed = all.clone();
            reversed.reverse();
            prop_assert_eq!(stack_row(&all), stack_row(&reversed));
            // A cell has a holder exactly when some mask covers it; a contestant is another region.
            let (a, b) = stack_row(&all);
            for k in 0..4 {
                prop_assert_eq!(a[k] != 0, all.iter().any(|(_, m)| m[k] != 0));
                prop_assert!(b[k] == 0 || b[k] != a[k]);
            }
        }
    }
}
