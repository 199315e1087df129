//! Interface of the columns of a batch.
use super::memory::Memory;
use super::unsafe_rows::UnsafeRows;
use rmqfast_store::scan::columns::Chunk;

pub trait Vector: Send {
    /// Removes the values but keeps the memory.
    fn clear(&mut self);
    /// Appends a value for each row of `chunk`.
    fn extend(&mut self, chunk: Chunk<'_>);
    /// Ends the column and appends the addresses that Java reads from. No values may be appended afterwards.
    fn seal(&mut self, addresses: &mut Vec<i64>);
    /// Adds the bytes of each value to `sizes`, rounded up to whole words, starting with the value at index `from`. Field
    /// words are not counted.
    fn measure(&self, from: usize, sizes: &mut [usize]);
    /// Writes the values into rows. The first row gets the value at index `from`.
    fn write(&self, from: usize, field: usize, rows: &mut UnsafeRows, memory: &Memory<'_>);
}
