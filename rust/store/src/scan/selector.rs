//! The filters of a scan, over the records of a block.
use super::column::Column;
use super::request::ScanRequest;
use super::row::{Row, Span};
use crate::format::message::Message;
use crate::format::properties;
use crate::store::log_walk::Block;
use std::sync::Arc;

/// Picks the records of a block that a request asks for.
#[derive(Clone, Debug)]
pub struct Selector {
    request: Arc<ScanRequest>,
    find_properties: bool,
}

impl Selector {
    /// The filters of `request`.
    pub fn new(request: Arc<ScanRequest>) -> Self {
        let by_column = request.columns.iter().copied().any(Column::needs_properties);
        Self { find_properties: by_column || request.filters_properties(), request }
    }

    /// Puts the rows that pass into `rows`, in order.
    pub fn select(&self, block: Block<'_>, rows: &mut Vec<Row>) {
        rows.clear();
        for record in block.records {
            let mut row = Row {
                at: record.at,
                layout: record.layout,
                tags: Span::default(),
                keys: Span::default(),
                uniq_key: Span::default(),
            };
            let Some(message) = row.message(block.bytes) else { continue };
            if !self.position_matches(&message) {
                continue;
            }
            if self.find_properties {
                row.find_properties(block.bytes);
            }
            if self.content_matches(&row, &message, block.bytes) {
                rows.push(row);
            }
        }
    }

    /// Topic, queue, offsets and time: all from fixed fields.
    #[inline]
    fn position_matches(&self, message: &Message<'_>) -> bool {
        let request = &*self.request;
        // A record that no queue lists is none of its topic's messages.
        let topic = request.topic.as_ref();
        if topic.is_some_and(|t| t.as_bytes() != message.topic() || !message.layout().is_dispatched()) {
            return false;
        }
        if request.queue_ids.as_ref().is_some_and(|ids| !ids.contains(&message.queue_id())) {
            return false;
        }
        if let Some(bound) = &request.start_offset
            && bound.of(message.queue_id()).is_some_and(|from| message.queue_offset() < from)
        {
            return false;
        }
        if let Some(bound) = &request.end_offset
            && bound.of(message.queue_id()).is_some_and(|end| message.queue_offset() >= end)
        {
            return false;
        }
        request.start_time.is_none_or(|from| message.store_timestamp() >= from)
            && request.end_time.is_none_or(|end| message.store_timestamp() < end)
    }

    /// Tags, keys and SQL92: all from the properties.
    #[inline]
    fn content_matches(&self, row: &Row, message: &Message<'_>, bytes: &[u8]) -> bool {
        let request = &*self.request;
        request.tags.matches(row.tags.of(bytes))
            && request.keys.as_ref().is_none_or(|keys| has_key(row, bytes, keys))
            && request.sql.as_ref().is_none_or(|sql| {
                let lookup = |name: &str| {
                    let value = properties::get(message.properties(), name)?;
                    std::str::from_utf8(value).ok()
                };
                sql.matches(lookup)
            })
    }
}

fn has_key(row: &Row, bytes: &[u8], keys: &[String]) -> bool {
    let is_one = |word: &[u8]| keys.iter().any(|key| key.as_bytes() == word);
    row.uniq_key.of(bytes).is_some_and(is_one)
        || row.keys.of(bytes).is_some_and(|stored| stored.split(|b| *b == b' ').any(is_one))
}
