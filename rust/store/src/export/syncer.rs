//! A thread that flushes files of an export while the export continues to write.
use crate::Result;
use crate::store::append::unsynced::SyncList;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;

#[derive(Debug)]
pub struct Syncer {
    sender: Option<SyncSender<SyncList>>,
    thread: Option<JoinHandle<Result<()>>>,
}

impl Syncer {
    pub fn start() -> Self {
        // One list is being flushed and one waits. More would keep too many files open.
        let (sender, receiver) = sync_channel::<SyncList>(1);
        let thread = std::thread::spawn(move || receiver.into_iter().try_for_each(|unsynced| unsynced.sync()));
        Self { sender: Some(sender), thread: Some(thread) }
    }

    /// Queues files that must be flushed. Returns the error of an earlier flush.
    pub fn sync(&mut self, unsynced: SyncList) -> Result<()> {
        let is_queued = self.sender.as_ref().is_some_and(|sender| sender.send(unsynced).is_ok());
        // The thread ends early only after an error. `finish` returns that error.
        if is_queued { Ok(()) } else { self.finish() }
    }

    /// Waits until all queued files are flushed. After an error it is unknown which bytes are on the disk.
    pub fn finish(&mut self) -> Result<()> {
        self.sender = None;
        match self.thread.take().map(JoinHandle::join) {
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            Some(Ok(done)) => done,
            None => Ok(()),
        }
    }
}

impl Drop for Syncer {
    fn drop(&mut self) {
        self.sender = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
