//! The column of properties. Holds all names and values, and for each row the range of its pairs.
use super::memory::Memory;
use super::unsafe_rows::{UnsafeRows, map_size};
use super::vector::Vector;
use super::views::Views;
use rmqfast_store::scan::PropertyNames;
use rmqfast_store::scan::columns::Chunk;
use rmqfast_store::scan::properties_column::distinct;
use std::ops::Range;

/// Holds the pairs of row `n` from `starts[n]` to `starts[n + 1]`.
#[derive(Debug)]
pub(super) struct Map {
    chosen: Option<PropertyNames>,
    starts: Vec<i32>,
    names: Views,
    values: Views,
}

impl Map {
    /// Creates the column for the given properties; `None` for all.
    pub(super) fn new(chosen: Option<PropertyNames>) -> Self {
        Self { chosen, starts: Vec::new(), names: Views::default(), values: Views::default() }
    }

    /// Returns the range of pairs of each row, starting at row `from`.
    fn pairs(&self, from: usize) -> impl Iterator<Item = Range<usize>> {
        self.starts[from..].windows(2).map(|ends| ends[0] as usize..ends[1] as usize)
    }
}

impl Vector for Map {
    fn clear(&mut self) {
        self.starts.clear();
        self.names.clear();
        self.values.clear();
    }
    fn extend(&mut self, chunk: Chunk<'_>) {
        let mut pairs = Vec::new();
        for row in chunk.rows {
            self.starts.push(self.names.len() as i32);
            // the last value of a repeated name counts, as in Java's map
            let ascii = distinct(chunk.bytes, row, self.chosen.as_ref(), &mut pairs);
            for (name, value) in &pairs {
                self.names.push_span(chunk.bytes, *name, ascii);
                self.values.push_span(chunk.bytes, *value, ascii);
            }
        }
    }
    fn seal(&mut self, addresses: &mut Vec<i64>) {
        // one more start than rows, which is the end of the last row
        self.starts.push(self.names.len() as i32);
        addresses.push(self.starts.as_ptr() as i64);
        self.names.seal(addresses);
        self.values.seal(addresses);
    }
    fn measure(&self, from: usize, sizes: &mut [usize]) {
        for (size, pairs) in sizes.iter_mut().zip(self.pairs(from)) {
            *size += map_size(pairs, &self.names, &self.values);
        }
    }
    fn write(&self, from: usize, field: usize, rows: &mut UnsafeRows, memory: &Memory<'_>) {
        rows.put_maps(field, self.pairs(from), [&self.names, &self.values], memory);
    }
}
