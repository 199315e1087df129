//! Retention of an open store. A run plans, flushes, and removes files, the oldest first.
//!
//! Everything written is flushed before the first file is removed, so that no later flush needs a removed file. Messages
//! appended meanwhile are behind the new start of the log.
//!
//! Source: `DefaultMessageStore.cleanFilesPeriodically`, `CleanCommitLogService.isSpaceFull`.
use super::clean_plan::{self, CleanPlan, InUse, Removable};
use super::clock::{Clock, ClockWatch};
use super::options::{MAX_FILES, RetainOptions, Situation, decide, is_writable};
use crate::file::disk::{self, sync_directory};
use crate::{Error, Result};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Milliseconds between two checks of the disk. Source: `diskCheckScheduledExecutorService`.
const LOOK_EVERY_MS: i64 = 10_000;

/// The result of a run: numbers of removed files, and their bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CleanReport {
    pub log_files: usize,
    pub queue_files: usize,
    pub index_files: usize,
    pub bytes: u64,
    /// The start of the log after the run.
    pub min_offset: u64,
    /// Usage of the disk in percent; `None` if it is unknown.
    pub used_percent: Option<u8>,
    /// Whether messages can be appended; false if the disk is too full.
    pub is_writable: bool,
    /// Milliseconds by which the time of day has jumped; 0 if the time is trusted. After a jump nothing was removed by age.
    pub clock_jump_ms: i64,
}

#[derive(Debug)]
pub struct Retention {
    root: PathBuf,
    options: Option<RetainOptions>,
    zone_offset_ms: i64,
    /// Usage in percent of a disk that is too full; 0 if messages can be appended.
    too_full: AtomicU8,
    runs: AtomicU64,
    runner: Mutex<Runner>,
}

/// The state that is kept from run to run.
#[derive(Debug, Default)]
pub struct Runner {
    watch: ClockWatch,
    /// Physical offset before which queues and index have no removable files any more.
    cleaned_to: u64,
    last: Option<CleanReport>,
    next_look_ms: i64,
    next_run_ms: i64,
}

/// The owner of a store. Retention calls it to find the files in use, and before it removes a file.
pub trait Owner {
    /// Returns the files that are being written. Fails if the store is closed or must not be written any more.
    fn in_use(&self) -> Result<InUse>;
    fn flush(&self) -> Result<()>;
    /// Called before each removal. After this call readers must not find the file any more.
    fn before_removal(&self, _path: &Path) {}
    fn after_removals(&self) -> Result<()> {
        Ok(())
    }
}

impl Retention {
    /// Creates the state of retention. Without options no file is ever removed.
    pub fn new(root: &Path, options: Option<RetainOptions>, zone_offset_ms: i64) -> Self {
        let now = Clock::now();
        let first = options.unwrap_or_default();
        let mut runner = Runner {
            next_look_ms: now.steady_ms.saturating_add(first.first_look_ms),
            next_run_ms: now.steady_ms.saturating_add(first.first_run_ms),
            ..Runner::default()
        };
        // The time at the start is trusted.
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

    /// Returns a counter that grows with each run that removes files. If the counter has grown since a reader was
    /// opened, the reader may list removed files.
    pub fn runs(&self) -> u64 {
        self.runs.load(Ordering::Acquire)
    }

    pub fn last(&self) -> Option<CleanReport> {
        self.runner().last.clone()
    }

    /// Returns a guard that keeps other runs from starting.
    pub fn runner(&self) -> MutexGuard<'_, Runner> {
        self.runner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the guard of [`runner`](Self::runner), or `None` while a run is in progress.
    pub fn try_runner(&self) -> Option<MutexGuard<'_, Runner>> {
        self.runner.try_lock().ok()
    }

    /// Returns clock, disk usage and mode for a run at the time of day `now_ms`, by default now.
    pub fn situation(&self, now_ms: Option<i64>, manual: bool) -> Situation {
        let clock = Clock::now();
        let wall_ms = now_ms.unwrap_or(clock.wall_ms);
        Situation { clock: Clock { wall_ms, ..clock }, used_percent: self.used_percent(), manual }
    }

    fn used_percent(&self) -> Option<u8> {
        clean_plan::used_percent(&[&self.root.join("commitlog"), &self.root.join("consumequeue")])
    }

    /// Removes files. After an error the next run continues. Fails with [`Error::Invalid`] if the store was opened
    /// without retention.
    pub fn run(&self, owner: &dyn Owner, situation: Situation) -> Result<CleanReport> {
        self.run_alone(&mut self.runner(), owner, situation, &|| {})
    }

    /// Checks the disk if a check or a run is due at `clock`, and then runs if a run is due. Does nothing during a run. Calls
    /// `pause` between two removals.
    pub fn tick(&self, owner: &dyn Owner, clock: Clock, pause: &dyn Fn()) -> Result<()> {
        let Some(options) = &self.options else { return Ok(()) };
        let Ok(mut runner) = self.runner.try_lock() else { return Ok(()) };
        // Refused senders retry soon, so the disk is checked at each call then.
        let is_refused = self.too_full.load(Ordering::Relaxed) > 0;
        let is_look = is_refused || clock.steady_ms >= runner.next_look_ms;
        let is_run = clock.steady_ms >= runner.next_run_ms;
        if !is_look && !is_run {
            return Ok(());
        }
        let used_percent = self.used_percent();
        self.note_room(options, used_percent);
        // The schedule uses the clock that nobody can set.
        runner.next_look_ms = clock.steady_ms.saturating_add(LOOK_EVERY_MS);
        if is_run {
            runner.next_run_ms = clock.steady_ms.saturating_add(options.interval_ms);
            self.run_alone(&mut runner, owner, Situation { clock, used_percent, manual: false }, pause)?;
        }
        Ok(())
    }

    fn note_room(&self, options: &RetainOptions, used_percent: Option<u8>) -> bool {
        let is_writable = is_writable(options, used_percent);
        let too_full = if is_writable { 0 } else { used_percent.unwrap_or(0) };
        self.too_full.store(too_full, Ordering::Relaxed);
        is_writable
    }

    fn run_alone(
        &self,
        runner: &mut Runner,
        owner: &dyn Owner,
        situation: Situation,
        pause: &dyn Fn(),
    ) -> Result<CleanReport> {
        let options = self.options.as_ref().ok_or_else(|| {
            Error::invalid("retention", "options of retention, given when the store was opened", "none")
        })?;
        let is_writable = self.note_room(options, situation.used_percent);
        let clock_jump_ms = runner.watch.jump(situation.clock, situation.manual);
        let decision = decide(options, &situation, self.zone_offset_ms, clock_jump_ms == 0);
        let count = |modified: &[i64]| {
            decision.count_expired(modified, situation.clock.wall_ms, options.reserved_ms()).min(MAX_FILES)
        };
        let plan = CleanPlan::new(&self.root, &owner.in_use()?, runner.cleaned_to, count)?;
        if !plan.is_empty() {
            // Everything is flushed before the first removal, so that a crash leaves no hole.
            owner.flush()?;
            // Counted before and after the removals, because a reader opened in between may know removed files.
            self.runs.fetch_add(1, Ordering::Release);
            let removal = plan.files().try_for_each(|file| {
                // From here on no reader opens the file.
                owner.before_removal(&file.path);
                remove(file)?;
                pause();
                Ok(())
            });
            self.runs.fetch_add(1, Ordering::Release);
            let after = owner.after_removals();
            removal.and(after)?;
        }
        // Up to here queues and index are done, so the next run need not read them again.
        runner.cleaned_to = plan.min_offset;
        let report = CleanReport {
            log_files: plan.log.len(),
            queue_files: plan.queues.len(),
            index_files: plan.index.len(),
            bytes: plan.files().map(|file| file.bytes).sum(),
            min_offset: plan.min_offset,
            used_percent: situation.used_percent,
            is_writable,
            clock_jump_ms,
        };
        runner.last = Some(report.clone());
        Ok(report)
    }
}

/// Removes a file and flushes its directory before the next removal. If a later removal reached the disk first, a
/// power loss could leave a gap in the files.
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
        retention.tick(&NothingWritten, Clock::now(), &|| {}).expect("looked");
        retention.check_writable().expect("room");
    }
}
