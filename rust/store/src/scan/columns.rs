//! Builders of the columns, each filled from many rows at once: one tight loop a column, not one branch a cell.
use super::body::BodyColumn;
use super::column::{Column, map_fields};
use super::request::ScanRequest;
use super::row::{Row, Span};
use crate::format::host::Host;
use crate::format::message::Message;
use crate::format::message_id::{write_hex_u32, write_hex_u64};
use crate::format::properties;
use crate::store::Damage;
use arrow_array::builder::BooleanBufferBuilder;
use arrow_array::types::{
    ArrowPrimitiveType, Int32Type, Int64Type, TimestampMicrosecondType, TimestampMillisecondType,
};
use arrow_array::{ArrayRef, MapArray, PrimitiveArray, StringArray, StructArray};
use arrow_buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use std::borrow::Cow;
use std::sync::Arc;

/// Rows of one block, to be appended.
#[derive(Clone, Copy, Debug)]
pub struct Chunk<'a> {
    /// The block's bytes.
    pub bytes: &'a [u8],
    /// The rows.
    pub rows: &'a [Row],
}

impl<'a> Chunk<'a> {
    #[inline]
    fn messages(self) -> impl Iterator<Item = Message<'a>> {
        self.rows.iter().filter_map(move |row| row.message(self.bytes))
    }
}

/// A column in the making.
pub trait ColumnBuilder: Send {
    /// Appends a value for each row.
    fn extend(&mut self, chunk: Chunk<'_>, damage: &mut Vec<Damage>);
    /// Bytes held, about.
    fn len_bytes(&self) -> usize;
    /// The values so far; the builder is empty again.
    fn finish(&mut self) -> ArrayRef;
}

/// The builder of `column`.
pub fn builder(column: Column, request: &ScanRequest) -> Box<dyn ColumnBuilder> {
    let unit = request.time_unit.per_millisecond();
    match column {
        Column::Topic => Box::new(Runs::new(|m| m.topic(), |bytes, out| out.extend_from_slice(&lossy(bytes)))),
        Column::BornHost => Box::new(Runs::new(|m| m.born_host(), write_host)),
        Column::StoreHost => Box::new(Runs::new(|m| m.store_host(), write_host)),
        Column::BrokerName => Box::new(Constant { value: request.broker_name.clone(), rows: 0 }),
        Column::QueueId => Box::new(Numbers::<Int32Type, _>::new(|m| m.queue_id())),
        Column::QueueOffset => Box::new(Numbers::<Int64Type, _>::new(|m| m.queue_offset())),
        Column::PhysicalOffset => Box::new(Numbers::<Int64Type, _>::new(|m| m.physical_offset())),
        Column::MsgId => Box::new(Ids { text: Text::default(), unique: true, prefix: Prefix::default() }),
        Column::OffsetMsgId => Box::new(Ids { text: Text::default(), unique: false, prefix: Prefix::default() }),
        Column::Tags => Box::new(Property { text: Text::default(), span: |row: &Row| row.tags }),
        Column::Keys => Box::new(Property { text: Text::default(), span: |row: &Row| row.keys }),
        Column::Body => Box::new(BodyColumn::new(request.max_body_bytes)),
        Column::Properties => Box::new(Properties::default()),
        Column::BornTimestamp => timestamps(unit, |m| m.born_timestamp()),
        Column::StoreTimestamp => timestamps(unit, |m| m.store_timestamp()),
        Column::Flag => Box::new(Numbers::<Int32Type, _>::new(|m| m.flag())),
        Column::SysFlag => Box::new(Numbers::<Int32Type, _>::new(|m| m.layout().sys_flag)),
        Column::ReconsumeTimes => Box::new(Numbers::<Int32Type, _>::new(|m| m.reconsume_times())),
        Column::PreparedTransactionOffset => {
            Box::new(Numbers::<Int64Type, _>::new(|m| m.prepared_transaction_offset()))
        }
        Column::StoreSize => Box::new(Numbers::<Int32Type, _>::new(|m| m.layout().total as i32)),
        Column::BodyCrc => Box::new(Numbers::<Int32Type, _>::new(|m| m.body_crc())),
    }
}

fn timestamps(unit: i64, get: impl Fn(&Message<'_>) -> i64 + Send + 'static) -> Box<dyn ColumnBuilder> {
    match unit {
        1 => Box::new(Numbers::<TimestampMillisecondType, _>::new(get)),
        _ => Box::new(Numbers::<TimestampMicrosecondType, _>::new(move |m| get(m).saturating_mul(unit))),
    }
}

/// UTF-8 as it is; what is not becomes U+FFFD, as Java's decoder does.
fn lossy(bytes: &[u8]) -> Cow<'_, [u8]> {
    match String::from_utf8_lossy(bytes) {
        Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
        Cow::Owned(text) => Cow::Owned(text.into_bytes()),
    }
}

fn write_host(bytes: &[u8], out: &mut Vec<u8>) {
    if let Some(host) = Host::decode(bytes) {
        out.extend_from_slice(host.to_string().as_bytes());
    }
}

/// Numbers at a place of the record.
struct Numbers<T: ArrowPrimitiveType, F> {
    values: Vec<T::Native>,
    get: F,
}

impl<T: ArrowPrimitiveType, F: Fn(&Message<'_>) -> T::Native> Numbers<T, F> {
    fn new(get: F) -> Self {
        Self { values: Vec::new(), get }
    }
}

impl<T: ArrowPrimitiveType, F: Fn(&Message<'_>) -> T::Native + Send> ColumnBuilder for Numbers<T, F> {
    fn extend(&mut self, chunk: Chunk<'_>, _: &mut Vec<Damage>) {
        self.values.reserve(chunk.rows.len());
        self.values.extend(chunk.messages().map(|m| (self.get)(&m)));
    }
    fn len_bytes(&self) -> usize {
        size_of_val(&self.values[..])
    }
    fn finish(&mut self) -> ArrayRef {
        let capacity = self.values.len();
        let values = std::mem::replace(&mut self.values, Vec::with_capacity(capacity));
        let array = PrimitiveArray::<T>::new(values.into(), None);
        Arc::new(array.with_data_type(column_type::<T>()))
    }
}

/// The timestamp types carry a time zone that their Rust type does not tell.
fn column_type<T: ArrowPrimitiveType>() -> arrow_schema::DataType {
    match T::DATA_TYPE {
        arrow_schema::DataType::Timestamp(unit, _) => arrow_schema::DataType::Timestamp(unit, Some("UTC".into())),
        other => other,
    }
}

/// Text in the making: bytes, ends, and which values are null.
#[derive(Default)]
pub(super) struct Text {
    pub(super) bytes: Vec<u8>,
    pub(super) ends: Vec<i32>,
    pub(super) valid: Option<BooleanBufferBuilder>,
}

impl Text {
    /// Ends the value whose bytes were just appended.
    #[inline]
    pub(super) fn end(&mut self, valid: bool) {
        match &mut self.valid {
            Some(bits) => bits.append(valid),
            None if !valid => self.first_null(),
            None => {}
        }
        self.ends.push(self.bytes.len() as i32);
    }

    #[cold]
    fn first_null(&mut self) {
        let mut bits = BooleanBufferBuilder::new(self.ends.len() + 1024);
        bits.append_n(self.ends.len(), true);
        bits.append(false);
        self.valid = Some(bits);
    }

    #[inline]
    fn push(&mut self, value: Option<&[u8]>) {
        match value {
            Some(bytes) if bytes.is_ascii() => self.bytes.extend_from_slice(bytes),
            Some(bytes) => self.bytes.extend_from_slice(&lossy(bytes)),
            None => {}
        }
        self.end(value.is_some());
    }

    pub(super) fn len_bytes(&self) -> usize {
        self.bytes.len() + 4 * self.ends.len()
    }

    pub(super) fn take(&mut self) -> (OffsetBuffer<i32>, Buffer, Option<NullBuffer>) {
        let (bytes, ends) = (self.bytes.len(), self.ends.len());
        let values = std::mem::replace(&mut self.bytes, Vec::with_capacity(bytes + bytes / 8));
        let taken = std::mem::replace(&mut self.ends, Vec::with_capacity(ends + 1));
        let offsets: Vec<i32> = std::iter::once(0).chain(taken).collect();
        let nulls = self.valid.take().map(|mut bits| NullBuffer::new(bits.finish()));
        (OffsetBuffer::new(ScalarBuffer::from(offsets)), Buffer::from_vec(values), nulls)
    }

    fn finish(&mut self) -> StringArray {
        let (offsets, values, nulls) = self.take();
        StringArray::new(offsets, values, nulls)
    }
}

/// A value that seldom changes from row to row: kept once a run, written out at the end.
struct Runs<G, W> {
    text: Text,
    last: Vec<u8>,
    written: Vec<u8>,
    get: G,
    write: W,
}

impl<G, W> Runs<G, W>
where
    G: for<'a> Fn(&Message<'a>) -> &'a [u8] + Send,
    W: Fn(&[u8], &mut Vec<u8>) + Send,
{
    fn new(get: G, write: W) -> Self {
        Self { text: Text::default(), last: Vec::new(), written: Vec::new(), get, write }
    }
}

impl<G, W> ColumnBuilder for Runs<G, W>
where
    G: for<'a> Fn(&Message<'a>) -> &'a [u8] + Send,
    W: Fn(&[u8], &mut Vec<u8>) + Send,
{
    fn extend(&mut self, chunk: Chunk<'_>, _: &mut Vec<Damage>) {
        for message in chunk.messages() {
            let stored = (self.get)(&message);
            if stored != self.last {
                self.last = stored.to_vec();
                self.written.clear();
                (self.write)(stored, &mut self.written);
            }
            self.text.bytes.extend_from_slice(&self.written);
            self.text.end(true);
        }
    }
    fn len_bytes(&self) -> usize {
        self.text.len_bytes()
    }
    fn finish(&mut self) -> ArrayRef {
        Arc::new(self.text.finish())
    }
}

/// One value, or null, for every row.
struct Constant {
    value: Option<String>,
    rows: usize,
}

impl ColumnBuilder for Constant {
    fn extend(&mut self, chunk: Chunk<'_>, _: &mut Vec<Damage>) {
        self.rows += chunk.rows.len();
    }
    fn len_bytes(&self) -> usize {
        self.rows * (4 + self.value.as_ref().map_or(0, String::len))
    }
    fn finish(&mut self) -> ArrayRef {
        let rows = std::mem::take(&mut self.rows);
        Arc::new(match &self.value {
            Some(value) => StringArray::from_iter_values(std::iter::repeat_n(value, rows)),
            None => StringArray::new_null(rows),
        })
    }
}

/// One of the properties that were looked for.
struct Property<S> {
    text: Text,
    span: S,
}

impl<S: Fn(&Row) -> Span + Send> ColumnBuilder for Property<S> {
    fn extend(&mut self, chunk: Chunk<'_>, _: &mut Vec<Damage>) {
        chunk.rows.iter().for_each(|row| self.text.push((self.span)(row).of(chunk.bytes)));
    }
    fn len_bytes(&self) -> usize {
        self.text.len_bytes()
    }
    fn finish(&mut self) -> ArrayRef {
        Arc::new(self.text.finish())
    }
}

/// `offset_msg_id`, or `msg_id`: the producer's where there is one.
struct Ids {
    text: Text,
    unique: bool,
    prefix: Prefix,
}

/// The host's part of an offset message id, which hardly changes within a store.
#[derive(Default)]
struct Prefix {
    host: Vec<u8>,
    hex: Vec<u8>,
}

impl Prefix {
    #[inline]
    fn of(&mut self, host: &[u8]) -> &[u8] {
        if self.host != host {
            self.host = host.to_vec();
            self.hex.clear();
            for word in host.chunks_exact(4) {
                write_hex_u32(u32::from_be_bytes(*word.first_chunk().unwrap_or(&[0; 4])), &mut self.hex);
            }
        }
        &self.hex
    }
}

impl ColumnBuilder for Ids {
    fn extend(&mut self, chunk: Chunk<'_>, _: &mut Vec<Damage>) {
        for row in chunk.rows {
            if self.unique && row.uniq_key.len > 0 {
                self.text.push(row.uniq_key.of(chunk.bytes));
            } else if let Some(message) = row.message(chunk.bytes) {
                self.text.bytes.extend_from_slice(self.prefix.of(message.store_host()));
                write_hex_u64(message.physical_offset() as u64, &mut self.text.bytes);
                self.text.end(true);
            }
        }
    }
    fn len_bytes(&self) -> usize {
        self.text.len_bytes()
    }
    fn finish(&mut self) -> ArrayRef {
        Arc::new(self.text.finish())
    }
}

/// All properties as a map; of a repeated name the last value.
#[derive(Default)]
struct Properties {
    names: Text,
    values: Text,
    ends: Vec<i32>,
}

impl Properties {
    /// Few names are compared with each other; a bomb of thousands gets a table.
    const FEW: usize = 24;

    fn push_all(&mut self, stored: &[u8]) {
        let mut pairs: Vec<(&[u8], &[u8])> = Vec::with_capacity(8);
        let mut seen = std::collections::HashMap::new();
        for (name, value) in properties::iter(stored) {
            let known = match pairs.len() {
                0..Self::FEW => pairs.iter().position(|(n, _)| *n == name),
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
        for (name, value) in pairs {
            self.names.push(Some(name));
            self.values.push(Some(value));
        }
        self.ends.push(self.names.ends.len() as i32);
    }
}

impl ColumnBuilder for Properties {
    fn extend(&mut self, chunk: Chunk<'_>, _: &mut Vec<Damage>) {
        chunk.messages().for_each(|message| self.push_all(message.properties()));
    }
    fn len_bytes(&self) -> usize {
        self.names.len_bytes() + self.values.len_bytes()
    }
    fn finish(&mut self) -> ArrayRef {
        let offsets: Vec<i32> = std::iter::once(0).chain(std::mem::take(&mut self.ends)).collect();
        let columns: Vec<ArrayRef> = vec![Arc::new(self.names.finish()), Arc::new(self.values.finish())];
        let entries = StructArray::new(map_fields(), columns, None);
        let field = match Column::Properties.data_type(super::column::TimeUnit::default()) {
            arrow_schema::DataType::Map(field, _) => field,
            other => Arc::new(arrow_schema::Field::new("entries", other, false)),
        };
        Arc::new(MapArray::new(field, OffsetBuffer::new(ScalarBuffer::from(offsets)), entries, None, false))
    }
}
