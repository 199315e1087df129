//! The options of an appender.
use crate::file::disk::OWNER_ONLY;
use crate::format::consume_queue::UNIT_SIZE;
use crate::format::host::Host;
use crate::format::index::{self, DEFAULT_ENTRY_COUNT, DEFAULT_SLOT_COUNT};
use crate::format::message::MIN_FILE_SIZE;
use crate::store::delay::DelayLevels;
use crate::store::retain::options::RetainOptions;
use crate::{Error, Result};
use std::net::Ipv4Addr;
use std::time::Duration;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Flush {
    /// An append does not wait for a flush, and survives the end of the process. A flush comes from a call of
    /// [`flush`](super::Appender::flush), a background thread, or the operating system.
    #[default]
    Async,
    Sync,
}

/// The options of an appender. Sizes are for new files; an existing store keeps its sizes.
#[derive(Clone, Copy, Debug)]
pub struct AppendOptions {
    pub flush: Flush,
    /// Bytes of a commit-log file (`mappedFileSizeCommitLog`).
    pub file_size: u64,
    /// Bytes of a consume-queue file (`mappedFileSizeConsumeQueue`). Rounded up to a multiple of 20, the size of an
    /// entry.
    pub queue_file_size: u64,
    /// Number of slots in an index file (`maxHashSlotNum`).
    pub index_slots: u32,
    /// Number of entries in an index file (`maxIndexNum`).
    pub index_entries: u32,
    /// Maximum bytes of a body (`maxMessageSize`).
    pub max_message_size: usize,
    /// The store host of messages, and their default born host.
    pub store_host: Host,
    /// Whether a retry topic of 128 to 255 bytes is stored in a V2 record (`autoMessageVersionOnTopicLen` of 5.x). A
    /// 4.9.4 broker would cut the log at a V2 record.
    pub long_topics: bool,
    /// Whether properties end with a CRC of the record (`enabledAppendPropCRC` of 5.x).
    pub property_crc: bool,
    /// Whether `INNER_MULTI_DISPATCH` lists a message in additional queues (`enableMultiDispatch` and `enableLmq`).
    pub multi_dispatch: bool,
    /// Maximum number of light message queues (`maxLmqConsumeQueueNum`).
    pub max_lmq_queues: usize,
    /// Maximum time that a sync append waits for the disk (`syncFlushTimeout`).
    pub sync_flush_timeout: Duration,
    /// Time after which an append that holds the lock makes other appends fail (`osPageCacheBusyTimeOutMills`); `None` for no
    /// limit.
    pub busy_after: Option<Duration>,
    /// The delays of the levels (`messageDelayLevel`).
    pub delay_levels: DelayLevels,
    /// Difference of local time from UTC in milliseconds, for the names of index files.
    pub zone_offset_ms: i64,
    /// The mode of new files. Directories also get execute permission wherever the mode gives read permission.
    pub file_permission: u32,
    /// Options of retention. With `None`, no file is ever removed.
    pub retain: Option<RetainOptions>,
    /// For a copy of a master's store: the offset at which a new copy begins, which is the start of a file of the
    /// master's log. A copy receives [the master's log](super::Appender::copy_log) and refuses messages of producers.
    pub replica_from: Option<u64>,
}

impl Default for AppendOptions {
    fn default() -> Self {
        Self {
            flush: Flush::Async,
            file_size: 1 << 30,
            queue_file_size: 300_000 * UNIT_SIZE as u64,
            index_slots: DEFAULT_SLOT_COUNT,
            index_entries: DEFAULT_ENTRY_COUNT,
            max_message_size: 4 << 20,
            store_host: Host { ip: Ipv4Addr::LOCALHOST.into(), port: 10_911 },
            long_topics: false,
            property_crc: false,
            multi_dispatch: false,
            max_lmq_queues: 20_000,
            sync_flush_timeout: Duration::from_secs(5),
            busy_after: None,
            delay_levels: DelayLevels::default(),
            zone_offset_ms: 0,
            file_permission: OWNER_ONLY,
            retain: None,
            replica_from: None,
        }
    }
}

impl AppendOptions {
    /// Refuses sizes that RocketMQ could not use, and rounds the size of queue files.
    pub fn check(self) -> Result<Self> {
        // Java counts positions within a file in 32 bits.
        let max = i32::MAX as u64;
        in_range("file_size", self.file_size, MIN_FILE_SIZE, max)?;
        in_range("queue_file_size", self.queue_file_size, 1, max - UNIT_SIZE as u64)?;
        in_range("index_slots", self.index_slots.into(), 1, max)?;
        // Entry 0 is never used, so a file needs at least two entries.
        in_range("index_entries", self.index_entries.into(), 2, max)?;
        in_range("index file size", index::file_size(self.index_slots, self.index_entries), 1, max)?;
        in_range("max_message_size", self.max_message_size as u64, 0, max)?;
        if self.file_permission & !0o666 != 0 || self.file_permission & 0o600 != 0o600 {
            let expected = "a mode of 600 to 666, which lets the owner read and write";
            return Err(Error::invalid("file_permission", expected, format!("{:o}", self.file_permission)));
        }
        if let Some(from) = self.replica_from.filter(|from| from % self.file_size != 0) {
            let expected = format!("a multiple of file_size, {}, where a file of the log begins", self.file_size);
            return Err(Error::invalid("replica_from", expected, from));
        }
        let queue_file_size = self.queue_file_size.next_multiple_of(UNIT_SIZE as u64);
        let retain = self.retain.map(RetainOptions::check).transpose()?;
        Ok(Self { queue_file_size, retain, ..self })
    }
}

fn in_range(what: &'static str, got: u64, least: u64, most: u64) -> Result<()> {
    if (least..=most).contains(&got) {
        return Ok(());
    }
    Err(Error::invalid(what, format!("{least} to {most}"), got))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queue_files_hold_whole_units_and_impossible_sizes_are_refused() {
        let options = AppendOptions { queue_file_size: 101, ..AppendOptions::default() };
        assert_eq!(options.check().expect("rounded").queue_file_size, 120);
        for wrong in [
            AppendOptions { file_size: 50, ..options },
            AppendOptions { index_slots: 0, ..options },
            AppendOptions { file_permission: 0o700, ..options },
            AppendOptions { file_permission: 0o440, ..options },
            AppendOptions { index_entries: 1, ..options },
            AppendOptions { replica_from: Some(options.file_size + 1), ..options },
            AppendOptions { index_entries: i32::MAX as u32, ..options },
        ] {
            assert!(wrong.check().is_err(), "{wrong:?}");
        }
    }
}
