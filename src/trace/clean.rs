//! Lines, lettering and specks out of a raster of classes; what they covered goes to the regions beside them.
//!
//! Invariant: the result depends on the classes alone, not on threads. Cells that are [`OUTSIDE`] stay so and lend nothing.

use super::runs::Components;
use super::{GAP, OUTSIDE};
use rayon::prelude::*;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// A run of equal cells in a row: columns from `start` to before `end`.
#[derive(Debug, Clone, Copy)]
struct Run {
    start: u32,
    end: u32,
    label: u8,
}

/// A disc of whole cells: for each row from the anchor's, its first and last column from the anchor's.
fn disc(diameter: usize) -> Vec<(isize, isize, isize)> {
    let d = diameter as f64;
    let before = (diameter as isize - 1) / 2;
    // The centre is a cell's centre for odd diameters, a corner for even ones.
    let centre = if diameter.is_multiple_of(2) { 0.5 } else { 0.0 };
    (-before..diameter as isize - before)
        .filter_map(|dy| {
            let y = dy as f64 - centre;
            let inside = |dx: &isize| (*dx as f64 - centre).powi(2) + y * y <= d * d / 4.0;
            let columns: Vec<isize> = (-before..diameter as isize - before).filter(inside).collect();
            Some((dy, *columns.first()?, *columns.last()?))
        })
        .collect()
}

/// Makes a gap of whatever is narrower than `width` cells: the cells that no disc of that diameter covers which lies in one
/// class alone (morphological opening of every class at once; J. Serra, "Image Analysis and Mathematical Morphology", 1982).
/// The edge of the raster narrows nothing.
///
/// Cost: `width` looks per cell.
pub(super) fn remove_thin(labels: &mut [u8], cols: usize, width: usize) {
    if width < 2 || cols == 0 {
        return;
    }
    let rows = labels.len() / cols;
    let disc = disc(width);
    let lengths: Vec<u16> = {
        let mut lengths = vec![0u16; labels.len()];
        lengths.par_chunks_mut(cols).zip(labels.par_chunks(cols)).for_each(|(lengths, labels)| {
            let mut run = 0u16;
            for col in (0..cols).rev() {
                run = if col + 1 < cols && labels[col + 1] == labels[col] { run.saturating_add(1) } else { 1 };
                lengths[col] = run;
            }
        });
        lengths
    };
    let cores: Vec<Vec<Run>> = (0..rows)
        .into_par_iter()
        .map(|row| {
            let mut runs: Vec<Run> = Vec::new();
            let lines: Vec<(usize, isize, isize)> = disc
                .iter()
                .filter_map(|&(dy, first, last)| {
                    let y = row as isize + dy;
                    (y >= 0 && y < rows as isize).then_some((y as usize * cols, first, last))
                })
                .collect();
            for col in 0..cols {
                let label = labels[row * cols + col];
                if label == GAP || label == OUTSIDE {
                    continue;
                }
                let is_core = lines.iter().all(|&(line, first, last)| {
                    let start = (col as isize + first).clamp(0, cols as isize - 1) as usize;
                    let end = (col as isize + last).clamp(0, cols as isize - 1) as usize;
                    labels[line + start] == label && usize::from(lengths[line + start]) > end - start
                });
                if is_core {
                    match runs.last_mut() {
                        Some(r) if r.end as usize == col && r.label == label => r.end += 1,
                        _ => runs.push(Run { start: col as u32, end: col as u32 + 1, label }),
                    }
                }
            }
            runs
        })
        .collect();
    drop(lengths);
    labels.par_chunks_mut(cols).enumerate().for_each(|(row, labels)| {
        labels.iter_mut().filter(|l| **l != OUTSIDE).for_each(|l| *l = GAP);
        for &(dy, first, last) in &disc {
            let y = row as isize - dy;
            let Some(runs) = usize::try_from(y).ok().and_then(|y| cores.get(y)) else { continue };
            for run in runs {
                let start = (run.start as isize + first).max(0) as usize;
                let end = ((run.end as isize + last).max(0) as usize).min(cols);
                labels[start.min(end)..end].fill(run.label);
            }
        }
    });
}

/// Gives back to a region what [`remove_thin`] took of it close by: the cells of `before` whose class a cell within `reach` has
/// kept, such as a strip of a country between two printed lines. What is far from its like stays a gap: lettering, and the
/// fringes of lines.
pub(super) fn restore_beside_own(labels: &mut [u8], before: &[u8], cols: usize, reach: usize) {
    let rows = labels.len() / cols.max(1);
    let kept = &*labels;
    let back: Vec<(usize, u8)> = (0..rows)
        .into_par_iter()
        .flat_map_iter(|row| {
            (row * cols..(row + 1) * cols).filter_map(move |k| {
                let own = before[k];
                if kept[k] != GAP || own >= OUTSIDE {
                    return None;
                }
                let col = k - row * cols;
                let columns = col.saturating_sub(reach)..(col + reach + 1).min(cols);
                let near = (row.saturating_sub(reach)..(row + reach + 1).min(rows)).any(|r| {
                    let dy2 = row.abs_diff(r).pow(2);
                    let line = &kept[r * cols..(r + 1) * cols];
                    columns.clone().any(|c| line[c] == own && dy2 + col.abs_diff(c).pow(2) <= reach * reach)
                });
                near.then_some((k, own))
            })
        })
        .collect();
    back.into_iter().for_each(|(k, own)| labels[k] = own);
}

/// Gives every gap to the nearest region, by distance between centres; of two equally near the western, then the northern.
/// Marks in `doubt` the cells of a gap that lie at least as near to another region's part of it as to their own region.
/// Returns whether there was any region.
///
/// Exact: distance transform of two passes (A. Meijster, J. Roerdink, W. Hesselink, "A general algorithm for computing
/// distance transforms in linear time", 2000). Some nanoseconds per cell of the rows that have wide gaps.
pub(super) fn fill_gaps(labels: &mut Vec<u8>, doubt: &mut [u8], cols: usize) -> bool {
    let is_source = |l: u8| l != GAP && l != OUTSIDE;
    if !labels.par_iter().any(|l| is_source(*l)) {
        return false;
    }
    if !labels.par_iter().any(|l| *l == GAP) {
        return true;
    }
    let rows = labels.len() / cols;
    let offsets = offsets_in_columns(labels, cols);
    let filled: Vec<u8> = {
        let mut filled = labels.clone();
        filled.par_chunks_mut(cols).enumerate().for_each(|(row, out)| fill_row(row, labels, &offsets, cols, out));
        filled
    };
    drop(offsets);
    doubt.par_chunks_mut(cols).enumerate().for_each(|(row, doubt)| {
        for col in (0..cols).filter(|col| labels[row * cols + col] == GAP) {
            doubt[col] = u8::from(is_between(col, row, labels, &filled, cols, rows));
        }
    });
    *labels = filled;
    true
}

/// Column offset where a column has no source.
const NONE: i16 = i16::MAX;

/// For each cell the rows to the nearest source in its column, down positive; up where both are as near.
fn offsets_in_columns(labels: &[u8], cols: usize) -> Vec<i16> {
    let rows = labels.len() / cols;
    let mut offsets = vec![NONE; labels.len()];
    let is_source = |l: u8| l != GAP && l != OUTSIDE;
    for row in 0..rows {
        let (above, here) = offsets.split_at_mut(row * cols);
        let above = if row > 0 { &above[(row - 1) * cols..] } else { &[][..] };
        for (col, (offset, label)) in here[..cols].iter_mut().zip(&labels[row * cols..]).enumerate() {
            *offset = match above.get(col) {
                _ if is_source(*label) => 0,
                Some(a) if *a != NONE && *a > -NONE => *a - 1,
                _ => NONE,
            };
        }
    }
    for row in (0..rows.saturating_sub(1)).rev() {
        let (here, below) = offsets[row * cols..].split_at_mut(cols);
        for (offset, below) in here.iter_mut().zip(&below[..cols]) {
            // Only offsets that lead down, or to the row below itself.
            if *below >= 0 && *below < NONE - 1 && (*offset == NONE || *below + 1 < -*offset) {
                *offset = *below + 1;
            }
        }
    }
    offsets
}

/// Gaps up to this many cells are filled by looking around, wider ones by the envelope of the whole row.
const NARROW: usize = 48;

fn fill_row(row: usize, labels: &[u8], offsets: &[i16], cols: usize, out: &mut [u8]) {
    let here = &labels[row * cols..(row + 1) * cols];
    let offsets = &offsets[row * cols..(row + 1) * cols];
    let source = |col: usize| labels[(row as isize + offsets[col] as isize) as usize * cols + col];
    let square = |col: usize| i64::from(offsets[col]).pow(2);
    let mut widest = 0;
    let mut col = 0;
    while col < cols {
        let start = col;
        while col < cols && here[col] == GAP {
            col += 1;
        }
        widest = widest.max(col - start);
        col += 1;
    }
    if widest == 0 {
        return;
    }
    if widest <= NARROW && cols > NARROW {
        for col in (0..cols).filter(|c| here[*c] == GAP) {
            // (distance², column) in order.
            let mut best = (i64::MAX, usize::MAX);
            for step in 0..cols {
                let square_x = (step * step) as i64;
                if square_x > best.0 {
                    break;
                }
                for other in [col.checked_sub(step), Some(col + step)].into_iter().flatten() {
                    if other < cols && offsets[other] != NONE {
                        best = best.min((square_x + square(other), other));
                    }
                }
            }
            if best.1 < cols {
                out[col] = source(best.1);
            }
        }
        return;
    }
    // Lower envelope of parabolas: (column, first column where it is the lowest).
    let mut envelope: Vec<(usize, i64)> = Vec::new();
    for col in (0..cols).filter(|c| offsets[*c] != NONE) {
        let from = loop {
            let Some(&(last, since)) = envelope.last() else { break 0 };
            let (i, u) = (last as i64, col as i64);
            // At and before this column the earlier one is as near or nearer.
            let until = (u * u - i * i + square(col) - square(last)).div_euclid(2 * (u - i));
            if until < since {
                envelope.pop();
            } else {
                break until + 1;
            }
        };
        if from < cols as i64 {
            envelope.push((col, from));
        }
    }
    let mut at = 0;
    for col in 0..cols {
        while at + 1 < envelope.len() && envelope[at + 1].1 <= col as i64 {
            at += 1;
        }
        if here[col] == GAP && at < envelope.len() {
            out[col] = source(envelope[at].0);
        }
    }
}

/// Whether a filled cell lies as near to another region's part of the gap as to its own region: by looking in eight
/// directions.
fn is_between(col: usize, row: usize, labels: &[u8], filled: &[u8], cols: usize, rows: usize) -> bool {
    let own = filled[row * cols + col];
    let at = |dx: isize, dy: isize, step: isize| {
        let (x, y) = (col as isize + dx * step, row as isize + dy * step);
        (x >= 0 && y >= 0 && x < cols as isize && y < rows as isize).then(|| y as usize * cols + x as usize)
    };
    const AROUND: [(isize, isize); 8] = [(1, 0), (0, 1), (-1, 0), (0, -1), (1, 1), (-1, 1), (-1, -1), (1, -1)];
    for step in 1..=(cols.max(rows) as isize) {
        let (mut meets_own, mut is_anywhere) = (false, false);
        for (dx, dy) in AROUND {
            // Diagonal steps are longer.
            let step =
                if dx != 0 && dy != 0 { (step as f64 / std::f64::consts::SQRT_2).round() as isize } else { step };
            let Some(k) = at(dx, dy, step) else { continue };
            is_anywhere = true;
            if filled[k] != own && filled[k] != OUTSIDE && filled[k] != GAP {
                return true;
            }
            meets_own |= labels[k] == own;
        }
        if meets_own || !is_anywhere {
            return false;
        }
    }
    false
}

/// Gives components of fewer than `least` cells to the neighbour with which they share the longest edge, the smallest first;
/// of equal ones to the larger, then the earlier. What borders on nothing but the outside stays.
/// Returns how many went.
pub(super) fn remove_specks(components: &mut Components, least: u64) -> usize {
    let count = components.len();
    let mut beside: Vec<Vec<(u32, u32)>> = vec![Vec::new(); count];
    let is_speck = |c: &Components, k: u32| c.label(k) != OUTSIDE && c.area(k) < least;
    components.each_contact(|a, b, length| {
        if is_speck(components, a) {
            beside[a as usize].push((b, length));
        }
        if is_speck(components, b) {
            beside[b as usize].push((a, length));
        }
    });
    let mut queue: BinaryHeap<Reverse<(u64, u32)>> =
        (0..count as u32).filter(|k| is_speck(components, *k)).map(|k| Reverse((components.area(k), k))).collect();
    let mut gone = 0;
    while let Some(Reverse((area, speck))) = queue.pop() {
        if components.root(speck) != speck || components.area(speck) != area || area >= least {
            continue;
        }
        let mut edges: BTreeMap<u32, u64> = BTreeMap::new();
        for (other, length) in std::mem::take(&mut beside[speck as usize]) {
            let other = components.root(other);
            if other != speck && components.label(other) != OUTSIDE {
                *edges.entry(other).or_default() += u64::from(length);
            }
        }
        let Some((&heir, _)) = edges.iter().max_by_key(|(k, length)| (**length, components.area(**k), Reverse(**k)))
        else {
            continue;
        };
        gone += 1;
        let label = components.label(heir);
        // The speck may have parted areas of one class: they are one now.
        let mut joined = components.join(heir, speck);
        let mut neighbours: Vec<(u32, u32)> = edges.iter().map(|(k, l)| (*k, *l as u32)).collect();
        for &other in edges.keys() {
            let other = components.root(other);
            if other != joined && components.label(other) == label {
                let (a, b) = (joined, other);
                joined = components.join(a, b);
                for k in [a, b] {
                    neighbours.append(&mut beside[k as usize]);
                }
            }
        }
        if components.area(joined) < least {
            neighbours.append(&mut beside[heir as usize]);
            beside[joined as usize].append(&mut neighbours);
            queue.push(Reverse((components.area(joined), joined)));
        }
    }
    gone
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Letters to labels: 'a' is 0; '.' a gap, '#' outside.
    fn raster(rows: &[&str]) -> (Vec<u8>, usize) {
        let label = |b: u8| match b {
            b'.' => GAP,
            b'#' => OUTSIDE,
            b => b - b'a',
        };
        (rows.iter().flat_map(|r| r.bytes().map(label)).collect(), rows[0].len())
    }

    fn shown(labels: &[u8], cols: usize) -> Vec<String> {
        let letter = |l: &u8| match *l {
            GAP => '.',
            OUTSIDE => '#',
            l => (b'a' + l) as char,
        };
        labels.chunks(cols).map(|r| r.iter().map(letter).collect()).collect()
    }

    #[test]
    fn discs_are_round() {
        assert_eq!(disc(1), [(0, 0, 0)]);
        assert_eq!(disc(2), [(0, 0, 1), (1, 0, 1)]);
        assert_eq!(disc(3), [(-1, -1, 1), (0, -1, 1), (1, -1, 1)]);
        assert_eq!(disc(5), [(-2, -1, 1), (-1, -2, 2), (0, -2, 2), (1, -2, 2), (2, -1, 1)]);
    }

    #[test]
    fn a_line_becomes_a_gap_and_the_region_keeps_its_shape() {
        let (mut labels, cols) = raster(&["aabaa", "aabaa", "aabaa", "bbbbb", "aabaa", "aabaa"]);
        remove_thin(&mut labels, cols, 2);
        assert_eq!(shown(&labels, cols), ["aa.aa", "aa.aa", "aa.aa", ".....", "aa.aa", "aa.aa"]);
        // A square of the width of the disc is kept whole.
        let (mut labels, cols) = raster(&["aaaaaa", "aaaaaa", "aabbaa", "aabbaa", "aaaaaa", "aaaaaa"]);
        let before = labels.clone();
        remove_thin(&mut labels, cols, 2);
        assert_eq!(labels, before);
    }

    #[test]
    fn a_strip_between_lines_is_given_back_and_a_fringe_is_not() {
        let (before, cols) = raster(&["aa.a.bb", "aa.a.bb", "aa.c.bb", "aa.c.bb"]);
        let mut labels = before.clone();
        remove_thin(&mut labels, cols, 2);
        assert_eq!(shown(&labels, cols), ["aa...bb"; 4]);
        restore_beside_own(&mut labels, &before, cols, 4);
        assert_eq!(shown(&labels, cols), ["aa.a.bb", "aa.a.bb", "aa...bb", "aa...bb"]);
        // Too far from its like.
        let mut labels = before.clone();
        remove_thin(&mut labels, cols, 2);
        restore_beside_own(&mut labels, &before, cols, 1);
        assert_eq!(shown(&labels, cols), ["aa...bb"; 4]);
    }

    #[test]
    fn gaps_go_to_the_nearest_and_ties_to_the_west_then_north() {
        let (mut labels, cols) = raster(&["a..bb", "a...b", ".....", "ccccc"]);
        let mut doubt = vec![0; labels.len()];
        assert!(fill_gaps(&mut labels, &mut doubt, cols));
        assert_eq!(shown(&labels, cols), ["aabbb", "aabbb", "acccb", "ccccc"]);
    }

    #[test]
    fn the_middle_of_a_line_is_doubtful_and_a_letter_inside_a_region_is_not() {
        let (mut labels, cols) = raster(&["aaa....bbb", "aaa....bbb", "aaa....bbb"]);
        let mut doubt = vec![0; labels.len()];
        fill_gaps(&mut labels, &mut doubt, cols);
        assert_eq!(shown(&labels, cols)[1], "aaaaabbbbb");
        assert_eq!(doubt[cols..2 * cols], [0, 0, 0, 0, 1, 1, 0, 0, 0, 0]);
        let (mut labels, cols) = raster(&["aaaaa", "a...a", "aaaaa"]);
        let mut doubt = vec![0; labels.len()];
        fill_gaps(&mut labels, &mut doubt, cols);
        assert_eq!(doubt, [0; 15]);
    }

    #[test]
    fn outside_lends_nothing() {
        let (mut labels, cols) = raster(&["##.a", "##.a"]);
        let mut doubt = vec![0; labels.len()];
        assert!(fill_gaps(&mut labels, &mut doubt, cols));
        assert_eq!(shown(&labels, cols), ["##aa", "##aa"]);
        let (mut labels, cols) = raster(&["##.", "..."]);
        assert!(!fill_gaps(&mut labels, &mut [0; 6], cols));
    }

    #[test]
    fn specks_go_along_their_longest_edge_and_rejoin_what_they_parted() {
        let (labels, cols) = raster(&["aaaab", "aacab", "aaabb"]);
        let mut components = Components::of(&labels, cols);
        assert_eq!(remove_specks(&mut components, 3), 1);
        assert_eq!(shown(&components.labels(), cols), ["aaaab", "aaaab", "aaabb"]);
        // The line of c parts two halves of b.
        let (labels, cols) = raster(&["bbb", "bbb", "ccc", "bbb", "bbb"]);
        let mut components = Components::of(&labels, cols);
        remove_specks(&mut components, 4);
        assert_eq!(shown(&components.labels(), cols), ["bbb"; 5]);
        assert_eq!(components.roots().len(), 1);
    }

    /// The nearest source by looking at all of them.
    fn filled_slowly(labels: &[u8], cols: usize) -> Vec<u8> {
        (0..labels.len())
            .map(|k| {
                if labels[k] != GAP {
                    return labels[k];
                }
                let (x, y) = ((k % cols) as i64, (k / cols) as i64);
                (0..labels.len())
                    .filter(|s| labels[*s] != GAP && labels[*s] != OUTSIDE)
                    .min_by_key(|s| {
                        let (dx, dy) = ((s % cols) as i64 - x, (s / cols) as i64 - y);
                        // Of one column and equal distance the northern.
                        (dx * dx + dy * dy, s % cols, s / cols)
                    })
                    .map_or(GAP, |s| labels[s])
            })
            .collect()
    }

    proptest! {
        #[test]
        fn gaps_are_filled_as_by_looking_at_every_cell(
            cols in 1usize..70, cells in prop::collection::vec(prop_oneof![30 => Just(GAP), 1 => Just(OUTSIDE), 1 => 0u8..5], 70..400),
        ) {
            let rows = cells.len() / cols;
            let cells = cells[..rows * cols].to_vec();
            let mut labels = cells.clone();
            let any = fill_gaps(&mut labels, &mut vec![0; cells.len()], cols);
            prop_assert_eq!(any, cells.iter().any(|l| *l < 5));
            if any {
                prop_assert_eq!(labels, filled_slowly(&cells, cols));
            }
        }

        #[test]
        fn what_is_kept_is_covered_by_discs_of_its_class(
            cols in 3usize..20, width in 2usize..6, cells in prop::collection::vec(0u8..2, 60..300),
        ) {
            let rows = cells.len() / cols;
            let cells = cells[..rows * cols].to_vec();
            let mut kept = cells.clone();
            remove_thin(&mut kept, cols, width);
            let lies = |x: isize, y: isize| {
                let inside = x >= 0 && y >= 0 && x < cols as isize && y < rows as isize;
                inside.then(|| cells[y as usize * cols + x as usize])
            };
            let disc = disc(width);
            let mut expected = vec![GAP; cells.len()];
            for (k, &own) in cells.iter().enumerate() {
                let (x, y) = ((k % cols) as isize, (k / cols) as isize);
                let mut all = disc.iter().flat_map(|&(dy, a, b)| (a..=b).map(move |dx| (x + dx, y + dy)));
                if all.clone().all(|(x, y)| lies(x, y).is_none_or(|l| l == own)) {
                    all.by_ref().filter(|(x, y)| lies(*x, *y).is_some()).for_each(|(x, y)| {
                        expected[y as usize * cols + x as usize] = own;
                    });
                }
            }
            prop_assert_eq!(kept, expected);
        }
    }
}
