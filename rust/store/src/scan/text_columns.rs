//! Arrow arrays of strings and bytes, and columns of strings: topics and hosts, ids, tags and keys, constants.
use super::column::{Chunk, ColumnBuilder, store_host};
use super::row::{Row, Span};
use super::unchecked;
use crate::format::cursor::i64_at;
use crate::format::message_id::{write_hex_u32, write_hex_u64};
use crate::store::Damage;
use arrow_array::builder::BooleanBufferBuilder;
use arrow_array::{ArrayRef, BinaryArray, StringArray};
use arrow_buffer::NullBuffer;
use std::borrow::Cow;
use std::sync::Arc;

/// Bytes that are copied of a short value, since a copy of fixed length needs no call of `memcpy`.
const SHORT: usize = 32;

/// An array under construction: the bytes of all values, the end of each value, and a null bitmap if there are nulls.
#[derive(Debug, Default)]
pub struct Text {
    pub bytes: Vec<u8>,
    ends: Vec<i32>,
    valid: Option<BooleanBufferBuilder>,
}

impl Text {
    #[inline]
    pub fn end(&mut self, valid: bool) {
        match &mut self.valid {
            Some(bits) => bits.append(valid),
            None if !valid => self.first_null(),
            None => {}
        }
        // Fits into 32 bits, since the size of a batch is limited.
        self.ends.push(self.bytes.len() as i32);
    }

    #[cold]
    fn first_null(&mut self) {
        // Most columns have no nulls, so the first null creates the bitmap.
        let mut bits = BooleanBufferBuilder::new(self.ends.len() + 1024);
        bits.append_n(self.ends.len(), true);
        bits.append(false);
        self.valid = Some(bits);
    }

    /// Reserves memory for all rows, since a vector that grows step by step is copied each time.
    pub fn reserve(&mut self, bytes: usize, values: usize) {
        self.bytes.reserve(bytes);
        self.ends.reserve(values);
    }

    /// Appends a value, or null. Invalid UTF-8 becomes U+FFFD.
    #[inline]
    pub fn push(&mut self, value: Option<&[u8]>) {
        match value {
            Some(bytes) if bytes.is_ascii() => self.bytes.extend_from_slice(bytes),
            Some(bytes) => self.bytes.extend_from_slice(&lossy(bytes)),
            None => {}
        }
        self.end(value.is_some());
    }

    /// Appends a part of the block that is known to be ASCII. Of short values always copies [`SHORT`] bytes and truncates.
    #[inline]
    pub fn push_ascii(&mut self, block: &[u8], span: Span) {
        let (start, len) = (span.at as usize, span.len as usize);
        let at = self.bytes.len();
        match block.get(start..).and_then(|b| b.first_chunk::<SHORT>()) {
            Some(chunk) if len <= SHORT => {
                self.bytes.extend_from_slice(chunk);
                self.bytes.truncate(at + len);
            }
            _ => self.bytes.extend_from_slice(&block[start..start + len]),
        }
        self.end(len > 0);
    }

    /// Appends a part of the block, or null if the part is absent. `ascii` says that the part is known to be ASCII.
    #[inline]
    pub fn push_span(&mut self, block: &[u8], span: Span, ascii: bool) {
        if ascii { self.push_ascii(block, span) } else { self.push(span.of(block)) }
    }

    /// Appends parts of the block that are known to be ASCII, in one tight loop. Does nothing and returns `false` if a
    /// part is absent, or an earlier value is null.
    pub fn extend_ascii(&mut self, block: &[u8], spans: impl Iterator<Item = Span> + Clone) -> bool {
        let (mut bytes, mut is_plain) = (0, self.valid.is_none());
        for span in spans.clone() {
            bytes += span.len as usize;
            is_plain &= span.len > 0;
        }
        if !is_plain {
            return false;
        }
        // Room for all values and for the last copy of fixed length, so that the loop need not make any.
        let mut at = self.bytes.len();
        self.bytes.resize(at + bytes + SHORT, 0);
        let out = &mut self.bytes[..];
        self.ends.extend(spans.map(|span| {
            let (start, len) = (span.at as usize, span.len as usize);
            match block.get(start..).and_then(|bytes| bytes.first_chunk::<SHORT>()) {
                Some(value) if len <= SHORT => out[at..at + SHORT].copy_from_slice(value),
                _ => out[at..at + len].copy_from_slice(&block[start..start + len]),
            }
            at += len;
            at as i32
        }));
        self.bytes.truncate(at);
        true
    }

    /// Appends `value` as many times as `times` says.
    pub fn repeat(&mut self, value: &[u8], times: usize) {
        let (start, len) = (self.bytes.len(), value.len());
        self.repeat_bytes(value, times);
        self.ends.extend((1..=times).map(|n| (start + n * len) as i32));
    }

    /// Appends all `values`, which are never null, as many times as `times` says.
    pub fn repeat_all(&mut self, values: &Self, times: usize) {
        let (start, len) = (self.bytes.len(), values.bytes.len());
        self.repeat_bytes(&values.bytes, times);
        for start in (0..times).map(|n| (start + n * len) as i32) {
            self.ends.extend(values.ends.iter().map(|end| start + end));
        }
    }

    /// Appends bytes `times` times, by copying the copies.
    fn repeat_bytes(&mut self, value: &[u8], times: usize) {
        let (start, len) = (self.bytes.len(), value.len());
        let end = start + len * times;
        self.bytes.reserve(len * times);
        if times > 0 {
            self.bytes.extend_from_slice(value);
        }
        while self.bytes.len() < end {
            // Copies all that was written so far, so the number of copies is logarithmic.
            let more = (self.bytes.len() - start).min(end - self.bytes.len());
            self.bytes.extend_from_within(start..start + more);
        }
    }

    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.valid = None;
    }

    pub fn len_bytes(&self) -> usize {
        self.bytes.len() + 4 * self.ends.len()
    }

    /// Returns a value that was appended since the last `finish`. `None` for null and behind the last value.
    pub fn get(&self, index: usize) -> Option<&[u8]> {
        let end = *self.ends.get(index)? as usize;
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before] as usize);
        let is_valid = self.valid.as_ref().is_none_or(|bits| bits.get_bit(index));
        is_valid.then(|| &self.bytes[start..end])
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns the values as strings and empties the builder. All bytes that were appended directly to
    /// [`bytes`](Self::bytes) must be ASCII.
    pub fn finish(&mut self) -> StringArray {
        let (ends, bytes, nulls) = self.take();
        unchecked::strings(ends, bytes, nulls)
    }

    pub fn finish_binary(&mut self) -> BinaryArray {
        let (ends, bytes, nulls) = self.take();
        unchecked::binaries(ends, bytes, nulls)
    }

    fn take(&mut self) -> (Vec<i32>, Vec<u8>, Option<NullBuffer>) {
        let (bytes, ends) = (self.bytes.len(), self.ends.len());
        // Reserve for the next batch, which is probably about as large.
        let values = std::mem::replace(&mut self.bytes, Vec::with_capacity(bytes + bytes / 8));
        let ends = std::mem::replace(&mut self.ends, Vec::with_capacity(ends + 1));
        let nulls = self.valid.take().map(|mut bits| NullBuffer::new(bits.finish()));
        (ends, values, nulls)
    }
}

/// Replaces invalid UTF-8 with U+FFFD, like Java's decoder.
pub fn lossy(bytes: &[u8]) -> Cow<'_, [u8]> {
    match String::from_utf8_lossy(bytes) {
        Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
        Cow::Owned(text) => Cow::Owned(text.into_bytes()),
    }
}

/// Builds a column whose value seldom changes, such as topic or host. Equal values of successive rows are written
/// together, in a few copies.
pub struct Runs<G, W> {
    text: Text,
    stored: Vec<u8>,
    written: Vec<u8>,
    rows: usize,
    get: G,
    write: W,
}

impl<G, W> Runs<G, W>
where
    G: for<'a> Fn(&'a [u8], &Row) -> &'a [u8] + Send,
    W: Fn(&[u8], &mut Vec<u8>) + Send,
{
    /// Creates a builder. `get` finds the stored value of a row, and `write` converts it to a string.
    pub fn new(get: G, write: W) -> Self {
        Self { text: Text::default(), stored: Vec::new(), written: Vec::new(), rows: 0, get, write }
    }

    #[cold]
    fn start_run(&mut self, stored: &[u8]) {
        self.write_run();
        self.stored = stored.to_vec();
        self.written.clear();
        (self.write)(stored, &mut self.written);
    }

    fn write_run(&mut self) {
        let rows = std::mem::take(&mut self.rows);
        self.text.repeat(&self.written, rows);
    }
}

impl<G, W> ColumnBuilder for Runs<G, W>
where
    G: for<'a> Fn(&'a [u8], &Row) -> &'a [u8] + Send,
    W: Fn(&[u8], &mut Vec<u8>) + Send,
{
    fn extend(&mut self, chunk: Chunk<'_>, _: &mut Vec<Damage>) {
        for row in chunk.rows {
            let stored = (self.get)(chunk.bytes, row);
            if !same(stored, &self.stored) {
                self.start_run(stored);
            }
            self.rows += 1;
        }
    }
    fn len_bytes(&self) -> usize {
        // The current run is not written yet, but counts: its bytes, and 4 bytes for each end.
        self.text.len_bytes() + self.rows * (self.written.len() + 4)
    }
    fn finish(&mut self) -> ArrayRef {
        self.write_run();
        Arc::new(self.text.finish())
    }
}

/// Returns whether `a` and `b` are equal. Does not call `memcmp` for 8 to 16 bytes, which is the length of hosts and
/// most topics.
#[inline]
pub fn same(a: &[u8], b: &[u8]) -> bool {
    match (a.first_chunk::<8>(), b.first_chunk::<8>(), a.last_chunk::<8>(), b.last_chunk::<8>()) {
        // For 8 to 16 bytes the first eight and the last eight bytes cover all bytes, with an overlap.
        (Some(a1), Some(b1), Some(a2), Some(b2)) if a.len() <= 16 => a.len() == b.len() && a1 == b1 && a2 == b2,
        _ => a == b,
    }
}

pub struct Constant {
    pub value: Option<String>,
    pub rows: usize,
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

pub struct Property<S> {
    pub text: Text,
    pub span: S,
}

impl<S: Fn(&Row) -> Span + Send> ColumnBuilder for Property<S> {
    fn extend(&mut self, chunk: Chunk<'_>, _: &mut Vec<Damage>) {
        let is_ascii = chunk.rows.iter().all(|row| row.ascii);
        if !is_ascii || !self.text.extend_ascii(chunk.bytes, chunk.rows.iter().map(&self.span)) {
            chunk.rows.iter().for_each(|row| self.text.push_span(chunk.bytes, (self.span)(row), row.ascii));
        }
    }
    fn len_bytes(&self) -> usize {
        self.text.len_bytes()
    }
    fn finish(&mut self) -> ArrayRef {
        Arc::new(self.text.finish())
    }
}

/// Builds the column `offset_msg_id` or, with `unique`, the column `msg_id`.
#[derive(Default)]
pub struct Ids {
    text: Text,
    unique: bool,
    prefix: IdPrefix,
}

/// Formats offset message ids. Caches the digits of the last host, which hardly ever changes within a store.
#[derive(Debug, Default)]
pub struct IdPrefix {
    host: Vec<u8>,
    hex: Vec<u8>,
}

impl IdPrefix {
    /// Appends the id of the record at `offset`. `host` is the host as stored.
    #[inline]
    pub fn write(&mut self, host: &[u8], offset: u64, out: &mut Vec<u8>) {
        if !same(&self.host, host) {
            self.change(host);
        }
        match self.hex.first_chunk::<16>() {
            // An IPv4 host. A copy of fixed length needs no call of `memcpy`.
            Some(hex) if self.hex.len() == 16 => out.extend_from_slice(hex),
            _ => out.extend_from_slice(&self.hex),
        }
        write_hex_u64(offset, out);
    }

    #[cold]
    fn change(&mut self, host: &[u8]) {
        self.host = host.to_vec();
        self.hex.clear();
        // A host has 8 or 20 bytes, which is always a multiple of 4.
        for word in host.chunks_exact(4) {
            write_hex_u32(u32::from_be_bytes(*word.first_chunk().unwrap_or(&[0; 4])), &mut self.hex);
        }
    }
}

impl Ids {
    /// Creates a builder of offset message ids. With `unique` a row gets its unique id instead, if the producer set
    /// one.
    pub fn new(unique: bool) -> Self {
        Self { unique, ..Self::default() }
    }
}

impl ColumnBuilder for Ids {
    fn extend(&mut self, chunk: Chunk<'_>, _: &mut Vec<Damage>) {
        let is_plain = self.unique && chunk.rows.iter().all(|row| row.ascii);
        if is_plain && self.text.extend_ascii(chunk.bytes, chunk.rows.iter().map(|row| row.uniq_key)) {
            return;
        }
        for row in chunk.rows {
            if self.unique && row.uniq_key.len > 0 {
                self.text.push_span(chunk.bytes, row.uniq_key, row.ascii);
            } else {
                // 28 is the position of PHYSICALOFFSET in a record.
                let offset = i64_at(chunk.bytes, row.at as usize + 28).unwrap_or_default();
                self.prefix.write(store_host(chunk.bytes, row), offset as u64, &mut self.text.bytes);
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
