//! Limits of what a peer may send, checked before memory is allocated.
use crate::error::{Error, Result};

/// The limits of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a frame with its length, as `com.rocketmq.remoting.frameMaxLength`.
    pub frame: usize,
    /// Bytes of a header.
    pub header: usize,
    pub fields: usize,
}

impl Default for Limits {
    fn default() -> Self {
        // RocketMQ bounds a header by its frame alone: properties of 32 KiB may take 200 KiB in it, with each separator escaped
        Self { frame: 16 << 20, header: (1 << 24) - 1, fields: 4096 }
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
