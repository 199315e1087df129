//! Writes the checkpoint file. A time is written only after all messages until that time are flushed.
//!
//! Source: `StoreCheckpoint.flush`.
use crate::file::{AllocatedFile, Place};
use crate::format::checkpoint::{Checkpoint, FILE_SIZE, FlushedEnd};
use crate::{Error, Result};
use std::fs;
use std::path::Path;

/// The parts of the store that are flushed.
#[derive(Clone, Copy, Debug)]
pub struct FlushState {
    /// Store time of the last flushed message, in milliseconds.
    pub stored_until: i64,
    /// Flushed end of the log; `None` for a log without files.
    pub end: Option<FlushedEnd>,
    /// Store time up to which all keys are in full and flushed index files, in milliseconds.
    pub indexed_until: i64,
}

pub const NAME: &str = "checkpoint";

/// The open checkpoint file and its bytes, which may include fields of a later version of RocketMQ.
#[derive(Debug)]
pub struct CheckpointWriter {
    file: AllocatedFile,
    page: Vec<u8>,
    values: Checkpoint,
    end: Option<FlushedEnd>,
}

impl CheckpointWriter {
    pub fn open(root: &Path) -> Result<Self> {
        let path = root.join(NAME);
        let is_new = Place::metadata(&path)?.is_none();
        let file = if is_new { AllocatedFile::create(&path, FILE_SIZE as u64)? } else { AllocatedFile::open(&path)? };
        let mut page = fs::read(&path).map_err(|e| Error::io(&path, e))?;
        // A short file is filled up with zeroes. A longer file keeps its later fields.
        page.resize(page.len().max(FILE_SIZE), 0);
        let values = Checkpoint::decode(&page).unwrap_or_default();
        let end = values.flushed_end(&page);
        Ok(Self { file, page, values, end })
    }

    /// Writes the checkpoint. Values that are already higher in the checkpoint stay as they are.
    pub fn write(&mut self, flushed: FlushState) -> Result<()> {
        let values = &mut self.values;
        // Values never go back, because an earlier flush may have reached further.
        values.physic_msg_timestamp = values.physic_msg_timestamp.max(flushed.stored_until);
        values.logics_msg_timestamp = values.logics_msg_timestamp.max(flushed.stored_until);
        values.index_msg_timestamp = values.index_msg_timestamp.max(flushed.indexed_until);
        self.end = self.end.max(flushed.end);
        self.save()
    }

    /// Replaces the values, even by lower ones, and saves them.
    pub fn reset(&mut self, flushed: FlushState) -> Result<()> {
        let values = &mut self.values;
        (values.physic_msg_timestamp, values.logics_msg_timestamp) = (flushed.stored_until, flushed.stored_until);
        values.index_msg_timestamp = flushed.indexed_until;
        self.end = flushed.end;
        self.save()
    }

    /// Lowers the flushed end to `offset`. Called before the log is cut at `offset`.
    pub fn lower_end(&mut self, offset: u64) -> Result<()> {
        self.end = self.end.map(|end| FlushedEnd { offset: end.offset.min(offset), ..end });
        self.save()
    }

    fn save(&mut self) -> Result<()> {
        // The page has the size of a whole file, so encoding cannot fail.
        let _ = self.values.encode_into(&mut self.page);
        if let Some(page) = self.page.first_chunk_mut() {
            self.values.put_flushed_end(self.end, page);
        }
        self.file.write(&self.page, 0)?;
        self.file.sync()
    }
}
