//! Writes the checkpoint file. A time goes into it only once the disk has what it vouches for.
//!
//! Source: `StoreCheckpoint.flush`.
use crate::file::{AllocatedFile, Place};
use crate::format::checkpoint::{Checkpoint, FILE_SIZE, FlushedEnd};
use crate::{Error, Result};
use std::fs;
use std::path::Path;

/// What is on the disk.
#[derive(Clone, Copy, Debug)]
pub struct Flushed {
    /// Messages stored until then.
    pub stored_until: i64,
    /// The log up to there.
    pub end: Option<FlushedEnd>,
    /// Full index files until this store time.
    pub indexed_until: i64,
}

/// Name of the file.
pub const NAME: &str = "checkpoint";

/// The open file and its bytes, of which a later version of RocketMQ may have written more than is known here.
#[derive(Debug)]
pub struct CheckpointWriter {
    file: AllocatedFile,
    page: Vec<u8>,
    values: Checkpoint,
    end: Option<FlushedEnd>,
}

impl CheckpointWriter {
    /// Opens the checkpoint of the store below `root`, or creates it.
    pub fn open(root: &Path) -> Result<Self> {
        let path = root.join(NAME);
        let is_new = Place::metadata(&path)?.is_none();
        let file = if is_new { AllocatedFile::create(&path, FILE_SIZE as u64)? } else { AllocatedFile::open(&path)? };
        let mut page = fs::read(&path).map_err(|e| Error::io(&path, e))?;
        page.resize(page.len().max(FILE_SIZE), 0);
        let values = Checkpoint::decode(&page).unwrap_or_default();
        let end = values.flushed_end(&page);
        Ok(Self { file, page, values, end })
    }

    /// Writes what is on the disk by now.
    pub fn write(&mut self, flushed: Flushed) -> Result<()> {
        let values = &mut self.values;
        // never back: an earlier flush has vouched for more
        values.physic_msg_timestamp = values.physic_msg_timestamp.max(flushed.stored_until);
        values.logics_msg_timestamp = values.logics_msg_timestamp.max(flushed.stored_until);
        values.index_msg_timestamp = values.index_msg_timestamp.max(flushed.indexed_until);
        self.end = self.end.max(flushed.end);
        self.save()
    }

    /// Writes this whatever was there before.
    pub fn reset(&mut self, flushed: Flushed) -> Result<()> {
        let values = &mut self.values;
        (values.physic_msg_timestamp, values.logics_msg_timestamp) = (flushed.stored_until, flushed.stored_until);
        values.index_msg_timestamp = flushed.indexed_until;
        self.end = flushed.end;
        self.save()
    }

    /// Writes that the log was flushed up to `offset` at most: its end is about to be cut there, as somebody decided.
    pub fn lower_end(&mut self, offset: u64) -> Result<()> {
        self.end = self.end.map(|end| FlushedEnd { offset: end.offset.min(offset), ..end });
        self.save()
    }

    fn save(&mut self) -> Result<()> {
        // the page has the size of a whole file, which is never too short
        let _ = self.values.encode_into(&mut self.page);
        if let Some(page) = self.page.first_chunk_mut() {
            self.values.put_flushed_end(self.end, page);
        }
        self.file.write(&self.page, 0)?;
        self.file.sync()
    }
}
