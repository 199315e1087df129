//! What all builders of columns share: the rows that they append, and what is done with each of them.
use super::row::Row;
use crate::format::message::Message;
use crate::store::Damage;
use arrow_array::ArrayRef;

/// Rows of one block, to be appended.
#[derive(Clone, Copy, Debug)]
pub struct Chunk<'a> {
    pub bytes: &'a [u8],
    pub rows: &'a [Row],
}

impl<'a> Chunk<'a> {
    /// The rows as messages.
    #[inline]
    pub fn messages(self) -> impl Iterator<Item = Message<'a>> {
        self.rows.iter().filter_map(move |row| row.message(self.bytes))
    }
}

/// A column in the making.
pub trait ColumnBuilder: Send {
    /// Appends a value for each row.
    fn extend(&mut self, chunk: Chunk<'_>, damage: &mut Vec<Damage>);
    fn len_bytes(&self) -> usize;
    /// The values so far; the builder is empty again.
    fn finish(&mut self) -> ArrayRef;
}

/// Bytes of a record; none where they are not all there.
#[inline]
pub(super) fn part(bytes: &[u8], at: usize, len: usize) -> &[u8] {
    bytes.get(at..at + len).unwrap_or_default()
}

/// The broker's host: between the store timestamp and the last sixteen bytes before the body.
#[inline]
pub fn store_host<'a>(bytes: &'a [u8], row: &Row) -> &'a [u8] {
    let at = row.layout.store_timestamp_at() + 8;
    part(bytes, row.at as usize + at, row.layout.body as usize - 16 - at)
}
