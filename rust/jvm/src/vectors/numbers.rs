//! Numbers: one array, never null.
use super::vector::Vector;
use rmqfast_store::format::message::Message;
use rmqfast_store::scan::columns::Chunk;

/// What `get` finds in each message.
pub(super) struct Numbers<T, F> {
    values: Vec<T>,
    get: F,
}

impl<T, F: Fn(Message<'_>) -> T> Numbers<T, F> {
    pub(super) fn new(get: F) -> Self {
        Self { values: Vec::new(), get }
    }
}

impl<T: Default + Send, F: Fn(Message<'_>) -> T + Send> Vector for Numbers<T, F> {
    fn clear(&mut self) {
        self.values.clear();
    }
    fn extend(&mut self, chunk: Chunk<'_>) {
        // a row was found in this block, so there is always a message
        let number = |row: &rmqfast_store::scan::row::Row| row.message(chunk.bytes).map(&self.get).unwrap_or_default();
        self.values.extend(chunk.rows.iter().map(number));
    }
    fn seal(&mut self, addresses: &mut Vec<i64>) {
        addresses.push(self.values.as_ptr() as i64);
    }
}
