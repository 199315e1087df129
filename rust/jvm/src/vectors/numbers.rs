//! Numbers: one array, never null.
use super::memory::Memory;
use super::unsafe_rows::UnsafeRows;
use super::vector::Vector;
use rmqfast_store::format::message::Message;
use rmqfast_store::scan::columns::Chunk;

/// Column of the numbers that `get` returns for each message.
pub(super) struct Numbers<T, F> {
    values: Vec<T>,
    get: F,
}

impl<T, F: Fn(Message<'_>) -> T> Numbers<T, F> {
    pub(super) fn new(get: F) -> Self {
        Self { values: Vec::new(), get }
    }
}

/// A number as a word of a row.
pub(super) trait Word: Copy {
    fn word(self) -> i64;
}

impl Word for i32 {
    fn word(self) -> i64 {
        // Spark leaves the upper half empty
        i64::from(self.cast_unsigned())
    }
}

impl Word for i64 {
    fn word(self) -> i64 {
        self
    }
}

impl<T: Default + Word + Send, F: Fn(Message<'_>) -> T + Send> Vector for Numbers<T, F> {
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
    fn measure(&self, _: usize, _: &mut [usize]) {}
    fn write(&self, from: usize, field: usize, rows: &mut UnsafeRows, _: &Memory<'_>) {
        rows.put_numbers(field, self.values[from..].iter().map(|value| value.word()));
    }
}
