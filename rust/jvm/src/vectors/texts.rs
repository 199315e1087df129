//! Columns of strings: topics and hosts, ids, tags and keys, and constants.
use super::memory::Memory;
use super::unsafe_rows::{UnsafeRows, measure};
use super::vector::Vector;
use super::views::{View, Views};
use rmqfast_store::format::message::Message;
use rmqfast_store::scan::columns::Chunk;
use rmqfast_store::scan::row::{Row, Span};
use rmqfast_store::scan::text_columns::{IdPrefix, same};

type Part = for<'a> fn(Message<'a>) -> &'a [u8];

/// A column whose value rarely changes from row to row. Equal values in successive rows share one copy of the value.
pub(super) struct Runs {
    views: Views,
    stored: Vec<u8>,
    run: Option<View>,
    get: Part,
    write: fn(&[u8], &mut Vec<u8>),
}

impl Runs {
    /// Creates the column. `get` finds the stored bytes of a message, and `write` formats them as a string.
    pub(super) fn new(get: Part, write: fn(&[u8], &mut Vec<u8>)) -> Self {
        Self { views: Views::default(), stored: Vec::new(), run: None, get, write }
    }

    #[cold]
    fn start(&mut self, stored: &[u8]) -> View {
        stored.clone_into(&mut self.stored);
        let start = self.views.side.len();
        (self.write)(stored, &mut self.views.side);
        let view = self.views.side_view(start);
        self.run = Some(view);
        view
    }
}

impl Vector for Runs {
    fn clear(&mut self) {
        self.views.clear();
        // the run's text was in `side`, which is now empty
        self.run = None;
    }
    fn extend(&mut self, chunk: Chunk<'_>) {
        for row in chunk.rows {
            let stored = row.message(chunk.bytes).map(self.get).unwrap_or_default();
            let view = match self.run {
                // stored bytes are compared, which is faster than formatting a host
                Some(view) if same(stored, &self.stored) => view,
                _ => self.start(stored),
            };
            self.views.push(view);
        }
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

/// A column with the same value in every row, which may be null.
pub(super) struct Constant {
    views: Views,
    value: Option<String>,
}

impl Constant {
    pub(super) fn new(value: Option<String>) -> Self {
        Self { views: Views::default(), value }
    }
}

impl Vector for Constant {
    fn clear(&mut self) {
        self.views.clear();
    }
    fn extend(&mut self, chunk: Chunk<'_>) {
        let Some(value) = &self.value else {
            return chunk.rows.iter().for_each(|_| self.views.push_null());
        };
        // copied to `side` once, since views must point into a block or into `side`
        if self.views.side.is_empty() {
            self.views.side.extend_from_slice(value.as_bytes());
        }
        let view = self.views.side_view(0);
        chunk.rows.iter().for_each(|_| self.views.push(view));
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

/// A column with the value of one property. The scan has already found its position in each row.
pub(super) struct Property<S> {
    views: Views,
    span: S,
}

impl<S: Fn(&Row) -> Span> Property<S> {
    pub(super) fn new(span: S) -> Self {
        Self { views: Views::default(), span }
    }
}

impl<S: Fn(&Row) -> Span + Send> Vector for Property<S> {
    fn clear(&mut self) {
        self.views.clear();
    }
    fn extend(&mut self, chunk: Chunk<'_>) {
        for row in chunk.rows {
            self.views.push_span(chunk.bytes, (self.span)(row), row.ascii);
        }
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

/// The column `offset_msg_id`. With `unique` the column `msg_id`, which has the producer's unique id if there is one.
pub(super) struct Ids {
    views: Views,
    unique: bool,
    prefix: IdPrefix,
}

impl Ids {
    pub(super) fn new(unique: bool) -> Self {
        Self { views: Views::default(), unique, prefix: IdPrefix::default() }
    }
}

impl Vector for Ids {
    fn clear(&mut self) {
        self.views.clear();
    }
    fn extend(&mut self, chunk: Chunk<'_>) {
        for row in chunk.rows {
            match row.message(chunk.bytes) {
                // a message of an old or foreign client has no unique id, so it gets the id of its place in the log
                Some(_) if self.unique && row.uniq_key.len > 0 => {
                    self.views.push_span(chunk.bytes, row.uniq_key, row.ascii);
                }
                Some(message) => {
                    let start = self.views.side.len();
                    let offset = message.physical_offset().cast_unsigned();
                    self.prefix.write(message.store_host(), offset, &mut self.views.side);
                    self.views.push_side(start);
                }
                None => self.views.push_null(),
            }
        }
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
