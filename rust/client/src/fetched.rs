//! Bodies of pulls as columns, without an object for each message.
use crate::error::Result;
use crate::puller::PulledAnswer;
use arrow_array::RecordBatch;
use rmqfast_store::scan::ScanRequest;
use rmqfast_store::scan::batch::BatchBuilder;
use rmqfast_store::scan::row::Row;
use rmqfast_store::store::Damage;

/// Rows of one body.
#[derive(Clone, Copy, Debug)]
pub struct Part<'a> {
    pub body: &'a [u8],
    /// Places of its messages.
    pub rows: &'a [Row],
}

/// Batches of the messages of `fetched`, in its order, with the columns and sizes that `request` says. Bodies that do not
/// decompress are null, and damage.
///
/// # Errors
/// [`crate::Error::Store`], if the columns do not fit the schema: a defect.
pub fn batches<'a>(
    fetched: impl IntoIterator<Item = &'a PulledAnswer>,
    request: &ScanRequest,
) -> Result<(Vec<RecordBatch>, Vec<Damage>)> {
    let mut build = Build { builder: BatchBuilder::new(request), batches: Vec::new() };
    for fetched in fetched {
        // brokers compare tags by their hashes, so some rows may have another tag
        build.append(Part { body: &fetched.body, rows: &fetched.matching_rows() })?;
    }
    build.finish()
}

/// Batches of rows whose properties were found.
///
/// # Errors
/// As [`batches`].
pub fn batches_of_parts<'a>(
    parts: impl IntoIterator<Item = Part<'a>>,
    request: &ScanRequest,
) -> Result<(Vec<RecordBatch>, Vec<Damage>)> {
    let mut build = Build { builder: BatchBuilder::new(request), batches: Vec::new() };
    for part in parts {
        build.append(part)?;
    }
    build.finish()
}

struct Build {
    builder: BatchBuilder,
    batches: Vec<RecordBatch>,
}

impl Build {
    fn append(&mut self, part: Part<'_>) -> Result<()> {
        let mut rows = part.rows;
        while !rows.is_empty() {
            let count = self.builder.append(part.body, rows);
            rows = &rows[count..];
            if self.builder.is_full() {
                self.batches.extend(self.builder.finish()?);
            }
        }
        Ok(())
    }

    fn finish(mut self) -> Result<(Vec<RecordBatch>, Vec<Damage>)> {
        self.batches.extend(self.builder.finish()?);
        let damage = self.builder.take_damage();
        Ok((self.batches, damage))
    }
}
