//! Rows that came together, as whoever sends them has them.
use super::arrow_rows::ArrowRows;
use super::columns::SinkColumn;
use super::row::Row;

/// Rows in one piece of memory.
#[derive(Debug)]
pub enum Block {
    /// One behind the other, as Java writes them.
    Fields(Vec<u8>),
    Arrow(ArrowRows),
}

impl Block {
    /// The row at a place, and the place of the next one; `None` for what is no row of these columns. The first place is 0.
    pub fn row(&self, columns: &[SinkColumn], at: usize) -> Option<(Row<'_>, usize)> {
        match self {
            Self::Fields(bytes) => Row::read(columns, bytes.get(at..)?).map(|(row, length)| (row, at + length)),
            Self::Arrow(rows) => rows.row(at).map(|row| (row, at + 1)),
        }
    }

    /// The place behind the last row.
    pub fn end(&self) -> usize {
        match self {
            Self::Fields(bytes) => bytes.len(),
            Self::Arrow(rows) => rows.count(),
        }
    }

    /// Memory that the rows keep, in bytes.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Fields(bytes) => bytes.len(),
            Self::Arrow(rows) => rows.bytes(),
        }
    }
}

impl From<Vec<u8>> for Block {
    fn from(fields: Vec<u8>) -> Self {
        Self::Fields(fields)
    }
}

impl From<ArrowRows> for Block {
    fn from(rows: ArrowRows) -> Self {
        Self::Arrow(rows)
    }
}
