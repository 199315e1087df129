//! Builds Arrow record batches with a limit on their rows and bytes.
use super::column::{Chunk, Column, ColumnBuilder};
use super::columns::{BodyColumn, builder};
use super::decode::bad_bodies::BadBodies;
use super::decode::column::DecodedColumn;
use super::request::ScanRequest;
use super::row::Row;
use crate::format::message::{COMPRESSED, Item, Layout};
use crate::store::Damage;
use crate::{Error, Result};
use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::SchemaRef;
use std::sync::Arc;

/// Estimated bytes of a row in addition to its record, for ids, hosts and offsets.
const ROW_OVERHEAD: usize = 256;

/// Appends rows to columns until the batch is full.
pub struct BatchBuilder {
    schema: SchemaRef,
    columns: Vec<Box<dyn ColumnBuilder>>,
    /// Builds the column `body`, too, if it is requested.
    decoded: Option<DecodedColumn>,
    body_at: Option<usize>,
    with_body: bool,
    rows: usize,
    max_rows: usize,
    bytes: usize,
    max_bytes: usize,
    damage: Vec<Damage>,
}

impl BatchBuilder {
    pub fn new(request: &ScanRequest) -> Self {
        let body_at = request.columns.iter().position(|column| *column == Column::Body);
        let decoded = request.decode.as_ref().map(|decode| DecodedColumn::new(BodyColumn::of(request), decode));
        let is_built = |column: &&Column| decoded.is_none() || **column != Column::Body;
        Self {
            schema: request.schema(),
            columns: request.columns.iter().filter(is_built).map(|column| builder(*column, request)).collect(),
            with_body: body_at.is_some() || decoded.is_some(),
            body_at,
            decoded,
            rows: 0,
            max_rows: request.batch_rows.clamp(1, ScanRequest::MAX_BATCH_ROWS),
            bytes: 0,
            max_bytes: request.batch_bytes.clamp(1, ScanRequest::MAX_BATCH_BYTES),
            damage: Vec::new(),
        }
    }

    /// Appends rows until the batch is full. Returns the number of appended rows.
    pub fn append(&mut self, bytes: &[u8], rows: &[Row]) -> usize {
        let mut appended = 0;
        // The columns are measured, since a row may take more bytes there than in the log.
        while appended < rows.len() && !self.is_full() {
            let fitting = self.fitting(&rows[appended..]);
            let chunk = Chunk { bytes, rows: &rows[appended..appended + fitting] };
            self.columns.iter_mut().for_each(|column| column.extend(chunk, &mut self.damage));
            self.rows += fitting;
            self.bytes = self.columns.iter().map(|column| column.len_bytes()).sum();
            if let Some(decoded) = &mut self.decoded {
                decoded.extend(chunk, &mut self.damage);
                self.bytes += decoded.len_bytes();
            }
            appended += fitting;
        }
        appended
    }

    pub fn is_full(&self) -> bool {
        self.rows >= self.max_rows || self.bytes >= self.max_bytes
    }

    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Returns the batch and begins a new one. `None` if there are no rows. Fails only because of a bug in this
    /// crate.
    pub fn finish(&mut self) -> Result<Option<RecordBatch>> {
        let rows = std::mem::take(&mut self.rows);
        self.bytes = 0;
        if rows == 0 {
            return Ok(None);
        }
        let mut arrays: Vec<ArrayRef> = self.columns.iter_mut().map(|column| column.finish()).collect();
        if let Some(decoded) = &mut self.decoded {
            let (bodies, values) = decoded.finish()?;
            if let Some(at) = self.body_at {
                arrays.insert(at, Arc::new(bodies));
            }
            decoded.insert_value(&mut arrays, values);
        }
        // A batch without columns has no other place for the number of rows.
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(self.schema.clone(), arrays, &options)
            .map(Some)
            .map_err(|e| Error::invalid("batch", "columns of the schema", e))
    }

    /// Returns the damaged bodies found since the last call.
    pub fn take_damage(&mut self) -> Vec<Damage> {
        std::mem::take(&mut self.damage)
    }

    /// Returns the bodies that could not be decoded, found since the last call.
    pub fn take_bad_bodies(&mut self) -> BadBodies {
        self.decoded.as_mut().map(DecodedColumn::take_bad).unwrap_or_default()
    }

    /// Returns the number of `rows` to append before the size of the columns is measured again. Stops behind a
    /// compressed body, since its size is known only after decompression.
    fn fitting(&self, rows: &[Row]) -> usize {
        let mut room = self.max_bytes - self.bytes;
        for (i, row) in rows.iter().take(self.max_rows - self.rows).enumerate() {
            // A body that is not requested does not count, since it is usually the largest part of a record.
            let skipped = if self.with_body { 0 } else { row.layout.body_len as usize };
            let decoded = self.decoded.as_ref().map_or(0, |column| column.max_cost(row.layout.body_len as usize));
            let size = ROW_OVERHEAD + row.layout.total as usize - skipped + decoded;
            if size >= room || (self.with_body && row.layout.sys_flag & COMPRESSED != 0) {
                // At least one row, since a record may be larger than a whole batch.
                return i + 1;
            }
            room -= size;
        }
        rows.len().min(self.max_rows - self.rows)
    }
}

/// Builds batches from records, in their order. Skips invalid records. Also returns damage for each body that cannot be
/// decompressed.
pub fn batches_of<'a>(
    records: impl IntoIterator<Item = &'a [u8]>,
    request: &ScanRequest,
) -> Result<(Vec<RecordBatch>, Vec<Damage>)> {
    let mut builder = BatchBuilder::new(request);
    let mut batches = Vec::new();
    for record in records {
        let Ok(Item::Message(layout)) = Layout::decode(record) else { continue };
        let mut row = Row::new(0, layout);
        row.find_properties(record);
        builder.append(record, &[row]);
        if builder.is_full() {
            batches.extend(builder.finish()?);
        }
    }
    batches.extend(builder.finish()?);
    Ok((batches, builder.take_damage()))
}
