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
///
/// Most rows have the names of the row before, so these are compared, and written once for many rows.
pub struct Properties {
    chosen: Option<PropertyNames>,
    run: NameRun,
    /// Number of rows that are written without a look for a run.
    single_rows: usize,
    names: Text,
    values: Text,
    /// Values of a chunk.
    spans: Vec<Span>,
    ends: Vec<i32>,
}

/// Rows that are written one by one where names change from row to row, before the next look for a run.
const SINGLE_ROWS: usize = 32;

/// Successive rows with the same names of properties.
#[derive(Default)]
struct NameRun {
    names: Vec<Name>,
    /// The names as stored, one behind the other.
    stored: Vec<u8>,
    /// The names as they appear in the column.
    written: Text,
    rows: usize,
}

/// A stored name.
struct Name {
    /// Position in `stored`.
    at: usize,
    len: usize,
    /// The first bytes as a number, and the bits of the number that are part of the name.
    head: u128,
    mask: u128,
}

impl NameRun {
    /// Starts a run of rows with these names.
    fn start(&mut self, block: &[u8], names: impl Iterator<Item = Span>, ascii: bool) {
        self.names.clear();
        self.stored.clear();
        self.written.clear();
        for span in names {
            let (name, at) = (span.of(block).unwrap_or_default(), self.stored.len());
            let (mut head, mut mask) = ([0; 16], [0; 16]);
            head.iter_mut().zip(name).for_each(|(byte, stored)| *byte = *stored);
            mask.iter_mut().zip(name).for_each(|(byte, _)| *byte = u8::MAX);
            let (head, mask) = (u128::from_le_bytes(head), u128::from_le_bytes(mask));
            self.names.push(Name { at, len: name.len(), head, mask });
            self.stored.extend_from_slice(name);
            self.written.push_span(block, span, ascii);
        }
    }

    /// Returns whether the name at `index` is in the block at `span`. Compares 16 bytes at once, without a call of `memcmp`.
    #[inline]
    fn has(&self, index: usize, block: &[u8], span: Span) -> bool {
        let Some(name) = self.names.get(index).filter(|name| name.len == span.len as usize) else { return false };
        match block.get(span.at as usize..).and_then(|bytes| bytes.first_chunk()) {
            Some(head) if name.len <= 16 => u128::from_le_bytes(*head) & name.mask == name.head,
            _ => span.of(block) == self.stored.get(name.at..name.at + name.len),
        }
    }
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
        let (run, names, values) = (NameRun::default(), Text::default(), Text::default());
        Self { chosen, run, single_rows: 0, names, values, spans: Vec::new(), ends: Vec::new() }
    }

    /// Appends the values of a row to `spans` and returns whether all its properties are ASCII. Returns `None` and appends
    /// nothing if its names are not those of the row before.
    #[inline]
    fn extend_run(&mut self, block: &[u8], row: &Row) -> Option<bool> {
        let (start, mut is_same) = (self.spans.len(), true);
        let ascii = each_property(block, row.properties(), |name, value| {
            if self.chosen.as_ref().is_none_or(|chosen| name.of(block).is_some_and(|name| chosen.has(name))) {
                is_same = is_same && self.run.has(self.spans.len() - start, block, name);
                self.spans.push(value);
            }
        });
        if is_same && self.spans.len() - start == self.run.names.len() {
            return Some(ascii);
        }
        self.spans.truncate(start);
        None
    }

    /// Appends the values of a row with other names. See [`extend_run`](Self::extend_run).
    fn start_run(&mut self, block: &[u8], row: &Row, pairs: &mut Vec<(Span, Span)>) -> bool {
        // The row before had its names alone, so the names seem to change from row to row.
        if self.run.rows == 1 {
            self.single_rows = SINGLE_ROWS;
        }
        self.write_names();
        let ascii = distinct(block, row, self.chosen.as_ref(), pairs);
        self.run.start(block, pairs.iter().map(|(name, _)| *name), ascii);
        self.spans.extend(pairs.iter().map(|(_, value)| *value));
        ascii
    }

    /// Appends the names and values of a row that is in no run. Returns whether all its properties are ASCII.
    fn push_single(&mut self, block: &[u8], row: &Row, pairs: &mut Vec<(Span, Span)>) -> bool {
        self.write_names();
        let ascii = distinct(block, row, self.chosen.as_ref(), pairs);
        for (name, value) in pairs {
            self.names.push_span(block, *name, ascii);
            self.spans.push(*value);
        }
        ascii
    }

    fn write_names(&mut self) {
        self.names.repeat_all(&self.run.written, std::mem::take(&mut self.run.rows));
    }
}

impl ColumnBuilder for Properties {
    fn extend(&mut self, chunk: Chunk<'_>, _: &mut Vec<Damage>) {
        let (mut pairs, mut is_ascii) = (Vec::new(), true);
        let mut end = self.ends.last().copied().unwrap_or_default();
        self.spans.clear();
        for row in chunk.rows {
            if self.single_rows > 0 {
                self.single_rows -= 1;
                is_ascii &= self.push_single(chunk.bytes, row, &mut pairs);
                end += pairs.len() as i32;
                self.ends.push(end);
                continue;
            }
            is_ascii &= match self.extend_run(chunk.bytes, row) {
                Some(ascii) => ascii,
                None => self.start_run(chunk.bytes, row, &mut pairs),
            };
            self.run.rows += 1;
            end += self.run.names.len() as i32;
            self.ends.push(end);
        }
        if !is_ascii || !self.values.extend_ascii(chunk.bytes, self.spans.iter().copied()) {
            self.spans.iter().for_each(|value| self.values.push(value.of(chunk.bytes)));
        }
    }
    fn len_bytes(&self) -> usize {
        // The names of the run are not written yet, but count.
        self.names.len_bytes() + self.run.rows * self.run.written.len_bytes() + self.values.len_bytes()
    }
    fn finish(&mut self) -> ArrayRef {
        self.write_names();
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
    use crate::format::properties;
    use arrow_array::Array;
    use arrow_array::cast::AsArray;
    use proptest::prelude::*;

    fn row_of(at: usize, properties: &[u8]) -> Row {
        let len = properties.len();
        let (total, properties_len) = (len as u32, len as u16);
        let layout = Layout { total, sys_flag: 0, body: 0, body_len: 0, topic: 0, topic_len: 0, properties_len };
        Row::new(at as u32, layout)
    }

    type Pairs = Vec<(String, String)>;

    /// Returns the names and values of each row of a map.
    fn pairs_of(maps: &ArrayRef) -> Vec<Pairs> {
        let texts = |row: &StructArray, column| row.column(column).as_string::<i32>().clone();
        let pairs = |row: StructArray| {
            let (names, values) = (texts(&row, 0), texts(&row, 1));
            (0..row.len()).map(|i| (names.value(i).to_owned(), values.value(i).to_owned())).collect()
        };
        maps.as_map().iter().flatten().map(pairs).collect()
    }

    /// Returns the properties by name, in the order in which the names come first.
    fn plain_pairs(properties: &[u8], chosen: Option<&PropertyNames>) -> Pairs {
        let mut pairs: Vec<(&[u8], &[u8])> = Vec::new();
        for (name, value) in properties::iter(properties).filter(|(name, _)| chosen.is_none_or(|c| c.has(name))) {
            match pairs.iter_mut().find(|(earlier, _)| *earlier == name) {
                Some(pair) => pair.1 = value,
                None => pairs.push((name, value)),
            }
        }
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        pairs.into_iter().map(|(name, value)| (text(name), text(value))).collect()
    }

    proptest! {
        #[test]
        fn maps_of_many_rows_have_the_properties_of_each(
            kinds in prop::collection::vec((0..6_usize, 1..9_usize), 1..60), is_chosen in any::<bool>(), cut in 1..9_usize
        ) {
            const KINDS: [&[u8]; 6] = [
                b"KEYS\x01k1\x02UNIQ_KEY\x01AC110001000018B4AAC2000000000000AC110001\x02WAIT\x01true\x02TAGS\x01a\x02",
                b"KEYS\x01k2\x02UNIQ_KEY\x01B\x02WAIT\x01false\x02TAGS\x01b",
                b"",
                b"KEYS\x01k3\x02KEYS\x01k4\x02a name of more than 16 bytes\x01v\x02",
                b"a name of more than 16 bytee\x01v\x01w\x02KEYS\x01\x02",
                b"KEYS\x01\xff\x02\xc3\xa9\x01\xc3\xa9\x02",
            ];
            let kinds: Vec<_> = kinds.iter().flat_map(|(kind, times)| vec![KINDS[*kind]; *times]).collect();
            let chosen = is_chosen.then(|| PropertyNames::of(vec!["KEYS".into(), "TAGS".into()]).expect("names"));
            let (mut block, mut rows) = (Vec::new(), Vec::new());
            for kind in &kinds {
                rows.push(row_of(block.len(), kind));
                block.extend_from_slice(kind);
            }
            let mut column = Properties::new(chosen.clone());
            // Twice, since a builder is used for many batches.
            for _ in 0..2 {
                for rows in rows.chunks(cut) {
                    column.extend(Chunk { bytes: &block, rows }, &mut Vec::new());
                }
                let expected: Vec<_> = kinds.iter().map(|kind| plain_pairs(kind, chosen.as_ref())).collect();
                let bytes: usize = expected.iter().flatten().map(|(name, value)| name.len() + value.len() + 8).sum();
                prop_assert_eq!(column.len_bytes(), bytes);
                prop_assert_eq!(pairs_of(&column.finish()), expected);
            }
        }

        #[test]
        fn chosen_properties_are_those_of_all_that_have_such_a_name(
            properties in "(a|b|é|\u{1}|\u{2}){0,40}", names in prop::collection::vec("(a|b|é){1,2}", 1..3)
        ) {
            let block = properties.as_bytes();
            let row = row_of(0, block);
            let (mut all, mut pairs) = (Vec::new(), Vec::new());
            let is_ascii = distinct(block, &row, None, &mut all);
            let chosen = PropertyNames::of(names.clone()).expect("names");
            prop_assert_eq!(distinct(block, &row, Some(&chosen), &mut pairs), is_ascii);
            all.retain(|(name, _)| names.iter().any(|chosen| name.of(block) == Some(chosen.as_bytes())));
            prop_assert_eq!(pairs, all);
        }
    }
}
