//! Retention of a store that is open: a run plans, waits for the disk, and removes files, the oldest first.
//!
//! What is removed is never waited for again: all that had been written is on the disk before the first file goes, and what is
//! appended meanwhile stands behind the log's new beginning.
//!
//! Source: `DefaultMessageStore.cleanFilesPeriodically`, `CleanCommitLogService.isSpaceFull`.
use super::clean_plan::{CleanPlan, InUse, Removable, count_of};
use super::clock::{Clock, ClockWatch};
use super::decision::{self, MAX_FILES, Situation};
use super::disk_usage;
use super::options::RetainOptions;
use crate::file::disk::{self, sync_directory};
use crate::{Error, Result};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How often the disk is looked at (`diskCheckScheduledExecutorService`).
const LOOK_EVERY_MS: i64 = 10_000;

/// What a run did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cleaned {
    /// Files of the commit log that were removed.
    pub log_files: usize,
    /// Files of consume queues.
    pub queue_files: usize,
    /// Files of the index.
    pub index_files: usize,
    /// Bytes of all of them.
    pub bytes: u64,
    /// Where the log begins now.
    pub min_offset: u64,
    /// How full the disk was, in percent; `None` where it could not be looked at.
    pub used_percent: Option<u8>,
    /// Whether messages are taken: not where the disk is too full.
    pub is_writable: bool,
    /// By how many milliseconds the time of day jumped, so that nothing was removed by age; 0 where it was believed.
    pub clock_jump_ms: i64,
}

/// The retention of one open store.
#[derive(Debug)]
pub struct Retention {
    root: PathBuf,
    options: Option<RetainOptions>,
    zone_offset_ms: i64,
    /// Percent of the disk that are used where that is too much, else 0.
    too_full: AtomicU8,
    /// Runs that removed something.
    runs: AtomicU64,
    runner: Mutex<Runner>,
}

/// What is known from run to run.
#[derive(Debug, Default)]
pub struct Runner {
    watch: ClockWatch,
    /// Queues and index list nothing from before this offset, but in files that must stay.
    cleaned_to: u64,
    last: Option<Cleaned>,
    next_look_ms: i64,
    next_run_ms: i64,
}

/// What a run needs of the store's owner.
pub trait Owner {
    /// What is written to just now.
    ///
    /// # Errors
    /// [`Error::NotWritable`] where the store is closed, or nothing may be written any more.
    fn in_use(&self) -> Result<InUse>;
    /// Waits until all that was written is on the disk.
    fn flush(&self) -> Result<()>;
    /// Called for each file before it goes: whoever asks from now on does not find it any more.
    fn removing(&self, _path: &Path) {}
    /// Called between two files.
    fn pause(&self) {}
    /// Called once files are gone.
    fn cleaned(&self) -> Result<()> {
        Ok(())
    }
}

impl Retention {
    /// The retention of the store below `root`; without options nothing is ever removed.
    pub fn new(root: &Path, options: Option<RetainOptions>, zone_offset_ms: i64) -> Self {
        let now = Clock::now();
        let first = options.unwrap_or_default();
        let mut runner = Runner {
            next_look_ms: now.steady_ms.saturating_add(first.first_look_ms),
            next_run_ms: now.steady_ms.saturating_add(first.first_run_ms),
            ..Runner::default()
        };
        // what the clock says at the start is trusted
        runner.watch.jump(now, true);
        Self {
            root: root.to_path_buf(),
            options,
            zone_offset_ms,
            too_full: AtomicU8::new(0),
            runs: AtomicU64::new(0),
            runner: Mutex::new(runner),
        }
    }

    /// Refuses messages while the disk is too full.
    #[inline]
    pub fn check_writable(&self) -> Result<()> {
        match self.too_full.load(Ordering::Relaxed) {
            0 => Ok(()),
            used => Err(self.not_writable(used)),
        }
    }

    #[cold]
    fn not_writable(&self, used: u8) -> Error {
        let limit = self.options.unwrap_or_default().warning_percent;
        let reason = format!(
            "SERVICE_NOT_AVAILABLE: {used} % of the disk are used, expected at most {limit} % (diskSpaceWarningLevelRatio); \
             messages can be read, and are taken again once there is room"
        );
        Error::NotWritable { path: self.root.clone(), reason }
    }

    /// How many runs removed something so far: readers that were opened before the last of them know files that are gone.
    pub fn runs(&self) -> u64 {
        self.runs.load(Ordering::Acquire)
    }

    /// What the last run did.
    pub fn last(&self) -> Option<Cleaned> {
        self.runner().last.clone()
    }

    /// Whoever holds this keeps others from running.
    pub fn runner(&self) -> MutexGuard<'_, Runner> {
        self.runner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// As [`runner`](Self::runner); `None` while somebody runs.
    pub fn try_runner(&self) -> Option<MutexGuard<'_, Runner>> {
        self.runner.try_lock().ok()
    }

    /// What is around a run that comes now, or at another time of day.
    pub fn situation(&self, now_ms: Option<i64>, manual: bool) -> Situation {
        let clock = Clock::now();
        let wall_ms = now_ms.unwrap_or(clock.wall_ms);
        Situation { clock: Clock { wall_ms, ..clock }, used_percent: self.used_percent(), manual }
    }

    fn used_percent(&self) -> Option<u8> {
        disk_usage::used_percent(&[&self.root.join("commitlog"), &self.root.join("consumequeue")])
    }

    /// Removes what may go.
    ///
    /// # Errors
    /// [`Error::Invalid`] where the store was opened without retention, [`Error::Io`]; a later run goes on where this one ended.
    pub fn run(&self, owner: &dyn Owner, situation: Situation) -> Result<Cleaned> {
        self.run_alone(&mut self.runner(), owner, situation)
    }

    /// Does what is due at `clock`; nothing while another run is on its way.
    pub fn tick(&self, owner: &dyn Owner, clock: Clock) -> Result<()> {
        let Some(options) = &self.options else { return Ok(()) };
        let Ok(mut runner) = self.runner.try_lock() else { return Ok(()) };
        // who is refused asks again soon
        let is_refused = self.too_full.load(Ordering::Relaxed) > 0;
        let is_look = is_refused || clock.steady_ms >= runner.next_look_ms;
        let is_run = clock.steady_ms >= runner.next_run_ms;
        if !is_look && !is_run {
            return Ok(());
        }
        let used_percent = self.used_percent();
        self.note_room(options, used_percent);
        // by the clock that nobody sets
        runner.next_look_ms = clock.steady_ms.saturating_add(LOOK_EVERY_MS);
        if is_run {
            runner.next_run_ms = clock.steady_ms.saturating_add(options.interval_ms);
            self.run_alone(&mut runner, owner, Situation { clock, used_percent, manual: false })?;
        }
        Ok(())
    }

    fn note_room(&self, options: &RetainOptions, used_percent: Option<u8>) -> bool {
        let is_writable = decision::is_writable(options, used_percent);
        let too_full = if is_writable { 0 } else { used_percent.unwrap_or(0) };
        self.too_full.store(too_full, Ordering::Relaxed);
        is_writable
    }

    fn run_alone(&self, runner: &mut Runner, owner: &dyn Owner, situation: Situation) -> Result<Cleaned> {
        let options = self.options.as_ref().ok_or_else(|| {
            Error::invalid("retention", "options of retention, given when the store was opened", "none")
        })?;
        let is_writable = self.note_room(options, situation.used_percent);
        let clock_jump_ms = runner.watch.jump(situation.clock, situation.manual);
        let decision = decision::decide(options, &situation, self.zone_offset_ms, clock_jump_ms == 0);
        let count = |modified: &[i64]| count_of(decision, modified, situation.clock.wall_ms, options).min(MAX_FILES);
        let plan = CleanPlan::new(&self.root, &owner.in_use()?, runner.cleaned_to, count)?;
        if !plan.is_empty() {
            // all of it is on the disk before the first file goes, so that a crash leaves no hole
            owner.flush()?;
            // before and after: a reader that was opened in between knows files that are gone
            self.runs.fetch_add(1, Ordering::Release);
            let removed = plan.files().try_for_each(|file| {
                // first: from here on nobody opens the file
                owner.removing(&file.path);
                remove(file)?;
                owner.pause();
                Ok(())
            });
            // a reader that was opened while files went is as old as one from before
            self.runs.fetch_add(1, Ordering::Release);
            let cleaned = owner.cleaned();
            removed.and(cleaned)?;
        }
        runner.cleaned_to = plan.min_offset;
        let cleaned = Cleaned {
            log_files: plan.log.len(),
            queue_files: plan.queues.len(),
            index_files: plan.index.len(),
            bytes: plan.files().map(|file| file.bytes).sum(),
            min_offset: plan.min_offset,
            used_percent: situation.used_percent,
            is_writable,
            clock_jump_ms,
        };
        runner.last = Some(cleaned.clone());
        Ok(cleaned)
    }
}

/// Removes a file for good: the next one must not go before, or a loss of power could leave a hole.
fn remove(file: &Removable) -> Result<()> {
    disk::remove_file(&file.path)?;
    file.path.parent().map_or(Ok(()), sync_directory)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct NothingWritten;

    impl Owner for NothingWritten {
        fn in_use(&self) -> Result<InUse> {
            Ok(InUse::default())
        }
        fn flush(&self) -> Result<()> {
            Ok(())
        }
    }

    #[test]
    fn messages_are_taken_with_the_first_tick_that_finds_room() {
        let dir = tempfile::tempdir().expect("dir");
        let options = RetainOptions { warning_percent: 99, ..RetainOptions::default() };
        let retention = Retention::new(dir.path(), Some(options), 0);
        for name in ["commitlog", "consumequeue"] {
            std::fs::create_dir(dir.path().join(name)).expect("made");
        }
        let full = Situation { clock: Clock::now(), used_percent: Some(100), manual: false };
        retention.run(&NothingWritten, full).expect("nothing to do");
        retention.check_writable().expect_err("too full");
        retention.tick(&NothingWritten, Clock::now()).expect("looked");
        retention.check_writable().expect("room");
    }
}
