//! Warnings of a read.
use std::fmt;

/// A warning of a read that goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Warning {
    /// Messages that the read does not have, or bodies that are null.
    Loss(String),
    /// Trouble on the way, such as a lost connection. The messages come all the same.
    Trouble(String),
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Loss(text) | Self::Trouble(text)) = self;
        f.write_str(text)
    }
}
