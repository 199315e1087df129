//! A record batch in the making, bounded in rows and bytes.
use super::column::{Column, schema};
use super::column_builder::{Chunk, ColumnBuilder};
use super::columns::builder;
use super::request::ScanRequest;
use super::row::Row;
use crate::format::message::COMPRESSED;
use crate::store::Damage;
use crate::{Error, Result};
use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::SchemaRef;

/// What a row takes beside its record: ids, hosts and ends.
const ROW_OVERHEAD: usize = 256;

/// Fills columns row by row until a batch is full.
pub struct BatchBuilder {
    schema: SchemaRef,
    columns: Vec<Box<dyn ColumnBuilder>>,
    with_body: bool,
    rows: usize,
    max_rows: usize,
    bytes: usize,
    max_bytes: usize,
    damage: Vec<Damage>,
}

impl BatchBuilder {
    /// A builder for the columns that `request` asks for.
    pub fn new(request: &ScanRequest) -> Self {
        Self {
            schema: schema(&request.columns, request.time_unit),
            columns: request.columns.iter().map(|column| builder(*column, request)).collect(),
            with_body: request.columns.contains(&Column::Body),
            rows: 0,
            max_rows: request.batch_rows.clamp(1, ScanRequest::MAX_BATCH_ROWS),
            bytes: 0,
            max_bytes: request.batch_bytes.clamp(1, ScanRequest::MAX_BATCH_BYTES),
            damage: Vec::new(),
        }
    }

    /// Appends rows until the batch is full; returns how many were taken.
    pub fn append(&mut self, bytes: &[u8], rows: &[Row]) -> usize {
        let mut taken = 0;
        // a batch is judged by what its columns hold: a row may be larger in them than in the log
        while taken < rows.len() && !self.is_full() {
            let fitting = self.fitting(&rows[taken..]);
            let chunk = Chunk { bytes, rows: &rows[taken..taken + fitting] };
            self.columns.iter_mut().for_each(|column| column.extend(chunk, &mut self.damage));
            self.rows += fitting;
            self.bytes = self.columns.iter().map(|column| column.len_bytes()).sum();
            taken += fitting;
        }
        taken
    }

    /// Whether no more rows are taken.
    pub fn is_full(&self) -> bool {
        self.rows >= self.max_rows || self.bytes >= self.max_bytes
    }

    /// Whether no row was taken yet.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// The batch, if any row was taken.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the columns do not fit the schema: a defect of this crate.
    pub fn finish(&mut self) -> Result<Option<RecordBatch>> {
        let rows = std::mem::take(&mut self.rows);
        self.bytes = 0;
        if rows == 0 {
            return Ok(None);
        }
        let arrays = self.columns.iter_mut().map(|column| column.finish()).collect();
        // a scan may ask for no columns at all: only this says how many rows there were
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(self.schema.clone(), arrays, &options)
            .map(Some)
            .map_err(|e| Error::invalid("batch", "columns of the schema", e))
    }

    /// Bodies that could not be decompressed since the last call.
    pub fn take_damage(&mut self) -> Vec<Damage> {
        std::mem::take(&mut self.damage)
    }

    /// How many of `rows` go into this batch before its size is looked at again. A compressed body ends them: only
    /// decompression tells its size.
    fn fitting(&self, rows: &[Row]) -> usize {
        let mut room = self.max_bytes - self.bytes;
        for (i, row) in rows.iter().take(self.max_rows - self.rows).enumerate() {
            let skipped = if self.with_body { 0 } else { row.layout.body_len as usize };
            let size = ROW_OVERHEAD + row.layout.total as usize - skipped;
            if size >= room || (self.with_body && row.layout.sys_flag & COMPRESSED != 0) {
                // one row too many is better than none: a record may be larger than a whole batch
                return i + 1;
            }
            room -= size;
        }
        rows.len().min(self.max_rows - self.rows)
    }
}
