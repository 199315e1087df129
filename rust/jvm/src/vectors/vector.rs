//! Interface of the columns of a batch.
use super::memory::Memory;
use super::unsafe_rows::UnsafeRows;
use rmqfast_store::scan::columns::Chunk;

/// A column of a batch.
pub trait Vector: Send {
    /// Forgets its values, keeps its memory.
    fn clear(&mut self);
    /// Appends a value for each row.
    fn extend(&mut self, chunk: Chunk<'_>);
    /// The addresses that Java reads from; nothing may be appended any more.
    fn seal(&mut self, addresses: &mut Vec<i64>);
    /// Adds what the values from that at `from` on take in a row, besides the word of a field.
    fn measure(&self, from: usize, sizes: &mut [usize]);
    /// Writes the values from that at `from` on into rows.
    fn write(&self, from: usize, field: usize, rows: &mut UnsafeRows, memory: &Memory<'_>);
}
