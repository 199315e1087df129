//! The column `properties`: all of them, as a map.
use super::column::{Column, TimeUnit, map_fields};
use super::column_builder::{Chunk, ColumnBuilder};
use super::row::{Row, Span, each_property};
use super::text::Text;
use crate::store::Damage;
use arrow_array::{ArrayRef, MapArray, StructArray};
use arrow_buffer::{OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field};
use std::collections::HashMap;
use std::sync::Arc;

/// All properties as a map; of a repeated name the last value.
#[derive(Default)]
pub struct Properties {
    names: Text,
    values: Text,
    ends: Vec<i32>,
}

/// Few names are compared with each other; a bomb of thousands gets a table.
const FEW: usize = 24;

/// The properties of a row as names and values, in stored order; of a repeated name the last value, at the place of the
/// first. Tells whether all of their bytes are ASCII.
#[inline]
pub fn distinct(block: &[u8], row: &Row, pairs: &mut Vec<(Span, Span)>) -> bool {
    pairs.clear();
    let mut table = HashMap::new();
    each_property(block, row.properties(), |name, value| {
        let earlier = match pairs.len() {
            0..FEW => pairs.iter().position(|(n, _)| same(block, *n, name)),
            n => {
                if table.is_empty() {
                    table.extend(pairs.iter().enumerate().map(|(i, (n, _))| (n.of(block), i)));
                }
                Some(*table.entry(name.of(block)).or_insert(n)).filter(|i| *i < n)
            }
        };
        match earlier {
            Some(i) => pairs[i].1 = value,
            None => pairs.push((name, value)),
        }
    })
}

/// Equality of two names. Most differ in their lengths or first letters, which needs no call.
#[inline]
fn same(block: &[u8], a: Span, b: Span) -> bool {
    a.len == b.len && block.get(a.at as usize) == block.get(b.at as usize) && a.of(block) == b.of(block)
}

impl ColumnBuilder for Properties {
    fn extend(&mut self, chunk: Chunk<'_>, _: &mut Vec<Damage>) {
        let mut pairs = Vec::with_capacity(FEW);
        // values are longer than names, mostly, and there are three and more of them
        let bytes: usize = chunk.rows.iter().map(|row| usize::from(row.layout.properties_len)).sum();
        self.names.reserve(bytes / 3, 4 * chunk.rows.len());
        self.values.reserve(bytes / 2, 4 * chunk.rows.len());
        for row in chunk.rows {
            let ascii = distinct(chunk.bytes, row, &mut pairs);
            for (name, value) in &pairs {
                self.names.push_span(chunk.bytes, *name, ascii);
                self.values.push_span(chunk.bytes, *value, ascii);
            }
            self.ends.push(self.names.len() as i32);
        }
    }
    fn len_bytes(&self) -> usize {
        self.names.len_bytes() + self.values.len_bytes()
    }
    fn finish(&mut self) -> ArrayRef {
        let offsets: Vec<i32> = std::iter::once(0).chain(std::mem::take(&mut self.ends)).collect();
        let columns: Vec<ArrayRef> = vec![Arc::new(self.names.finish()), Arc::new(self.values.finish())];
        let entries = StructArray::new(map_fields(), columns, None);
        let field = match Column::Properties.data_type(TimeUnit::default()) {
            DataType::Map(field, _) => field,
            other => Arc::new(Field::new("entries", other, false)),
        };
        Arc::new(MapArray::new(field, OffsetBuffer::new(ScalarBuffer::from(offsets)), entries, None, false))
    }
}
