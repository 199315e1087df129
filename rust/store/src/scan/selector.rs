//! Applies the filters of a request to the records of a block.
use super::request::ScanRequest;
use super::row::Row;
use crate::format::message::Message;
use crate::format::properties;
use crate::store::Generations;
use crate::store::log_walk::Block;
use std::sync::Arc;

#[derive(Clone, Debug)]
pub struct Selector {
    request: Arc<ScanRequest>,
    generations: Arc<Generations>,
    by_position: bool,
    find_properties: bool,
    by_content: bool,
}

impl Selector {
    /// Creates the filters of `request`. They reject messages of a topic that are older than its last deletion.
    pub fn new(request: Arc<ScanRequest>, generations: Arc<Generations>) -> Self {
        let by_position = request.topics().is_some()
            || request.queue_ids.is_some()
            || request.start_offset.is_some()
            || request.end_offset.is_some()
            || request.start_time.is_some()
            || request.end_time.is_some();
        Self {
            by_position,
            find_properties: request.needs_properties(),
            by_content: request.filters_properties() || request.sql.is_some(),
            request,
            generations,
        }
    }

    /// Replaces `rows` with the rows of the matching records, in the order of the block.
    pub fn select(&self, block: Block<'_>, rows: &mut Vec<Row>) {
        rows.clear();
        rows.reserve(block.records.len());
        for record in block.records {
            let mut row = Row::new(record.at, record.layout);
            if self.by_position && !row.message(block.bytes).is_some_and(|m| self.position_matches(&m)) {
                continue;
            }
            if self.find_properties {
                // Only if a filter or column needs them, since parsing properties costs more than reading fixed fields.
                row.find_properties(block.bytes);
            }
            if !self.by_content || self.content_matches(&row, block.bytes) {
                rows.push(row);
            }
        }
    }

    /// Returns whether a message passes the filters by topic, queue, offset and time, which are fields of the record.
    #[inline]
    fn position_matches(&self, message: &Message<'_>) -> bool {
        let request = &*self.request;
        // A prepared or rolled-back record is in no queue, so it is no message of its topic.
        let topics = request.topics();
        if topics.is_some_and(|topics| !message.layout().is_dispatched() || !is_one_of(topics, message.topic())) {
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
        request.times_match(message.store_timestamp()) && !self.generations.is_earlier(message)
    }

    /// Returns whether a message passes the filters by tags, keys and SQL92, which need the properties.
    #[inline]
    fn content_matches(&self, row: &Row, bytes: &[u8]) -> bool {
        let request = &*self.request;
        request.tags.matches(row.tags.of(bytes))
            && request.keys_match(row.uniq_key.of(bytes), row.keys.of(bytes))
            && request.sql.as_ref().is_none_or(|sql| {
                let properties = row.message(bytes).map_or(&[][..], |m| m.properties());
                // A value that is not UTF-8 counts as missing.
                sql.matches(|name| std::str::from_utf8(properties::get(properties, name)?).ok())
            })
    }
}

#[inline]
fn is_one_of(topics: &[String], topic: &[u8]) -> bool {
    topics.iter().any(|t| t.as_bytes() == topic)
}
