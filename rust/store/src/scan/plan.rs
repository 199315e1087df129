//! The plan of a scan: which ranges of the log to read, and whether by log or by queue.
//!
//! A piece is a range of physical offsets. So pieces never overlap, and can be cut between any two records. Reading
//! by log reads all bytes of the range. Reading by queue reads the consume-queue entries, and the records that pass
//! the filter by tag hash. The plan takes the cheaper way. Ranges that the queues may not list completely are always
//! read by log.
use super::estimate::Estimate;
use super::piece::{Piece, Way};
use super::request::ScanRequest;
use super::row_source::Sources;
use super::trust::find_fault;
use crate::Result;
use crate::store::{ConsumeQueue, Generations, MessageStore, QueueKind};
use std::sync::Arc;

#[derive(Clone, Debug)]
pub struct Plan {
    /// The pieces, in the order of the log.
    pub pieces: Vec<Piece>,
    pub sources: Sources,
    /// Number of messages before filters that the queues list in the range. 0 if no queue was read.
    pub listed: u64,
    /// Cost of reading by queue, as the bytes of the log that could be read in the same time.
    pub queue_cost_bytes: u64,
    /// Explains to the user why the plan reads by log or by queue.
    pub reason: String,
}

/// Tolerated backward step of the broker's clock, in milliseconds. A filter by time finds all messages unless the
/// clock stepped back by more.
const CLOCK_SLACK_MS: i64 = 3_600_000;

impl Plan {
    /// Plans `request`. `way` overrides the estimate if the queues are usable.
    pub fn new(store: &MessageStore, request: &ScanRequest, way: Option<Way>) -> Result<Self> {
        let sources = Self::sources(store, request)?;
        let (from, end) = time_range(store, request)?;
        let straight = |reason: &str| Self {
            pieces: vec![Piece { way: Way::Log, from, end, verify_crc: false }],
            sources: sources.clone(),
            listed: 0,
            queue_cost_bytes: 0,
            reason: reason.to_owned(),
        };
        let Some(topic) = &request.topic else {
            // Only check that the topics exist. Several topics are always read by log.
            for topic in request.among.iter().flatten() {
                if store.queues(topic)?.is_empty() {
                    Self::without_queues(store, request, topic, straight(""))?;
                }
            }
            return Ok(straight(if request.among.is_some() { "several topics" } else { "all topics" }));
        };
        if sources.queues.is_empty() {
            return Self::without_queues(store, request, topic, straight("no consume queue lists the topic"));
        }
        if let Some(fault) = find_fault(store, request, &sources.queues)? {
            return Ok(straight(&fault));
        }
        // Consume queues list the log only up to here.
        let listed_to = store.dispatched_to()?.clamp(from, end);
        let estimate = Estimate::of(&sources.queues, request, (from, listed_to))?;
        let way = way.unwrap_or_else(|| estimate.cheaper(listed_to - from));
        let gap = if way == Way::Queue { unlisted_range(store, request, topic, (from, listed_to))? } else { None };
        let (way, reason) = match gap {
            // Units there may point to other messages, so the log itself is searched.
            Some((first, last)) => (
                Way::Log,
                format!("queues lack messages that the log has, of {first} to {last}; it is read as a whole"),
            ),
            None => (way, estimate.explain(way)),
        };
        let listed = |from, end| Piece { way, from, end, verify_crc: false };
        // A crash may have left torn records there, which no unit lists.
        let unlisted = |from, end| Piece { way: Way::Log, from, end, verify_crc: true };
        let (gap_from, gap_to) = gap.unwrap_or((listed_to, listed_to));
        let pieces =
            [listed(from, gap_from), unlisted(gap_from, gap_to), listed(gap_to, listed_to), unlisted(listed_to, end)];
        let pieces = pieces.into_iter().filter(|p| p.from < p.end).collect();
        let (listed, queue_cost_bytes) = (estimate.units as u64, estimate.queue_cost_bytes());
        Ok(Self { pieces, sources, listed, queue_cost_bytes, reason })
    }

    /// Opens the log and the queues of `request`.
    pub fn sources(store: &MessageStore, request: &ScanRequest) -> Result<Sources> {
        store.check_end()?;
        let mut queues = request.topic.as_deref().map(|t| store.queues(t)).transpose()?.unwrap_or_default();
        queues.retain(|q| request.queue_ids.as_ref().is_none_or(|ids| ids.contains(&q.queue_id())));
        let generations = Arc::new(generations(store, request)?);
        Ok(Sources { log: store.log().clone(), queues: Arc::new(queues), generations })
    }

    /// Returns the given plan `straight` for a topic without queues. Fails if the store does not have the topic.
    fn without_queues(store: &MessageStore, request: &ScanRequest, topic: &str, straight: Self) -> Result<Self> {
        if store.queue_kind() != QueueKind::Files || request.queue_ids.is_some() && !store.queues(topic)?.is_empty() {
            return Ok(straight);
        }
        store.check_topic(topic)?;
        Ok(straight)
    }
}

pub(super) fn generations(store: &MessageStore, request: &ScanRequest) -> Result<Generations> {
    let queues_of = |topic: &String| Ok((topic.clone(), store.queues(topic)?));
    let topics = request.topics().unwrap_or_default().iter().map(queues_of).collect::<Result<Vec<_>>>()?;
    let topics = topics.iter().map(|(name, queues)| (&**name, queues as &[ConsumeQueue]));
    Generations::of(store.root(), store.log(), topics)
}

/// Returns the part of a range of the log in which the request's queues may not list all records. `None` if they list
/// all records.
fn unlisted_range(
    store: &MessageStore,
    request: &ScanRequest,
    topic: &str,
    (from, end): (u64, u64),
) -> Result<Option<(u64, u64)>> {
    let ids = request.queue_ids.as_deref();
    let missing = store.missing_of(topic, ids)?;
    let stretch = missing.stretch(topic, |id| ids.is_none_or(|ids| ids.contains(&id)));
    let within = stretch.map(|(first, last)| (first.clamp(from, end), last.clamp(from, end)));
    Ok(within.filter(|(first, last)| first < last))
}

/// Returns the range of the log that may hold messages of the requested times. The range consists of whole files,
/// with a margin for steps of the clock.
pub(super) fn time_range(store: &MessageStore, request: &ScanRequest) -> Result<(u64, u64)> {
    let segments = store.log().segments();
    let lost_end = store.log().lost_end().flatten().map_or(0, |lost| lost.end);
    let (mut from, mut end) = (segments.start(), segments.end().min(store.end()).max(lost_end));
    for (index, file) in segments.files().iter().enumerate() {
        let has_times = request.start_time.is_some() || request.end_time.is_some();
        // A file without a readable first record gives no bound.
        let Some(first) = has_times.then(|| store.first_store_timestamp(index)).transpose()?.flatten() else {
            continue;
        };
        if request.start_time.is_some_and(|start| first.saturating_add(CLOCK_SLACK_MS) <= start) {
            // The first record of this file is old enough, so all files before it are older still.
            from = from.max(file.base);
        }
        if request.end_time.is_some_and(|last| first.saturating_sub(CLOCK_SLACK_MS) >= last) {
            end = end.min(file.base);
        }
    }
    Ok((from, end.max(from)))
}
