//! Exports messages: reads the records that a request selects and writes them into a new store.
use super::lists::Lists;
use super::partial::{Partial, refuse_within};
use super::syncer::Syncer;
use super::{config, record};
use crate::format::message::{MIN_BLANK_LEN, Message};
use crate::scan::{Piece, Plan, RowSource, ScanRequest};
use crate::store::MessageStore;
use crate::store::append::AppendOptions;
use crate::store::append::checkpoint::{CheckpointWriter, FlushState};
use crate::store::append::log_writer::{BUFFER_LEN, LogWriter};
use crate::store::append::resume::DIRECTORIES;
use crate::store::append::unsynced::SyncList;
use crate::store::damage::DamageLog;
use crate::store::verify::Watch;
use crate::{Error, Result};
use std::fs;
use std::path::Path;
use std::sync::Arc;

/// Bytes of the log that are read at a time.
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

/// Writes the messages that `request` selects into a new store at `out`. Checks the CRC of every body, since a recovering broker truncates
/// its log at a damaged body. Calls `watch` with the bytes of the log read so far and in total.
///
/// # Errors
/// [`Error::Invalid`] if `out` exists, or if the file sizes are smaller than a record. After any error there is nothing at `out`.
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
        record::append_at(message, physical_offset as i64, buffer);
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
