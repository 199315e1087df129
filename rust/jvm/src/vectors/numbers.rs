//! Columns of numbers. Each column is one array without nulls.
use super::memory::Memory;
use super::unsafe_rows::UnsafeRows;
use super::vector::Vector;
use rmqfast_store::format::message::Message;
use rmqfast_store::scan::columns::Chunk;

/// A column of numbers. `get` returns the number of each message.
pub(super) struct Numbers<T, F> {
    values: Vec<T>,
    get: F,
}

impl<T, F: Fn(Message<'_>) -> T> Numbers<T, F> {
    pub(super) fn new(get: F) -> Self {
        Self { values: Vec::new(), get }
    }
}

/// A number that can be converted to a word of Spark's row format.
pub(super) trait Word: Copy {
    fn word(self) -> i64;
}

impl Word for i32 {
    fn word(self) -> i64 {
        // not sign-extended, as in Spark's rows
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
        // never fails, since the row was found in this block
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
