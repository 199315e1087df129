//! The appender of a copy. It copies a master's log, then adds the copied records to queues and index.
//!
//! Records keep their physical offsets, queue offsets and times, so that log, queues and index equal those of the master.
//!
//! Source: `DefaultMessageStore.appendToCommitLog`, `ReputMessageService.doReput`.
use super::appender::Appender;
use super::dispatch::Dispatch;
use super::owned_store::Open;
use crate::file::Io;
use crate::format::message::MIN_BLANK_LEN;
use crate::store::CommitLog;
use crate::store::delay_levels::DelayLevels;
use crate::store::log_walk::{RecordAt, Stop, parse};
use crate::store::recover::log_end::{last_records, record_end};
use crate::store::retain::QueueName;
use crate::store::retain::clock::now_ms;
use crate::{Error, Result};

impl Appender {
    /// Returns the end of the copy, as an offset of the master's log.
    pub fn log_end(&self) -> Result<u64> {
        self.store.with(|open| Ok(open.writers.log.position()))
    }

    /// Returns the offset from which to compare the copy with the master's log up to `end`. A record begins at this
    /// offset. If the logs differ earlier, they also differ in the position of this record. At most `most` bytes are
    /// compared, or one longer record.
    pub fn compare_from(&self, end: u64, most: u64) -> Result<u64> {
        let log = CommitLog::list(&self.store.root, &[self.store.root.join("commitlog")], Io::Pread)?;
        last_records(&log, end, most).map(|from| from.max(log.min_offset().min(end)))
    }

    /// Returns the end of the copy's last record, without the blank record at the end of the file.
    pub fn last_record_end(&self) -> Result<u64> {
        let (end, file_size) =
            self.store.with(|open| Ok((open.writers.log.position(), open.writers.log.file_size())))?;
        // A record leaves room for a blank, so it never ends at the end of a file.
        if !end.is_multiple_of(file_size) {
            return Ok(end);
        }
        let log = CommitLog::list(&self.store.root, &[self.store.root.join("commitlog")], Io::Pread)?;
        let is_empty = log.segments().files().first().is_none_or(|first| end <= first.base);
        if is_empty { Ok(end) } else { record_end(&log.into(), end - 1) }
    }

    pub fn delay_levels(&self) -> DelayLevels {
        self.store.options.delay_levels
    }

    /// Appends complete records at `start` of the master's log, within one file. `last` is the offset of the last
    /// record. A complete blank record at the end of the file may follow. Does not add the records to queues and
    /// index. Fails with [`Error::Invalid`] if the copy does not end at `start`.
    pub fn copy_log(&self, start: u64, bytes: &[u8], last: Option<u64>) -> Result<()> {
        let store = &self.store;
        store.retention.check_writable()?;
        let needs_file = store.with_log(|open| {
            open.check_place(start, bytes.len() as u64)?;
            let log = &mut open.writers.log;
            // Files are allocated first, so that a full disk leaves the copy unchanged.
            log.reserve_copy(bytes.len() as u64)?;
            log.copy(bytes, last).inspect_err(|error| store.on_write_error(error))?;
            Ok(log.next_needed().is_some())
        })?;
        store.live.growth().notify();
        if needs_file {
            store.work.create();
        }
        Ok(())
    }

    /// Adds the records that `dispatch` has parsed to queues and index. Blocks must come in the order of the log.
    /// After an error all later writes fail.
    pub fn list(&self, dispatch: &mut Dispatch) -> Result<()> {
        let store = &self.store;
        let local_ms = now_ms() + store.options.zone_offset_ms;
        store.with_log(|open| open.writers.list_all(dispatch, local_ms, |error| store.on_write_error(error)))
    }

    /// Removes queues that the master no longer has, and forgets their next offsets. A queue that has got messages
    /// since then stays. Returns the removed queues.
    pub fn remove_queues(&self, ends: &[(QueueName, i64)]) -> Result<Vec<QueueName>> {
        self.store.remove_queues(ends)
    }
}

impl Open {
    fn check_place(&self, start: u64, len: u64) -> Result<()> {
        let (position, file_size) = (self.writers.log.position(), self.writers.log.file_size());
        if start != position {
            return Err(Error::invalid("start", format!("{position}, where the copy ends"), start));
        }
        let room = file_size - start % file_size;
        // The bytes of one call must be in one file of the log.
        if len > room {
            return Err(Error::invalid("bytes", format!("at most {room} bytes, to the end of the file"), len));
        }
        Ok(())
    }
}

/// The reason why [`whole_records`] stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rest {
    /// Reached the end of the bytes or of the file.
    Nothing,
    /// Found an incomplete item. Holds the number of bytes that the whole item needs.
    Needs(usize),
    /// Found an item that is not a valid record. Holds the reason.
    Broken(String),
}

/// Collects the complete, valid records at the start of `bytes`. `start` is their offset in a log with files of
/// `file_size` bytes. Returns the length of these records, including a blank at the end of the file, and the reason
/// of the stop.
///
/// A sound record contains its own offset, consistent lengths, and the right CRC of its body.
pub fn whole_records(bytes: &[u8], start: u64, file_size: u64, records: &mut Vec<RecordAt>) -> (usize, Rest) {
    let file_end = (start / file_size + 1) * file_size;
    let bytes = &bytes[..bytes.len().min((file_end - start) as usize)];
    let (at, stop) = parse(bytes, (start, file_end), 0, false, records);
    let room = (file_end - start) as usize - at;
    let to_the_end =
        |what, got| Rest::Broken(format!("{what} at +0: expected {room}, to the end of the file, got {got}"));
    match stop {
        Stop::Consumed => (at, Rest::Nothing),
        Stop::Needs(_, needed) if needed > room => (at, to_the_end("total size, at most", needed)),
        Stop::Needs(_, needed) => (at, Rest::Needs(needed)),
        Stop::Blank(size) if size != room => (at, to_the_end("blank size", size)),
        Stop::Blank(size) if bytes.len() - at < size => (at, Rest::Needs(size)),
        Stop::Blank(size) => (at + size, Rest::Nothing),
        // The first bytes of a size are zero, so a record may begin here.
        Stop::Unwritten if bytes.len() - at < MIN_BLANK_LEN => (at, Rest::Needs(MIN_BLANK_LEN)),
        Stop::Unwritten => (at, Rest::Broken("expected a record, got bytes that were never written".to_owned())),
        Stop::Broken(reason) => (at, Rest::Broken(reason)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::message::{NewMessage, encode_blank};
    use crate::store::append::AppendOptions;

    const FILE: u64 = 1000;

    fn record(at: u64, body: &[u8]) -> Vec<u8> {
        let host = AppendOptions::default().store_host;
        let mut bytes = Vec::new();
        let message = NewMessage {
            queue_id: 0,
            flag: 0,
            queue_offset: 0,
            physical_offset: at as i64,
            sys_flag: 0,
            born_timestamp: 0,
            born_host: host,
            store_timestamp: 0,
            store_host: host,
            reconsume_times: 0,
            prepared_transaction_offset: 0,
            body,
            topic: "T",
            properties: b"",
        };
        message.encode(&mut bytes).expect("short");
        bytes
    }

    /// Returns the length of the whole records, their number, and the reason of the stop.
    fn parsed(bytes: &[u8], start: u64) -> (usize, usize, Rest) {
        let mut records = Vec::new();
        let (taken, rest) = whole_records(bytes, start, FILE, &mut records);
        (taken, records.len(), rest)
    }

    fn broken(bytes: &[u8], start: u64) -> String {
        match parsed(bytes, start) {
            (0, 0, Rest::Broken(reason)) => reason,
            other => format!("not broken: {other:?}"),
        }
    }

    #[test]
    fn a_record_that_came_in_part_says_how_many_bytes_it_needs() {
        let mut bytes = record(2000, b"first");
        let first = bytes.len();
        bytes.extend(record(2000 + first as u64, b"second"));
        let second = bytes.len() - first;
        assert_eq!(parsed(&bytes, 2000), (bytes.len(), 2, Rest::Nothing));
        for cut in 1..second {
            let (taken, count, rest) = parsed(&bytes[..first + cut], 2000);
            // The first bytes of a size are zero, like unwritten bytes, so eight bytes are needed to decide.
            let needed = if cut < 8 { 8 } else { second };
            assert_eq!((taken, count, rest), (first, 1, Rest::Needs(needed)), "{cut}");
        }
        assert_eq!(parsed(&[], 2000), (0, 0, Rest::Nothing));
    }

    #[test]
    fn a_blank_is_whole_with_all_bytes_to_the_end_of_its_file() {
        let mut bytes = encode_blank(20).to_vec();
        bytes.extend([7; 12]);
        assert_eq!(parsed(&bytes[..19], 2980), (0, 0, Rest::Needs(20)));
        // Records of the next file are left to the next call.
        bytes.extend(record(3000, b"x"));
        assert_eq!(parsed(&bytes, 2980), (20, 0, Rest::Nothing));
        assert!(broken(&bytes, 2970).contains("expected 30, to the end of the file, got 20"));
    }

    #[test]
    fn what_does_not_prove_itself_is_broken() {
        let whole = record(2000, b"body");
        let mut flipped = whole.clone();
        let body = flipped.windows(4).position(|bytes| bytes == b"body").expect("there");
        flipped[body] ^= 1;
        assert!(broken(&flipped, 2000).contains("body crc"));
        assert!(broken(&whole, 2001).contains("physical offset at +28: expected 2001, got 2000"));
        assert!(broken(&[0; 8], 2000).contains("never written"));
        assert!(broken(&[0xff; 40], 2000).contains("magic"));
        let over = record(2950, &[1; 100]);
        assert!(broken(&over, 2950).contains("to the end of the file"), "{}", broken(&over, 2950));
    }
}
