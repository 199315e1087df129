//! Columns of strings: topics and hosts, ids, tags and keys, constants.
use super::column_builder::{Chunk, ColumnBuilder, store_host};
use super::row::{Row, Span};
use super::text::Text;
use crate::format::cursor::i64_at;
use crate::format::message_id::{write_hex_u32, write_hex_u64};
use crate::store::Damage;
use arrow_array::{ArrayRef, StringArray};
use std::sync::Arc;

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

/// Compares bytes. Needs no call of `memcmp` for 8 to 16 bytes, which is the length of hosts and most topics.
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
        chunk.rows.iter().for_each(|row| self.text.push_span(chunk.bytes, (self.span)(row), row.ascii));
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
