//! Saves how far a copy of topics has read its master's log, with a checksum that shows whether the log is still the
//! same. The positions in the copy's own log are different and cannot show this.
//!
//! The mark is a file in the copy's directory. It is never ahead of the copy, because the copy is flushed before the
//! mark is saved.
use rmqfast_store::file::disk::{replace, sync_directory};
use rmqfast_store::file::place;
use rmqfast_store::store::append::Appender;
use rmqfast_store::{Error, Result};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

const NAME: &str = "mirror-position.json";

/// A position of the master's log, with the matching position of the copy's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Position in the master's log up to which the copy is complete.
    pub position: u64,
    /// End of the copy's log when the mark was made.
    pub copy_end: u64,
    /// Start of the range that the CRC covers. A record of the master's log begins there. In a new copy the range is
    /// empty.
    pub compare_from: u64,
    /// CRC of the master's bytes from `compare_from` to `position`.
    pub crc: u32,
}

impl Mark {
    /// Returns the mark of a new copy, which contains no records yet.
    pub fn first(position: u64, copy_end: u64) -> Self {
        Self { position, copy_end, compare_from: position, crc: 0 }
    }

    /// Loads the mark of the copy in `root`. Returns `None` if there is no mark.
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
        // positions are signed 64-bit numbers in RocketMQ
        let number = |name| value.get(name).and_then(Value::as_u64).filter(|number| i64::try_from(*number).is_ok());
        let mark = Self {
            position: number("position")?,
            copy_end: number("copyEnd")?,
            compare_from: number("compareFrom")?,
            crc: number("crc").and_then(|crc| crc.try_into().ok())?,
        };
        // the range of the CRC must not be negative in an edited file
        Some(mark).filter(|mark| mark.compare_from <= mark.position)
    }

    /// Saves the mark atomically. Even after a crash the file contains either the old or the new mark.
    pub fn save(&self, root: &Path) -> Result<()> {
        let Self { position, copy_end, compare_from, crc } = self;
        let value = json!({"position": position, "copyEnd": copy_end, "compareFrom": compare_from, "crc": crc});
        replace(&root.join(NAME), format!("{value}\n").as_bytes())?;
        // the rename must be on the disk, too
        sync_directory(root)
    }
}

/// Usual interval of marks. After a kill, all records since the last mark are read again.
pub const EVERY: Duration = Duration::from_secs(1);

/// The saved mark, and the next mark, which waits until the copy is flushed.
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
    /// Creates the keeper for `copy` in the directory `root`, with the saved mark and the interval of marks.
    pub fn new(copy: Arc<Appender>, root: PathBuf, saved: Mark, every: Duration) -> Self {
        Self { copy, root, saved, waiting: None, every, due: Instant::now() + every }
    }

    /// Called regularly. When the interval is over, `now` becomes the next mark. The next mark is saved by the first
    /// call after the copy is flushed up to its `copy_end`.
    pub fn keep(&mut self, now: Mark) -> Result<()> {
        if self.waiting.is_none() && Instant::now() >= self.due {
            self.waiting = Some(now);
            self.due = Instant::now() + self.every;
        }
        match self.waiting {
            // does not wait for the flush, since the thread must go on reading
            Some(mark) if self.copy.flushed_offset() >= mark.copy_end => self.save(mark),
            _ => Ok(()),
        }
    }

    /// Waits until the copy is flushed up to `mark`, and saves it.
    pub fn finish(&mut self, mark: Mark) -> Result<()> {
        if mark == self.saved {
            return Ok(());
        }
        // the copy must be on the disk before the mark says that it is complete
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

/// Maps positions in a copy of topics to positions in its master's log. Forgets positions that are before the last one
/// that was asked for.
#[derive(Debug)]
pub struct Places {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    waiting: VecDeque<(u64, u64)>,
    reached: u64,
}

impl Places {
    /// Creates the map for a copy that is complete up to `reached` in the master's log.
    pub fn new(reached: u64) -> Self {
        Self { state: Mutex::new(State { waiting: VecDeque::new(), reached }) }
    }

    /// Notes that the copy ended at `copied` when the master's log had been read up to `position`.
    pub fn note(&self, copied: u64, position: u64) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match state.waiting.back_mut().filter(|(last, _)| *last == copied) {
            // nothing was copied since, so only the master's position advances
            Some((_, last)) => *last = position,
            None => state.waiting.push_back((copied, position)),
        }
    }

    /// Returns the position in the master's log that corresponds to `copied` in the copy. `copied` must not decrease
    /// from call to call.
    pub fn position_at(&self, copied: u64) -> u64 {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some((_, position)) = state.waiting.pop_front_if(|(place, _)| *place <= copied) {
            state.reached = position;
        }
        state.reached
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

    #[test]
    fn the_log_is_as_far_as_the_last_pair_that_was_reached() {
        let places = Places::new(100);
        assert_eq!(places.position_at(7), 100);
        [(10, 200), (10, 250), (20, 300), (35, 400)].into_iter().for_each(|(copied, at)| places.note(copied, at));
        let found = [9, 10, 19, 34, 35, 99].map(|copied| places.position_at(copied));
        assert_eq!(found, [100, 250, 250, 300, 400, 400]);
        // no record of the topics arrived
        places.note(35, 900);
        assert_eq!(places.position_at(35), 900);
    }
}
