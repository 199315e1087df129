//! Detects harm: another process has changed the files of an open store. After such a change nothing is appended
//! until the store is opened again.
//!
//! Earlier messages are still flushed, so that a recovery finds them.
use crate::{Error, Result};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// Maximum number of notices for users that nobody has taken yet.
const MAX_LINES: usize = 1000;

#[derive(Debug, Default)]
pub struct Harm {
    first: OnceLock<(PathBuf, String)>,
    lines: Mutex<Lines>,
}

#[derive(Debug, Default)]
struct Lines {
    waiting: Vec<String>,
    /// Files that were reported already, since each file is reported once.
    files: BTreeSet<PathBuf>,
}

impl Harm {
    /// Fails if another process has changed a file. The error names the first changed file.
    #[inline]
    pub fn check(&self) -> Result<()> {
        match self.first.get() {
            None => Ok(()),
            Some((path, reason)) => Err(Error::NotWritable { path: path.clone(), reason: reason.clone() }),
        }
    }

    /// Records a change and adds a notice for users. Ignores other errors.
    pub fn note(&self, error: &Error) {
        let Error::NotWritable { path, reason } = error else { return };
        self.first.get_or_init(|| (path.clone(), reason.clone()));
        let is_new = self.lines().files.insert(path.clone());
        if is_new {
            self.add_line(error.to_string());
        }
    }

    pub fn add_line(&self, line: String) {
        let mut lines = self.lines();
        // Further notices are dropped if nobody takes the waiting notices.
        if lines.waiting.len() < MAX_LINES {
            lines.waiting.push(line);
        }
    }

    /// Returns the notices that were added since the last call.
    pub fn take_lines(&self) -> Vec<String> {
        std::mem::take(&mut self.lines().waiting)
    }

    /// Returns the path of the first changed file, and a description of the change.
    pub fn first(&self) -> Option<(&Path, &str)> {
        self.first.get().map(|(path, reason)| (path.as_path(), reason.as_str()))
    }

    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
