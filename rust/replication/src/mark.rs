//! The progress of a copy of some topics in its master's log, with the proof of it: the positions in its own log tell neither.
//!
//! The mark stands in a file of the copy's directory. It is never ahead of the copy: what it vouches for is on the disk before.
use rmqfast_store::file::disk::sync_directory;
use rmqfast_store::file::place;
use rmqfast_store::file::replace::replace;
use rmqfast_store::store::append::Appender;
use rmqfast_store::{Error, Result};
use serde_json::{Value, json};
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

// Name of the file.
const NAME: &str = "mirror-position.json";

/// A place of the master's log, and the one of the copy's that belongs to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Offset of the master's log: what the copy keeps of all before it, it has.
    pub position: u64,
    /// End of the copy's log at the mark.
    pub copy_end: u64,
    /// A record boundary of the master's log, before `position` if a record was copied.
    pub compare_from: u64,
    /// CRC of the master's bytes from there up to `position`.
    pub crc: u32,
}

impl Mark {
    /// That of a copy that begins: nothing was taken.
    pub fn first(position: u64, copy_end: u64) -> Self {
        Self { position, copy_end, compare_from: position, crc: 0 }
    }

    /// Returns the mark of the copy below `root`, if it has one.
    ///
    /// # Errors
    /// [`Error::Corrupt`] for a file that says something else, [`Error::Io`].
    pub fn load(root: &Path) -> Result<Option<Self>> {
        let path = root.join(NAME);
        let Some(text) = place::read(&path, u64::MAX)? else { return Ok(None) };
        let mark = serde_json::from_slice(&text).ok().and_then(|value| Self::of(&value));
        mark.map(Some).ok_or_else(|| {
            let reason = "expected position, copyEnd, compareFrom and crc, got something else; begin a new copy";
            Error::Corrupt { path, offset: 0, reason: reason.to_owned() }
        })
    }

    fn of(value: &Value) -> Option<Self> {
        let number = |name| value.get(name).and_then(Value::as_u64).filter(|number| i64::try_from(*number).is_ok());
        let mark = Self {
            position: number("position")?,
            copy_end: number("copyEnd")?,
            compare_from: number("compareFrom")?,
            crc: number("crc").and_then(|crc| crc.try_into().ok())?,
        };
        Some(mark).filter(|mark| mark.compare_from <= mark.position)
    }

    /// Writes it: who looks, at whatever moment, finds the one before or this one.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn save(&self, root: &Path) -> Result<()> {
        let Self { position, copy_end, compare_from, crc } = self;
        let value = json!({"position": position, "copyEnd": copy_end, "compareFrom": compare_from, "crc": crc});
        replace(&root.join(NAME), format!("{value}\n").as_bytes())?;
        sync_directory(root)
    }
}

/// Between two marks, as a rule: what stands behind the last one is read once more after a kill.
pub const EVERY: Duration = Duration::from_secs(1);

/// The mark on the disk, and the one that waits for the copy to be there.
#[derive(Debug)]
pub struct MarkKeeper {
    copy: Arc<Appender>,
    root: PathBuf,
    saved: Mark,
    waiting: Option<Mark>,
    every: Duration,
    due: Instant,
}

impl MarkKeeper {
    /// Keeps that of `copy`, whose directory is `root`; `saved` is there. So much time is between two marks.
    pub fn new(copy: Arc<Appender>, root: PathBuf, saved: Mark, every: Duration) -> Self {
        Self { copy, root, saved, waiting: None, every, due: Instant::now() + every }
    }

    /// Saves the mark of some moments ago, if the disk has the copy's log up to it. The next one is that of `now`.
    ///
    /// # Errors
    /// [`Error::Io`](rmqfast_store::Error::Io).
    pub fn keep(&mut self, now: Mark) -> Result<()> {
        if self.waiting.is_none() && Instant::now() >= self.due {
            self.waiting = Some(now);
            self.due = Instant::now() + self.every;
        }
        match self.waiting {
            Some(mark) if self.copy.flushed_offset() >= mark.copy_end => self.save(mark),
            _ => Ok(()),
        }
    }

    /// Waits until the disk has the copy's log up to `mark`, and saves that.
    ///
    /// # Errors
    /// As [`Appender::flush`].
    pub fn finish(&mut self, mark: Mark) -> Result<()> {
        if mark == self.saved {
            return Ok(());
        }
        self.copy.wait_flushed(mark.copy_end, None)?;
        self.save(mark)
    }

    fn save(&mut self, mark: Mark) -> Result<()> {
        self.waiting = None;
        if mark != self.saved {
            mark.save(&self.root)?;
            self.saved = mark;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_that_was_saved_is_loaded_and_nonsense_is_refused() {
        let dir = tempfile::tempdir().expect("a directory");
        assert_eq!(Mark::load(dir.path()).expect("none"), None);
        let mark = Mark { position: 9, copy_end: 4, compare_from: 5, crc: u32::MAX };
        for mark in [mark, Mark::first(1 << 60, 1 << 30)] {
            mark.save(dir.path()).expect("saved");
            assert_eq!(Mark::load(dir.path()).expect("loaded"), Some(mark));
        }
        for text in [
            "",
            "[]",
            r#"{"position": 1, "copyEnd": 0, "compareFrom": 2, "crc": 0}"#,
            r#"{"position": -1, "copyEnd": 0, "compareFrom": 0, "crc": 0}"#,
            r#"{"position": 1, "copyEnd": 0, "compareFrom": 0, "crc": 4294967296}"#,
        ] {
            std::fs::write(dir.path().join(NAME), text).expect("written");
            let error = Mark::load(dir.path()).expect_err(text).to_string();
            assert!(error.contains(NAME) && error.contains("begin a new copy"), "{error}");
        }
    }
}
