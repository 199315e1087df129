#![allow(unsafe_code, reason = "a scan would check again, byte by byte, what its builders hold by construction")]
//! The unsafe code of scans. It builds Arrow arrays without the usual checks, since the builders of
//! [`text`](super::text) guarantee that ends never decrease and are inside the values, and that strings are valid
//! UTF-8. It also compares sixteen bytes at a time.
use arrow_array::types::ByteArrayType;
use arrow_array::{BinaryArray, GenericByteArray, StringArray};
use arrow_buffer::{ArrowNativeType, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};

pub(super) fn strings(ends: Vec<i32>, values: Vec<u8>, nulls: Option<NullBuffer>) -> StringArray {
    debug_assert!(std::str::from_utf8(&values).is_ok());
    // SAFETY: `offsets` returns increasing offsets within `values`, and `Text` appends only whole valid UTF-8 strings.
    unsafe { StringArray::new_unchecked(offsets(ends, &values), Buffer::from_vec(values), nulls) }
}

pub(super) fn binaries(ends: Vec<i32>, values: Vec<u8>, nulls: Option<NullBuffer>) -> BinaryArray {
    // SAFETY: as for strings, but bytes need not be UTF-8.
    unsafe { BinaryArray::new_unchecked(offsets(ends, &values), Buffer::from_vec(values), nulls) }
}

fn offsets(ends: Vec<i32>, values: &[u8]) -> OffsetBuffer<i32> {
    debug_assert!(ends.is_sorted() && ends.last().is_none_or(|end| *end as usize == values.len()));
    let mut offsets = Vec::with_capacity(ends.len() + 1);
    offsets.push(0);
    offsets.extend_from_slice(&ends);
    // SAFETY: `Text` pushes the length of its bytes after each value, and a batch holds less than 2 GiB. So offsets start at 0 and never
    // decrease.
    unsafe { OffsetBuffer::new_unchecked(ScalarBuffer::from(offsets)) }
}

/// Returns texts or bytes from the ends of the values.
pub(super) fn bytes_of<T: ByteArrayType>(
    ends: Vec<T::Offset>,
    values: Vec<u8>,
    nulls: Option<NullBuffer>,
) -> GenericByteArray<T> {
    debug_assert!(ends.is_sorted() && ends.last().is_none_or(|end| end.as_usize() == values.len()));
    let offsets = std::iter::once(T::Offset::default()).chain(ends).collect::<Vec<_>>();
    debug_assert!(T::validate(&OffsetBuffer::new(offsets.clone().into()), &Buffer::from_slice_ref(&values)).is_ok());
    // SAFETY: a leaf of decoded values pushes the length of its bytes after each value and cuts both at the same value, so offsets start at 0
    // and never decrease. Texts are whole strings of a body that is UTF-8.
    unsafe {
        let offsets = OffsetBuffer::new_unchecked(ScalarBuffer::from(offsets));
        GenericByteArray::new_unchecked(offsets, Buffer::from_vec(values), nulls)
    }
}

pub(super) const LANES: usize = 16;

/// Returns two masks with a bit for each byte. The first mask marks bytes below 3, the second marks bytes that are
/// not ASCII. The first byte has the lowest bit.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(super) fn masks(chunk: &[u8; LANES]) -> (u16, u16) {
    use std::arch::x86_64::{_mm_cmpeq_epi8, _mm_loadu_si128, _mm_min_epu8, _mm_movemask_epi8, _mm_set1_epi8};
    // SAFETY: every x86-64 processor has SSE2. The load reads the chunk's sixteen bytes and needs no alignment.
    unsafe {
        let bytes = _mm_loadu_si128(chunk.as_ptr().cast());
        let below = _mm_cmpeq_epi8(_mm_min_epu8(bytes, _mm_set1_epi8(2)), bytes);
        (_mm_movemask_epi8(below) as u16, _mm_movemask_epi8(bytes) as u16)
    }
}

#[cfg(not(target_arch = "x86_64"))]
pub(super) use plain_masks as masks;

/// Computes [`masks`] in plain Rust, for processors other than x86-64 and as the reference in tests.
#[cfg(any(test, not(target_arch = "x86_64")))]
#[inline]
pub(super) fn plain_masks(chunk: &[u8; LANES]) -> (u16, u16) {
    let bits = |is: fn(&u8) -> bool| chunk.iter().rev().fold(0, |mask, byte| mask << 1 | u16::from(is(byte)));
    (bits(|byte| *byte < 3), bits(|byte| !byte.is_ascii()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn both_ways_of_comparing_give_the_same_masks(bytes in any::<[u8; LANES]>(), small in any::<[bool; LANES]>()) {
            let chunk = std::array::from_fn(|i| if small[i] { bytes[i] & 3 } else { bytes[i] });
            prop_assert_eq!(masks(&chunk), plain_masks(&chunk));
        }
    }
}
