//! Applies the filters of a request to the records of a block.
use super::request::ScanRequest;
use super::row::Row;
use crate::format::message::Message;
use crate::format::properties;
use crate::store::Generations;
use crate::store::consume_queue::{LMQ, extra_queues};
use crate::store::log_walk::Block;
use std::sync::Arc;

#[derive(Clone, Debug)]
pub struct Selector {
    request: Arc<ScanRequest>,
    generations: Arc<Generations>,
    by_position: bool,
    by_light_queue: bool,
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
            by_light_queue: request.has_light_queues(),
            find_properties: request.needs_properties(),
            by_content: request.filters_properties() || request.sql.is_some(),
            request,
            generations,
        }
    }

    /// Replaces `rows` with the rows of the matching records, in the order of the block. `is_listed` tells that the
    /// queues of the request list all the records within its offsets.
    pub fn select(&self, block: Block<'_>, is_listed: bool, rows: &mut Vec<Row>) {
        rows.clear();
        rows.reserve(block.records.len());
        for record in block.records {
            let mut row = Row::new(record.at, record.layout);
            if self.by_position && !row.message(block.bytes).is_some_and(|m| self.position_matches(&m, is_listed)) {
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
    fn position_matches(&self, message: &Message<'_>, is_listed: bool) -> bool {
        let request = &*self.request;
        // A prepared or rolled-back record is in no queue, so it is no message of its topic.
        if request.topics().is_some() && !message.layout().is_dispatched() {
            return false;
        }
        let own = (message.topic(), message.queue_id(), message.queue_offset());
        let is_selected =
            is_listed || request.has_place(own) || (self.by_light_queue && self.is_in_light_queue(message));
        is_selected && request.times_match(message.store_timestamp()) && !self.generations.is_earlier(message)
    }

    #[cold]
    fn is_in_light_queue(&self, message: &Message<'_>) -> bool {
        let light = extra_queues(message).into_iter().filter(|(name, ..)| name.starts_with(LMQ));
        light.map(|(name, id, offset)| (name.as_bytes(), id, offset)).any(|place| self.request.has_place(place))
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
