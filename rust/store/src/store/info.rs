//! Summarizes a store. Reads file names, headers, and the first and last record. To detect losses it also reads the consume
//! queues, 20 bytes per message.
use super::commit_log::LostEnd;
use super::config_files::ConfigFile;
use super::consume_queue::LMQ;
use super::generation::RemovedTopics;
use super::index_files::IndexFile;
use super::message_store::{MessageStore, QueueKind};
use super::queue_ends::QueueEnds;
use crate::Result;
use crate::file::{Place, SegmentFile, place};
use crate::format::checkpoint::Checkpoint;
use crate::format::consume_queue::UNIT_SIZE;
use crate::format::message::{MAGIC_V2, Message};
use crate::format::properties::PROPERTY_END;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const MOST_NAMED: usize = 5;

#[derive(Clone, Debug)]
pub struct StoreInfo {
    /// `4.x` or `5.x`, guessed; `None` for a store without messages and configuration.
    pub version: Option<&'static str>,
    pub commit_log_files: usize,
    /// Bytes of a commit-log file (`mappedFileSizeCommitLog`).
    pub commit_log_file_size: Option<u64>,
    pub min_offset: u64,
    /// Physical offset of the end of the last valid record.
    pub max_offset: u64,
    pub queue_kind: QueueKind,
    /// Bytes of a consume-queue file (`mappedFileSizeConsumeQueue`).
    pub consume_queue_file_size: Option<u64>,
    pub topics: usize,
    pub index: Arc<Vec<IndexFile>>,
    pub aborted: bool,
    pub checkpoint: Option<Checkpoint>,
    /// Store timestamps of the first and the last message, in milliseconds.
    pub store_timestamps: Option<(i64, i64)>,
    pub notes: Vec<String>,
}

impl MessageStore {
    pub fn info(&self) -> Result<StoreInfo> {
        let tail = self.unlisted()?;
        let index = self.index_files()?;
        let first = self.first_record()?;
        let segments = self.log().segments();
        let mut notes = self.notes();
        notes.extend(index_notes(&index));
        notes.extend(self.lost_note()?);
        notes.extend(self.lost_end_note()?);
        notes.extend(self.damage_note()?);
        notes.extend(self.short_notes()?);
        notes.extend(self.odd_notes()?);
        if self.queue_kind() == QueueKind::RocksDb {
            notes.push("consume queues are in RocksDB: messages are found through the commit log".to_owned());
        }
        Ok(StoreInfo {
            version: self.version(first.as_deref())?,
            commit_log_files: segments.files().len(),
            commit_log_file_size: segments.file_size(),
            min_offset: self.log().min_offset(),
            max_offset: tail.log_end(),
            queue_kind: self.queue_kind(),
            consume_queue_file_size: self.queue_file_size()?,
            topics: self.topic_names()?.into_iter().chain(self.topics()?.into_keys()).collect::<BTreeSet<_>>().len(),
            index,
            aborted: self.has_abort()?,
            checkpoint: self.checkpoint()?,
            store_timestamps: self.store_timestamps(first.as_deref())?,
            notes,
        })
    }

    /// Returns a note about messages that queues do not list, if there are any, with the command to repair the queues.
    fn lost_note(&self) -> Result<Option<String>> {
        let missing = self.missing()?;
        let topics = missing.topics().flat_map(|topic| missing.queue_ids(topic).map(move |id| (topic, id)));
        let counts = topics.map(|(topic, id)| (topic, id, missing.units(topic, id).len()));
        let queues: Vec<_> = counts.map(|(topic, id, count)| format!("{topic} {id} lacks {count}")).collect();
        let (some, more) = (queues.iter().take(MOST_NAMED).map(String::as_str).collect::<Vec<_>>(), queues.len());
        let others = more.saturating_sub(MOST_NAMED);
        let others = if others > 0 { format!(" and {others} queues more") } else { String::new() };
        Ok((more > 0).then(|| {
            let queues = some.join(", ");
            format!(
                "consume queues do not list messages that the log has, which are read from there: {queues}{others}; \
                     `rmqfast store repair DIR` lists them again"
            )
        }))
    }

    fn lost_end_note(&self) -> Result<Option<String>> {
        self.check_end()?;
        Ok(self.log().lost_end().flatten().map(|lost| {
            let LostEnd { end, witness } = lost;
            format!("expected the commit log to end at {end} or behind, as {witness} says: messages are lost; `rmqfast store repair DIR` shows which")
        }))
    }

    /// Returns a note if there is damage in a part of the log that queues do not list, since this makes the bounds of
    /// the queues uncertain.
    fn damage_note(&self) -> Result<Option<String>> {
        let (missing, unlisted) = (self.missing()?, self.unlisted()?);
        let mut places = missing.damage().entries().iter().chain(unlisted.damage().entries());
        let first = places.next();
        Ok(first
            .map(|first| format!("{} damaged places where queues are read from the log: {first}", 1 + places.count())))
    }

    /// Returns notes about queues that are shorter than before. They end before an offset that they have assigned to
    /// a message.
    fn short_notes(&self) -> Result<Vec<String>> {
        // An unreadable list of removed topics is an error: the queues of removed topics would look lost.
        let (ends, removed, topics) =
            (QueueEnds::load(self.root())?, RemovedTopics::load(self.root())?, self.topics()?);
        // Ends that were saved after this store was opened tell nothing about what it sees. If they are ahead of the
        // log as it is now, too, messages are lost.
        let is_newer = ends.log_end > self.unlisted()?.log_end();
        if is_newer && ends.log_end <= self.as_of_now()?.unlisted()?.log_end() {
            return Ok(QueueEnds::fault(self.root())?.into_iter().collect());
        }
        let end_of =
            |topic: &str, id: i32| topics.get(topic).and_then(|queues| queues.get(&id)).map_or(0, |(_, end)| *end);
        let short = ends.short(&removed, end_of);
        let short = short.map(|short| format!("{short}: it has lost its files; they are not given again"));
        Ok(QueueEnds::fault(self.root())?.into_iter().chain(first_of(short.collect())).collect())
    }

    /// Returns notes about queue files whose size differs from most others. The bounds of their queues may be wrong.
    fn odd_notes(&self) -> Result<Vec<String>> {
        let mut queues = self.all_queues()?;
        // Files of light queues have another size.
        queues.retain(|queue| !queue.topic().starts_with(LMQ));
        let files: Vec<_> =
            queues.iter().flat_map(|queue| queue.segments().files()).filter(|f| !f.is_missing).collect();
        let mut counts = BTreeMap::new();
        for file in &files {
            *counts.entry(file.len).or_insert(0_usize) += 1;
        }
        // Of two sizes that are equally frequent, the greater size counts.
        let Some((size, _)) = counts.into_iter().max_by_key(|(size, count)| (*count, *size)) else {
            return Ok(Vec::new());
        };
        let note = |file: &SegmentFile| {
            let (path, len) = (file.path.display(), file.len);
            format!("{path}: expected {size} bytes, as most files of queues have, got {len}")
        };
        Ok(first_of(files.iter().copied().filter(|file| file.len != size).map(note).collect()))
    }

    fn first_record(&self) -> Result<Option<Vec<u8>>> {
        let mut reader = super::commit_log::RecordReader::new(self.log());
        Ok(reader.try_record(self.log().min_offset())?.ok())
    }

    /// Returns the size of consume-queue files (`mappedFileSizeConsumeQueue`). Skips damaged files, whose size is not
    /// a multiple of 20, the size of an entry.
    pub fn queue_file_size(&self) -> Result<Option<u64>> {
        for topic in self.queue_topics()? {
            for queue in self.queues(&topic)? {
                let size = queue.segments().file_size().filter(|size| size % UNIT_SIZE as u64 == 0);
                if size.is_some() {
                    return Ok(size);
                }
            }
        }
        Ok(None)
    }

    /// Returns the store timestamps of the first record, and of the last record that a consume queue lists.
    fn store_timestamps(&self, first: Option<&[u8]>) -> Result<Option<(i64, i64)>> {
        let Some(first) = first.and_then(Message::decode).map(|m| m.store_timestamp()) else { return Ok(None) };
        let mut newest = None;
        for (topic, queues) in self.topics()? {
            for (id, (_, max)) in queues {
                let view = self.queue_view(&topic, id)?;
                // The last unit of a queue points to the newest message of the queue.
                newest = newest.max(view.reader().unit(max - 1)?.filter(|u| u.is_message()).map(|u| u.physical_offset));
            }
        }
        let Some(newest) = newest.and_then(|offset| u64::try_from(offset).ok()) else {
            return Ok(Some((first, first)));
        };
        let record = super::commit_log::RecordReader::new(self.log()).try_record(newest)?.ok();
        let last = record.as_deref().and_then(Message::decode).map_or(first, |m| m.store_timestamp());
        Ok(Some((first, last)))
    }

    /// Guesses the version. Signs of 5.x are a process id in `abort`, files and fields that 4.9 does not have, and a separator
    /// at the end of properties.
    fn version(&self, first: Option<&[u8]>) -> Result<Option<&'static str>> {
        let config = self.topics_config();
        let message = first.and_then(Message::decode);
        if message.is_none() && config.value.is_none() {
            return Ok(None);
        }
        // 5.x writes its process id into `abort`, and 4.x leaves the file empty.
        let mut has_files = Place::metadata(&self.root().join("abort"))?.is_some_and(|stat| !stat.is_empty());
        for name in ["abort.bak", "timerwheel", "timerlog", "config/consumerOrderInfo.json"] {
            has_files |= place::exists(&self.root().join(name))?;
        }
        let by_record = message.is_some_and(|m| {
            // 4.x neither writes V2 records nor ends properties with a separator.
            m.record().get(4..8) == Some(&MAGIC_V2.to_be_bytes()) || m.properties().last() == Some(&PROPERTY_END)
        });
        let is_5 = by_record || has_files || self.queue_kind() == QueueKind::RocksDb || has_state_version(config);
        Ok(Some(if is_5 { "5.x" } else { "4.x" }))
    }
}

fn has_state_version(config: &ConfigFile) -> bool {
    let version = config.value.as_ref().and_then(|value| value.get("dataVersion"));
    version.is_some_and(|version| version.get("stateVersion").is_some())
}

/// Keeps the first notes of one kind. Replaces the others by a note with their number.
fn first_of(mut notes: Vec<String>) -> Vec<String> {
    let others = notes.len().saturating_sub(MOST_NAMED);
    notes.truncate(MOST_NAMED);
    notes.extend((others > 0).then(|| format!("{others} notes more of this kind")));
    notes
}

pub fn index_notes(files: &[IndexFile]) -> impl Iterator<Item = String> {
    let unknown = files.iter().filter(|file| file.is_missing || file.geometry.is_none() && file.entries() > 0);
    unknown.map(|file| {
        let path = file.path.display();
        if file.is_missing {
            return format!("{path}: a link that leads nowhere; the log is read instead");
        }
        format!("{path}: slots and entries do not follow from what it holds; the log is read instead")
    })
}
