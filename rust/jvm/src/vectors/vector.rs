//! What a column of a batch can do.
use rmqfast_store::scan::columns::Chunk;

/// A column of a batch.
pub trait Vector: Send {
    /// Forgets its values, keeps its memory.
    fn clear(&mut self);
    /// Appends a value for each row.
    fn extend(&mut self, chunk: Chunk<'_>);
    /// The addresses that Java reads from; nothing may be appended any more.
    fn seal(&mut self, addresses: &mut Vec<i64>);
}
