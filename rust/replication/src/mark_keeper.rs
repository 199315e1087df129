//! Keeps the mark of a copy: it follows the copy as the disk does, about once a second.
use crate::mark::Mark;
use rmqfast_store::Result;
use rmqfast_store::store::append::Appender;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

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
            Some(mark) if self.copy.flushed_to() >= mark.copy_end => self.save(mark),
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
