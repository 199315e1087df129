//! The request of a scan: filters, columns and limits of a batch.
use super::column::{Column, TimeUnit, schema};
use super::decode::format::Decode;
use crate::filter::{Sql92, TagExpression};
use crate::store::consume_queue::LMQ;
use crate::{Error, Result};
use arrow_schema::{Schema, SchemaRef};
use std::collections::BTreeMap;
use std::sync::Arc;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OffsetBound {
    Every(i64),
    /// Bounds by queue id. Other queues have no bound.
    ByQueue(BTreeMap<i32, i64>),
}

impl OffsetBound {
    pub fn of(&self, queue_id: i32) -> Option<i64> {
        match self {
            Self::Every(offset) => Some(*offset),
            Self::ByQueue(offsets) => offsets.get(&queue_id).copied(),
        }
    }
}

/// A request. The default selects all messages with all columns. A filter that is `None` selects everything.
#[derive(Clone, Debug)]
pub struct ScanRequest {
    pub topic: Option<String>,
    /// Several topics, used only if `topic` is `None`.
    pub among: Option<Vec<String>>,
    pub queue_ids: Option<Vec<i32>>,
    pub tags: TagExpression,
    pub sql: Option<Sql92>,
    /// Selects messages that have one of these keys in `KEYS` or as `UNIQ_KEY`.
    pub keys: Option<Vec<String>>,
    /// Selects messages that have a key with this prefix.
    pub keys_prefix: Option<String>,
    pub start_offset: Option<OffsetBound>,
    /// Queue offset that all messages must be before (exclusive).
    pub end_offset: Option<OffsetBound>,
    /// Earliest store timestamp, in milliseconds.
    pub start_time: Option<i64>,
    /// Store timestamp in milliseconds that all messages must be before (exclusive).
    pub end_time: Option<i64>,
    pub columns: Vec<Column>,
    /// The decoding of bodies into the column `value`.
    pub decode: Option<Decode>,
    /// The properties in the column `properties`. `None` for all.
    pub property_names: Option<PropertyNames>,
    pub time_unit: TimeUnit,
    /// Constant value of the column `broker_name`.
    pub broker_name: Option<String>,
    pub batch_rows: usize,
    /// Approximate maximum bytes of a batch. A batch ends behind the row that exceeds it.
    pub batch_bytes: usize,
    /// Checks the CRC of every body, and leaves out messages with a wrong CRC.
    pub verify_crc: bool,
    /// Whether bodies are checked when the column is built. A body with a wrong CRC becomes null. Used for rows whose
    /// CRC was not checked while the log was read.
    pub checks_bodies: bool,
    pub max_body_bytes: usize,
}

impl ScanRequest {
    pub const BATCH_ROWS: usize = 16_384;
    /// Default of `batch_bytes`. A batch of more than 4 MiB would not stay in the processor's cache.
    pub const BATCH_BYTES: usize = 2 << 20;
    pub const MAX_BATCH_ROWS: usize = 1 << 22;
    /// Largest `batch_bytes`. The 32-bit offsets of every column stay valid, even if the last row has the longest
    /// body and all strings are invalid UTF-8, which grows threefold when it is replaced.
    pub const MAX_BATCH_BYTES: usize = 256 << 20;
    pub const MAX_MAX_BODY_BYTES: usize = 1 << 30;
    pub const MAX_BODY_BYTES: usize = 64 << 20;

    /// Returns the schema of the batches.
    pub fn schema(&self) -> SchemaRef {
        let schema = schema(&self.columns, self.time_unit);
        let Some(decode) = &self.decode else { return schema };
        let mut fields = schema.fields().to_vec();
        decode.insert(&mut fields, Arc::new(decode.field()));
        Arc::new(Schema::new(fields))
    }

    /// Returns whether a filter needs the properties that have columns of their own: tags, keys and unique id.
    pub fn filters_properties(&self) -> bool {
        !self.tags.is_all() || self.keys.is_some() || self.keys_prefix.is_some()
    }

    /// Returns whether a filter or a column needs the properties that have columns of their own.
    pub fn needs_properties(&self) -> bool {
        self.filters_properties() || self.columns.iter().copied().any(Column::needs_properties)
    }

    /// Returns whether a message passes the filters by key. `keys` holds the message's keys, separated by spaces.
    pub fn keys_match(&self, uniq_key: Option<&[u8]>, keys: Option<&[u8]>) -> bool {
        let has = |matches: &dyn Fn(&[u8]) -> bool| {
            uniq_key.is_some_and(matches) || keys.is_some_and(|keys| keys.split(|byte| *byte == b' ').any(matches))
        };
        self.keys.as_ref().is_none_or(|keys| has(&|word| keys.iter().any(|key| key.as_bytes() == word)))
            && self.keys_prefix.as_ref().is_none_or(|prefix| has(&|word| word.starts_with(prefix.as_bytes())))
    }

    #[inline]
    pub fn times_match(&self, store_timestamp: i64) -> bool {
        self.start_time.is_none_or(|from| store_timestamp >= from)
            && self.end_time.is_none_or(|end| store_timestamp < end)
    }

    pub fn topics(&self) -> Option<&[String]> {
        self.topic.as_ref().map(std::slice::from_ref).or(self.among.as_deref())
    }

    /// Returns whether the request asks for light queues (LMQ), whose records carry the topic, queue and offset of another
    /// queue.
    pub fn has_light_queues(&self) -> bool {
        self.topics().is_some_and(|topics| topics.iter().any(|topic| topic.starts_with(LMQ)))
    }

    pub fn has_queue(&self, queue_id: i32) -> bool {
        self.queue_ids.as_ref().is_none_or(|ids| ids.contains(&queue_id))
    }

    /// Returns whether the filters by topic, queue and queue offset select the place of a message.
    #[inline]
    pub fn has_place(&self, (topic, queue_id, offset): (&[u8], i32, i64)) -> bool {
        let is_one = |topics: &[String]| topics.iter().any(|name| name.as_bytes() == topic);
        self.topics().is_none_or(is_one)
            && self.has_queue(queue_id)
            && self.start_offset.as_ref().and_then(|bound| bound.of(queue_id)).is_none_or(|from| offset >= from)
            && self.end_offset.as_ref().and_then(|bound| bound.of(queue_id)).is_none_or(|end| offset < end)
    }

    /// Returns the part of a range of queue offsets that is within the request's bounds. All ends are exclusive.
    pub fn within_bounds(&self, queue_id: i32, (first, end): (i64, i64)) -> (i64, i64) {
        let bound = |bound: &Option<OffsetBound>| bound.as_ref().and_then(|b| b.of(queue_id));
        let first = bound(&self.start_offset).map_or(first, |start| first.max(start));
        (first, bound(&self.end_offset).map_or(end, |last| end.min(last)))
    }
}

impl Default for ScanRequest {
    fn default() -> Self {
        Self {
            topic: None,
            among: None,
            queue_ids: None,
            tags: TagExpression::all(),
            sql: None,
            keys: None,
            keys_prefix: None,
            start_offset: None,
            end_offset: None,
            start_time: None,
            end_time: None,
            columns: Column::ALL.to_vec(),
            decode: None,
            property_names: None,
            time_unit: TimeUnit::default(),
            broker_name: None,
            batch_rows: Self::BATCH_ROWS,
            batch_bytes: Self::BATCH_BYTES,
            verify_crc: false,
            checks_bodies: false,
            max_body_bytes: Self::MAX_BODY_BYTES,
        }
    }
}

/// Names of the properties in the column `properties`. They are compared as bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PropertyNames(Vec<String>);

impl PropertyNames {
    /// Creates the list from `names`. Fails if `names` or one of the names is empty.
    pub fn of(names: Vec<String>) -> Result<Self> {
        if names.is_empty() {
            return Err(Error::invalid("property_names", "at least one name", "none"));
        }
        if names.iter().any(String::is_empty) {
            return Err(Error::invalid("property_names", "names of properties", "an empty one"));
        }
        Ok(Self(names))
    }

    #[inline]
    pub fn has(&self, name: &[u8]) -> bool {
        self.0.iter().any(|chosen| chosen.as_bytes() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_and_an_empty_one_are_refused() {
        let refused = |names: &[&str]| {
            let names = names.iter().map(|name| (*name).to_owned()).collect();
            PropertyNames::of(names).expect_err("refused").to_string()
        };
        assert_eq!(refused(&[]), "property_names: expected at least one name, got none");
        assert_eq!(refused(&["color", ""]), "property_names: expected names of properties, got an empty one");
    }
}
