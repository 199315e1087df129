//! Checks a whole store: every record, consume-queue entry and index entry, and the small files. The check repairs
//! nothing. Its memory is bounded by the number of queues.
//!
//! Source: `CommitLog.checkMessageAndReturnSize`, `ConsumeQueue.recover`, `IndexFile.putKey`, `ConfigManager.load`.
mod checkpoint;
mod config;
mod index;
mod queues;
mod report;

use super::index_files::IndexFile;
use super::info::index_notes;
use super::log_walk::LogWalk;
use super::message_store::{MessageStore, QueueKind};
use super::queue_ends::QueueEnds;
use crate::Result;
use crate::format::message::Message;
use crate::format::properties;
use queues::Queues;
pub use report::VerifyReport;

/// A callback that gets the bytes checked so far and the bytes of the whole check. Its error ends the check.
pub type Watch<'a> = &'a mut dyn FnMut(u64, u64) -> Result<()>;

impl MessageStore {
    /// Checks the store. With `crc` also checks the body of each message.
    pub fn verify(&self, crc: bool, watch: Watch<'_>) -> Result<VerifyReport> {
        let mut report = VerifyReport { aborted: self.has_abort()?, notes: self.notes(), ..VerifyReport::default() };
        // Read before the index files and the log, because a running broker writes later times meanwhile.
        let checkpoint = checkpoint::read(self)?;
        let indexed_ms =
            checkpoint.as_ref().and_then(|content| content.as_ref().ok()).map_or(0, |c| c.index_msg_timestamp);
        let index = IndexFile::list(&self.root().join("index"))?;
        let log_bytes = self.log().segments().end() - self.log().min_offset();
        let total = log_bytes + index.iter().map(index::bytes_of).sum::<u64>();
        let last_time = self.verify_log(crc, total, &mut report, watch)?;
        let mut bytes_before = log_bytes;
        for file in &index {
            index::verify(self, file, indexed_ms, &mut report, &mut |bytes| watch(bytes_before + bytes, total))?;
            bytes_before += index::bytes_of(file);
        }
        report.notes.extend(index_notes(&index));
        report.notes.extend(QueueEnds::fault(self.root())?);
        checkpoint::verify(self, checkpoint, &index, last_time, &mut report);
        config::verify(self, &mut report)?;
        watch(total, total)?;
        Ok(report)
    }

    /// Reads the log and the queues in parallel. Returns the greatest store timestamp, or `None` if it is unknown.
    fn verify_log(&self, crc: bool, total: u64, report: &mut VerifyReport, watch: Watch<'_>) -> Result<Option<i64>> {
        self.check_end()?;
        let start = self.log().min_offset();
        let mut queues = Queues::new(self, report)?;
        let mut walk = LogWalk::new(self.log().clone(), start, u64::MAX, if crc { 0 } else { u64::MAX });
        let mut last_time = None;
        let mut end = start;
        while walk.advance(&mut report.damage)? {
            watch(walk.position().saturating_sub(start).min(total), total)?;
            let block = walk.block();
            for record in block.records {
                let bytes = block.bytes.get(record.at as usize..).unwrap_or_default();
                let Some(message) = Message::new(bytes, record.layout) else { continue };
                report.messages += 1;
                end = message.physical_offset() as u64 + u64::from(record.layout.total);
                last_time = last_time.max(Some(message.store_timestamp()));
                self.verify_record(&message, report);
                if record.layout.is_dispatched() {
                    queues.meet(&message, report)?;
                }
            }
        }
        report.log_bytes = end - start;
        // In a damaged log, the last store time is unknown.
        last_time = last_time.filter(|_| report.is_ok());
        queues.finish(report)?;
        match self.queue_kind() {
            QueueKind::Files => {}
            QueueKind::RocksDb => report.notes.push("consume queues are in RocksDB: not checked".to_owned()),
            QueueKind::Missing => report.notes.push("no consume queues: a broker lists the whole log again".to_owned()),
        }
        Ok(last_time)
    }

    fn verify_record(&self, message: &Message<'_>, report: &mut VerifyReport) {
        if properties::check_crc(message.record()) == Some(false) {
            let reason = "property crc: expected that of the record, got another";
            report.damage.push(self.log().damage(message.physical_offset() as u64, 0, reason));
        }
    }
}
