//! Reads big-endian numbers from bytes, and defines the error that all decoders return.
//!
//! Everything in a store is big-endian two's complement, as Java's `ByteBuffer` writes it.
use std::fmt;

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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// RocketMQ's name of the field.
    pub field: &'static str,
    /// Position of the field, in bytes from the start of the structure.
    pub at: usize,
    pub expected: Expected,
    pub got: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    Value(i64),
    AtLeast(i64),
    AtMost(i64),
    /// A condition in words, for a value that is not a number.
    Words(&'static str),
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at +{}: expected {}, got {}", self.field, self.at, self.expected, self.got)
    }
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value(v) => write!(f, "{v}"),
            Self::AtLeast(v) => write!(f, "at least {v}"),
            Self::AtMost(v) => write!(f, "at most {v}"),
            Self::Words(w) => f.write_str(w),
        }
    }
}

impl std::error::Error for Malformed {}

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
