//! The vectors of the columns of a batch: texts, numbers, properties and bodies.
use super::unsafe_rows::{UnsafeRows, map_size, measure};
use super::views::{Memory, View, Views};
use rmqfast_store::format::compression::{Compression, decompress_into};
use rmqfast_store::format::message::{COMPRESSED, Message};
use rmqfast_store::scan::columns::{Chunk, distinct, write_host};
use rmqfast_store::scan::row::{Row, Span};
use rmqfast_store::scan::text_columns::{IdPrefix, lossy, same};
use rmqfast_store::scan::{Column, PropertyNames, ScanRequest};
use rmqfast_store::store::Damage;
use std::ops::Range;

pub trait Vector: Send {
    /// Removes the values but keeps the memory.
    fn clear(&mut self);
    /// Appends a value for each row of `chunk`.
    fn extend(&mut self, chunk: Chunk<'_>);
    /// Ends the column and appends the addresses that Java reads from. No values may be appended afterwards.
    fn seal(&mut self, addresses: &mut Vec<i64>);
    /// Adds the bytes of a value to each row's size in `sizes`, in whole words of 8 bytes. The first row has the value
    /// at index `from`. The word that each field has in every row is not counted.
    fn measure(&self, from: usize, sizes: &mut [usize]);
    /// Writes the values into rows. The first row gets the value at index `from`.
    fn write(&self, from: usize, field: usize, rows: &mut UnsafeRows, memory: &Memory<'_>);
}

/// Creates the vector of `column`; `None` for the body, which [`Batch`](super::Batch) handles itself.
pub fn vector(column: Column, request: &ScanRequest) -> Option<Box<dyn Vector>> {
    // Spark's timestamps are microseconds; saturating, since a record may hold any number
    let micros = |milliseconds: i64| milliseconds.saturating_mul(1000);
    Some(match column {
        // the body limits the number of rows of a batch; see `Batch::fill`
        Column::Body => return None,
        Column::Topic => texts(Runs::new(|m| m.topic(), |bytes, out| out.extend_from_slice(&lossy(bytes)))),
        // consecutive rows mostly have the same topic, producer and broker
        Column::BornHost => texts(Runs::new(|m| m.born_host(), write_host)),
        Column::StoreHost => texts(Runs::new(|m| m.store_host(), write_host)),
        Column::BrokerName => texts(Constant(request.broker_name.clone())),
        Column::MsgId => texts(Ids::new(true)),
        Column::OffsetMsgId => texts(Ids::new(false)),
        Column::Tags => texts(Property(|row: &Row| row.tags)),
        Column::Keys => texts(Property(|row: &Row| row.keys)),
        Column::Properties => Box::new(Map::new(request.property_names.clone())),
        Column::QueueId => Box::new(Numbers::new(|m| m.queue_id())),
        Column::QueueOffset => Box::new(Numbers::new(|m| m.queue_offset())),
        Column::PhysicalOffset => Box::new(Numbers::new(|m| m.physical_offset())),
        Column::BornTimestamp => Box::new(Numbers::new(move |m| micros(m.born_timestamp()))),
        Column::StoreTimestamp => Box::new(Numbers::new(move |m| micros(m.store_timestamp()))),
        Column::Flag => Box::new(Numbers::new(|m| m.flag())),
        Column::SysFlag => Box::new(Numbers::new(|m| m.layout().sys_flag)),
        Column::ReconsumeTimes => Box::new(Numbers::new(|m| m.reconsume_times())),
        Column::PreparedTransactionOffset => Box::new(Numbers::new(|m| m.prepared_transaction_offset())),
        // a record's size is an int in Java, too
        Column::StoreSize => Box::new(Numbers::new(|m| m.layout().total as i32)),
        Column::BodyCrc => Box::new(Numbers::new(|m| m.body_crc())),
    })
}

type Part = for<'a> fn(Message<'a>) -> &'a [u8];

/// A column of texts. For each row `source` appends a view of the text.
struct Texts<S> {
    views: Views,
    source: S,
}

/// The rule by which a row gets its text.
trait TextSource: Send {
    /// Appends a view for each row of `chunk`.
    fn extend(&mut self, chunk: Chunk<'_>, views: &mut Views);
    fn clear(&mut self) {}
}

fn texts<S: TextSource>(source: S) -> Box<Texts<S>> {
    Box::new(Texts { views: Views::default(), source })
}

impl<S: TextSource> Vector for Texts<S> {
    fn clear(&mut self) {
        self.views.clear();
        self.source.clear();
    }
    fn extend(&mut self, chunk: Chunk<'_>) {
        self.source.extend(chunk, &mut self.views);
    }
    fn seal(&mut self, addresses: &mut Vec<i64>) {
        self.views.seal(addresses);
    }
    fn measure(&self, from: usize, sizes: &mut [usize]) {
        measure(&self.views, from, sizes);
    }
    fn write(&self, from: usize, field: usize, rows: &mut UnsafeRows, memory: &Memory<'_>) {
        rows.put_views(field, &self.views, from, memory);
    }
}

/// A column whose value rarely changes between rows. The text of a value is written once for successive rows with this
/// value.
struct Runs {
    stored: Vec<u8>,
    run: Option<View>,
    get: Part,
    write: fn(&[u8], &mut Vec<u8>),
}

impl Runs {
    /// Creates the column: `get` reads the stored bytes of a message, and `write` formats them as text.
    fn new(get: Part, write: fn(&[u8], &mut Vec<u8>)) -> Self {
        Self { stored: Vec::new(), run: None, get, write }
    }

    #[cold]
    fn start(&mut self, stored: &[u8], views: &mut Views) -> View {
        stored.clone_into(&mut self.stored);
        let start = views.side.len();
        (self.write)(stored, &mut views.side);
        let view = views.side_view(start);
        self.run = Some(view);
        view
    }
}

impl TextSource for Runs {
    fn clear(&mut self) {
        // the run's text was in `side`, which is now empty
        self.run = None;
    }
    fn extend(&mut self, chunk: Chunk<'_>, views: &mut Views) {
        for row in chunk.rows {
            let stored = row.message(chunk.bytes).map(self.get).unwrap_or_default();
            let view = match self.run {
                // stored bytes are compared, which is faster than formatting a host
                Some(view) if same(stored, &self.stored) => view,
                _ => self.start(stored, views),
            };
            views.push(view);
        }
    }
}

/// A column with the same value, or null, in every row.
struct Constant(Option<String>);

impl TextSource for Constant {
    fn extend(&mut self, chunk: Chunk<'_>, views: &mut Views) {
        let Some(value) = &self.0 else {
            return chunk.rows.iter().for_each(|_| views.push_null());
        };
        // copied to `side` once, since views must point into a block or into `side`
        if views.side.is_empty() {
            views.side.extend_from_slice(value.as_bytes());
        }
        let view = views.side_view(0);
        chunk.rows.iter().for_each(|_| views.push(view));
    }
}

/// A column of one property that the scan located.
struct Property<S>(S);

impl<S: Fn(&Row) -> Span + Send> TextSource for Property<S> {
    fn extend(&mut self, chunk: Chunk<'_>, views: &mut Views) {
        for row in chunk.rows {
            views.push_span(chunk.bytes, (self.0)(row), row.ascii);
        }
    }
}

/// The column `offset_msg_id`. With `unique` the column `msg_id`, which has the producer's unique id of a message, or
/// else its `offset_msg_id`.
struct Ids {
    unique: bool,
    prefix: IdPrefix,
}

impl Ids {
    fn new(unique: bool) -> Self {
        Self { unique, prefix: IdPrefix::default() }
    }
}

impl TextSource for Ids {
    fn extend(&mut self, chunk: Chunk<'_>, views: &mut Views) {
        for row in chunk.rows {
            match row.message(chunk.bytes) {
                // a message of an old or foreign client has no unique id, so it gets the id of its place in the log
                Some(_) if self.unique && row.uniq_key.len > 0 => {
                    views.push_span(chunk.bytes, row.uniq_key, row.ascii);
                }
                Some(message) => {
                    let start = views.side.len();
                    let offset = message.physical_offset().cast_unsigned();
                    self.prefix.write(message.store_host(), offset, &mut views.side);
                    views.push_side(start);
                }
                None => views.push_null(),
            }
        }
    }
}

/// A column of maps. The names and values of row `n` are those from index `starts[n]` to `starts[n + 1]` (exclusive).
#[derive(Debug)]
struct Map {
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

/// A column with the number that `get` returns for each message.
struct Numbers<T, F> {
    values: Vec<T>,
    get: F,
}

impl<T, F: Fn(Message<'_>) -> T> Numbers<T, F> {
    pub(super) fn new(get: F) -> Self {
        Self { values: Vec::new(), get }
    }
}

/// A number that can be converted to a word of Spark's row format.
pub(super) trait Word: Copy {
    fn word(self) -> i64;
}

impl Word for i32 {
    fn word(self) -> i64 {
        // not sign-extended, as in Spark's rows
        i64::from(self.cast_unsigned())
    }
}

impl Word for i64 {
    fn word(self) -> i64 {
        self
    }
}

impl<T: Default + Word + Send, F: Fn(Message<'_>) -> T + Send> Vector for Numbers<T, F> {
    fn clear(&mut self) {
        self.values.clear();
    }
    fn extend(&mut self, chunk: Chunk<'_>) {
        // never fails, since the row was found in this block
        let number = |row: &rmqfast_store::scan::row::Row| row.message(chunk.bytes).map(&self.get).unwrap_or_default();
        self.values.extend(chunk.rows.iter().map(number));
    }
    fn seal(&mut self, addresses: &mut Vec<i64>) {
        addresses.push(self.values.as_ptr() as i64);
    }
    fn measure(&self, _: usize, _: &mut [usize]) {}
    fn write(&self, from: usize, field: usize, rows: &mut UnsafeRows, _: &Memory<'_>) {
        rows.put_numbers(field, self.values[from..].iter().map(|value| value.word()));
    }
}

/// Maximum bytes of decompressed bodies in a batch. At this size the batch ends.
const SIDE: usize = 4 << 20;

/// The bodies of a batch. A body that cannot be decompressed is null and is reported as damage.
#[derive(Debug)]
pub(super) struct Bodies {
    views: Views,
    cap: usize,
}

impl Bodies {
    /// Creates the column. `cap` is the maximum length of a decompressed body in bytes.
    pub(super) fn new(cap: usize) -> Self {
        Self { views: Views::default(), cap }
    }

    pub(super) fn clear(&mut self) {
        self.views.clear();
    }

    /// Appends bodies until the decompressed bodies reach the limit of a batch. Returns the number of appended rows.
    /// `is_full` gets each message and its body, for each row, and returns whether the batch ends behind it.
    pub(super) fn extend(
        &mut self,
        chunk: Chunk<'_>,
        damage: &mut Vec<Damage>,
        mut is_full: impl FnMut(Option<&Message<'_>>, Option<&[u8]>) -> bool,
    ) -> usize {
        for (taken, row) in chunk.rows.iter().enumerate() {
            let ends = match row.message(chunk.bytes) {
                Some(message) if row.layout.sys_flag & COMPRESSED != 0 => {
                    let start = self.views.side.len();
                    let is_sound = self.push_compressed(&message, damage);
                    is_full(Some(&message), is_sound.then(|| &self.views.side[start..]))
                }
                Some(message) => {
                    self.views.push_stored(message.body());
                    is_full(Some(&message), Some(message.body()))
                }
                None => {
                    self.views.push_null();
                    is_full(None, None)
                }
            };
            // checked after the row, so that a batch has at least one
            if ends || self.views.side.len() >= SIDE {
                return taken + 1;
            }
        }
        chunk.rows.len()
    }

    /// Appends a decompressed body. Returns whether it could be decompressed.
    #[cold]
    fn push_compressed(&mut self, message: &Message<'_>, damage: &mut Vec<Damage>) -> bool {
        let start = self.views.side.len();
        let kind = Compression::from_sys_flag(message.layout().sys_flag);
        match kind.and_then(|kind| decompress_into(kind, message.body(), self.cap, &mut self.views.side)) {
            Ok(_) => {
                self.views.push_side(start);
                true
            }
            Err(malformed) => {
                // remove the part that was decompressed before the error
                self.views.side.truncate(start);
                self.views.push_null();
                let offset = message.physical_offset().cast_unsigned();
                // length 0, since the record itself is intact
                damage.push(Damage { offset, length: 0, reason: malformed.to_string(), file: Default::default() });
                false
            }
        }
    }

    pub(super) fn seal(&mut self, addresses: &mut Vec<i64>) {
        self.views.seal(addresses);
    }

    pub(super) fn measure(&self, from: usize, sizes: &mut [usize]) {
        measure(&self.views, from, sizes);
    }

    pub(super) fn write(&self, from: usize, field: usize, rows: &mut UnsafeRows, memory: &Memory<'_>) {
        rows.put_views(field, &self.views, from, memory);
    }
}
