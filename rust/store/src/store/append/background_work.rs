//! The requests that appends leave for a background thread: to fault pages in, to create the next log file, to check
//! files.
use super::timer::Signal;
use crate::file::mmap::Pages;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

#[derive(Debug, Default)]
pub struct BackgroundWork {
    pub(super) signal: Arc<Signal>,
    pages: Mutex<Vec<(Pages, Range<u64>)>>,
}

impl BackgroundWork {
    /// Adds pages that the background thread shall fault in.
    pub fn touch(&self, pages: Pages, range: Range<u64>) {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner).push((pages, range));
        self.signal.call();
    }

    /// Wakes the background thread, which creates the log's next file if one is needed soon.
    pub fn create(&self) {
        self.signal.call();
    }

    /// Wakes the background thread, which checks the files for changes by other processes.
    pub fn look(&self) {
        self.signal.call();
    }

    pub(super) fn next_pages(&self) -> Option<(Pages, Range<u64>)> {
        let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        (!pages.is_empty()).then(|| pages.remove(0))
    }
}
