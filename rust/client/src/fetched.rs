//! Converts the bodies of answers to pulls into Arrow columns, without an object per message.
use crate::error::Result;
use crate::puller::PulledAnswer;
use arrow_array::RecordBatch;
use rmqfast_store::scan::ScanRequest;
use rmqfast_store::scan::batch::BatchBuilder;
use rmqfast_store::scan::decode::BadBodies;
use rmqfast_store::scan::row::Row;
use rmqfast_store::store::Damage;

/// Some of the messages in the body of an answer to a pull.
#[derive(Clone, Copy, Debug)]
pub struct Part<'a> {
    pub body: &'a [u8],
    /// Positions of the messages in `body`.
    pub rows: &'a [Row],
}

/// Converts the messages of `fetched` to record batches, with the columns and sizes of `request`. Bodies that do not
/// decompress are null and reported as damage.
///
/// # Errors
/// [`crate::Error::Store`] if the columns do not fit the schema, which is a bug.
pub fn batches<'a>(
    fetched: impl IntoIterator<Item = &'a PulledAnswer>,
    request: &ScanRequest,
) -> Result<(Vec<RecordBatch>, Vec<Damage>)> {
    let mut build = Build { builder: BatchBuilder::new(request), batches: Vec::new() };
    for fetched in fetched {
        // brokers only compare hashes of tags, so some rows may have another tag
        build.append(Part { body: &fetched.body, rows: &fetched.matching_rows() })?;
    }
    let (batches, damage, _) = build.finish()?;
    Ok((batches, damage))
}

/// Converts messages to record batches. The properties of the messages must have been parsed. Bodies that cannot be
/// decoded, if `request` asks for it, are the third part of the result.
///
/// # Errors
/// Fails like [`batches`].
pub fn batches_of_parts<'a>(
    parts: impl IntoIterator<Item = Part<'a>>,
    request: &ScanRequest,
) -> Result<(Vec<RecordBatch>, Vec<Damage>, BadBodies)> {
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

    fn finish(mut self) -> Result<(Vec<RecordBatch>, Vec<Damage>, BadBodies)> {
        self.batches.extend(self.builder.finish()?);
        let (damage, bad_bodies) = (self.builder.take_damage(), self.builder.take_bad_bodies());
        Ok((self.batches, damage, bad_bodies))
    }
}
