//! The interface of column builders, and the rows that they take.
use super::row::Row;
use crate::format::message::Message;
use crate::store::Damage;
use arrow_array::ArrayRef;

/// A block of the log, and rows that point into its bytes.
#[derive(Clone, Copy, Debug)]
pub struct Chunk<'a> {
    pub bytes: &'a [u8],
    pub rows: &'a [Row],
}

impl<'a> Chunk<'a> {
    #[inline]
    pub fn messages(self) -> impl Iterator<Item = Message<'a>> {
        self.rows.iter().filter_map(move |row| row.message(self.bytes))
    }
}

pub trait ColumnBuilder: Send {
    fn extend(&mut self, chunk: Chunk<'_>, damage: &mut Vec<Damage>);
    fn len_bytes(&self) -> usize;
    /// Returns the values and empties the builder.
    fn finish(&mut self) -> ArrayRef;
}

/// Returns a part of a record, or an empty slice if `bytes` is too short.
#[inline]
pub(super) fn part(bytes: &[u8], at: usize, len: usize) -> &[u8] {
    bytes.get(at..at + len).unwrap_or_default()
}

/// Returns the store host of a row. The store host is between the store timestamp and the last 16 bytes before the
/// body.
#[inline]
pub fn store_host<'a>(bytes: &'a [u8], row: &Row) -> &'a [u8] {
    let at = row.layout.store_timestamp_at() + 8;
    part(bytes, row.at as usize + at, row.layout.body as usize - 16 - at)
}
