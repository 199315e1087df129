//! Flushes what an export has written, while more is written.
use crate::Result;
use crate::store::append::unsynced::Unsynced;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;

/// A thread that waits for the disk.
#[derive(Debug)]
pub struct Syncer {
    sender: Option<SyncSender<Unsynced>>,
    thread: Option<JoinHandle<Result<()>>>,
}

impl Syncer {
    pub fn start() -> Self {
        // one is waited for, one waits: files stay open until then
        let (sender, receiver) = sync_channel::<Unsynced>(1);
        let thread = std::thread::spawn(move || receiver.into_iter().try_for_each(|unsynced| unsynced.sync()));
        Self { sender: Some(sender), thread: Some(thread) }
    }

    /// Hands over what must be waited for.
    ///
    /// # Errors
    /// That of an earlier wait.
    pub fn sync(&mut self, unsynced: Unsynced) -> Result<()> {
        let is_taken = self.sender.as_ref().is_some_and(|sender| sender.send(unsynced).is_ok());
        // it ends early after an error only
        if is_taken { Ok(()) } else { self.finish() }
    }

    /// Waits until all is on the disk.
    ///
    /// # Errors
    /// [`crate::Error::Io`]; then nobody knows what is.
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
