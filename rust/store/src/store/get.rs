//! What a broker answers to a pull: a status, messages, and the offset to ask for next.
//!
//! Source: `DefaultMessageStore.getMessage`, `isTheBatchFull`; the tag string is compared as `PullAPIWrapper` does.
use super::MessageStore;
use super::commit_log::RecordReader;
use super::damage::Damage;
use super::get_limits::GetLimits;
pub use super::get_status::GetMessageStatus;
use super::multi_dispatch::LMQ;
use super::queue_view::QueueView;
use crate::Result;
use crate::filter::TagExpression;
use crate::format::consume_queue::{UNIT_SIZE, Unit, is_ext_address};
use crate::format::message::Message;
use crate::format::properties;

/// Units that a call looks at, at least: 16,000 bytes of them.
const UNITS: usize = 16_000 / UNIT_SIZE;

/// An answer.
#[derive(Clone, Debug)]
pub struct GetMessage {
    /// Before the tag strings are compared, as a broker says it.
    pub status: GetMessageStatus,
    /// Where to go on.
    pub next_begin_offset: i64,
    /// The queue's.
    pub min_offset: i64,
    /// The queue's.
    pub max_offset: i64,
    /// Whole records, those whose tag only shares a hash left out.
    pub records: Vec<Vec<u8>>,
    /// Whether the last message looked at is so far behind the log's end that a slave should be asked for the next.
    pub suggest_pulling_from_slave: bool,
    /// Units whose record is not there or not sound.
    pub damage: Vec<Damage>,
}

impl MessageStore {
    /// Messages of a queue from `offset` on, as many as are asked for.
    ///
    /// # Errors
    /// [`crate::Error::Unknown`] for a topic that the store does not have, [`crate::Error::Io`].
    pub fn get(
        &self,
        topic: &str,
        queue_id: i32,
        offset: i64,
        max_messages: usize,
        tags: &TagExpression,
    ) -> Result<GetMessage> {
        self.get_within((topic, queue_id, offset), max_messages, tags, GetLimits::of_count(max_messages))
    }

    /// Messages of a queue from an offset on, within the limits of a broker.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn get_within(
        &self,
        (topic, queue_id, offset): (&str, i32, i64),
        max_messages: usize,
        tags: &TagExpression,
        limits: GetLimits,
    ) -> Result<GetMessage> {
        let view = self.queue_view(topic, queue_id)?;
        let mut get = Get::new(self, &view, max_messages, tags, limits)?;
        let (status, next_begin_offset) = match refusal(&view, offset)? {
            Some(refused) => refused,
            None => {
                let scanned = get.run(offset)?;
                (get.status, offset + scanned)
            }
        };
        let suggest_pulling_from_slave = get.looked_at.is_some_and(|at| limits.is_in_disk(at, get.log_end));
        let mut records = get.records;
        records.retain(|r| Message::decode(r).is_some_and(|m| tags.matches(m.property(properties::TAGS))));
        let (min_offset, max_offset) = (view.min_offset(), view.max_offset());
        let damage = get.damage;
        Ok(GetMessage {
            status,
            next_begin_offset,
            min_offset,
            max_offset,
            records,
            suggest_pulling_from_slave,
            damage,
        })
    }
}

/// Why nothing is looked for at `offset`, and where to go on.
fn refusal(view: &QueueView, offset: i64) -> Result<Option<(GetMessageStatus, i64)>> {
    use GetMessageStatus::{NoMessageInQueue, OffsetFoundNull, OffsetOverflowBadly, OffsetOverflowOne, OffsetTooSmall};
    let (min, max) = (view.min_offset(), view.max_offset());
    Ok(match offset {
        _ if max == 0 => Some((NoMessageInQueue, 0)),
        _ if offset < min => Some((OffsetTooSmall, min)),
        _ if offset == max => Some((OffsetOverflowOne, offset)),
        _ if offset > max => Some((OffsetOverflowBadly, max)),
        _ if view.reader().unit(offset)?.is_none() => Some((OffsetFoundNull, behind_hole(view, offset))),
        _ => None,
    })
}

/// A broker goes on at the next file; where there is no file, at the next unit.
fn behind_hole(view: &QueueView, offset: i64) -> i64 {
    match view.units_per_file() {
        Some(units) if offset < view.disk_end() => offset + units - offset % units,
        _ => view.next_offset(offset).unwrap_or(view.max_offset()),
    }
}

struct Get<'a> {
    view: &'a QueueView,
    tags: &'a TagExpression,
    log: RecordReader<'a>,
    store: &'a MessageStore,
    max_messages: usize,
    limits: GetLimits,
    log_end: u64,
    /// Physical offset that the last unit leads to.
    looked_at: Option<i64>,
    skip_until: i64,
    status: GetMessageStatus,
    bytes: i32,
    records: Vec<Vec<u8>>,
    damage: Vec<Damage>,
}

impl<'a> Get<'a> {
    fn new(
        store: &'a MessageStore,
        view: &'a QueueView,
        max_messages: usize,
        tags: &'a TagExpression,
        limits: GetLimits,
    ) -> Result<Self> {
        Ok(Self {
            view,
            tags,
            log: RecordReader::new(store.log()),
            store,
            max_messages,
            limits,
            log_end: store.unlisted()?.log_end(),
            looked_at: None,
            skip_until: 0,
            status: GetMessageStatus::NoMatchedMessage,
            bytes: 0,
            records: Vec::new(),
            damage: Vec::new(),
        })
    }

    /// Looks at units up to the end of their file, or a hole; returns how many.
    fn run(&mut self, offset: i64) -> Result<i64> {
        let file_end = self.view.units_per_file().map_or(i64::MAX, |units| (offset / units + 1).saturating_mul(units));
        let end = file_end.min(self.view.max_offset()).min(offset.saturating_add(UNITS.max(self.max_messages) as i64));
        let mut units = self.view.reader();
        for at in offset..end {
            let Some(unit) = units.unit(at)? else { return Ok(at - offset) };
            self.looked_at = Some(unit.physical_offset);
            if unit.physical_offset < self.skip_until {
                continue;
            }
            let is_in_disk = self.limits.is_in_disk(unit.physical_offset, self.log_end);
            let filled = (self.records.len(), self.bytes);
            if self.limits.is_full(filled, self.max_messages, unit.size, is_in_disk) {
                return Ok(at - offset);
            }
            self.visit(at, unit)?;
        }
        Ok(end - offset)
    }

    fn visit(&mut self, queue_offset: i64, unit: Unit) -> Result<()> {
        if !is_ext_address(unit.tags_code) && !self.tags.codes_match(unit.tags_code) {
            self.miss(GetMessageStatus::NoMatchedMessage);
            return Ok(());
        }
        if unit.is_left_out() {
            self.miss(GetMessageStatus::MessageWasRemoving);
            return Ok(());
        }
        let physical_offset = u64::try_from(unit.physical_offset).unwrap_or(u64::MAX);
        let reason = match self.log.try_record(physical_offset)? {
            Ok(record) => match self.other_than(&record, queue_offset, unit.size) {
                None => {
                    self.status = GetMessageStatus::Found;
                    self.skip_until = 0;
                    self.bytes = self.bytes.wrapping_add(record.len() as i32);
                    self.records.push(record);
                    return Ok(());
                }
                Some(reason) => reason,
            },
            Err(_) if self.is_retired(physical_offset) => {
                self.miss(GetMessageStatus::MessageWasRemoving);
                return Ok(());
            }
            Err(reason) => {
                self.skip_file_of(physical_offset);
                reason
            }
        };
        self.miss(GetMessageStatus::MessageWasRemoving);
        let length = unit.size.max(0) as u64;
        self.damage.push(self.store.log().damage(physical_offset, length, reason));
        Ok(())
    }

    /// Whether retention removed the record since the store was opened, which is no damage; then the others of before the log's
    /// new beginning are not looked for.
    fn is_retired(&mut self, physical_offset: u64) -> bool {
        let log = self.store.log();
        let from = log.segments().find(physical_offset).and_then(|index| log.retained_from(index));
        self.skip_until = from.map_or(self.skip_until, |from| from as i64);
        from.is_some()
    }

    /// Where a file of the log is gone, its other messages are not looked for one by one.
    fn skip_file_of(&mut self, physical_offset: u64) {
        let segments = self.store.log().segments();
        if let (None, Some(size)) = (segments.find(physical_offset), segments.file_size()) {
            self.skip_until =
                ((physical_offset / size).saturating_add(1)).saturating_mul(size).min(i64::MAX as u64) as i64;
        }
    }

    /// What the record is, if not the one that the unit stands for.
    fn other_than(&self, record: &[u8], queue_offset: i64, size: i32) -> Option<String> {
        let message = Message::decode(record)?;
        let (topic, queue_id) = (self.view.topic(), self.view.queue_id());
        let ours = topic.starts_with(LMQ)
            || (message.topic() == topic.as_bytes()
                && message.queue_id() == queue_id
                && message.queue_offset() == queue_offset);
        if ours && record.len() == size.max(0) as usize {
            return None;
        }
        let found = String::from_utf8_lossy(message.topic());
        Some(format!(
            "expected {topic} queue {queue_id} offset {queue_offset} of {size} bytes, got {found} queue {} offset {} of {} bytes",
            message.queue_id(),
            message.queue_offset(),
            record.len()
        ))
    }

    fn miss(&mut self, status: GetMessageStatus) {
        if self.records.is_empty() {
            self.status = status;
        }
    }
}
