//! Connected components of a raster of classes, held as runs: cells of one class that touch along an edge.
//!
//! Cells that meet in a corner only are apart, everywhere: so the two ambiguous cases of a square of four cells have one
//! answer. (Union–find over runs; R. Sedgewick, "Algorithms", section 1.5.)

use rayon::prelude::*;

/// Columns from `start` to before `end` of a row, and the component that they belong to.
#[derive(Debug, Clone, Copy)]
struct Run {
    start: u32,
    end: u32,
    component: u32,
}

/// The components of a raster, numbered in order of their first cells; joined ones are known by their root.
#[derive(Debug, Clone)]
pub(super) struct Components {
    cols: usize,
    runs: Vec<Run>,
    /// First run of each row, and the end.
    rows: Vec<usize>,
    label: Vec<u8>,
    area: Vec<u64>,
    parent: Vec<u32>,
}

fn find(parent: &mut [u32], mut k: u32) -> u32 {
    while parent[k as usize] != k {
        parent[k as usize] = parent[parent[k as usize] as usize];
        k = parent[k as usize];
    }
    k
}

impl Components {
    /// The components of `labels`, rows of `cols` cells.
    pub(super) fn of(labels: &[u8], cols: usize) -> Components {
        let by_row: Vec<Vec<(u32, u32)>> = labels
            .par_chunks(cols.max(1))
            .map(|row| {
                let mut runs: Vec<(u32, u32)> = Vec::new();
                for chunk in row.chunk_by(|a, b| a == b) {
                    let start = runs.last().map_or(0, |r| r.1);
                    runs.push((start, start + chunk.len() as u32));
                }
                runs
            })
            .collect();
        let mut rows = Vec::with_capacity(by_row.len() + 1);
        let mut runs: Vec<Run> = Vec::with_capacity(by_row.iter().map(Vec::len).sum());
        for row in &by_row {
            rows.push(runs.len());
            runs.extend(row.iter().map(|&(start, end)| Run { start, end, component: 0 }));
        }
        rows.push(runs.len());
        drop(by_row);
        let mut parent: Vec<u32> = (0..runs.len() as u32).collect();
        let label_of = |row: usize, run: &Run| labels[row * cols + run.start as usize];
        for row in 1..rows.len() - 1 {
            each_overlap(&runs, rows[row - 1]..rows[row], rows[row]..rows[row + 1], |above, here, _| {
                if label_of(row - 1, &runs[above]) == label_of(row, &runs[here]) {
                    let (a, b) = (find(&mut parent, above as u32), find(&mut parent, here as u32));
                    parent[a.max(b) as usize] = a.min(b);
                }
            });
        }
        let (mut label, mut area) = (Vec::new(), Vec::<u64>::new());
        let mut number = vec![u32::MAX; runs.len()];
        for row in 0..rows.len() - 1 {
            for (k, run) in runs.iter_mut().enumerate().take(rows[row + 1]).skip(rows[row]) {
                let root = find(&mut parent, k as u32) as usize;
                if number[root] == u32::MAX {
                    number[root] = label.len() as u32;
                    label.push(label_of(row, run));
                    area.push(0);
                }
                let component = number[root];
                run.component = component;
                area[component as usize] += u64::from(run.end - run.start);
            }
        }
        let parent = (0..label.len() as u32).collect();
        Components { cols, runs, rows, label, area, parent }
    }

    /// How many there were before any were joined.
    pub(super) fn len(&self) -> usize {
        self.label.len()
    }

    /// The component that `k` belongs to now.
    pub(super) fn root(&mut self, k: u32) -> u32 {
        find(&mut self.parent, k)
    }

    /// The class of root `k`.
    pub(super) fn label(&self, k: u32) -> u8 {
        self.label[k as usize]
    }

    /// The cells of root `k`.
    pub(super) fn area(&self, k: u32) -> u64 {
        self.area[k as usize]
    }

    /// Makes one of two roots, of the class of the first, and returns its root.
    pub(super) fn join(&mut self, heir: u32, other: u32) -> u32 {
        self.parent[other as usize] = heir;
        self.area[heir as usize] += self.area[other as usize];
        heir
    }

    /// The roots, in order.
    pub(super) fn roots(&self) -> Vec<u32> {
        (0..self.parent.len() as u32).filter(|k| self.parent[*k as usize] == *k).collect()
    }

    /// Calls `each` for every stretch of common edge of two components, as they were before any were joined, with its length
    /// in cells.
    pub(super) fn each_contact(&self, mut each: impl FnMut(u32, u32, u32)) {
        for row in 0..self.rows.len() - 1 {
            let here = self.rows[row]..self.rows[row + 1];
            for pair in self.runs[here.clone()].windows(2) {
                each(pair[0].component, pair[1].component, 1);
            }
            if row > 0 {
                each_overlap(&self.runs, self.rows[row - 1]..self.rows[row], here, |above, below, length| {
                    let (a, b) = (self.runs[above].component, self.runs[below].component);
                    if a != b {
                        each(a, b, length);
                    }
                });
            }
        }
    }

    /// The classes, cell by cell.
    #[cfg(test)]
    pub(super) fn labels(&self) -> Vec<u8> {
        self.cells(|k| self.label[k as usize])
    }

    /// A value for each cell by its root.
    pub(super) fn cells<T: Copy + Send + Sync + Default>(&self, value: impl Fn(u32) -> T + Sync) -> Vec<T> {
        let mut parent = self.parent.clone();
        let of: Vec<T> = (0..self.parent.len() as u32).map(|k| value(find(&mut parent, k))).collect();
        let mut cells = vec![T::default(); self.cols * (self.rows.len() - 1)];
        cells.par_chunks_mut(self.cols.max(1)).enumerate().for_each(|(row, cells)| {
            for run in &self.runs[self.rows[row]..self.rows[row + 1]] {
                cells[run.start as usize..run.end as usize].fill(of[run.component as usize]);
            }
        });
        cells
    }
}

/// Calls `each` with the numbers of two runs of neighbouring rows that share columns, and with how many.
fn each_overlap(
    runs: &[Run],
    above: std::ops::Range<usize>,
    below: std::ops::Range<usize>,
    mut each: impl FnMut(usize, usize, u32),
) {
    let (mut a, mut b) = (above.start, below.start);
    while a < above.end && b < below.end {
        let (start, end) = (runs[a].start.max(runs[b].start), runs[a].end.min(runs[b].end));
        if start < end {
            each(a, b, end - start);
        }
        if runs[a].end <= runs[b].end { a += 1 } else { b += 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn corners_do_not_connect() {
        #[rustfmt::skip]
        let components = Components::of(&[
            1, 0, 0,
            0, 1, 0,
            0, 1, 1,
        ], 3);
        assert_eq!(components.len(), 4);
        assert_eq!((0..4).map(|k| components.area(k)).collect::<Vec<_>>(), [1, 3, 2, 3]);
        let mut contacts = Vec::new();
        components.each_contact(|a, b, n| contacts.push((a.min(b), a.max(b), n)));
        contacts.sort_unstable();
        assert_eq!(contacts.iter().filter(|c| (c.0, c.1) == (1, 3)).map(|c| c.2).sum::<u32>(), 3);
        assert_eq!(contacts.iter().filter(|c| (c.0, c.1) == (2, 3)).map(|c| c.2).sum::<u32>(), 2);
    }

    #[test]
    fn a_horseshoe_is_one() {
        #[rustfmt::skip]
        let mut components = Components::of(&[
            1, 0, 1,
            1, 0, 1,
            1, 1, 1,
        ], 3);
        assert_eq!((components.len(), components.area(0)), (2, 7));
        assert_eq!(components.join(0, 1), 0);
        assert_eq!((components.root(1), components.area(0)), (0, 9));
        assert_eq!(components.labels(), [1; 9]);
    }
}
