//! Warnings of a read.
use rmqfast_store::scan::decode::BadBodies;
use std::fmt;

/// A warning of a read that goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Warning {
    /// Messages that the read does not have, or bodies that are null.
    Loss(String),
    /// Trouble on the way, such as a lost connection. The messages come all the same.
    Trouble(String),
    /// Bodies that could not be decoded, whose column `value` is null.
    BadBodies(BadBodies),
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Loss(text) | Self::Trouble(text) => f.write_str(text),
            Self::BadBodies(bodies) => {
                let count = bodies.count();
                let first = bodies.error().map_or_else(String::new, |error| format!(", the first: {error}"));
                write!(f, "{count} bodies cannot be decoded{first}")
            }
        }
    }
}
