//! The column `properties`, a map from names to values.
use super::column::{Column, TimeUnit, map_fields};
use super::column_builder::{Chunk, ColumnBuilder};
use super::request::PropertyNames;
use super::row::{Row, Span, each_property};
use super::text::Text;
use crate::store::Damage;
use arrow_array::{ArrayRef, MapArray, StructArray};
use arrow_buffer::{OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field};
use std::collections::HashMap;
use std::sync::Arc;

/// Builds a map of all properties, or of the chosen properties. Of a repeated name the last value counts.
pub struct Properties {
    chosen: Option<PropertyNames>,
    names: Text,
    values: Text,
    ends: Vec<i32>,
}

/// Maximum number of names to compare one by one. More names go into a hash table, so that thousands of names do not
/// take quadratic time.
const FEW: usize = 24;

/// Fills `pairs` with a row's properties, or only the chosen ones, in stored order. A repeated name keeps its first place and takes the
/// last value. Returns whether all bytes are ASCII.
#[inline]
pub fn distinct(block: &[u8], row: &Row, chosen: Option<&PropertyNames>, pairs: &mut Vec<(Span, Span)>) -> bool {
    pairs.clear();
    let mut table = HashMap::new();
    each_property(block, row.properties(), |name, value| {
        if chosen.is_some_and(|chosen| !name.of(block).is_some_and(|name| chosen.has(name))) {
            return;
        }
        let earlier = match pairs.len() {
            0..FEW => pairs.iter().position(|(n, _)| same(block, *n, name)),
            n => {
                // Too many names to compare one by one: move them into a table.
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

/// Compares two names. Most names differ in length or first byte, so checking these first avoids calls of `memcmp`.
#[inline]
fn same(block: &[u8], a: Span, b: Span) -> bool {
    a.len == b.len && block.get(a.at as usize) == block.get(b.at as usize) && a.of(block) == b.of(block)
}

impl Properties {
    pub fn new(chosen: Option<PropertyNames>) -> Self {
        Self { chosen, names: Text::default(), values: Text::default(), ends: Vec::new() }
    }
}

impl ColumnBuilder for Properties {
    fn extend(&mut self, chunk: Chunk<'_>, _: &mut Vec<Damage>) {
        let mut pairs = Vec::with_capacity(FEW);
        // The length of the chosen properties is not known in advance.
        if self.chosen.is_none() {
            // Values are usually longer than names, and most messages have at least three properties.
            let bytes: usize = chunk.rows.iter().map(|row| usize::from(row.layout.properties_len)).sum();
            self.names.reserve(bytes / 3, 4 * chunk.rows.len());
            self.values.reserve(bytes / 2, 4 * chunk.rows.len());
        }
        for row in chunk.rows {
            let ascii = distinct(chunk.bytes, row, self.chosen.as_ref(), &mut pairs);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::message::Layout;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn chosen_properties_are_those_of_all_that_have_such_a_name(
            properties in "(a|b|é|\u{1}|\u{2}){0,40}", names in prop::collection::vec("(a|b|é){1,2}", 1..3)
        ) {
            let block = properties.as_bytes();
            let layout = Layout {
                total: block.len() as u32,
                sys_flag: 0,
                body: 0,
                body_len: 0,
                topic: 0,
                topic_len: 0,
                properties_len: block.len() as u16,
            };
            let row = Row::new(0, layout);
            let (mut all, mut pairs) = (Vec::new(), Vec::new());
            let is_ascii = distinct(block, &row, None, &mut all);
            let chosen = PropertyNames::of(names.clone()).expect("names");
            prop_assert_eq!(distinct(block, &row, Some(&chosen), &mut pairs), is_ascii);
            all.retain(|(name, _)| names.iter().any(|chosen| name.of(block) == Some(chosen.as_bytes())));
            prop_assert_eq!(pairs, all);
        }
    }
}
