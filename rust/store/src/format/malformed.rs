//! The error of decoders. It needs no allocation, since a scan of a damaged log may create millions of them.
use std::fmt;

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
    /// A condition in words, such as for a value that is not a number.
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
