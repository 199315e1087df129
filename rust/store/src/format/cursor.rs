//! Reads big-endian numbers from bytes. Returns `None` if there are too few bytes. All formats use these functions.
//!
//! Everything in a store is big-endian two's complement, as Java's `ByteBuffer` writes it.

#[inline]
pub fn i16_at(bytes: &[u8], at: usize) -> Option<i16> {
    Some(i16::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[inline]
pub fn i32_at(bytes: &[u8], at: usize) -> Option<i32> {
    Some(i32::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[inline]
pub fn i64_at(bytes: &[u8], at: usize) -> Option<i64> {
    Some(i64::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_are_big_endian_and_end_at_the_end() {
        let bytes = [0xFF, 0xFE, 0, 0, 0, 0, 0, 1];
        assert_eq!(i16_at(&bytes, 0), Some(-2));
        assert_eq!(i32_at(&bytes, 4), Some(1));
        assert_eq!(i32_at(&bytes, 5), None);
        assert_eq!(i64_at(&bytes, 0), Some(-562_949_953_421_311));
        assert_eq!(i64_at(&bytes, usize::MAX), None);
    }
}
