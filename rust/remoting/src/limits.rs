//! How much a peer may ask of this side: checked before memory is allocated.
use crate::error::{Error, Result};

/// The limits of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a frame with its length, as `com.rocketmq.remoting.frameMaxLength`.
    pub frame: usize,
    /// Bytes of a header.
    pub header: usize,
    /// Header fields.
    pub fields: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { frame: 16 << 20, header: 64 << 10, fields: 256 }
    }
}

impl Limits {
    pub(crate) fn check_frame(&self, got: usize) -> Result<()> {
        check("frame", self.frame, got)
    }

    pub(crate) fn check_header(&self, got: usize) -> Result<()> {
        check("header", self.header, got)
    }

    pub(crate) fn check_fields(&self, got: usize) -> Result<()> {
        check("header fields", self.fields, got)
    }
}

fn check(what: &'static str, limit: usize, got: usize) -> Result<()> {
    if got > limit { Err(Error::TooLarge { what, limit, got }) } else { Ok(()) }
}
