//! Plans reads from a mirror's copies of brokers: finds the bounds of each queue in the copy, and cuts the copy into
//! pieces.
use crate::error::{Error, Result};
use crate::origin::copy_rows::scan_of;
use crate::origin::piece::{CopyPart, TopicPiece};
use crate::store::piece::Cut;
use rmqfast_client::cluster::Bounds;
use rmqfast_client::puller::Queue;
use rmqfast_client::ranges::{QueueRange, RangeRequest};
use rmqfast_store::file::place;
use rmqfast_store::scan::{Piece, Plan};
use rmqfast_store::store::queue_view::Topics;
use rmqfast_store::store::{CopyNote, MessageStore, OpenOptions, newest_copy};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// A mirror's copies of brokers. Brokers without a copy are left out.
pub struct Copies {
    directory: PathBuf,
    by_broker: BTreeMap<String, Copy>,
}

struct Copy {
    store: MessageStore,
    topics: Topics,
    note: CopyNote,
}

impl Copies {
    /// Opens the copies of all brokers to which `queues` belong.
    ///
    /// # Errors
    /// A copy is not a store, or cannot be read.
    pub fn open<'a>(directory: &Path, queues: impl IntoIterator<Item = &'a Queue>) -> Result<Self> {
        let names: BTreeSet<&str> = queues.into_iter().map(|queue| &*queue.broker_name).collect();
        let mut by_broker = BTreeMap::new();
        for name in names {
            let path = newest_copy(&directory.join(name))?;
            // a broker whose queues are empty needs no copy; `copy` reports a copy that is missing
            if place::is_directory(&path)? {
                by_broker.insert(name.to_owned(), Copy::open(&path, name)?);
            }
        }
        Ok(Self { directory: directory.to_owned(), by_broker })
    }

    /// Returns `bounds` with each queue's first offset replaced by the copy's first offset.
    ///
    /// A mirror may keep more than the broker, or may have started later. The ends stay as the broker says.
    pub fn from_start(&self, bounds: &[(Queue, Bounds)]) -> Vec<(Queue, Bounds)> {
        let begin = |(queue, (first, last)): &(Queue, Bounds)| {
            let copied = self.by_broker.get(&*queue.broker_name).and_then(|copy| copy.bounds(queue));
            (queue.clone(), (copied.map_or(*first, |(first, _)| first).min(*last), *last))
        };
        bounds.iter().map(begin).collect()
    }

    /// Returns pieces that read `ranges`. There are at least `least` pieces, if the copies can be cut that often.
    ///
    /// Also returns a log line that names the copies and counts the messages that they lack.
    ///
    /// # Errors
    /// A broker has no copy, or its copy cannot be read.
    pub fn plan(
        &self,
        ranges: Vec<QueueRange>,
        request: &RangeRequest,
        least: i64,
    ) -> Result<(Vec<TopicPiece>, String)> {
        let mut by_topic: BTreeMap<(String, String), Vec<QueueRange>> = BTreeMap::new();
        for range in ranges {
            let Queue { topic, broker_name, .. } = &range.queue;
            by_topic.entry((broker_name.to_string(), topic.clone())).or_default().push(range);
        }
        // each topic of a broker contributes its share of the minimum
        let least = least.unsigned_abs().div_ceil((by_topic.len() as u64).max(1));
        let (mut pieces, mut notes) = (Vec::new(), Vec::new());
        for ((broker_name, topic), ranges) in by_topic {
            let copy = self.copy(&broker_name)?;
            copy.check_keeps(&topic)?;
            let (held, lacking) = copy.present_ranges(ranges);
            notes.push(format!("{topic} of {broker_name}{lacking}"));
            pieces.extend(copy.pieces(&held, request, least)?);
        }
        let notes = if notes.is_empty() { "nothing".to_owned() } else { notes.join("; ") };
        Ok((pieces, format!("read out of the copies in {}: {notes}", self.directory.display())))
    }

    fn copy(&self, broker_name: &str) -> Result<&Copy> {
        self.by_broker.get(broker_name).ok_or_else(|| {
            let directory = self.directory.display();
            let text = format!("option mirrorPath: expected a copy of {broker_name} below {directory}, got none");
            Error::argument(format!("{text}; rmqfast mirror --all-brokers makes one of each"))
        })
    }
}

impl Copy {
    fn open(path: &Path, broker_name: &str) -> Result<Self> {
        let note = CopyNote::load(path)?;
        if let Some(other) = note.broker_name.as_ref().filter(|name| *name != broker_name) {
            let path = path.display();
            return Err(Error::argument(format!(
                "option mirrorPath: expected a copy of {broker_name} at {path}, got one of {other}"
            )));
        }
        let store = MessageStore::open(path, &OpenOptions::default())?;
        Ok(Self { topics: store.topics()?, note, store })
    }

    fn check_keeps(&self, topic: &str) -> Result<()> {
        let names = &self.note.topics;
        if names.is_empty() || names.iter().any(|name| name == topic) {
            return Ok(());
        }
        let (path, names) = (self.store.root().display(), names.join(", "));
        let text = format!("option mirrorPath: expected a copy of {topic} at {path}, got one of {names}");
        Err(Error::argument(format!("{text}; rmqfast mirror --topics {topic} makes one in another directory")))
    }

    /// Returns the first offset of a queue, and the offset after its last message. `None` if the copy has no messages
    /// of the queue, because they came after the copy's end or before its beginning.
    fn bounds(&self, queue: &Queue) -> Option<Bounds> {
        self.topics.get(&queue.topic)?.get(&queue.queue_id).copied()
    }

    /// Returns the parts of one topic's ranges that the copy has, and a text with the number of missing messages.
    fn present_ranges(&self, ranges: Vec<QueueRange>) -> (Vec<QueueRange>, String) {
        let (mut held, mut behind, mut unknown) = (Vec::new(), 0, (0, 0));
        for range in ranges {
            let count = range.end - range.start;
            let Some((_, end)) = self.bounds(&range.queue) else {
                unknown = (unknown.0 + 1, unknown.1 + count);
                continue;
            };
            // messages behind the copy's end are counted as missing, not waited for
            let range = QueueRange { end: range.end.min(end), ..range };
            behind += count - (range.end - range.start).max(0);
            held.extend(Some(range).filter(|range| range.start < range.end));
        }
        let mut lacking = String::new();
        if behind > 0 {
            lacking = format!(", whose last {behind} messages it has not yet");
        }
        if unknown.0 > 0 {
            lacking += &format!(", and nothing of {} of its queues with {} messages", unknown.0, unknown.1);
        }
        (held, lacking)
    }

    /// Cuts one topic's ranges into pieces.
    fn pieces(&self, ranges: &[QueueRange], request: &RangeRequest, least: u64) -> Result<Vec<TopicPiece>> {
        if ranges.is_empty() {
            return Ok(Vec::new());
        }
        let scan = scan_of(request, ranges)?;
        // the driver's cores stand in for the executors' cores, which the driver does not know
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u64);
        let cut = Cut { least: Some(least), ..Cut::default() };
        let pieces = cut.pieces(|bytes| {
            let mut plan = Plan::new(&self.store, &scan, None)?;
            plan.cut(bytes, cores)?;
            Ok(plan.pieces)
        })?;
        let (first, last) = self.stretch(ranges)?;
        // the plan covers the whole log, so its pieces are narrowed to the ranges' part
        let cut = |piece: Piece| Piece { from: piece.from.max(first), end: piece.end.min(last), ..piece };
        let pieces = pieces.into_iter().map(cut).filter(|piece| piece.from < piece.end);
        let part = |piece: Piece| CopyPart { path: self.store.root().to_owned(), piece };
        Ok(pieces.map(|piece| TopicPiece::of_copy(ranges.to_vec(), part(piece))).collect())
    }

    /// Returns the part of the copy's log from the first message of the ranges to the last.
    ///
    /// An earlier part may hold messages with the same offsets, from a deleted topic of the same name. Nor is it damage
    /// if retention removes files there.
    fn stretch(&self, ranges: &[QueueRange]) -> Result<(u64, u64)> {
        let (mut first, mut last) = (u64::MAX, 0);
        for QueueRange { queue, start, end } in ranges {
            let view = self.store.queue_view(&queue.topic, queue.queue_id)?;
            let mut reader = view.reader();
            // a hole in the consume queue has no unit, so that side is not narrowed
            first = first.min(reader.unit(*start)?.map_or(0, |unit| unit.physical_offset.unsigned_abs()));
            let end = reader.unit(end - 1)?;
            last =
                last.max(end.map_or(u64::MAX, |unit| {
                    unit.physical_offset.unsigned_abs() + u64::from(unit.size.unsigned_abs())
                }));
        }
        Ok((first, last))
    }
}

impl std::fmt::Debug for Copies {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Copies").field("directory", &self.directory).finish_non_exhaustive()
    }
}
