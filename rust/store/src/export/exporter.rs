//! Exports messages: reads the records that a request selects and writes them into a new store.
use super::config;
use super::lists::Lists;
use super::partial::{Partial, refuse_within};
use crate::format::message::{MIN_BLANK_LEN, Message};
use crate::format::properties;
use crate::scan::{Piece, Plan, RowSource, ScanRequest};
use crate::store::MessageStore;
use crate::store::append::AppendOptions;
use crate::store::append::flusher::{CheckpointWriter, FlushState, SyncList};
use crate::store::append::log_writer::{BUFFER_LEN, LogWriter};
use crate::store::append::resume::DIRECTORIES;
use crate::store::commit_log::DamageLog;
use crate::store::verify::Watch;
use crate::{Error, Result};
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;

const BLOCK_LEN: usize = 512 << 10;
/// Maximum bytes of the log between two calls of `watch`.
const PIECE: u64 = 64 << 20;
/// Bytes written between two flushes.
const SYNC_EVERY: u64 = 128 << 20;

#[derive(Clone, Debug, Default)]
pub struct ExportReport {
    pub rows: u64,
    pub bytes: u64,
    pub files: u64,
    /// Number of exported records that no consume queue lists.
    pub unlisted: u64,
    pub index_entries: u64,
    /// Damaged places of the source store. Their messages are missing in the export.
    pub damage: DamageLog,
}

/// Writes the messages that `request` selects into a new store at `out`. Checks the CRC of every body, since a recovering
/// broker truncates its log at a damaged body. Calls `watch` with the bytes of the log read so far and in total. Fails with
/// [`Error::Invalid`] if `out` exists, or if the file sizes are smaller than a record. After any error there is nothing at
/// `out`.
pub fn export(
    store: &MessageStore,
    request: &ScanRequest,
    out: &Path,
    options: AppendOptions,
    watch: Watch<'_>,
) -> Result<ExportReport> {
    let options = options.check()?;
    // No columns, since records are copied unchanged and need no parsing.
    let request = Arc::new(ScanRequest { columns: Vec::new(), verify_crc: true, ..request.clone() });
    let mut plan = Plan::new(store, &request, None)?;
    plan.cut(PIECE, 1)?;
    // Checked before anything is created.
    refuse_within(store, out)?;
    let partial = Partial::create(out)?;
    let mut exporter = Exporter::new(store, partial.path(), options)?;
    exporter.walk(plan, &request, watch)?;
    let report = exporter.finish(store, &request, partial.path())?;
    partial.finish()?;
    Ok(report)
}

/// Returns the file sizes of `store`, so that the same broker can open the export. For files that the store does not have, returns
/// RocketMQ's defaults.
pub fn sizes_of(store: &MessageStore) -> Result<AppendOptions> {
    let mut sizes = AppendOptions::default();
    sizes.file_size = store.log_file_size()?.unwrap_or(sizes.file_size);
    sizes.queue_file_size = store.queue_file_size()?.unwrap_or(sizes.queue_file_size);
    if let Some((slots, entries)) = store.index_files()?.iter().find_map(|file| file.geometry) {
        (sizes.index_slots, sizes.index_entries) = (slots, entries);
    }
    Ok(sizes)
}

struct Exporter {
    log: LogWriter,
    lists: Lists,
    /// End of the source log when its queues were listed. Messages that a broker appends later are left out.
    end: u64,
    syncer: Syncer,
    since_sync: u64,
    last_store_ms: i64,
    report: ExportReport,
}

impl Exporter {
    fn new(store: &MessageStore, root: &Path, options: AppendOptions) -> Result<Self> {
        for name in DIRECTORIES {
            let directory = root.join(name);
            fs::create_dir(&directory).map_err(|e| Error::io(&directory, e))?;
        }
        Ok(Self {
            // The log does not begin at 0; the documentation of the module `export` says why.
            log: LogWriter::new(root.join("commitlog"), options.file_size, options.file_size, None, true)?,
            lists: Lists::new(store, root, options)?,
            end: store.unlisted()?.log_end(),
            syncer: Syncer::start(),
            since_sync: 0,
            last_store_ms: 0,
            report: ExportReport::default(),
        })
    }

    fn walk(&mut self, plan: Plan, request: &Arc<ScanRequest>, watch: Watch<'_>) -> Result<()> {
        let end = self.end;
        let len = |piece: &Piece| piece.end.min(end).saturating_sub(piece.from);
        let total = plan.pieces.iter().map(len).sum();
        let mut done_before = 0;
        for piece in plan.pieces {
            let mut source = RowSource::new(plan.sources.clone(), request.clone(), [piece]).with_block_len(BLOCK_LEN);
            let mut read = 0;
            while source.advance(&mut || watch(done_before + read, total))? {
                let bytes = source.bytes();
                for row in source.rows() {
                    let Some(message) = row.message(bytes) else { continue };
                    let offset = message.physical_offset() as u64;
                    // Messages behind `end` are not in the bounds that `lists` has.
                    if offset < end {
                        self.put(&message)?;
                        read = offset - piece.from;
                    }
                }
            }
            self.report.damage.append(source.take_damage());
            done_before += len(&piece);
        }
        watch(total, total)
    }

    #[inline]
    fn put(&mut self, message: &Message<'_>) -> Result<()> {
        let size = message.layout().total;
        let (file_size, room) = (self.log.file_size(), self.log.file_size() - MIN_BLANK_LEN as u64);
        if u64::from(size) > room {
            let expected = format!("at least {} bytes, for the record at {}", size, message.physical_offset());
            return Err(Error::invalid("file_size", expected, file_size));
        }
        // Write the buffered records before the buffer would grow.
        if self.log.buffer_len() + size as usize > BUFFER_LEN {
            self.drain()?;
        }
        let (physical_offset, buffer) = self.log.place(size)?;
        append_at(message, physical_offset as i64, buffer);
        let log_file = physical_offset / file_size * file_size;
        self.lists.dispatch(message, physical_offset as i64, log_file as i64)?;
        self.last_store_ms = self.last_store_ms.max(message.store_timestamp());
        self.report.rows += 1;
        self.report.bytes += u64::from(size);
        self.since_sync += u64::from(size);
        Ok(())
    }

    fn drain(&mut self) -> Result<()> {
        self.log.write()?;
        self.lists.write()?;
        if self.since_sync >= SYNC_EVERY {
            self.since_sync = 0;
            let mut log = SyncList::default();
            self.log.take_unsynced(&mut log);
            self.syncer.sync(log)?;
        }
        Ok(())
    }

    /// Flushes all files, then writes the checkpoint, which says that everything is on the disk.
    fn finish(mut self, store: &MessageStore, request: &ScanRequest, root: &Path) -> Result<ExportReport> {
        self.drain()?;
        // After the last write to the queues, since a write changes the modification times.
        self.lists.set_times()?;
        let mut unsynced = SyncList::default();
        let position = self.log.take_unsynced(&mut unsynced);
        // An export without messages has no log file.
        let end = (self.report.rows > 0).then(|| self.log.flushed_end(position));
        let indexed_until = self.lists.take_unsynced(&mut unsynced);
        for path in config::write(store, &self.lists, request.topics(), root)? {
            unsynced.path(path);
        }
        for name in DIRECTORIES.into_iter().chain(["config"]) {
            unsynced.directory(root.join(name));
        }
        self.syncer.sync(unsynced)?;
        self.syncer.finish()?;
        // Last, since the checkpoint claims that everything before it is on the disk.
        CheckpointWriter::open(root)?.reset(FlushState { stored_until: self.last_store_ms, end, indexed_until })?;
        self.report.unlisted = self.lists.unlisted_records();
        self.report.index_entries = self.lists.index_entries();
        self.report.files = count_files(root)?;
        Ok(self.report)
    }
}

fn count_files(directory: &Path) -> Result<u64> {
    let mut count = 0;
    for entry in fs::read_dir(directory).map_err(|e| Error::io(directory, e))? {
        let path = entry.map_err(|e| Error::io(directory, e))?.path();
        count += if path.is_dir() { count_files(&path)? } else { 1 };
    }
    Ok(count)
}

#[derive(Debug)]
pub struct Syncer {
    sender: Option<SyncSender<SyncList>>,
    thread: Option<JoinHandle<Result<()>>>,
}

impl Syncer {
    pub fn start() -> Self {
        // One list is being flushed and one waits. More would keep too many files open.
        let (sender, receiver) = sync_channel::<SyncList>(1);
        let thread = std::thread::spawn(move || receiver.into_iter().try_for_each(|unsynced| unsynced.sync()));
        Self { sender: Some(sender), thread: Some(thread) }
    }

    /// Queues files for the flushing thread. Returns the error of an earlier flush.
    pub fn sync(&mut self, unsynced: SyncList) -> Result<()> {
        let is_queued = self.sender.as_ref().is_some_and(|sender| sender.send(unsynced).is_ok());
        // The thread ends early only after an error. `finish` returns that error.
        if is_queued { Ok(()) } else { self.finish() }
    }

    /// Waits until all queued files are flushed. After an error it is unknown which bytes are on the disk.
    pub fn finish(&mut self) -> Result<()> {
        self.sender = None;
        match self.thread.take().map(JoinHandle::join) {
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            Some(Ok(done)) => done,
            None => Ok(()),
        }
    }
}

impl Drop for Syncer {
    fn drop(&mut self) {
        self.sender = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Position of the field PHYSICALOFFSET. See the table in [`crate::format::message`].
const PHYSICAL_OFFSET_AT: usize = 28;

/// Appends the record with a new physical offset. The property CRC covers the offset, so a correct CRC is computed again.
#[inline]
pub fn append_at(message: &Message<'_>, physical_offset: i64, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(message.record());
    let record = &mut out[start..];
    record[PHYSICAL_OFFSET_AT..PHYSICAL_OFFSET_AT + 8].copy_from_slice(&physical_offset.to_be_bytes());
    // A wrong CRC stays wrong, so that damage is still detected in the copy.
    if properties::check_crc(message.record()) == Some(true) {
        properties::seal_crc(record);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::host::Host;
    use crate::format::message::NewMessage;

    fn record(properties: &[u8]) -> Vec<u8> {
        let host = Host { ip: std::net::Ipv6Addr::LOCALHOST.into(), port: 1 };
        let message = NewMessage {
            queue_id: 1,
            flag: 2,
            queue_offset: 3,
            physical_offset: 4,
            sys_flag: 8,
            born_timestamp: 5,
            born_host: host,
            store_timestamp: 6,
            store_host: host,
            reconsume_times: 7,
            prepared_transaction_offset: 8,
            body: b"body",
            topic: &"t".repeat(200),
            properties,
        };
        let mut out = Vec::new();
        message.encode(&mut out).expect("encoded");
        out
    }

    #[test]
    fn only_the_physical_offset_and_its_crc_change() {
        let mut reserved = b"a\x01b\x02".to_vec();
        properties::reserve_crc(&mut reserved);
        for properties in [b"a\x01b".to_vec(), reserved] {
            let there = record(&properties);
            let mut moved = b"before".to_vec();
            append_at(&Message::decode(&there).expect("a record"), 1 << 40, &mut moved);
            let copy = Message::decode(&moved[6..]).expect("a record");
            assert_eq!(copy.physical_offset(), 1 << 40);
            assert_ne!(properties::check_crc(copy.record()), Some(false));
            let mut back = Vec::new();
            append_at(&copy, 4, &mut back);
            assert_eq!(back, there);
        }
    }

    #[test]
    fn a_wrong_property_crc_stays_wrong() {
        let mut reserved = Vec::new();
        properties::reserve_crc(&mut reserved);
        let mut there = record(&reserved);
        there[20] ^= 1;
        let mut moved = Vec::new();
        append_at(&Message::decode(&there).expect("a record"), 9, &mut moved);
        assert_eq!(properties::check_crc(&moved), Some(false));
    }
}
