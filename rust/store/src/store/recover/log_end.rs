//! Finds the end of the log and cuts everything behind it, such as half a record after a crash.
//!
//! While a recovery of the whole store runs, and after an interrupted one, the file `recovery.begun` exists: queues may then be
//! shorter than the checkpoint claims.
//!
//! Source: `MappedFileQueue.truncateDirtyFiles`. RocketMQ leaves the bytes behind the new end.
use crate::file::disk::{self, Call, sync_directory};
use crate::file::{AllocatedFile, Place, name, place};
use crate::format::message::{MIN_BLANK_LEN, Message, encode_blank};
use crate::store::commit_log::{CommitLog, Damage, DamageLog};
use crate::store::log_walk::{LogWalk, record_behind};
use crate::{Error, Result};
use std::path::Path;
use std::sync::Arc;

pub fn first_record(walk: &LogWalk) -> Option<Message<'_>> {
    let block = walk.block();
    let first = block.records.first()?;
    Message::new(block.bytes.get(first.at as usize..)?, first.layout)
}

/// Returns the error for damage behind which flushed messages follow. `next` is the first of these messages.
pub fn damage_error(log: &CommitLog, damage: &Damage, next: &Message<'_>) -> Error {
    let base = log.segments().find(damage.offset).map_or(0, |index| log.segments().files()[index].base);
    let reason = format!(
        "{}; behind it, at {}, the log goes on with messages that had been flushed, so nothing is cut: \
         read the store with mode \"r\", or have what is readable in a new one: `rmqfast store export {} OUT`",
        damage.reason,
        next.physical_offset(),
        log.root().display()
    );
    Error::Corrupt { path: damage.file.clone(), offset: damage.offset - base, reason }
}

/// Returns the end of the last record that ends at or before `at`. If the log file has no such record, returns the
/// start of the file.
pub fn record_end(log: &Arc<CommitLog>, at: u64) -> Result<u64> {
    let Some(index) = log.segments().find(at.min(log.segments().end().saturating_sub(1))) else { return Ok(at) };
    let base = log.segments().files()[index].base;
    let mut walk = LogWalk::new(log.clone(), base, at, u64::MAX).without_waiting();
    let (mut end, mut damage) = (base, DamageLog::default());
    while damage.entries().is_empty() && walk.advance(&mut damage)? {
        let block = walk.block();
        let whole = block.records.iter().filter_map(|r| Message::new(block.bytes.get(r.at as usize..)?, r.layout));
        let ends = whole.map(|message| message.physical_offset() as u64 + u64::from(message.layout().total));
        end = ends.take_while(|end| *end <= at).last().unwrap_or(end);
    }
    Ok(end)
}

/// Returns an offset from which to read the last records before `end`. This is the first record in the last `most`
/// bytes, or the last record if it is longer. Returns the start of a file if the file of `end` has no record there,
/// or if `most` reaches beyond the file.
pub fn last_records(log: &CommitLog, end: u64, most: u64) -> Result<u64> {
    let files = log.segments().files();
    let Some(index) = end.checked_sub(1).and_then(|last| log.segments().find(last)) else { return Ok(end) };
    let (base, mut back) = (files[index].base, most.max(1));
    while end.saturating_sub(back) > base {
        match record_behind(log, index, end - back)? {
            // A blank contains no offset that could be compared.
            Some(at) if at < end && log.record_at(at).is_ok() => return Ok(at),
            // Goes back further, because the last record may be larger than `most`.
            _ => back = back.saturating_mul(4),
        }
    }
    let holder = log.segments().find(end.saturating_sub(most)).unwrap_or(0);
    Ok(files[holder].base.min(base))
}

/// Moves the end of a log with a single file into a second file. Blank records fill the gap. This is needed because
/// the entries of lost messages point to the end of the first file, where RocketMQ would search for the messages.
/// `size` is the size of log files. Returns the new end.
pub fn pass_first_file(directory: &Path, end: u64, size: u64) -> Result<u64> {
    if end > size {
        return Ok(end);
    }
    for (base, from) in [(0, end), (size, 0)] {
        let file = open_or_create(&directory.join(name::of_offset(base)), size)?;
        let rest = u32::try_from(size - from).unwrap_or(u32::MAX);
        // Each record leaves room for a blank, so no smaller rest follows a record.
        if rest as usize >= MIN_BLANK_LEN {
            file.write(&encode_blank(rest), from)?;
        }
        file.sync()?;
    }
    // RocketMQ expects a blank to end its file only if another file follows (`CommitLog.recoverNormally`).
    open_or_create(&directory.join(name::of_offset(2 * size)), size)?.sync()?;
    sync_directory(directory)?;
    Ok(2 * size)
}

fn open_or_create(path: &Path, size: u64) -> Result<AllocatedFile> {
    if !place::exists(path)? {
        return AllocatedFile::create_sparse(path, size);
    }
    let file = AllocatedFile::open(path)?;
    // In a file of another length, the blank would not reach to the end.
    file.set_len(size)?;
    Ok(file)
}

/// Removes dead links and empty directories that have names of log files from `end` on. Fails for a directory that is not
/// empty.
pub fn remove_in_place_of_files(directory: &Path, end: u64) -> Result<()> {
    for path in place::list(directory)? {
        let base = path.file_name().and_then(|name| name.to_str()).and_then(name::offset);
        if base.is_none_or(|base| base < end) {
            continue;
        }
        match Place::look(&path)? {
            Place::DeadLink => disk::remove_file(&path)?,
            Place::There(meta) if meta.is_dir() => disk::remove_directory(&path)?,
            _ => {}
        }
    }
    sync_directory(directory)
}

/// Cuts the log at `end`. Fills the rest of the file of `end` with zeroes, and removes later files. Returns the
/// number of bytes cut.
pub fn cut(log: &CommitLog, end: u64) -> Result<u64> {
    let files = log.segments().files();
    let mut cut = 0;
    for (index, file) in files.iter().enumerate().rev().take_while(|(_, file)| file.end() > end) {
        let from = end.saturating_sub(file.base);
        let written = log.open(index)?.first_written(from, file.len)?;
        cut += written.map_or(0, |first| file.len - first);
        if file.base > end {
            disk::remove_file(&file.path)?;
        } else if written.is_some() {
            let allocated = AllocatedFile::open(&file.path)?;
            allocated.empty(from, file.len - from)?;
            allocated.sync()?;
        }
    }
    let size = log.segments().file_size().unwrap_or(u64::MAX);
    for file in files.iter().filter(|file| file.len > size) {
        // The file was removed above.
        if !place::exists(&file.path)? {
            continue;
        }
        // Bytes behind the size of log files are not part of the log.
        if file.base.saturating_add(size) >= end || files.last() != Some(file) {
            AllocatedFile::open(&file.path)?.set_len(size)?;
        }
    }
    if let Some(directory) = files.last().and_then(|file| file.path.parent()).filter(|_| cut > 0) {
        sync_directory(directory)?;
    }
    Ok(cut)
}

const BEGUN: &str = "recovery.begun";

pub fn is_begun(root: &Path) -> Result<bool> {
    place::exists(&root.join(BEGUN))
}

/// Creates the file that makes the next start recover the whole store.
pub fn begin(root: &Path) -> Result<()> {
    let path = root.join(BEGUN);
    disk::call(Call::Create, &path, || disk::create(&path))?;
    disk::sync_directory(root)
}

pub fn remove_marker(root: &Path) -> Result<()> {
    if is_begun(root)? {
        disk::remove_file(&root.join(BEGUN))?;
        disk::sync_directory(root)?;
    }
    Ok(())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// The log from the checkpoint on. Used after a crash.
    Checkpoint,
    /// The whole log. Used for a repair, after an interrupted recovery, and when queues or index contradict the log.
    Whole,
}
