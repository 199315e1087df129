//! Vectors of text: topics and hosts by run, ids, tags and keys, constants.
use super::memory::Memory;
use super::unsafe_rows::{UnsafeRows, measure};
use super::vector::Vector;
use super::views::{View, Views};
use rmqfast_store::format::message::Message;
use rmqfast_store::scan::columns::Chunk;
use rmqfast_store::scan::row::{Row, Span};
use rmqfast_store::scan::text_columns::{IdPrefix, same};

type Part = for<'a> fn(Message<'a>) -> &'a [u8];

/// A value that seldom changes from row to row: written once a run, viewed by each row of it.
pub(super) struct Runs {
    views: Views,
    stored: Vec<u8>,
    run: Option<View>,
    get: Part,
    write: fn(&[u8], &mut Vec<u8>),
}

impl Runs {
    /// Values that `get` finds in a message and `write` turns into text.
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
        // its text was in the side buffer, which is empty now
        self.run = None;
    }
    fn extend(&mut self, chunk: Chunk<'_>) {
        for row in chunk.rows {
            let stored = row.message(chunk.bytes).map(self.get).unwrap_or_default();
            let view = match self.run {
                // compared as stored: writing a host as text takes longer
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

/// One value, or null, for every row.
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
        // aside once, as all that is viewed is in the block or there
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

/// One of the properties that were looked for.
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

/// `offset_msg_id`, or `msg_id`: the producer's where there is one.
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
                // a message of an old or foreign client has no such property, and is known by its place
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
