//! The copies that a mirror keeps of brokers: where each queue begins there, and the pieces that tasks read out of them.
use crate::copy_part::CopyPart;
use crate::copy_rows::scan_of;
use crate::error::{Error, Result};
use crate::pieces::Cut;
use crate::topic_piece::TopicPiece;
use rmqfast_client::cluster::Bounds;
use rmqfast_client::puller::Queue;
use rmqfast_client::ranges::{QueueRange, RangeRequest};
use rmqfast_store::scan::{Piece, Plan};
use rmqfast_store::store::queue_view::Topics;
use rmqfast_store::store::{MessageStore, OpenOptions, newest_copy};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The copies of some brokers, those of them that there are.
pub struct Copies {
    directory: PathBuf,
    by_broker: BTreeMap<String, Copy>,
}

/// A copy of a broker.
struct Copy {
    store: MessageStore,
    topics: Topics,
    /// The topics that it is a mirror of; none where it is one of all.
    kept: Vec<String>,
}

impl Copies {
    /// Opens the copies of the brokers of `queues` below a mirror's directory.
    ///
    /// # Errors
    /// A copy that is no store, or cannot be read.
    pub fn open<'a>(directory: &Path, queues: impl IntoIterator<Item = &'a Queue>) -> Result<Self> {
        let names: BTreeSet<&str> = queues.into_iter().map(|queue| &*queue.broker_name).collect();
        let mut by_broker = BTreeMap::new();
        for name in names {
            let path = newest_copy(&directory.join(name));
            // a broker whose queues have nothing needs none
            if path.is_dir() {
                by_broker.insert(name.to_owned(), Copy::open(&path)?);
            }
        }
        Ok(Self { directory: directory.to_owned(), by_broker })
    }

    /// `bounds` of queues that begin where their copies do: a mirror may keep more than the broker, or have begun later. They end
    /// as the broker says.
    pub fn from_start(&self, bounds: &[(Queue, Bounds)]) -> Vec<(Queue, Bounds)> {
        let begin = |(queue, (first, last)): &(Queue, Bounds)| {
            let copied = self.by_broker.get(&*queue.broker_name).and_then(|copy| copy.bounds(queue));
            (queue.clone(), (copied.map_or(*first, |(first, _)| first).min(*last), *last))
        };
        bounds.iter().map(begin).collect()
    }

    /// Pieces with what the copies have of `ranges`, `least` of them where a copy can be cut so often. Besides, for a person,
    /// where the messages come from and how many are not there yet.
    ///
    /// # Errors
    /// There is no copy of a broker; one that cannot be read.
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
        let least = least.unsigned_abs().div_ceil((by_topic.len() as u64).max(1));
        let (mut pieces, mut told) = (Vec::new(), Vec::new());
        for ((broker_name, topic), ranges) in by_topic {
            let copy = self.copy(&broker_name)?;
            copy.check_keeps(&topic)?;
            let asked = count(&ranges);
            let held = copy.held(ranges);
            let behind = match asked - count(&held) {
                0 => String::new(),
                behind => format!(", whose last {behind} messages it has not yet"),
            };
            told.push(format!("{topic} of {broker_name}{behind}"));
            pieces.extend(copy.pieces(&held, request, least)?);
        }
        let told = if told.is_empty() { "nothing".to_owned() } else { told.join("; ") };
        Ok((pieces, format!("read out of the copies in {}: {told}", self.directory.display())))
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
    fn open(path: &Path) -> Result<Self> {
        let store = MessageStore::open(path, &OpenOptions::default())?;
        Ok(Self { topics: store.topics()?, kept: kept_topics(path)?, store })
    }

    fn check_keeps(&self, topic: &str) -> Result<()> {
        if self.kept.is_empty() || self.kept.iter().any(|kept| kept == topic) {
            return Ok(());
        }
        let (path, kept) = (self.store.root().display(), self.kept.join(", "));
        let text = format!("option mirrorPath: expected a copy of {topic} at {path}, got one of {kept}");
        Err(Error::argument(format!("{text}; rmqfast mirror --topics {topic} makes one in another directory")))
    }

    /// The first offset of a queue, and the one behind its last; `None` of a queue that came behind the copy's end.
    fn bounds(&self, queue: &Queue) -> Option<Bounds> {
        self.topics.get(&queue.topic)?.get(&queue.queue_id).copied()
    }

    /// What it has of ranges.
    fn held(&self, ranges: Vec<QueueRange>) -> Vec<QueueRange> {
        let held = ranges.into_iter().filter_map(|range| {
            let (_, end) = self.bounds(&range.queue)?;
            Some(QueueRange { end: range.end.min(end), ..range })
        });
        held.filter(|range| range.start < range.end).collect()
    }

    /// Pieces of ranges of one topic.
    fn pieces(&self, ranges: &[QueueRange], request: &RangeRequest, least: u64) -> Result<Vec<TopicPiece>> {
        if ranges.is_empty() {
            return Ok(Vec::new());
        }
        let scan = scan_of(request, ranges)?;
        // those of the driver: nobody knows how many executors have
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u64);
        let cut = Cut { least: Some(least), ..Cut::default() };
        let pieces = cut.pieces(|bytes| {
            let mut plan = Plan::new(&self.store, &scan, None)?;
            plan.cut(bytes, cores)?;
            Ok(plan.pieces)
        })?;
        let part = |piece: Piece| CopyPart { path: self.store.root().to_owned(), piece };
        Ok(pieces.into_iter().map(|piece| TopicPiece::of_copy(ranges.to_vec(), part(piece))).collect())
    }
}

/// The topics that the mirror in a directory keeps, as it notes them; none where it keeps all. A store that is no mirror keeps all.
fn kept_topics(path: &Path) -> Result<Vec<String>> {
    let path = path.join("mirror.json");
    let text = match std::fs::read(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        read => read.map_err(|error| rmqfast_store::Error::io(&path, error))?,
    };
    let note: Value = serde_json::from_slice(&text)
        .map_err(|error| Error::argument(format!("{}: expected the note of a mirror: {error}", path.display())))?;
    let topics = note.get("topics").and_then(Value::as_array).into_iter().flatten();
    Ok(topics.filter_map(Value::as_str).map(str::to_owned).collect())
}

fn count(ranges: &[QueueRange]) -> i64 {
    ranges.iter().map(|range| range.end - range.start).sum()
}

impl std::fmt::Debug for Copies {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Copies").field("directory", &self.directory).finish_non_exhaustive()
    }
}
