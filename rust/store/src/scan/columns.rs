//! Creates the builders of the columns, among them `body` and `properties`. A builder appends many rows at once, so that each column is one
//! tight loop.
pub use super::column::{Chunk, store_host};
use super::column::{Column, ColumnBuilder, TimeUnit, map_fields, part};
use super::request::{PropertyNames, ScanRequest};
use super::row::{Row, Span, each_property};
use super::text_columns::{Constant, Ids, Property, Runs, Text, lossy};
use crate::format::compression::{Compression, decompress_into};
use crate::format::cursor::{i32_at, i64_at};
use crate::format::host::Host;
use crate::format::message::{COMPRESSED, Message};
use crate::store::Damage;
use arrow_array::types::{
    ArrowPrimitiveType, Int32Type, Int64Type, TimestampMicrosecondType, TimestampMillisecondType,
};
use arrow_array::{ArrayRef, BinaryArray, MapArray, PrimitiveArray, StructArray};
use arrow_buffer::{OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field};
use std::collections::HashMap;
use std::sync::Arc;

pub fn builder(column: Column, request: &ScanRequest) -> Box<dyn ColumnBuilder> {
    let unit = request.time_unit.per_millisecond();
    match column {
        Column::Topic => Box::new(Runs::new(topic, |bytes, out| out.extend_from_slice(&lossy(bytes)))),
        Column::BornHost => Box::new(Runs::new(born_host, write_host)),
        Column::StoreHost => Box::new(Runs::new(store_host, write_host)),
        Column::BrokerName => Box::new(Constant { value: request.broker_name.clone(), rows: 0 }),
        // The positions of fixed fields are those in the table of `format::message`.
        Column::QueueId => ints(|bytes, row| i32_at(bytes, row.at as usize + 12)),
        Column::QueueOffset => longs(|bytes, row| i64_at(bytes, row.at as usize + 20)),
        Column::PhysicalOffset => longs(|bytes, row| i64_at(bytes, row.at as usize + 28)),
        Column::MsgId => Box::new(Ids::new(true)),
        Column::OffsetMsgId => Box::new(Ids::new(false)),
        Column::Tags => Box::new(Property { text: Text::default(), span: |row: &Row| row.tags }),
        Column::Keys => Box::new(Property { text: Text::default(), span: |row: &Row| row.keys }),
        Column::Body => Box::new(BodyColumn::of(request)),
        Column::Properties => Box::new(Properties::new(request.property_names.clone())),
        Column::BornTimestamp => timestamps(unit, |bytes, row| i64_at(bytes, row.at as usize + 40)),
        Column::StoreTimestamp => {
            timestamps(unit, |bytes, row| i64_at(bytes, row.at as usize + row.layout.store_timestamp_at()))
        }
        Column::Flag => ints(|bytes, row| i32_at(bytes, row.at as usize + 16)),
        Column::SysFlag => ints(|_, row| Some(row.layout.sys_flag)),
        // Counted back from the body, since the hosts before this field have no fixed length.
        Column::ReconsumeTimes => ints(|bytes, row| i32_at(bytes, (row.at + row.layout.body) as usize - 16)),
        Column::PreparedTransactionOffset => {
            longs(|bytes, row| i64_at(bytes, (row.at + row.layout.body) as usize - 12))
        }
        Column::StoreSize => ints(|_, row| Some(row.layout.total as i32)),
        Column::BodyCrc => ints(|bytes, row| i32_at(bytes, row.at as usize + 8)),
    }
}

type Long = fn(&[u8], &Row) -> Option<i64>;

fn ints(get: impl Fn(&[u8], &Row) -> Option<i32> + Send + 'static) -> Box<dyn ColumnBuilder> {
    Box::new(Numbers::<Int32Type, _> { values: Vec::new(), get })
}

fn longs(get: impl Fn(&[u8], &Row) -> Option<i64> + Send + 'static) -> Box<dyn ColumnBuilder> {
    Box::new(Numbers::<Int64Type, _> { values: Vec::new(), get })
}

fn timestamps(unit: i64, get: Long) -> Box<dyn ColumnBuilder> {
    match unit {
        1 => Box::new(Numbers::<TimestampMillisecondType, _> { values: Vec::new(), get }),
        _ => {
            // Saturates, since a damaged time may be close to the limits of i64.
            let get = move |bytes: &[u8], row: &Row| get(bytes, row).map(|ms| ms.saturating_mul(unit));
            Box::new(Numbers::<TimestampMicrosecondType, _> { values: Vec::new(), get })
        }
    }
}

#[inline]
fn topic<'a>(bytes: &'a [u8], row: &Row) -> &'a [u8] {
    part(bytes, (row.at + row.layout.topic) as usize, row.layout.topic_len as usize)
}

#[inline]
fn born_host<'a>(bytes: &'a [u8], row: &Row) -> &'a [u8] {
    part(bytes, row.at as usize + 48, row.layout.store_timestamp_at() - 48)
}

/// Appends a stored host as a string. Appends nothing if the bytes are invalid.
pub fn write_host(bytes: &[u8], out: &mut Vec<u8>) {
    if let Some(host) = Host::decode(bytes) {
        out.extend_from_slice(host.to_string().as_bytes());
    }
}

struct Numbers<T: ArrowPrimitiveType, F> {
    values: Vec<T::Native>,
    get: F,
}

impl<T: ArrowPrimitiveType, F: Fn(&[u8], &Row) -> Option<T::Native> + Send> ColumnBuilder for Numbers<T, F> {
    fn extend(&mut self, chunk: Chunk<'_>, _: &mut Vec<Damage>) {
        self.values.extend(chunk.rows.iter().map(|row| (self.get)(chunk.bytes, row).unwrap_or_default()));
    }
    fn len_bytes(&self) -> usize {
        size_of_val(&self.values[..])
    }
    fn finish(&mut self) -> ArrayRef {
        let capacity = self.values.len();
        // Reserve for the next batch, which is probably as large.
        let values = std::mem::replace(&mut self.values, Vec::with_capacity(capacity));
        // No null bitmap, since every record has these fields.
        let array = PrimitiveArray::<T>::new(values.into(), None);
        Arc::new(array.with_data_type(column_type::<T>()))
    }
}

/// Returns the column's Arrow type. Timestamps get the time zone UTC, which their Rust type does not include.
fn column_type<T: ArrowPrimitiveType>() -> arrow_schema::DataType {
    match T::DATA_TYPE {
        arrow_schema::DataType::Timestamp(unit, _) => arrow_schema::DataType::Timestamp(unit, Some("UTC".into())),
        other => other,
    }
}

/// Builds the column `body`. A body is null if it cannot be decompressed or, with `checks_crc`, if its CRC is wrong.
/// The reported damage says why.
pub struct BodyColumn {
    text: Text,
    cap: usize,
    checks_crc: bool,
}

impl BodyColumn {
    pub fn of(request: &ScanRequest) -> Self {
        let cap = request.max_body_bytes.min(ScanRequest::MAX_MAX_BODY_BYTES);
        Self::new(cap, request.checks_bodies)
    }

    pub fn new(cap: usize, checks_crc: bool) -> Self {
        Self { text: Text::default(), cap, checks_crc }
    }

    /// Returns the body of a row of the batch. `None` for null.
    pub fn get(&self, row: usize) -> Option<&[u8]> {
        self.text.get(row)
    }

    pub fn finish_binary(&mut self) -> BinaryArray {
        self.text.finish_binary()
    }

    #[cold]
    fn push_compressed(&mut self, message: &Message<'_>, damage: &mut Vec<Damage>) {
        let body = message.body();
        let kind = Compression::from_sys_flag(message.layout().sys_flag);
        let result = kind.and_then(|kind| decompress_into(kind, body, self.cap, &mut self.text.bytes));
        if let Err(malformed) = result {
            let offset = message.physical_offset() as u64;
            damage.push(Damage { offset, length: 0, reason: malformed.to_string(), file: Default::default() });
        }
        self.text.end(result.is_ok());
    }
}

impl ColumnBuilder for BodyColumn {
    fn extend(&mut self, chunk: Chunk<'_>, damage: &mut Vec<Damage>) {
        let bytes = chunk.rows.iter().map(|row| row.layout.body_len as usize).sum();
        // Reserve once for all rows, since a buffer that grows step by step is copied each time.
        self.text.reserve(bytes, chunk.rows.len());
        for row in chunk.rows {
            let Some(message) = row.message(chunk.bytes) else { continue };
            if self.checks_crc && !message.body_crc_matches() {
                let (offset, reason) = (message.physical_offset() as u64, "the body does not match its CRC".into());
                damage.push(Damage { offset, length: 0, reason, file: Default::default() });
                self.text.end(false);
            } else if row.layout.sys_flag & COMPRESSED != 0 {
                self.push_compressed(&message, damage);
            } else {
                self.text.bytes.extend_from_slice(message.body());
                self.text.end(true);
            }
        }
    }
    fn len_bytes(&self) -> usize {
        self.text.len_bytes()
    }
    fn finish(&mut self) -> ArrayRef {
        Arc::new(self.finish_binary())
    }
}

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

/// Returns whether two names are equal. Most names differ in length or first byte, so comparing these first avoids
/// calls of `memcmp`.
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
