//! What other processes did to the files of a store while it was open: after that nothing is appended, until it is opened anew.
//!
//! What was appended before is still flushed, so that a recovery knows of it.
use crate::{Error, Result};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// Lines that wait to be taken, at most.
const MAX_LINES: usize = 1000;

#[derive(Debug, Default)]
pub struct Harm {
    first: OnceLock<(PathBuf, String)>,
    lines: Mutex<Lines>,
}

#[derive(Debug, Default)]
struct Lines {
    waiting: Vec<String>,
    /// Files that there was a line for.
    files: BTreeSet<PathBuf>,
}

impl Harm {
    /// Fails once harm was found.
    ///
    /// # Errors
    /// [`Error::NotWritable`], which names the file that came to harm first and says what happened to it.
    #[inline]
    pub fn check(&self) -> Result<()> {
        match self.first.get() {
            None => Ok(()),
            Some((path, reason)) => Err(Error::NotWritable { path: path.clone(), reason: reason.clone() }),
        }
    }

    /// Notes what an append or a look has found, and leaves a line for it; not for an error of another kind.
    pub fn note(&self, error: &Error) {
        let Error::NotWritable { path, reason } = error else { return };
        self.first.get_or_init(|| (path.clone(), reason.clone()));
        let is_new = self.lines().files.insert(path.clone());
        if is_new {
            self.tell(error.to_string());
        }
    }

    /// Leaves a line for a person.
    pub fn tell(&self, line: String) {
        let mut lines = self.lines();
        if lines.waiting.len() < MAX_LINES {
            lines.waiting.push(line);
        }
    }

    /// The lines that were left since they were taken last.
    pub fn take_lines(&self) -> Vec<String> {
        std::mem::take(&mut self.lines().waiting)
    }

    /// The file that came to harm first, and what is said of it.
    pub fn first(&self) -> Option<(&Path, &str)> {
        self.first.get().map(|(path, reason)| (path.as_path(), reason.as_str()))
    }

    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
