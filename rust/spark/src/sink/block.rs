//! A block of rows, as the JVM or Python passes them.
use super::arrow_rows::ArrowRows;
use super::columns::SinkColumn;
use super::row::Row;

#[derive(Debug)]
pub enum Block {
    /// Rows as bytes, in the form that the JVM source writes.
    Fields(Vec<u8>),
    Arrow(ArrowRows),
}

impl Block {
    /// Returns the row that begins at the position `at`, and the position of the next row; `None` after the last row.
    /// The first row begins at 0.
    pub fn row(&self, columns: &[SinkColumn], at: usize) -> Option<(Row<'_>, usize)> {
        match self {
            Self::Fields(bytes) => Row::read(columns, bytes.get(at..)?).map(|(row, length)| (row, at + length)),
            Self::Arrow(rows) => rows.row(at).map(|row| (row, at + 1)),
        }
    }

    pub fn end(&self) -> usize {
        match self {
            Self::Fields(bytes) => bytes.len(),
            Self::Arrow(rows) => rows.count(),
        }
    }

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
