//! What a scan shall give: which messages, which columns, in batches of what size.
use super::column::{Column, TimeUnit};
use super::property_names::PropertyNames;
use crate::filter::{Sql92, TagExpression};
use std::collections::BTreeMap;

/// A bound on queue offsets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OffsetBound {
    /// The same in every queue.
    Every(i64),
    /// By queue; a queue that is not named has no bound.
    ByQueue(BTreeMap<i32, i64>),
}

impl OffsetBound {
    /// The bound of one queue.
    pub fn of(&self, queue_id: i32) -> Option<i64> {
        match self {
            Self::Every(offset) => Some(*offset),
            Self::ByQueue(offsets) => offsets.get(&queue_id).copied(),
        }
    }
}

/// A scan. The default gives every message with all columns.
#[derive(Clone, Debug)]
pub struct ScanRequest {
    pub topic: Option<String>,
    /// Only these topics, where `topic` names none.
    pub among: Option<Vec<String>>,
    pub queue_ids: Option<Vec<i32>>,
    /// Only these tags: hash first, then the string.
    pub tags: TagExpression,
    /// Only what this says of the properties.
    pub sql: Option<Sql92>,
    /// Only messages with one of these keys, in `KEYS` or as `UNIQ_KEY`.
    pub keys: Option<Vec<String>>,
    /// Only messages of which a key begins so.
    pub keys_prefix: Option<String>,
    /// Queue offsets from here on.
    pub start_offset: Option<OffsetBound>,
    /// Queue offsets before this.
    pub end_offset: Option<OffsetBound>,
    /// Store timestamps from here on, ms.
    pub start_time: Option<i64>,
    /// Store timestamps before this, ms.
    pub end_time: Option<i64>,
    /// Columns to build, in this order.
    pub columns: Vec<Column>,
    /// The column `properties` has only these; `None` for all.
    pub property_names: Option<PropertyNames>,
    /// Unit of the timestamps.
    pub time_unit: TimeUnit,
    /// The value of `broker_name`.
    pub broker_name: Option<String>,
    /// Rows of a batch at most.
    pub batch_rows: usize,
    /// Bytes of a batch, about: it ends with the row that passes them.
    pub batch_bytes: usize,
    /// Check every body against its CRC, and leave out what differs.
    pub verify_crc: bool,
    /// A body that differs from its CRC is null: for rows that nobody has compared before they are built.
    pub checks_bodies: bool,
    /// Bytes of a decompressed body at most.
    pub max_body_bytes: usize,
}

impl ScanRequest {
    /// Rows of a batch unless asked otherwise.
    pub const BATCH_ROWS: usize = 16_384;
    /// Bytes of a batch unless asked otherwise: more than 4 MiB falls out of the processor's cache.
    pub const BATCH_BYTES: usize = 2 << 20;
    /// Rows of a batch, whatever is asked.
    pub const MAX_BATCH_ROWS: usize = 1 << 22;
    /// Bytes of a batch, whatever is asked: the 32-bit offsets of every column hold even if all text is malformed and grows
    /// threefold, and one body comes on top.
    pub const MAX_BATCH_BYTES: usize = 256 << 20;
    /// Bytes of a decompressed body, whatever is asked.
    pub const MAX_MAX_BODY_BYTES: usize = 1 << 30;
    /// Bytes of a decompressed body unless asked otherwise.
    pub const MAX_BODY_BYTES: usize = 64 << 20;

    /// Whether any filter looks at the three properties that have columns.
    pub fn filters_properties(&self) -> bool {
        !self.tags.is_all() || self.keys.is_some() || self.keys_prefix.is_some()
    }

    /// Whether any column or filter looks at the three properties that have columns.
    pub fn needs_properties(&self) -> bool {
        self.filters_properties() || self.columns.iter().copied().any(Column::needs_properties)
    }

    /// Whether a message is wanted by its key `UNIQ_KEY` and the words of its `KEYS`.
    pub fn keys_match(&self, uniq_key: Option<&[u8]>, keys: Option<&[u8]>) -> bool {
        let has = |is_wanted: &dyn Fn(&[u8]) -> bool| {
            uniq_key.is_some_and(is_wanted) || keys.is_some_and(|keys| keys.split(|byte| *byte == b' ').any(is_wanted))
        };
        self.keys.as_ref().is_none_or(|keys| has(&|word| keys.iter().any(|key| key.as_bytes() == word)))
            && self.keys_prefix.as_ref().is_none_or(|prefix| has(&|word| word.starts_with(prefix.as_bytes())))
    }

    /// Whether a message is wanted by its store timestamp.
    #[inline]
    pub fn times_match(&self, store_timestamp: i64) -> bool {
        self.start_time.is_none_or(|from| store_timestamp >= from)
            && self.end_time.is_none_or(|end| store_timestamp < end)
    }

    /// The topics that are asked for by name; `None` for all.
    pub fn topics(&self) -> Option<&[String]> {
        self.topic.as_ref().map(std::slice::from_ref).or(self.among.as_deref())
    }

    /// What the request's bounds leave of a range of queue offsets, from the first to the one behind the last.
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
