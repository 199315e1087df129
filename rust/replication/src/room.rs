//! Room for a record that came in part.
use crate::end::End;

/// Makes the buffer, whose first `len` bytes came, larger if it is full and the record that stands `at` needs more.
///
/// # Errors
/// [`End::Broken`] for a record of more than `max_record` bytes.
pub fn make_room(buffer: &mut Vec<u8>, len: usize, needed: usize, max_record: usize, at: u64) -> Result<(), End> {
    check_size(needed, max_record, at)?;
    // by what came, not by what a size claims
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
