//! Consume queues against the log, both ways, in one pass: for each record the unit that shall list it, and for each unit
//! that was passed over the record that it should have led to.
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

/// All queues of a store, and how far each was read.
pub(super) struct Queues<'a> {
    store: &'a MessageStore,
    cursors: HashMap<String, BTreeMap<i32, Cursor>>,
    /// Those of which not all files are there.
    unknown: BTreeSet<(String, i32)>,
    listed_to: u64,
    forgotten: BTreeSet<String>,
    removed: RemovedTopics,
}

impl<'a> Queues<'a> {
    /// Queues with a file that is a link which leads nowhere are damage, and not compared.
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
        let removed = RemovedTopics::load(store.root()).unwrap_or_default(); // a file that cannot be read is damage of its own
        Ok(Self { store, cursors, unknown, listed_to: store.dispatched_to()?, forgotten: BTreeSet::new(), removed })
    }

    /// A record of the log: some queue lists it.
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
            // where the topic was made again, its queues begin anew
            Outcome::Misled(_) | Outcome::Unlisted(_) if self.removed.has(&topic, message) => report.forgotten += 1,
            Outcome::Misled(_) | Outcome::Unlisted(_) if offset >= self.listed_to => report.unlisted += 1,
            Outcome::Misled(damage) => report.damage.push(damage),
            Outcome::Unlisted(reason) => report.damage.push(self.store.log().damage(offset, 0, reason)),
            Outcome::Forgotten => report.forgotten += 1,
        }
        Ok(())
    }

    /// Units that no record asked for.
    pub(super) fn finish(&mut self, report: &mut VerifyReport) -> Result<()> {
        let mut log = RecordReader::new(self.store.log());
        for (topic, queues) in &mut self.cursors {
            for cursor in queues.values_mut() {
                report.queues += 1;
                // records name a light queue in a property only: its units are looked up one by one
                if topic.starts_with(LMQ) { cursor.follow(&mut log, report)? } else { cursor.pass(i64::MAX, report)? }
            }
        }
        let note = |topic: &String| format!("topic {topic}: its records have no consume queue, as after its deletion");
        report.notes.extend(self.forgotten.iter().map(note));
        Ok(())
    }

    /// A topic that the configuration does not name was deleted, if there is one; one whose queues are of another kind is not ours.
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
