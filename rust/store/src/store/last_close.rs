//! Notes of the last close of a store: the end of its log and the ends of its queues. As long as nobody has opened it
//! since, nothing follows behind these ends, and a reader need not search there.
//!
//! Notes may be older than the files, as those of a backup that was restored over newer files. So only readers of storages
//! that are [not local](crate::file::mounts) go by them, and look at some bytes behind the end of the log. Local files have
//! holes, which make the search cheap. Only stores that this project has closed have such notes.
use super::consume_queue::ConsumeQueue;
use super::generation::RemovedTopics;
use super::message_store::MessageStore;
use super::queue_ends::QueueEnds;
use super::recover::is_begun;
use crate::Result;
use crate::file::mounts;
use crate::format::checkpoint::FlushedEnd;

impl MessageStore {
    /// Returns the end of the log of a store that this project has closed, and that nobody has opened since. `None` for
    /// any other store, for one of this machine, for one that lacks a part of its log, and if the log goes on behind
    /// that end.
    pub fn closed_end(&self) -> Result<Option<u64>> {
        if let Some(end) = self.known_closed_end().get() {
            return Ok(*end);
        }
        let noted = self.noted_end()?;
        let goes_on = noted.map_or(Ok(false), |end| self.log().goes_on_behind(end))?;
        Ok(*self.known_closed_end().get_or_init(|| noted.filter(|_| !goes_on)))
    }

    /// Reads the noted end of the log. Bytes behind it are not looked at.
    fn noted_end(&self) -> Result<Option<u64>> {
        let files = self.log().segments().files();
        let is_local = |path| !mounts::is_mounted(path);
        if is_local(self.root()) || files.iter().any(|file| is_local(&file.path)) {
            return Ok(None);
        }
        // An interrupted recovery may have changed log and queues.
        if self.has_abort()? || is_begun(self.root())? {
            return Ok(None);
        }
        let is_whole = |end: &FlushedEnd| {
            let have_size = files.iter().all(|file| !file.is_missing && file.len == u64::from(end.file_size));
            have_size && files.windows(2).all(|pair| pair[0].end() == pair[1].base)
        };
        Ok(self.flushed_end()?.filter(is_whole).map(|end| end.offset))
    }
}

/// The notes of a store.
#[derive(Debug)]
pub struct LastClose {
    /// The end of the log. `None` if it is not known.
    log_end: Option<u64>,
    ends: QueueEnds,
    removed: RemovedTopics,
}

impl LastClose {
    /// Returns the end of the log, if the store is as it was when it was closed. Reads the notes anew, as a writer may
    /// have opened the store since they were last read. [`check_end`](MessageStore::check_end) comes before.
    pub fn end_of_log(store: &MessageStore) -> Result<Option<u64>> {
        // Without its end the log is not as it was at the close.
        let has_end = store.log().lost_end().flatten().is_none();
        let Some(end) = store.closed_end()?.filter(|_| has_end) else { return Ok(None) };
        let is_same = store.noted_end()? == Some(end) && QueueEnds::load(store.root())?.log_end == end;
        Ok(Some(end).filter(|_| is_same))
    }

    /// Reads the notes about the queues of a store whose [end of the log](Self::end_of_log) is `log_end`.
    pub fn of(store: &MessageStore, log_end: Option<u64>) -> Result<Self> {
        let (ends, removed) = (QueueEnds::load(store.root())?, RemovedTopics::load(store.root())?);
        Ok(Self { log_end, ends, removed })
    }

    /// Returns whether the end of the log and the ends of the queues are of the same close.
    pub fn is_known(&self) -> bool {
        self.log_end == Some(self.ends.log_end)
    }

    pub fn ends(&self) -> &QueueEnds {
        &self.ends
    }

    pub fn removed(&self) -> &RemovedTopics {
        &self.removed
    }

    /// Returns the end of the log if the queues of `topic` list all of its messages before it. `queues` are those on
    /// disk of the queues that `is_selected` selects.
    pub fn listed_to(
        &self,
        topic: &str,
        queues: &[ConsumeQueue],
        is_selected: impl Fn(i32) -> bool,
    ) -> Result<Option<u64>> {
        let Some(end) = self.log_end.filter(|_| self.is_known()) else { return Ok(None) };
        for queue in queues {
            if !self.ends_at(queue)? {
                return Ok(None);
            }
        }
        let noted = self.ends.of_topic(topic, &self.removed).filter(|(id, next)| is_selected(*id) && *next > 0);
        let mut ids: Vec<_> = noted.map(|(id, _)| id).collect();
        ids.retain(|id| queues.iter().all(|queue| queue.queue_id() != *id));
        // A queue that is not on the disk has lost its files.
        Ok(Some(end).filter(|_| ids.is_empty()))
    }

    /// Returns whether a queue ends where it did at the close.
    pub fn ends_at(&self, queue: &ConsumeQueue) -> Result<bool> {
        let mut noted = self.ends.of_topic(queue.topic(), &self.removed);
        let next = noted.find(|(id, _)| *id == queue.queue_id()).map(|(_, next)| next);
        Ok(self.is_known() && next == Some(queue.max_offset()?))
    }
}
