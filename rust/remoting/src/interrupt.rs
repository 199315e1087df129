//! A request with its timeout, and an interrupt that can end the wait for the answer.
use crate::command::Value;
use crate::error::Result;
use std::fmt;
use std::time::Duration;

/// Time between two calls of an interrupt during a wait.
pub(crate) const SLICE: Duration = Duration::from_millis(100);

/// A callback that is called every [`SLICE`] during a wait. Its error ends the wait.
pub type Interrupt<'a> = &'a (dyn Fn() -> Result<()> + Sync);

pub fn never() -> Result<()> {
    Ok(())
}

/// A request, with the timeout and the interrupt of the wait for its answer.
#[derive(Clone, Copy)]
pub struct Ask<'a> {
    pub code: i32,
    pub fields: &'a [(&'a str, Value<'a>)],
    pub body: &'a [u8],
    pub timeout: Duration,
    /// Called during the wait. Its error ends the wait early.
    pub interrupt: Interrupt<'a>,
}

impl<'a> Ask<'a> {
    pub fn new(code: i32, fields: &'a [(&'a str, Value<'a>)], body: &'a [u8], timeout: Duration) -> Self {
        Self { code, fields, body, timeout, interrupt: &never }
    }
}

impl fmt::Debug for Ask<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ask").field("code", &self.code).field("fields", &self.fields).finish_non_exhaustive()
    }
}
