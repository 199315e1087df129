//! One request of a client, with how long to wait for its answer.
use crate::header::Value;
use crate::interrupt::{self, Interrupt};
use std::fmt;
use std::time::Duration;

/// A request, and the wait for its answer.
#[derive(Clone, Copy)]
pub struct Ask<'a> {
    pub code: i32,
    pub fields: &'a [(&'a str, Value<'a>)],
    pub body: &'a [u8],
    pub timeout: Duration,
    /// Ends the wait early.
    pub interrupt: Interrupt<'a>,
}

impl<'a> Ask<'a> {
    /// A request whose wait only its timeout ends.
    pub fn new(code: i32, fields: &'a [(&'a str, Value<'a>)], body: &'a [u8], timeout: Duration) -> Self {
        Self { code, fields, body, timeout, interrupt: &interrupt::never }
    }
}

impl fmt::Debug for Ask<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ask").field("code", &self.code).field("fields", &self.fields).finish_non_exhaustive()
    }
}
