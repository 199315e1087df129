//! Builds a log of some topics from a master's log. It contains the records of these topics without gaps, in files of
//! the same size.
//!
//! Records keep their queue offsets, as in an export. If a record does not fit into a file, a blank record fills the
//! file, as in RocketMQ. The result depends only on the log and the start.
//!
//! Source: `CommitLog.DefaultAppendMessageCallback.doAppend`.
use rmqfast_store::export::record::append_at;
use rmqfast_store::format::message::{Message, encode_blank, has_room};
use rmqfast_store::store::log_walk::Block;
use std::collections::HashSet;

/// The selected topics, and the output for the last block.
#[derive(Debug)]
pub struct TopicFilter {
    topics: HashSet<Box<[u8]>>,
    file_size: u64,
    bytes: Vec<u8>,
    /// For each kept record, its position in the copy and its position in the master's log.
    moved: Vec<(u64, u64)>,
}

impl TopicFilter {
    pub fn new(topics: &[String], file_size: u64) -> Self {
        let topics = topics.iter().map(|name| name.as_bytes().into()).collect();
        Self { topics, file_size, bytes: Vec::new(), moved: Vec::new() }
    }

    /// Filters the records of a block. `place` is the position in the copy for the first record. Returns the position
    /// behind the last record.
    pub fn pass(&mut self, block: Block<'_>, mut place: u64) -> u64 {
        self.bytes.clear();
        self.moved.clear();
        for record in block.records {
            let message = block.bytes.get(record.at as usize..).and_then(|bytes| Message::new(bytes, record.layout));
            if let Some(message) = message.filter(|message| self.topics.contains(message.topic())) {
                place = self.put(&message, place);
            }
        }
        place
    }

    fn put(&mut self, message: &Message<'_>, mut place: u64) -> u64 {
        let size = u64::from(message.layout().total);
        let room = self.file_size - place % self.file_size;
        if !has_room(room, size) {
            let end = self.bytes.len() + room as usize;
            self.bytes.extend_from_slice(&encode_blank(room as u32));
            self.bytes.resize(end, 0);
            place += room;
        }
        self.moved.push((place, message.physical_offset() as u64));
        append_at(message, place as i64, &mut self.bytes);
        place + size
    }

    /// Returns the bytes of the records that the filter kept.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the position in the master's log of the record at `place` of the copy.
    pub fn origin(&self, place: u64) -> Option<u64> {
        let behind = self.moved.partition_point(|(moved, _)| *moved <= place);
        self.moved[..behind].last().map(|(_, origin)| *origin)
    }
}
