//! How ranges of queues become tasks.

/// Offsets of a queue: broker, number, the first, the one behind the last.
pub type Range = (String, i32, i64, i64);

/// Ranges of a broker that have less than this together become one task, which takes longer to begin than to read them.
const FEW_ROWS: i64 = 50_000;

/// Cuts large ranges, and puts small ones of a broker together: a task has `max_rows` offsets at most, and there are
/// `min_partitions` at least, where there are as many offsets.
pub fn cut(ranges: &[Range], max_rows: i64, min_partitions: i64) -> Vec<Vec<Range>> {
    let total = ranges.iter().map(rows).fold(0, i64::saturating_add);
    // rounded down, so that there are as many tasks as asked for, or more
    let most = max_rows.min((total / min_partitions.max(1)).max(1));
    // small ranges together must not undo `min_partitions`
    let few = FEW_ROWS.min(most);
    let mut tasks: Vec<Vec<Range>> = Vec::new();
    let mut room = 0;
    for piece in ranges.iter().flat_map(|range| equal_pieces(range, most)) {
        let rows = rows(&piece);
        // one broker, one connection; and a reader takes each queue once
        let fits = |last: &Range| rows <= room && last.0 == piece.0 && last.1 != piece.1;
        match tasks.last_mut() {
            Some(task) if task.last().is_some_and(fits) => {
                room -= rows;
                task.push(piece);
            }
            _ => {
                room = few - rows;
                tasks.push(vec![piece]);
            }
        }
    }
    tasks
}

fn equal_pieces(range: &Range, most: i64) -> impl Iterator<Item = Range> {
    let (broker, id, start, _) = range.clone();
    let rows = rows(range);
    let count = rows / most + i64::from(rows % most > 0);
    // of equal size: a short last piece would leave its core idle
    let edge = move |number: i64| start + (i128::from(rows) * i128::from(number) / i128::from(count)) as i64;
    (0..count).map(move |number| (broker.clone(), id, edge(number), edge(number + 1)))
}

fn rows((_, _, start, end): &Range) -> i64 {
    end.saturating_sub(*start).max(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_ranges_are_cut_and_small_ones_put_together() {
        let of = |id, rows| ("b".to_owned(), id, 0, rows);
        let places = |tasks: Vec<Vec<Range>>| -> Vec<Vec<_>> {
            tasks.into_iter().map(|task| task.into_iter().map(|(_, id, from, end)| (id, from, end)).collect()).collect()
        };
        assert_eq!(places(cut(&[of(0, 10), of(1, 4)], 8, 1)), [vec![(0, 0, 5)], vec![(0, 5, 10)], vec![(1, 0, 4)]]);
        assert_eq!(places(cut(&[of(0, 10), of(1, 4)], 100, 1)), [vec![(0, 0, 10), (1, 0, 4)]]);
        assert!(cut(&[of(0, 0)], 8, 1).is_empty());
    }
}
