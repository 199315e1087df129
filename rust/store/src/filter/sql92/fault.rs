//! What the compiler of SQL92 says of an expression that it refuses.
use crate::error::Error;

/// Why an expression does not compile, before the expression itself is attached.
#[derive(Debug)]
pub(super) struct Fault {
    at: usize,
    pub(super) reason: String,
}

impl Fault {
    pub(super) fn new(at: usize, reason: impl Into<String>) -> Self {
        Self { at, reason: reason.into() }
    }

    /// The error of the expression `text`.
    pub(super) fn of(self, text: &str) -> Error {
        let position = text[..self.at].chars().count();
        Error::Expression { expression: text.to_owned(), position, reason: self.reason }
    }
}
