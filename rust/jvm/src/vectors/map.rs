//! The properties: where each row's pairs begin, and views of names and values.
use super::vector::Vector;
use super::views::Views;
use rmqfast_store::scan::PropertyNames;
use rmqfast_store::scan::columns::Chunk;
use rmqfast_store::scan::properties_column::distinct;

/// Row `n` has the pairs from `starts[n]` to `starts[n + 1]`.
#[derive(Debug)]
pub(super) struct Map {
    chosen: Option<PropertyNames>,
    starts: Vec<i32>,
    names: Views,
    values: Views,
}

impl Map {
    /// An empty map of these properties; `None` for all.
    pub(super) fn new(chosen: Option<PropertyNames>) -> Self {
        Self { chosen, starts: Vec::new(), names: Views::default(), values: Views::default() }
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
            // of a repeated name the last value counts, as in Java's map
            let ascii = distinct(chunk.bytes, row, self.chosen.as_ref(), &mut pairs);
            for (name, value) in &pairs {
                self.names.push_span(chunk.bytes, *name, ascii);
                self.values.push_span(chunk.bytes, *value, ascii);
            }
        }
    }
    fn seal(&mut self, addresses: &mut Vec<i64>) {
        // one start more than rows, so that the last row has an end as well
        self.starts.push(self.names.len() as i32);
        addresses.push(self.starts.as_ptr() as i64);
        self.names.seal(addresses);
        self.values.seal(addresses);
    }
}
