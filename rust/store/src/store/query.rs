//! Finds messages by key and by message id, in the index files and in the sections of the log that no index file covers.
//!
//! The search runs from the end of the log to its start. An index file is looked up; a section without an index file is read
//! record by record. Two keys may have the same hash, so each message found is compared with the key itself.
//!
//! Source: `IndexService.buildIndex`, `queryOffset`; `DefaultMessageStore.queryMessage`; `MQAdminImpl.queryMessage`.
use super::commit_log::{Damage, DamageLog, LostEnd, RecordReader};
use super::consume_queue::UnitReader;
use super::index_files::IndexFile;
use super::log_walk::LogWalk;
use super::message_store::MessageStore;
use crate::Result;
use crate::format::consume_queue::Unit;
use crate::format::host::Host;
use crate::format::index::index_hash;
use crate::format::message::{Message, TRANSACTION_MASK, TRANSACTION_ROLLBACK};
use crate::format::message_id::OffsetMessageId;
use crate::format::properties;
use memchr::memmem::Finder;
use std::collections::VecDeque;
use std::collections::btree_map::{BTreeMap, Entry};

/// A callback that is called between reads. Its error ends the search and is returned.
pub type Interrupt<'a> = &'a mut dyn FnMut() -> Result<()>;

#[derive(Clone, Debug)]
pub struct KeyQuery<'a> {
    pub topics: &'a [String],
    pub key: &'a str,
    /// Whether the key is only compared with `UNIQ_KEY`, and not with `KEYS`.
    pub unique: bool,
    /// Maximum number of messages. If more messages match, the newest are returned.
    pub max_messages: usize,
    /// Lowest store timestamp, in milliseconds.
    pub begin: i64,
    /// Highest store timestamp, in milliseconds.
    pub end: i64,
}

#[derive(Debug, Default)]
pub struct QueryResult {
    /// The records found, by physical offset.
    pub records: BTreeMap<u64, Vec<u8>>,
    pub damage: DamageLog,
}

impl KeyQuery<'_> {
    fn matches(&self, message: &Message<'_>) -> bool {
        let topic = message.topic();
        let time = message.store_timestamp();
        self.topics.iter().any(|t| t.as_bytes() == topic)
            && self.begin <= time
            && time <= self.end
            && (message.layout().sys_flag & TRANSACTION_MASK) != TRANSACTION_ROLLBACK
            && has_key(message, self.key.as_bytes(), self.unique)
    }
}

fn has_key(message: &Message<'_>, key: &[u8], unique: bool) -> bool {
    let words = message.property(properties::KEYS).filter(|_| !unique).unwrap_or_default().split(|b| *b == b' ');
    message.property(properties::UNIQ_KEY) == Some(key) || words.filter(|word| !word.is_empty()).any(|word| word == key)
}

impl MessageStore {
    /// Returns the newest messages with a key. Fails with [`crate::Error::Unknown`] if no message matches and the store does
    /// not have the topic.
    pub fn query(&self, query: &KeyQuery<'_>, interrupt: Interrupt<'_>) -> Result<QueryResult> {
        // A damaged store time may be negative, so 0 means "from the beginning".
        let begin = if query.begin > 0 { query.begin } else { i64::MIN };
        let query = &KeyQuery { begin, ..query.clone() };
        let mut search =
            Search { store: self, query, hits: QueryResult::default(), log: RecordReader::new(self.log()) };
        search.run(interrupt)?;
        if let ([topic], true) = (query.topics, search.hits.records.is_empty()) {
            self.check_topic(topic)?;
        }
        Ok(search.hits)
    }

    /// Returns the record that has the given offset message id or unique id, in `topic` or in any topic. If several
    /// records have the id, returns the one stored first.
    pub fn message_by_id(&self, id: &str, topic: Option<&str>, interrupt: Interrupt<'_>) -> Result<QueryResult> {
        let is_ours = |m: &Message<'_>| topic.is_none_or(|topic| topic.as_bytes() == m.topic());
        let mut result = self.by_offset_id(id)?;
        result.records.retain(|_, record| Message::decode(record).is_some_and(|m| is_ours(&m)));
        if !result.records.is_empty() {
            return Ok(result);
        }
        let topics = match topic {
            Some(topic) => vec![topic.to_owned()],
            None => self.topics()?.into_keys().chain(self.topic_names()?).collect(),
        };
        let query = KeyQuery { topics: &topics, key: id, unique: true, max_messages: 64, begin: 0, end: i64::MAX };
        let by_key = self.query(&query, interrupt)?;
        result.damage.append(by_key.damage);
        let time = |(_, record): &(u64, Vec<u8>)| Message::decode(record).map(|m| m.store_timestamp());
        result.records.extend(by_key.records.into_iter().min_by_key(time));
        Ok(result)
    }

    /// Returns the record at the offset in an offset message id, if the host in the id is the host that stored the record.
    fn by_offset_id(&self, id: &str) -> Result<QueryResult> {
        let mut result = QueryResult::default();
        let Some(OffsetMessageId { host, physical_offset }) = OffsetMessageId::parse(id) else { return Ok(result) };
        let Ok(offset) = u64::try_from(physical_offset) else { return Ok(result) };
        // The offset is behind the end of the snapshot.
        if offset >= self.end() {
            result.damage.extend(self.lost_behind_end(offset)?);
            return Ok(result);
        }
        match RecordReader::new(self.log()).try_record(offset)? {
            Ok(record) => {
                let host_of = |record: &[u8]| Message::decode(record).and_then(|m| Host::decode(m.store_host()));
                result.records.extend((host_of(&record) == Some(host)).then_some((offset, record)));
            }
            Err(_) if offset >= self.unlisted()?.log_end() => result.damage.extend(self.lost_behind_end(offset)?),
            // A caller may pass any offset in an id. It is a loss only if a queue lists the offset.
            Err(reason) if self.is_listed_at(offset)? => result.damage.extend(self.damage_at(offset, reason)?),
            Err(_) => {}
        }
        Ok(result)
    }

    /// Returns damage if the log has lost its end and `offset` is in the lost part.
    pub(super) fn lost_behind_end(&self, offset: u64) -> Result<Option<Damage>> {
        self.check_end()?;
        // The offset may be behind the lost end, too; then the length is 0.
        let lost_end = self.log().lost_end().flatten();
        Ok(lost_end.map(|LostEnd { end, witness }| {
            let reason = format!("expected the commit log to end at {end} or behind, as {witness} says");
            self.log().damage(offset, end.saturating_sub(offset), reason)
        }))
    }

    fn is_listed_at(&self, offset: u64) -> Result<bool> {
        for queue in self.all_queues()? {
            let at = queue.lower_bound(offset, queue.max_offset()?)?;
            let unit = UnitReader::new(&queue).unit(at)?.filter(Unit::is_message);
            if unit.is_some_and(|unit| unit.physical_offset as u64 == offset) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns damage for a listed record that cannot be read. Returns `None` if the record is before the start of the
    /// log.
    fn damage_at(&self, offset: u64, reason: String) -> Result<Option<Damage>> {
        let log = self.log();
        let index = log.segments().find(offset);
        let end = self.unlisted()?.log_end();
        // After a crash an index entry may point behind the end of the log.
        if offset >= end {
            return self.lost_behind_end(offset);
        }
        let is_within = offset >= log.min_offset();
        let is_removed = index.is_some_and(|index| log.retained_from(index).is_some());
        Ok((is_within && !is_removed).then(|| log.damage(offset, 0, reason)))
    }
}

struct Search<'a> {
    store: &'a MessageStore,
    query: &'a KeyQuery<'a>,
    hits: QueryResult,
    log: RecordReader<'a>,
}

impl Search<'_> {
    fn run(&mut self, interrupt: Interrupt<'_>) -> Result<()> {
        let (start, mut end) = (self.store.log().min_offset(), self.store.end());
        let files = self.store.index_files()?;
        for file in files.iter().rev().filter(|file| file.geometry.is_some() && file.entries() > 0) {
            interrupt()?;
            // A damaged header may contain any offset.
            let within = |offset: i64| u64::try_from(offset).unwrap_or(0).clamp(start, end);
            let (first, last) = (within(file.header.begin_phy_offset), within(file.header.end_phy_offset));
            // No index file covers the section behind this index file.
            self.scan(last, end, interrupt)?;
            if self.is_full() {
                return Ok(());
            }
            self.look_up(file)?;
            end = first;
            // Earlier sections of the log have only earlier messages.
            if self.is_full() || file.header.begin_timestamp < self.query.begin {
                return Ok(());
            }
        }
        self.scan(start, end, interrupt)
    }

    fn is_full(&self) -> bool {
        self.hits.records.len() >= self.query.max_messages
    }

    fn look_up(&mut self, file: &IndexFile) -> Result<()> {
        let (store, query, hits, log) = (self.store, self.query, &mut self.hits, &mut self.log);
        let mut reader = match file.open() {
            Ok(Some(reader)) if file.header.end_timestamp >= query.begin => reader,
            // Retention has removed the file, and its messages, too.
            Err(error) if error.is_not_found() => return Ok(()),
            other => return other.map(|_| ()),
        };
        for topic in query.topics {
            let mut visit = |offset: i64| {
                let Some(offset) = u64::try_from(offset).ok().filter(|offset| *offset < store.end()) else {
                    return Ok(true);
                };
                // After a crash a message may have two index entries.
                if let Entry::Vacant(place) = hits.records.entry(offset) {
                    match log.try_record(offset)? {
                        Ok(record) if Message::decode(&record).is_some_and(|m| query.matches(&m)) => {
                            place.insert(record);
                        }
                        Ok(_) => {}
                        Err(reason) => hits.damage.extend(store.damage_at(offset, reason)?),
                    }
                }
                Ok(hits.records.len() < query.max_messages)
            };
            let hash = index_hash(topic, query.key);
            let damage = reader.query(hash, (query.begin, query.end), &mut visit)?;
            damage.into_iter().for_each(|damage: Damage| hits.damage.push(damage));
        }
        Ok(())
    }

    /// Searches the records that start in `[from, end)`. If too many match, keeps the last of them.
    fn scan(&mut self, from: u64, end: u64, interrupt: Interrupt<'_>) -> Result<()> {
        let room = self.query.max_messages.saturating_sub(self.hits.records.len());
        let finder = Finder::new(self.query.key.as_bytes());
        let mut newest = VecDeque::new();
        let mut walk = LogWalk::new(self.store.log().clone(), from, end, 0);
        while from < end && walk.advance(&mut self.hits.damage)? {
            interrupt()?;
            let block = walk.block();
            for record in block.records {
                let bytes = block.bytes.get(record.at as usize..).unwrap_or_default();
                let Some(message) = Message::new(bytes, record.layout) else { continue };
                // A search for the bytes is cheaper than parsing all properties.
                if finder.find(message.properties()).is_some() && self.query.matches(&message) {
                    newest.push_back((message.physical_offset() as u64, message.record().to_vec()));
                }
            }
            // A section is read forwards, so older matches are dropped here.
            newest.drain(..newest.len().saturating_sub(room));
        }
        self.hits.records.extend(newest);
        Ok(())
    }
}
