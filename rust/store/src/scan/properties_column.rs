//! The column `properties`: all of them, as a map.
use super::column::{Column, TimeUnit, map_fields};
use super::columns::{Chunk, ColumnBuilder};
use super::text::Text;
use crate::format::properties;
use crate::store::Damage;
use arrow_array::{ArrayRef, MapArray, StructArray};
use arrow_buffer::{OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field};
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

/// The stored properties in order; of a repeated name the last value, at the place of the first.
pub fn distinct<'a>(stored: &'a [u8], pairs: &mut Vec<(&'a [u8], &'a [u8])>) {
    pairs.clear();
    let mut seen = std::collections::HashMap::new();
    for (name, value) in properties::iter(stored) {
        let known = match pairs.len() {
            0..FEW => pairs.iter().position(|(n, _)| *n == name),
            n => {
                if seen.is_empty() {
                    seen.extend(pairs.iter().enumerate().map(|(i, (n, _))| (*n, i)));
                }
                Some(*seen.entry(name).or_insert(n)).filter(|i| *i < n)
            }
        };
        match known {
            Some(i) => pairs[i].1 = value,
            None => pairs.push((name, value)),
        }
    }
}

impl ColumnBuilder for Properties {
    fn extend(&mut self, chunk: Chunk<'_>, _: &mut Vec<Damage>) {
        let mut pairs = Vec::with_capacity(FEW);
        for message in chunk.messages() {
            distinct(message.properties(), &mut pairs);
            for (name, value) in &pairs {
                self.names.push(Some(name));
                self.values.push(Some(value));
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
