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

    fn taken(&self) -> Taken;

    /// No more bytes come over this connection.
    ///
    /// # Errors
    /// [`End::Store`].
    fn finish(&mut self) -> Result<(), End> {
        Ok(())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// Offset of the log behind the last record that was taken.
    pub position: u64,
    /// Up to where copy and log were compared.
    pub compared_to: u64,
    /// Whether all that the copy had was compared.
    pub is_compared: bool,
    /// Store time of the last record that came; 0 before the first one.
    pub last_store_ms: i64,
}
