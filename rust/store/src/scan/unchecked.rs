#![allow(unsafe_code, reason = "a scan would check again, byte by byte, what its builders hold by construction")]
//! Arrow arrays from buffers whose invariants the builders of [`text`](super::text) hold: ends never fall and are inside the
//! values; strings are ASCII or were checked when they were appended.
use arrow_array::{BinaryArray, StringArray};
use arrow_buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};

/// Strings of which each ends at one of `ends`.
pub(super) fn strings(ends: Vec<i32>, values: Vec<u8>, nulls: Option<NullBuffer>) -> StringArray {
    debug_assert!(std::str::from_utf8(&values).is_ok());
    // SAFETY: `offsets` gives rising offsets within `values`; `Text` appends whole valid UTF-8 strings only.
    unsafe { StringArray::new_unchecked(offsets(ends, &values), Buffer::from_vec(values), nulls) }
}

/// Byte strings of which each ends at one of `ends`.
pub(super) fn binaries(ends: Vec<i32>, values: Vec<u8>, nulls: Option<NullBuffer>) -> BinaryArray {
    // SAFETY: as for strings; bytes need not be UTF-8.
    unsafe { BinaryArray::new_unchecked(offsets(ends, &values), Buffer::from_vec(values), nulls) }
}

fn offsets(ends: Vec<i32>, values: &[u8]) -> OffsetBuffer<i32> {
    debug_assert!(ends.is_sorted() && ends.last().is_none_or(|end| *end as usize == values.len()));
    let mut offsets = Vec::with_capacity(ends.len() + 1);
    offsets.push(0);
    offsets.extend_from_slice(&ends);
    // SAFETY: `Text` pushes the length of its bytes after each value, and a batch holds less than 2 GiB: offsets start at 0
    // and never fall.
    unsafe { OffsetBuffer::new_unchecked(ScalarBuffer::from(offsets)) }
}
