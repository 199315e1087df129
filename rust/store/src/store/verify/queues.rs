//! Checks consume queues and the log against each other in one pass. Each record must have its entry, and each entry
//! its record.
use super::cursor::{Cursor, Outcome};
use super::report::VerifyReport;
use crate::file::place;
use crate::format::message::Message;
use crate::store::commit_log::RecordReader;
use crate::store::damage::Damage;
use crate::store::message_store::{MessageStore, QueueKind};
use crate::store::multi_dispatch::LMQ;
use crate::store::removed_topics::RemovedTopics;
use crate::{Error, Result};
use std::collections::{BTreeMap, BTreeSet, HashMap};

pub(super) struct Queues<'a> {
    store: &'a MessageStore,
    cursors: HashMap<String, BTreeMap<i32, Cursor>>,
    /// Queues that have a missing file. They are not compared.
    unknown: BTreeSet<(String, i32)>,
    /// Log offset from which on records may be unlisted, because a broker lists these records at its next start.
    listed_to: u64,
    /// Topics that were deleted, but whose records are still in the log.
    forgotten: BTreeSet<String>,
    removed: RemovedTopics,
}

impl<'a> Queues<'a> {
    /// Opens all queues. Reports queues with a dead link as damage.
    pub(super) fn new(store: &'a MessageStore, report: &mut VerifyReport) -> Result<Self> {
        let mut log = RecordReader::new(store.log());
        let mut unknown = BTreeSet::new();
        let mut cursors: HashMap<String, BTreeMap<i32, Cursor>> = HashMap::new();
        for topic in store.queue_topics()? {
            let queues = cursors.entry(topic.clone()).or_default();
            for queue in store.queues(&topic)? {
                if let Some(Error::Corrupt { path, reason, .. }) =
                    queue.segments().first_without_file().map(place::no_file)
                {
                    report.damage.push(Damage { offset: 0, length: 0, reason, file: path });
                    unknown.insert((topic.clone(), queue.queue_id()));
                    continue;
                }
                queues.insert(queue.queue_id(), Cursor::new(queue, store.log().min_offset(), &mut log)?);
            }
        }
        cursors.retain(|_, queues| !queues.is_empty());
        // The check of the configuration reports an unreadable list of removed topics.
        let removed = RemovedTopics::load(store.root()).unwrap_or_default();
        Ok(Self { store, cursors, unknown, listed_to: store.dispatched_to()?, forgotten: BTreeSet::new(), removed })
    }

    /// Compares a record of the log with its queue.
    pub(super) fn meet(&mut self, message: &Message<'_>, report: &mut VerifyReport) -> Result<()> {
        let topic = String::from_utf8_lossy(message.topic());
        let offset = message.physical_offset() as u64;
        if !self.unknown.is_empty() && self.unknown.contains(&(topic.clone().into_owned(), message.queue_id())) {
            return Ok(());
        }
        let outcome = match self.cursors.get_mut(topic.as_ref()) {
            _ if self.store.queue_kind() != QueueKind::Files => Outcome::Unlisted(String::new()),
            None => self.without_queues(&topic)?,
            Some(queues) => match queues.get_mut(&message.queue_id()) {
                Some(cursor) => cursor.meet(message, &topic, report)?,
                None => Outcome::Unlisted(format!("topic {topic} has no consume queue {}", message.queue_id())),
            },
        };
        match outcome {
            Outcome::Listed => report.units += 1,
            // The queues of a topic that was created again begin at 0.
            Outcome::Misled(_) | Outcome::Unlisted(_) if self.removed.has(&topic, message) => report.forgotten += 1,
            Outcome::Misled(_) | Outcome::Unlisted(_) if offset >= self.listed_to => report.unlisted += 1,
            Outcome::Misled(damage) => report.damage.push(damage),
            Outcome::Unlisted(reason) => report.damage.push(self.store.log().damage(offset, 0, reason)),
            Outcome::Forgotten => report.forgotten += 1,
        }
        Ok(())
    }

    /// Reports the entries that matched no record.
    pub(super) fn finish(&mut self, report: &mut VerifyReport) -> Result<()> {
        let mut log = RecordReader::new(self.store.log());
        for (topic, queues) in &mut self.cursors {
            for cursor in queues.values_mut() {
                report.queues += 1;
                // The records of a light queue name it only in a property, so its units are checked one by one.
                if topic.starts_with(LMQ) { cursor.follow(&mut log, report)? } else { cursor.pass(i64::MAX, report)? }
            }
        }
        let note = |topic: &String| format!("topic {topic}: its records have no consume queue, as after its deletion");
        report.notes.extend(self.forgotten.iter().map(note));
        Ok(())
    }

    /// Judges a record of a topic without queues. If there is a configuration and the topic is not in it, the topic
    /// was deleted. Topics with batch queues are ignored.
    fn without_queues(&mut self, topic: &str) -> Result<Outcome> {
        let config = self.store.topics_config();
        let is_configured = config.is_missing() || config.topics().any(|name| name == topic);
        let is_batch = place::is_directory(&self.store.root().join("batchconsumequeue").join(topic))?;
        if is_configured && !is_batch {
            return Ok(Outcome::Unlisted(format!("topic {topic} has no consume queue")));
        }
        self.forgotten.insert(topic.to_owned());
        Ok(Outcome::Forgotten)
    }
}
