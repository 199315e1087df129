//! Writes the checkpoint file. A time goes into it only once the disk has what it vouches for.
//!
//! Source: `StoreCheckpoint.flush`.
use crate::file::Allocated;
use crate::format::checkpoint::{Checkpoint, FILE_SIZE};
use crate::{Error, Result};
use std::fs;
use std::path::Path;

/// Name of the file.
pub const NAME: &str = "checkpoint";

/// The open file and its bytes, of which a later version of RocketMQ may have written more than is known here.
#[derive(Debug)]
pub struct CheckpointWriter {
    file: Allocated,
    page: Vec<u8>,
    values: Checkpoint,
}

impl CheckpointWriter {
    /// Opens the checkpoint of the store below `root`, or creates it.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn open(root: &Path) -> Result<Self> {
        let path = root.join(NAME);
        let file = if path.exists() { Allocated::open(&path)? } else { Allocated::create(&path, FILE_SIZE as u64)? };
        let mut page = fs::read(&path).map_err(|e| Error::io(&path, e))?;
        page.resize(page.len().max(FILE_SIZE), 0);
        let values = Checkpoint::decode(&page).unwrap_or_default();
        Ok(Self { file, page, values })
    }

    /// Writes that messages stored until `stored_until` are on the disk, and full index files until `indexed_until`.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn write(&mut self, stored_until: i64, indexed_until: i64) -> Result<()> {
        let values = &mut self.values;
        // never back: an earlier flush has vouched for more
        values.physic_msg_timestamp = values.physic_msg_timestamp.max(stored_until);
        values.logics_msg_timestamp = values.logics_msg_timestamp.max(stored_until);
        values.index_msg_timestamp = values.index_msg_timestamp.max(indexed_until);
        self.save()
    }

    /// Writes these times whatever was there before.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn reset(&mut self, stored_until: i64, indexed_until: i64) -> Result<()> {
        let values = &mut self.values;
        (values.physic_msg_timestamp, values.logics_msg_timestamp) = (stored_until, stored_until);
        values.index_msg_timestamp = indexed_until;
        self.save()
    }

    fn save(&mut self) -> Result<()> {
        // the page has the size of a whole file, which is never too short
        let _ = self.values.encode_into(&mut self.page);
        self.file.write(&self.page, 0)?;
        self.file.sync()
    }
}
