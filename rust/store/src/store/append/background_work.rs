//! What an append leaves to the thread that prepares the next ones: pages to make ready, a file to create, files to look at.
use super::timer::Signal;
use crate::file::mmap::Pages;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

/// What the thread has to do.
#[derive(Debug, Default)]
pub struct BackgroundWork {
    pub(super) signal: Arc<Signal>,
    pages: Mutex<Vec<(Pages, Range<u64>)>>,
}

impl BackgroundWork {
    /// Has pages made ready.
    pub fn touch(&self, pages: Pages, range: Range<u64>) {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner).push((pages, range));
        self.signal.call();
    }

    /// Has the log's next file created.
    pub fn create(&self) {
        self.signal.call();
    }

    /// Has somebody look at the files now.
    pub fn look(&self) {
        self.signal.call();
    }

    /// The pages that are to be made ready next.
    pub(super) fn next_pages(&self) -> Option<(Pages, Range<u64>)> {
        let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        (!pages.is_empty()).then(|| pages.remove(0))
    }
}
