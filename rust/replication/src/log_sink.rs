//! Receiver of a master's log: a copy of all of it, or of some topics.
use crate::end::End;
use crate::listing::Listing;

/// Takes a log's bytes, one behind the other.
pub trait LogSink: Send {
    /// Room for the bytes that come next.
    fn room(&mut self) -> &mut [u8];

    /// Takes the next `count` bytes, which stand in the room; what was appended goes to `listing`.
    ///
    /// # Errors
    /// [`End::Diverged`], [`End::Broken`], [`End::Store`].
    fn take(&mut self, count: usize, listing: Option<&Listing>) -> Result<(), End>;

    fn progress(&self) -> CopyProgress;

    /// No more bytes come over this connection.
    ///
    /// # Errors
    /// [`End::Store`].
    fn finish(&mut self) -> Result<(), End> {
        Ok(())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyProgress {
    /// Offset of the log behind the last record that was taken.
    pub position: u64,
    /// Up to where copy and log were compared.
    pub compared_to: u64,
    /// Whether all that the copy had was compared.
    pub is_compared: bool,
    /// Store time of the last record that came; 0 before the first one.
    pub last_store_ms: i64,
}

/// Makes the buffer, whose first `len` bytes came, larger if it is full and the record that stands `at` needs more.
///
/// # Errors
/// [`End::Broken`] for a record of more than `max_record` bytes.
pub fn make_room(buffer: &mut Vec<u8>, len: usize, needed: usize, max_record: usize, at: u64) -> Result<(), End> {
    check_size(needed, max_record, at)?;
    // by what came, not by what a size claims: a master that claims a large record cannot make a copy take memory for it
    if len == buffer.len() {
        buffer.resize(needed.min(2 * len), 0);
    }
    Ok(())
}

/// Refuses a record of more than `max_record` bytes, which stands `at`.
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
