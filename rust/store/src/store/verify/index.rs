//! Checks an index file against the log. Every entry must be in its chain and point to a message that has a key with the
//! entry's hash.
use super::report::{VerifyReport, is_known};
use crate::file::Place;
use crate::format::index::{ENTRY_SIZE, IndexEntry, SLOT_SIZE, entry_position, index_hash, slot_of, slot_position};
use crate::format::message::Message;
use crate::format::properties;
use crate::store::commit_log::{Damage, RecordReader};
use crate::store::index_files::{IndexFile, IndexReader};
use crate::store::message_store::MessageStore;
use crate::{Error, Result};

const STEP: u32 = 4096;
/// Minimum number of entries with which an index file fits only one number of slots.
const MIN_ENTRIES_TO_CHECK_SLOTS: u32 = 100;
/// Prefix of the keys under which 5.4 indexes tags (`MessageConst.INDEX_TAG_TYPE`).
const TAG_PREFIX: &str = "T#";

pub(super) fn bytes_of(file: &IndexFile) -> u64 {
    u64::from(file.entries()) * ENTRY_SIZE as u64
}

/// Checks an index file. `flushed_ms` is the store time of the last message up to which the index is on the disk.
pub(super) fn verify(
    store: &MessageStore,
    file: &IndexFile,
    flushed_ms: i64,
    report: &mut VerifyReport,
    watch: &mut dyn FnMut(u64) -> Result<()>,
) -> Result<()> {
    report.index_files += 1;
    if let (true, Err(Error::Corrupt { path, reason, .. })) = (file.is_missing, Place::metadata(&file.path)) {
        report.damage.push(Damage { offset: 0, length: 0, reason, file: path });
        return Ok(());
    }
    // After a crash, a file that was not flushed may be incomplete.
    if store.has_abort()? && file.header.end_timestamp > flushed_ms {
        let path = file.path.display();
        report.notes.push(format!("{path}: not checked; a broker deletes it when it starts after a crash"));
        return Ok(());
    }
    let Some(reader) = file.open()? else {
        if file.entries() >= MIN_ENTRIES_TO_CHECK_SLOTS {
            let reason = "expected entries and chains of some geometry, found none that fits";
            report.damage.push(Damage { offset: 0, length: 0, reason: reason.into(), file: file.path.clone() });
        }
        return Ok(());
    };
    let newest = vec![0; reader.slot_count() as usize];
    let log = RecordReader::new(store.log());
    let mut check = Check { file, reader, log, log_start: store.log().min_offset(), newest, hashes: (-1, Vec::new()) };
    check.entries(report, watch)?;
    check.slots(report)
}

struct Check<'a> {
    file: &'a IndexFile,
    reader: IndexReader<'a>,
    log: RecordReader<'a>,
    log_start: u64,
    /// For each slot, the number of the last entry that was read.
    newest: Vec<u32>,
    /// Offset of the last record that was read, and the hashes of its keys.
    hashes: (i64, Vec<i32>),
}

impl Check<'_> {
    fn entries(&mut self, report: &mut VerifyReport, watch: &mut dyn FnMut(u64) -> Result<()>) -> Result<()> {
        let last = self.file.entries();
        for start in (1..=last).step_by(STEP as usize) {
            watch(u64::from(start) * ENTRY_SIZE as u64)?;
            let bytes = self.reader.entries(start, STEP.min(last + 1 - start))?.to_vec();
            for (n, entry) in (start..).zip(bytes.chunks_exact(ENTRY_SIZE).filter_map(IndexEntry::decode)) {
                if let Some(reason) = self.find_fault(n, entry, report)? {
                    let offset = entry_position(self.reader.slot_count(), n) as u64;
                    report.damage.push(self.damage(offset, ENTRY_SIZE, reason));
                }
            }
        }
        Ok(())
    }

    fn find_fault(&mut self, n: u32, entry: IndexEntry, report: &mut VerifyReport) -> Result<Option<String>> {
        let slot = slot_of(entry.key_hash, self.reader.slot_count()) as usize;
        let before = std::mem::replace(&mut self.newest[slot], n);
        // The entries of a slot form a chain. Each entry contains the number of the entry before it.
        if entry.key_hash < 0 || entry.previous != before.cast_signed() {
            return Ok(Some(format!("previous entry: expected {before}, got {}", entry.previous)));
        }
        // Retention removes an index file only when all of its messages are removed, so this entry is no damage.
        if u64::try_from(entry.physical_offset).is_ok_and(|offset| offset < self.log_start) {
            return Ok(None);
        }
        // Entries of one record are next to each other, so the record is read once.
        if self.hashes.0 != entry.physical_offset {
            self.hashes = (entry.physical_offset, self.hashes_at(entry.physical_offset)?);
        }
        if self.hashes.1.contains(&entry.key_hash) {
            report.index_entries += 1;
            return Ok(None);
        }
        // Damage of the log at this offset is already reported.
        let is_new = !is_known(&report.damage, entry.physical_offset);
        Ok(is_new.then(|| format!("no message at {} has a key of hash {}", entry.physical_offset, entry.key_hash)))
    }

    fn hashes_at(&mut self, offset: i64) -> Result<Vec<i32>> {
        let Ok(offset) = u64::try_from(offset) else { return Ok(Vec::new()) };
        let record = self.log.try_record(offset)?.ok();
        let Some(message) = record.as_deref().and_then(Message::decode) else { return Ok(Vec::new()) };
        let topic = String::from_utf8_lossy(message.topic());
        let text = |name| String::from_utf8_lossy(message.property(name).unwrap_or_default());
        let (unique, keys) = (text(properties::UNIQ_KEY), text(properties::KEYS));
        let tag = format!("{TAG_PREFIX}{}", text(properties::TAGS));
        Ok(keys.split(' ').chain([unique.as_ref(), &tag]).map(|key| index_hash(&topic, key)).collect())
    }

    /// Checks that each slot has the number of the last entry of its chain, and that the header has the number of
    /// used slots.
    fn slots(&mut self, report: &mut VerifyReport) -> Result<()> {
        let count = self.reader.slot_count();
        for start in (0..count).step_by(STEP as usize) {
            let bytes = self.reader.slots(start, STEP)?.to_vec();
            let (numbers, _) = bytes.as_chunks::<SLOT_SIZE>();
            for (slot, number) in (start..).zip(numbers.iter().map(|bytes| i32::from_be_bytes(*bytes))) {
                let expected = self.newest[slot as usize].cast_signed();
                if number != expected {
                    let reason = format!("newest entry of slot {slot}: expected {expected}, got {number}");
                    report.damage.push(self.damage(slot_position(slot) as u64, SLOT_SIZE, reason));
                }
            }
        }
        let used = self.newest.iter().filter(|n| **n != 0).count();
        if used != self.file.header.hash_slot_count.max(0) as usize {
            let reason = format!("slots in use: expected {used}, got {}", self.file.header.hash_slot_count);
            report.damage.push(self.damage(32, SLOT_SIZE, reason));
        }
        Ok(())
    }

    fn damage(&self, offset: u64, length: usize, reason: String) -> Damage {
        Damage { offset, length: length as u64, reason, file: self.file.path.clone() }
    }
}
