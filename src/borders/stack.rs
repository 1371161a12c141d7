//! Who has a cell where areas overlap: the order of precedence, and the rasters made by it.

use super::{ClaimKind, PolityRegion};
use crate::error::{Error, Result};
use crate::raster::Raster;
use geo::Area;
use std::cmp::Reverse;
use std::collections::HashMap;

/// The order in which regions take a cell, and which of them do not contest each other.
///
/// First polities (composites too, and parts whose parent is not on the map), then parts inside their parent, then
/// peoples, then mere claims. Within a kind the better known outline comes first, then the smaller area, which is the
/// more particular statement, then the id. A region and one above it by `parent` never contest each other.
#[derive(Debug, Clone)]
pub struct Precedence {
    /// Indices into the regions, the first to take a cell first.
    pub order: Vec<usize>,
    /// By index: the indices of the regions above it, nearest first.
    above: Vec<Vec<usize>>,
    /// By index: whether it is a part whose parent is on the map.
    is_part: Vec<bool>,
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
        // The area as drawn, not as cut to the map, so that a smaller map has the same order.
        let areas: Vec<f64> = regions.iter().map(|r| r.claim.area.unsigned_area()).collect();
        let mut order: Vec<usize> = (0..regions.len()).collect();
        order.sort_by(|&i, &j| {
            let key = |i: usize| (kind_rank(i), Reverse(regions[i].claim.certainty));
            let rest = || areas[i].total_cmp(&areas[j]).then_with(|| regions[i].claim.id.cmp(&regions[j].claim.id));
            key(i).cmp(&key(j)).then_with(rest)
        });
        Precedence { order, above, is_part }
    }

    /// Whether one of the two stands above the other, so that they share land without contest.
    pub fn are_related(&self, i: usize, j: usize) -> bool {
        self.above[i].contains(&j) || self.above[j].contains(&i)
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

/// Two rasters of `cols` x `rows`: the code of the region that has each cell (0 = unclaimed), and the code of the next
/// that wants it (0 = not contested).
///
/// `mask_of` draws one region: non-zero where it covers the cell. It is called once per region, by [`Precedence`], so
/// that the order of `regions` does not matter and one mask at a time is in memory. Parts lie under their parent and show
/// only where they reach beyond it. Cost: one pass over the cells per region, 4 bytes per cell beside the mask.
///
/// # Errors
/// What `mask_of` returns; [`Error::GridMismatch`] when a mask has another size.
pub fn stack(
    cols: usize,
    rows: usize,
    regions: &[PolityRegion],
    mut mask_of: impl FnMut(&PolityRegion) -> Result<Raster<u8>>,
) -> Result<(Raster<u16>, Raster<u16>)> {
    let precedence = Precedence::among(regions);
    let mut first = Raster::filled(cols, rows, 0u16);
    let mut second = Raster::filled(cols, rows, 0u16);
    let mut index_of_code: HashMap<u16, usize> = HashMap::new();
    for &i in &precedence.order {
        let region = &regions[i];
        let mask = mask_of(region)?;
        if (mask.cols, mask.rows) != (cols, rows) {
            return Err(Error::GridMismatch {
                left: format!("{cols} x {rows} cells"),
                right: format!("{} x {} cells for '{}'", mask.cols, mask.rows, region.claim.id),
            });
        }
        // By code of the holder: whether this region shares with it without contest. Codes are few and dense.
        let limit = index_of_code.keys().max().map_or(0, |&c| usize::from(c)) + 1;
        let mut shares = vec![false; limit];
        for (&code, &j) in &index_of_code {
            shares[usize::from(code)] = precedence.are_related(i, j);
        }
        for ((m, a), b) in mask.values.iter().zip(&mut first.values).zip(&mut second.values) {
            if *m == 0 {
                continue;
            }
            if *a == 0 {
                *a = region.code;
            } else if *b == 0 && !shares[usize::from(*a)] {
                *b = region.code;
            }
        }
        index_of_code.insert(region.code, i);
    }
    Ok((first, second))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::borders::tests::{claim, region};
    use crate::borders::{Certainty, Claim};
    use geo::polygon;
    use proptest::prelude::*;

    fn with_size(mut r: PolityRegion, size: f64) -> PolityRegion {
        r.claim.area = polygon![(x: 0.0, y: 0.0), (x: size, y: 0.0), (x: size, y: size), (x: 0.0, y: size)].into();
        r
    }

    /// One row of cells, each region with its mask.
    fn stack_row(regions: &[(PolityRegion, [u8; 4])]) -> (Vec<u16>, Vec<u16>) {
        let list: Vec<PolityRegion> = regions.iter().map(|r| r.0.clone()).collect();
        let (a, b) = stack(4, 1, &list, |r| {
            let mask = regions.iter().find(|m| m.0.code == r.code).unwrap().1;
            Ok(Raster::from_values(4, 1, mask.to_vec()))
        })
        .unwrap();
        (a.values, b.values)
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

    #[test]
    fn a_mask_of_another_size_is_refused() {
        let list = [of_kind(1, "a", ClaimKind::Polity)];
        assert!(matches!(stack(2, 2, &list, |_| Ok(Raster::filled(1, 1, 1))), Err(Error::GridMismatch { .. })));
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
