//! Receivers of a master's log. They write a copy of the whole log, or of some topics.
use crate::end::End;
use crate::listing::Listing;

/// Receives the bytes of a log, in order.
pub trait LogSink: Send {
    /// Returns the buffer into which the caller must write the next bytes.
    fn room(&mut self) -> &mut [u8];

    /// Takes the next `count` bytes of the log, which the caller has written to `room`. Passes appended records to
    /// `listing`.
    ///
    /// # Errors
    /// [`End::Diverged`], [`End::Broken`], [`End::Store`].
    fn take(&mut self, count: usize, listing: Option<&Listing>) -> Result<(), End>;

    fn progress(&self) -> CopyProgress;

    /// Called when a connection has ended, after its last bytes were taken.
    ///
    /// # Errors
    /// [`End::Store`].
    fn finish(&mut self) -> Result<(), End> {
        Ok(())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyProgress {
    /// End of the last record taken, as a position in the master's log.
    pub position: u64,
    /// Position up to which copy and log were compared.
    pub compared_to: u64,
    /// Whether the copy was compared up to its end.
    pub is_compared: bool,
    /// Store time of the last record taken, in milliseconds; 0 if no record was taken.
    pub last_store_ms: i64,
}

/// Enlarges a full buffer if the record at position `at` needs `needed` bytes and does not fit. `len` bytes of the
/// buffer are filled.
///
/// # Errors
/// [`End::Broken`] for a record of more than `max_record` bytes.
pub fn make_room(buffer: &mut Vec<u8>, len: usize, needed: usize, max_record: usize, at: u64) -> Result<(), End> {
    check_size(needed, max_record, at)?;
    // at most doubled: a master that only announces a large record cannot make a copy allocate memory for it
    if len == buffer.len() {
        buffer.resize(needed.min(2 * len), 0);
    }
    Ok(())
}

/// Refuses a record at position `at` of more than `max_record` bytes.
///
/// # Errors
/// [`End::Broken`].
pub fn check_size(needed: usize, max_record: usize, at: u64) -> Result<(), End> {
    if needed <= max_record {
        return Ok(());
    }
    let reason = format!("total size at +0: expected at most {max_record} bytes, got {needed}");
    Err(End::Broken { at, reason })
}
