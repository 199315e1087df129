//! The explanation of a scan of a store, told before it reads: most reads and bytes, and which filters spare some.
use super::piece::{Piece, Way};
use super::plan::{Plan, time_range};
use super::request::ScanRequest;
use super::row_source::{RowSource, Sources};
use crate::Result;
use crate::file::{ReadCounter, Reads, Segments};
use crate::store::MessageStore;
use crate::store::delay::DELAY_TOPIC;
use std::ops::Range;
use std::sync::Arc;

/// All figures are bounds for a sound store: damage is searched through, and costs more.
#[derive(Clone, Debug)]
pub struct Explanation {
    pub pieces: Vec<PieceReads>,
    pub filters: Vec<FilterUse>,
    /// Bytes of the log before the first piece.
    pub before: u64,
    /// Bytes of the log behind the last piece.
    pub behind: u64,
    /// Bytes behind the end of the log, up to the end of its last file. `None` if the end is not known.
    pub unwritten: Option<u64>,
    /// Queues of the topic that the request does not select.
    pub other_queues: u64,
}

/// The most that a piece reads.
#[derive(Clone, Debug)]
pub struct PieceReads {
    pub piece: Piece,
    pub log: Reads,
    pub queues: Reads,
    /// Files of the log and of queues.
    pub files: u64,
}

/// A filter of a request, and whether it narrows the reading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterUse {
    pub name: &'static str,
    /// How the filter spares reads; `None` if it only sorts out messages that were read.
    pub narrows_by: Option<&'static str>,
}

impl Explanation {
    /// Explains a scan of `pieces`. Reads no record, and of the queues what a scan bisects when it begins, and few entries.
    pub fn of(store: &MessageStore, request: &Arc<ScanRequest>, sources: &Sources, pieces: &[Piece]) -> Result<Self> {
        let counter = Arc::new(ReadCounter::default());
        let counted = sources.queues.iter().map(|queue| queue.clone().with_counter(counter.clone())).collect();
        let sources = Sources { queues: Arc::new(counted), ..sources.clone() };
        let reads_of = |piece: &Piece| {
            let (queues, log) = RowSource::new(sources.clone(), request.clone(), [*piece]).most_reads()?;
            // The scan begins with the same reads of the queues.
            let queues = queues + counter.take();
            Ok(PieceReads { piece: *piece, log, queues, files: files_of(&sources, piece) })
        };
        // Times may leave nothing.
        let pieces = pieces.iter().filter(|piece| piece.from < piece.end).map(reads_of).collect::<Result<Vec<_>>>()?;
        let (start, end) = time_range(store, &ScanRequest::default())?;
        let edges = (pieces.first().map_or(start, |p| p.piece.from), pieces.last().map_or(start, |p| p.piece.end));
        let file_end = sources.log.segments().end();
        let known_end = sources.closed_end.or_else(|| Some(end).filter(|_| store.end() < u64::MAX));
        Ok(Self {
            filters: filters_of(store, request, pieces.iter().any(|p| p.piece.way == Way::Queue))?,
            before: edges.0.saturating_sub(start),
            behind: known_end.unwrap_or(end).saturating_sub(edges.1),
            unwritten: known_end.map(|end| file_end.saturating_sub(end)),
            other_queues: other_queues(store, request, &sources)?,
            pieces,
        })
    }
}

fn files_of(sources: &Sources, piece: &Piece) -> u64 {
    let within = |segments: &Segments, range: Range<u64>| {
        segments.files().iter().filter(|file| file.base < range.end && range.start < file.end()).count() as u64
    };
    let log = within(sources.log.segments(), piece.from..piece.end);
    let queues = sources.queues.iter().filter(|_| piece.way == Way::Queue);
    log + queues.map(|queue| queue.segments().files().len() as u64).sum::<u64>()
}

fn other_queues(store: &MessageStore, request: &ScanRequest, sources: &Sources) -> Result<u64> {
    let (Some(topic), Some(_)) = (&request.topic, &request.queue_ids) else { return Ok(0) };
    Ok((store.queues(topic)?.len() as u64).saturating_sub(sources.queues.len() as u64))
}

fn filters_of(store: &MessageStore, request: &ScanRequest, is_by_queue: bool) -> Result<Vec<FilterUse>> {
    let by_queue = |text| Some(text).filter(|_| is_by_queue);
    let is_by_hash = request.topic.as_deref() != Some(DELAY_TOPIC);
    let is_cut = time_range(store, request)? != time_range(store, &ScanRequest::default())?;
    let by_files = Some("whole files of the log are left out; each message's time is compared").filter(|_| is_cut);
    let by_hash = by_queue("the hash of the tag in the queue; the tag itself is compared in the message");
    let offsets = by_queue("other entries of the queues are left out");
    let uses = [
        ("topic", request.topics().is_some(), by_queue("only the topic's queues are read")),
        ("queue_ids", request.queue_ids.is_some(), by_queue("other queues are not read")),
        ("start_offset", request.start_offset.is_some(), offsets),
        ("end_offset", request.end_offset.is_some(), offsets),
        ("start_time", request.start_time.is_some(), by_files),
        ("end_time", request.end_time.is_some(), by_files),
        ("tags", !request.tags.is_all(), by_hash.filter(|_| is_by_hash)),
        ("keys", request.keys.is_some(), None),
        ("keys_prefix", request.keys_prefix.is_some(), None),
        ("sql", request.sql.is_some(), None),
    ];
    let used = uses.into_iter().filter(|(_, is_set, _)| *is_set);
    Ok(used.map(|(name, _, narrows_by)| FilterUse { name, narrows_by }).collect())
}

impl Plan {
    /// Explains a scan of the plan. See [`Explanation::of`].
    pub fn explain(&self, store: &MessageStore, request: &Arc<ScanRequest>) -> Result<Explanation> {
        Explanation::of(store, request, &self.sources, &self.pieces)
    }
}
