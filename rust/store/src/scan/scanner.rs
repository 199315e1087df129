//! A scan in one thread. Reads pieces of the log one after the other and returns batches.
use super::batch::BatchBuilder;
use super::piece::Piece;
use super::request::ScanRequest;
use super::row_source::{RowSource, Sources};
use crate::Result;
use crate::store::damage::DamageLog;
use arrow_array::RecordBatch;
use std::sync::Arc;

pub struct Scanner {
    source: RowSource,
    next_row: usize,
    builder: BatchBuilder,
}

impl Scanner {
    pub fn new(sources: Sources, request: Arc<ScanRequest>, pieces: impl IntoIterator<Item = Piece>) -> Self {
        let builder = BatchBuilder::new(&request);
        Self { source: RowSource::new(sources, request, pieces), next_row: 0, builder }
    }

    /// Returns the next batch, or `None` at the end. `interrupt` is called between blocks; its error stops the scan.
    pub fn next_batch(&mut self, interrupt: &mut dyn FnMut() -> Result<()>) -> Result<Option<RecordBatch>> {
        loop {
            if self.next_row == self.source.rows().len() {
                self.next_row = 0;
                if !self.source.advance(interrupt)? {
                    return self.builder.finish();
                }
            }
            self.next_row += self.builder.append(self.source.bytes(), &self.source.rows()[self.next_row..]);
            // Damaged bodies are found only when columns are built.
            self.source.note(self.builder.take_damage());
            if self.builder.is_full() {
                return self.builder.finish();
            }
        }
    }

    pub fn damage(&self) -> &DamageLog {
        self.source.damage()
    }

    pub fn take_damage(&mut self) -> DamageLog {
        self.source.take_damage()
    }
}
