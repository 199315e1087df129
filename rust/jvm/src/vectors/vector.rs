//! Interface of the columns of a batch.
use super::memory::Memory;
use super::unsafe_rows::UnsafeRows;
use rmqfast_store::scan::columns::Chunk;

pub trait Vector: Send {
    /// Removes the values but keeps the memory.
    fn clear(&mut self);
    /// Appends a value for each row of `chunk`.
    fn extend(&mut self, chunk: Chunk<'_>);
    /// Appends the addresses that Java reads from. Values must not be appended afterwards.
    fn seal(&mut self, addresses: &mut Vec<i64>);
    /// Adds to `sizes` the bytes of the values from `from` on, without their field words.
    fn measure(&self, from: usize, sizes: &mut [usize]);
    /// Writes the values from `from` on into rows.
    fn write(&self, from: usize, field: usize, rows: &mut UnsafeRows, memory: &Memory<'_>);
}
