//! Plans the files to remove: first the log files that the [`decision`](super::options::decide) selects, then queue and
//! index files that list only removed messages. Also removes whole queues, if an administrator asks for it. The next
//! message of such a queue gets offset 0, even if an earlier message with offset 0 was acknowledged.
//!
//! Source: `MappedFileQueue.deleteExpiredFileByTime`, `MappedFileQueue.deleteExpiredFileByOffset`,
//! `IndexService.deleteExpiredFile`, `UtilAll.getDiskPartitionSpaceUsedPercent`, `DefaultMessageStore.cleanExpiredConsumerQueue`,
//! `DefaultMessageStore.cleanUnusedTopic`.
use super::options::{RetainOptions, Situation, decide};
use crate::file::disk::{self, sync_directory};
use crate::file::{Io, Place, Segment, SegmentFile, Segments, place};
use crate::format::consume_queue::{UNIT_SIZE, Unit};
use crate::format::index::{HEADER_SIZE, IndexHeader};
use crate::store::append::resume;
use crate::store::consume_queue::{ConsumeQueue, LMQ, UnitReader, directory_names, list_queues};
use crate::store::delay::DELAY_TOPIC;
use crate::{Error, Result};
use rmqfast_os::disk::space;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

const WINDOW: u64 = 1024;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Removable {
    pub path: PathBuf,
    pub bytes: u64,
}

/// The files to remove. Each list is in the order of removal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CleanPlan {
    pub log: Vec<Removable>,
    pub queues: Vec<Removable>,
    pub index: Vec<Removable>,
    /// The start of the log after the removal.
    pub min_offset: u64,
}

/// The files that are being written. Retention must not remove them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InUse {
    /// Offset of the next record. The file with the byte before this offset stays, like all later files.
    pub position: u64,
    pub index_file: Option<String>,
}

impl CleanPlan {
    /// Plans a run. `count` receives the modification times of the removable log files and returns the number of
    /// files to remove. Queues and index are examined only if the log then begins behind `cleaned_to`.
    pub fn new(root: &Path, in_use: &InUse, cleaned_to: u64, mut count: impl FnMut(&[i64]) -> usize) -> Result<Self> {
        let segments = Segments::list(&[root.join("commitlog")])?;
        let written_files = segments.files().partition_point(|file| file.base < in_use.position);
        // The file being written is never a candidate.
        let candidates = &segments.files()[..written_files.saturating_sub(1)];
        let modified = candidates.iter().map(|file| modified_ms(&file.path)).collect::<Result<Vec<_>>>()?;
        let count = count(&modified).min(candidates.len());
        // The first file that stays becomes the start of the log.
        let min_offset = segments.files().get(count).map_or(segments.start(), |file| file.base);
        let log = candidates[..count].iter().map(Removable::from).collect();
        let mut plan = Self { log, queues: Vec::new(), index: Vec::new(), min_offset };
        if min_offset > cleaned_to {
            plan.queues = queue_files(&root.join("consumequeue"), min_offset)?;
            plan.index = index_files(&root.join("index"), min_offset, in_use.index_file.as_deref())?;
        }
        Ok(plan)
    }

    pub fn is_empty(&self) -> bool {
        self.log.is_empty() && self.queues.is_empty() && self.index.is_empty()
    }

    /// Returns all files in the order of removal, the log first. An interrupted run then leaves queues with entries
    /// of removed messages, but never messages without entries.
    pub fn files(&self) -> impl Iterator<Item = &Removable> {
        self.log.iter().chain(&self.queues).chain(&self.index)
    }
}

/// Returns the files that a manual run would remove. Changes nothing, and works without the lock of the store.
pub fn preview(root: &Path, options: &RetainOptions, now_ms: i64) -> Result<CleanPlan> {
    let options = options.check()?;
    place::require_directory(root)?;
    resume::refuse_other_kinds(root)?;
    let clock = super::clock::Clock { wall_ms: now_ms, steady_ms: 0 };
    let used_percent = used_percent(&[root]);
    let decision = decide(&options, &Situation { clock, used_percent, manual: true }, 0, true);
    let segments = Segments::list(&[root.join("commitlog")])?;
    // The position is a byte behind the file's start, so that the last file with data counts as the file being written.
    let in_use = InUse { position: last_written(&segments)?.map_or(0, |file| file.base + 1), index_file: None };
    CleanPlan::new(root, &in_use, 0, |modified| decision.count_expired(modified, now_ms, options.reserved_ms()))
}

/// Returns the last file with data, or `None`. Files behind it were created before they were needed.
fn last_written(segments: &Segments) -> Result<Option<&SegmentFile>> {
    for file in segments.files().iter().rev() {
        if Segment::open(&file.path, Io::Pread)?.window(0, 8)?.iter().any(|byte| *byte != 0) {
            return Ok(Some(file));
        }
    }
    Ok(None)
}

fn modified_ms(path: &Path) -> Result<i64> {
    let meta = Place::metadata(path)?.ok_or_else(|| Error::io(path, std::io::ErrorKind::NotFound.into()))?;
    let modified = meta.modified().map_err(|e| Error::io(path, e))?;
    Ok(match modified.duration_since(UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_millis()).unwrap_or(i64::MAX),
        Err(before) => i64::try_from(before.duration().as_millis()).map_or(i64::MIN, |ms| -ms),
    })
}

/// Returns the leading files of each queue whose messages are all before `min_offset`. The last file of a queue always stays,
/// because it shows the next offset.
fn queue_files(directory: &Path, min_offset: u64) -> Result<Vec<Removable>> {
    let mut removable = Vec::new();
    for topic in directory_names(directory)? {
        for queue in list_queues(directory, &topic)? {
            let files = queue.segments().files();
            for file in &files[..files.len().saturating_sub(1)] {
                if !is_gone(file, min_offset)? {
                    break;
                }
                removable.push(Removable::from(file));
            }
        }
    }
    Ok(removable)
}

/// Returns whether a queue file is full and lists only messages before `min_offset`. The last entry with a message
/// decides, because blank entries point to offset 0. A file that is not full may still be written.
fn is_gone(file: &SegmentFile, min_offset: u64) -> Result<bool> {
    let mut segment = Segment::open(&file.path, Io::Pread)?;
    let mut end = file.len / UNIT_SIZE as u64;
    let mut is_last = true;
    while end > 0 {
        let start = end.saturating_sub(WINDOW);
        let bytes = segment.window(start * UNIT_SIZE as u64, (end - start) as usize * UNIT_SIZE)?;
        for unit in bytes.chunks_exact(UNIT_SIZE).rev().filter_map(Unit::decode) {
            if is_last && !unit.is_written() {
                return Ok(false);
            }
            if unit.is_message() {
                return Ok((unit.physical_offset as u64) < min_offset);
            }
            is_last = false;
        }
        end = start;
    }
    // A file of blank units lists no message. A file without units stays.
    Ok(!is_last)
}

/// Returns the leading index files whose last message is before `min_offset`. The last file and the file being written always
/// stay.
fn index_files(directory: &Path, min_offset: u64, in_use: Option<&str>) -> Result<Vec<Removable>> {
    let mut names = Vec::new();
    for name in place::names(directory)?.into_iter().filter(|name| name.bytes().all(|b| b.is_ascii_digit())) {
        if place::is_file(&directory.join(&name))? {
            names.push(name);
        }
    }
    names.sort_unstable();
    // The newest file stays, as in `IndexService.deleteExpiredFile`.
    names.pop();
    let mut removable = Vec::new();
    for name in names.iter().take_while(|name| in_use.is_none_or(|in_use| name.as_str() < in_use)) {
        let path = directory.join(name);
        let header = IndexHeader::decode(Segment::open(&path, Io::Pread)?.window(0, HEADER_SIZE)?);
        // Later files list later messages, so they stay, too.
        let end = header.and_then(|header| u64::try_from(header.end_phy_offset).ok());
        if end.is_none_or(|end| end >= min_offset) {
            break;
        }
        let bytes = Place::metadata(&path)?.map_or(0, |meta| meta.len());
        removable.push(Removable { path, bytes });
    }
    Ok(removable)
}

impl From<&SegmentFile> for Removable {
    fn from(file: &SegmentFile) -> Self {
        Self { path: file.path.clone(), bytes: file.len }
    }
}

/// Returns the usage in percent of the fullest disk of these directories, rounded up; `None` if a usage is unknown.
pub fn used_percent(directories: &[&Path]) -> Option<u8> {
    let each: Option<Vec<u8>> = directories.iter().map(|directory| percent_of(directory)).collect();
    each?.into_iter().max()
}

fn percent_of(directory: &Path) -> Option<u8> {
    let space = space(directory).ok()?;
    // Counts as `df` does.
    percent(space.total.saturating_sub(space.free), space.usable)
}

/// Returns the percentage of the space that is used, not counting the space reserved for root; `None` for a disk
/// without space.
fn percent(used: u64, usable: u64) -> Option<u8> {
    let (used, all) = (u128::from(used), u128::from(used) + u128::from(usable));
    (all > 0).then(|| (used * 100).div_ceil(all) as u8)
}

pub type QueueName = (String, i32);

/// The topic of the operations on half messages (`TopicValidator.RMQ_SYS_TRANS_OP_HALF_TOPIC`).
const OPERATION_TOPIC: &str = "RMQ_SYS_TRANS_OP_HALF_TOPIC";

/// Tells whether all messages of a queue are removed from a log that begins at `min_offset`. A queue without messages is new,
/// not expired.
pub fn is_queue_expired(queue: &ConsumeQueue, min_offset: u64) -> Result<bool> {
    // The file `delayOffset.json` has offsets in these queues, so they must not restart at 0.
    if queue.topic() == DELAY_TOPIC {
        return Ok(false);
    }
    let last = UnitReader::new(queue).unit(queue.max_offset()? - 1)?.filter(|unit| unit.is_message());
    Ok(last.is_some_and(|last| last.physical_offset.saturating_add(last.size.into()) < min_offset as i64))
}

/// Returns whether a topic is neither in `configured` nor used by the broker itself.
pub fn is_unused(topic: &str, configured: &BTreeSet<String>) -> bool {
    !configured.contains(topic) && topic != DELAY_TOPIC && topic != OPERATION_TOPIC && !topic.starts_with(LMQ)
}

/// Removes the files of a queue. The last file is removed last, because it shows the next offset. So after an error
/// the queue continues.
pub fn remove_queue_files(queue: &ConsumeQueue) -> Result<()> {
    queue.segments().paths_to_remove().try_for_each(disk::remove_file)
}

/// Removes the directory of a queue without files. Also removes the directory of its topic if the topic has no other
/// queue.
pub fn remove_directory(queue: &ConsumeQueue) -> Result<()> {
    for directory in queue.directory().ancestors().take(2) {
        // A directory with a stray file stays.
        let is_gone = fs::remove_dir(directory).is_ok();
        let changed = if is_gone { directory.parent() } else { Some(directory) };
        changed.map_or(Ok(()), sync_directory)?;
        if !is_gone {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::name;
    use crate::format::consume_queue::{UNIT_SIZE, Unit};
    use std::fs;

    const UNITS: usize = 4;

    fn unit(physical_offset: i64) -> Unit {
        Unit { physical_offset, size: 10, tags_code: 0 }
    }

    /// Creates a store with `log_files` log files of 100 bytes, and one queue with these units, four per file.
    fn store(log_files: u64, units: &[Unit]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().expect("dir");
        let (log, queue) = (dir.path().join("commitlog"), dir.path().join("consumequeue/T/0"));
        for directory in [&log, &queue, &dir.path().join("index")] {
            fs::create_dir_all(directory).expect("made");
        }
        for n in 0..log_files {
            fs::write(log.join(name::of_offset(n * 100)), [1; 100]).expect("written");
        }
        for (n, chunk) in units.chunks(UNITS).enumerate() {
            let mut bytes: Vec<u8> = chunk.iter().flat_map(Unit::encode).collect();
            bytes.resize(UNITS * UNIT_SIZE, 0);
            fs::write(queue.join(name::of_offset((n * UNITS * UNIT_SIZE) as u64)), bytes).expect("written");
        }
        dir
    }

    fn index(root: &Path, ends: &[i64]) {
        for (n, end) in ends.iter().enumerate() {
            let header = IndexHeader { end_phy_offset: *end, ..IndexHeader::following(1, 1) };
            fs::write(root.join("index").join(format!("2026010100000{n:04}")), header.encode()).expect("written");
        }
    }

    fn plan(root: &Path, position: u64, index_file: Option<&str>, count: usize) -> CleanPlan {
        let in_use = InUse { position, index_file: index_file.map(str::to_owned) };
        CleanPlan::new(root, &in_use, 0, |_| count).expect("planned")
    }

    fn names(files: &[Removable]) -> Vec<String> {
        files.iter().map(|file| file.path.file_name().expect("a name").to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn the_file_that_is_written_to_and_those_created_ahead_are_no_candidates() {
        let dir = store(5, &[]);
        for (position, expected) in [(0, 0), (1, 0), (100, 0), (101, 1), (250, 2), (300, 2), (301, 3), (500, 4)] {
            let mut asked = 99;
            let in_use = InUse { position, index_file: None };
            CleanPlan::new(dir.path(), &in_use, 0, |modified| {
                asked = modified.len();
                0
            })
            .expect("planned");
            assert_eq!(asked, expected, "{position}");
        }
    }

    #[test]
    fn leading_queue_files_go_when_all_their_messages_are_gone() {
        let units: Vec<Unit> = (0..10).map(|n| unit(n * 40)).collect();
        let dir = store(5, &units);
        for (count, queue_files, min_offset) in [(0, 0, 0), (1, 0, 100), (2, 1, 200), (3, 2, 300), (4, 2, 400)] {
            let plan = plan(dir.path(), 500, None, count);
            assert_eq!(
                (plan.log.len(), plan.queues.len(), plan.min_offset),
                (count, queue_files, min_offset),
                "{count}"
            );
        }
        assert_eq!(names(&plan(dir.path(), 500, None, 4).queues), [name::of_offset(0), name::of_offset(80)]);
    }

    #[test]
    fn units_that_fill_a_gap_are_no_messages_and_a_file_that_is_not_full_stays() {
        let gap = Unit::PRE_BLANK;
        for (first, goes) in [
            ([unit(0), unit(10), unit(20), unit(30)], true),
            ([unit(0), unit(10), unit(150), gap], false),
            ([unit(0), unit(10), gap, gap], true),
            ([gap; 4], true),
            ([unit(0), unit(10), unit(20), Unit::default()], false),
            ([Unit::default(); 4], false),
        ] {
            let units = [&first[..], &[unit(400)]].concat();
            let dir = store(3, &units);
            assert_eq!(plan(dir.path(), 300, None, 1).queues.len(), usize::from(goes), "{first:?}");
        }
    }

    #[test]
    fn leading_index_files_go_but_neither_the_last_nor_the_one_that_is_written_to() {
        let dir = store(5, &[]);
        index(dir.path(), &[50, 99, 100, 50, 60]);
        let removed = |count, in_use| plan(dir.path(), 500, in_use, count).index.len();
        assert_eq!([0, 1, 2, 4].map(|count| removed(count, None)), [0, 2, 4, 4]);
        assert_eq!(removed(4, Some("20260101000000001")), 1);
        fs::write(dir.path().join("index/notes.txt"), b"x").expect("written");
        assert_eq!(removed(4, None), 4);
    }

    #[test]
    fn a_preview_counts_from_the_last_file_that_holds_something() {
        let dir = store(4, &[]);
        fs::write(dir.path().join("commitlog").join(name::of_offset(400)), [0; 100]).expect("written");
        let options = RetainOptions { clean_forcibly: false, ..RetainOptions::default() };
        let now = super::super::clock::Clock::now().wall_ms;
        let count = |hours: i64| preview(dir.path(), &options, now + hours * 3_600_000).expect("planned").log.len();
        assert_eq!([0, 71, 73].map(count), [0, 0, 3]);
    }

    #[test]
    fn percents_are_rounded_up() {
        for (used, usable, expected) in [
            (0, 100, Some(0)),
            (1, 999, Some(1)),
            (750, 250, Some(75)),
            (751, 249, Some(76)),
            (5, 0, Some(100)),
            (0, 0, None),
        ] {
            assert_eq!(percent(used, usable), expected, "{used} {usable}");
        }
        assert_eq!(percent(u64::MAX, u64::MAX), Some(50));
    }

    #[test]
    fn a_directory_has_a_disk_and_one_that_is_not_there_has_none() {
        let dir = tempfile::tempdir().expect("dir");
        assert!(used_percent(&[dir.path()]).is_some_and(|percent| percent <= 100));
        assert_eq!(used_percent(&[dir.path(), &dir.path().join("nowhere")]), None);
    }

    fn queue(topic: &str, units: &[Unit]) -> (tempfile::TempDir, ConsumeQueue) {
        let dir = tempfile::tempdir().expect("dir");
        let mut bytes: Vec<u8> = units.iter().flat_map(Unit::encode).collect();
        bytes.resize(5 * UNIT_SIZE, 0);
        fs::write(dir.path().join(crate::file::name::of_offset(0)), bytes).expect("written");
        let queue = ConsumeQueue::list(topic, 0, dir.path()).expect("listed");
        (dir, queue)
    }

    #[test]
    fn a_queue_is_expired_when_its_last_message_is_gone_and_never_that_of_delays() {
        let units = [0, 50].map(|physical_offset| Unit { physical_offset, size: 50, tags_code: 0 });
        for (topic, units, min_offset, expected) in [
            ("T", &units[..], 100, false),
            ("T", &units[..], 101, true),
            ("T", &units[..], 0, false),
            ("T", &[], 101, false),
            (DELAY_TOPIC, &units[..], 101, false),
        ] {
            let (_dir, queue) = queue(topic, units);
            assert_eq!(is_queue_expired(&queue, min_offset).expect("read"), expected, "{topic} {min_offset}");
        }
    }

    #[test]
    fn a_topic_is_unused_unless_it_is_configured_or_the_brokers_own() {
        let configured = BTreeSet::from(["orders".to_owned()]);
        let topics = ["orders", "clicks", DELAY_TOPIC, OPERATION_TOPIC, "%LMQ%x", "RMQ_SYS_TRANS_HALF_TOPIC"];
        assert_eq!(topics.map(|topic| is_unused(topic, &configured)), [false, true, false, false, false, true]);
    }
}
