//! The errors of this crate. Each variant contains the facts that a user needs, and belongs to one Python class.
use std::io;
use std::path::{Path, PathBuf};

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The errors of this crate, except those of the decoders in `format` ([`crate::format::malformed`]).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error("{path}: {source}", path = path.display())]
    Io { path: PathBuf, source: io::Error },
    /// The disk has no room for a new file of the commit log, which gets all its blocks when it is created.
    #[error("{path}: {}", no_room(*needed, *free), path = path.display())]
    NoRoom { path: PathBuf, needed: u64, free: u64 },
    #[error("{path} at offset {offset}: {reason}", path = path.display())]
    Corrupt {
        path: PathBuf,
        offset: u64,
        /// The expected and the found value, as a sentence.
        reason: String,
    },
    /// A kind of store that this crate does not read or write.
    #[error("{path}: {reason}", path = path.display())]
    Unsupported {
        /// The file or directory that shows the unsupported kind.
        path: PathBuf,
        reason: String,
    },
    /// A topic, column or other name that does not exist. `near` holds similar names that do exist.
    #[error("unknown {what} '{name}'{}", did_you_mean(near))]
    Unknown { what: &'static str, name: String, near: Vec<String> },
    #[error("{reason} at position {position} of {expression:?}")]
    Expression { expression: String, position: usize, reason: String },
    #[error("{what}: expected {expected}, got {got}")]
    Invalid { what: &'static str, expected: String, got: String },
    #[error("{path}: {reason}", path = path.display())]
    Busy {
        path: PathBuf,
        /// Names the process that has locked the store, and the user's next step.
        reason: String,
    },
    /// A store that accepts no messages: it is closed, its disk is too full, or a write or a flush has failed.
    #[error("{path}: {reason}", path = path.display())]
    NotWritable {
        path: PathBuf,
        /// The cause of the refusal, and the user's next step.
        reason: String,
    },
    /// A message whose body could not be decoded, in a scan that stops there.
    #[error(
        "body of message {queue_offset} of queue {queue_id} of topic {topic}: {reason}; on_error=\"null\" gives null in its place"
    )]
    Body { topic: String, queue_id: i32, queue_offset: i64, reason: String },
    #[error("{path}: the store is closed", path = path.display())]
    Closed { path: PathBuf },
    /// A signal handler called a method of a scan or tail while the interrupted thread was inside a method of the
    /// same object.
    #[error(
        "{what} is at work in this thread, which a signal interrupted; have the handler set a flag, and ask afterwards"
    )]
    InUse { what: &'static str },
    /// The messages are stored, but were not flushed in time. Appending them again would store them twice.
    #[error("{path}: stored before offset {position}, but not on the disk in time", path = path.display())]
    FlushTimeout {
        path: PathBuf,
        /// Physical offset of the end of the last message.
        position: u64,
    },
    #[error("interrupted")]
    Interrupted,
}

impl Error {
    /// Returns the name of the class in `rmqfast.errors` that Python raises. In the JVM, a `SourceException` contains
    /// this name.
    pub fn class(&self) -> &'static str {
        match self {
            Self::Io { .. } if self.is_not_found() => "StoreNotFoundError",
            Self::Io { .. } | Self::NoRoom { .. } => "StoreIOError",
            Self::Corrupt { .. } => "CorruptError",
            Self::Unsupported { .. } => "UnsupportedStoreError",
            Self::Unknown { what: "column", .. } => "UnknownColumnError",
            Self::Unknown { what: "message", .. } => "UnknownMessageError",
            Self::Unknown { .. } => "UnknownTopicError",
            Self::Expression { .. } => "ExpressionError",
            Self::Invalid { .. } => "ArgumentError",
            Self::Body { .. } => "DecodeError",
            Self::Busy { .. } => "StoreBusyError",
            Self::NotWritable { .. } => "StoreNotWritableError",
            Self::Closed { .. } | Self::InUse { .. } | Self::Interrupted => "StoreError",
            Self::FlushTimeout { .. } => "FlushTimeoutError",
        }
    }

    pub fn io(path: impl AsRef<Path>, source: io::Error) -> Self {
        Self::Io { path: path.as_ref().to_path_buf(), source }
    }

    /// Returns the error for a file of an open store that another process has changed. A store with such a file
    /// refuses all later appends.
    pub fn changed_by_another(path: impl AsRef<Path>, what: impl std::fmt::Display) -> Self {
        let reason = format!(
            "another process has changed the file: {what}; nothing is appended any more. Close the store, and open it again: that \
             recovers what is left, or says what is lost"
        );
        Self::NotWritable { path: path.as_ref().to_path_buf(), reason }
    }

    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }

    pub fn is_unsupported(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::Unsupported)
    }

    /// Returns whether the cause is a full disk, or the user's quota on the disk.
    pub fn is_disk_full(&self) -> bool {
        match self {
            Self::Io { source, .. } => {
                matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
            }
            Self::NoRoom { .. } => true,
            _ => false,
        }
    }

    pub fn invalid(what: &'static str, expected: impl Into<String>, got: impl ToString) -> Self {
        Self::Invalid { what, expected: expected.into(), got: got.to_string() }
    }

    /// Creates [`Error::Unknown`], with the similar names among `names`.
    pub fn unknown<'a>(what: &'static str, name: &str, names: impl IntoIterator<Item = &'a str>) -> Self {
        Self::Unknown { what, name: name.to_owned(), near: near_names(name, names) }
    }
}

/// Returns the text of [`Error::NoRoom`], without the path.
pub fn no_room(needed: u64, free: u64) -> String {
    format!(
        "expected room for a file of the commit log, {needed} bytes, got {free} that are free; with a smaller \
         mappedFileSizeCommitLog (file_size) a new store needs less"
    )
}

fn did_you_mean(near: &[String]) -> String {
    if near.is_empty() { String::new() } else { format!("; did you mean {}?", near.join(", ")) }
}

/// Returns up to five of `names` that contain `name` or differ from `name` in a few letters, the most similar first.
fn near_names<'a>(name: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let limit = (name.chars().count() / 3).max(2);
    let mut scored: Vec<(usize, &str)> = names
        .into_iter()
        .map(|k| (edit_distance(&name.to_lowercase(), &k.to_lowercase()), k))
        .filter(|(d, k)| *d <= limit || (name.len() >= 3 && k.contains(name)))
        .collect();
    scored.sort_unstable();
    scored.into_iter().take(5).map(|(_, k)| k.to_owned()).collect()
}

// Levenshtein distance, with one row of the table in memory.
fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let substitute = diagonal + usize::from(ca != *cb);
            diagonal = row[j + 1];
            row[j + 1] = substitute.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_names_list_those_that_look_alike() {
        let error = Error::unknown("topic", "ordres", ["orders", "payments", "order"]);
        assert_eq!(error.to_string(), "unknown topic 'ordres'; did you mean order, orders?");
    }

    #[test]
    fn a_name_like_nothing_suggests_nothing() {
        assert_eq!(Error::unknown("column", "zzzzzz", ["body"]).to_string(), "unknown column 'zzzzzz'");
    }
}
