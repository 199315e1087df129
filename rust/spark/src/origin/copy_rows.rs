//! Reads a piece's messages from a mirror's copy of the broker. The copy is scanned like a store, and rows are returned
//! as if they were answers to pulls.
use crate::error::{Error, Result};
use crate::origin::piece::CopyPart;
use crate::store::read::{damage_text, present_part, refusal_text};
use rmqfast_client::puller::{Body, Pool, PulledAnswer, Queue};
use rmqfast_client::ranges::{QueueRange, RangeRequest, Step, Warning};
use rmqfast_store::file::place;
use rmqfast_store::filter::{Sql92, TagExpression};
use rmqfast_store::scan::row::Row;
use rmqfast_store::scan::{OffsetBound, Plan, RowSource, ScanRequest};
use rmqfast_store::store::{Damage, MessageStore, OpenOptions};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Approximate bytes of a block. Each block of the scan becomes one set of answers.
const BLOCK: usize = 1 << 20;
/// Number of blocks without a matching row after which `advance` returns, so that the caller can check whether the task
/// was killed.
const PATIENCE: u32 = 16;

/// Reads the messages of a piece out of a copy.
pub struct CopyRows {
    pub request: RangeRequest,
    part: CopyPart,
    source: RowSource,
    queues: BTreeMap<i32, Arc<Queue>>,
    pool: Arc<Pool>,
    /// Damage that was found before the scan began.
    lost: Vec<Damage>,
}

impl CopyRows {
    /// Opens the copy and prepares its scan.
    ///
    /// # Errors
    /// The copy is missing on this executor, or the store cannot be read.
    pub fn open(request: RangeRequest, ranges: &[QueueRange], part: CopyPart) -> Result<Self> {
        if !place::is_directory(&part.path)? {
            let text = "the driver saw a copy there; mirrorPath must be at the same path on every executor";
            return Err(Error::argument(format!("{}: no such directory; {text}", part.path.display())));
        }
        let store = MessageStore::open(&part.path, &OpenOptions::default())?;
        let scan = Arc::new(scan_of(&request, ranges)?);
        let (piece, lost) = present_part(&store, part.piece);
        let source = RowSource::new(Plan::sources(&store, &scan)?, scan, [piece]).with_block_len(BLOCK);
        let queues = ranges.iter().map(|range| (range.queue.queue_id, range.queue.clone().into())).collect();
        Ok(Self { request, part, source, queues, pool: Arc::default(), lost })
    }

    /// Reads the next block and returns its matching messages in the form of pull answers. If the request is not
    /// strict, lost and damaged messages are reported in `warnings`.
    ///
    /// # Errors
    /// [`Error::Corrupt`]: messages are lost or damaged, and the request is strict. It is returned after the last
    /// message.
    pub fn advance(&mut self, warnings: &mut Vec<Warning>) -> Result<Step> {
        // `Interrupted` returns control to the caller although nothing was interrupted
        let mut patience = PATIENCE;
        let interrupt = &mut || {
            patience -= 1;
            if patience == 0 { Err(rmqfast_store::Error::Interrupted) } else { Ok(()) }
        };
        match self.source.advance(interrupt) {
            Ok(true) => Ok(Step::Answers(self.hand_out())),
            Ok(false) => self.end(warnings),
            Err(rmqfast_store::Error::Interrupted) => Ok(Step::Waiting),
            Err(error) => Err(error.into()),
        }
    }

    fn hand_out(&self) -> Vec<PulledAnswer> {
        let bytes = self.source.bytes();
        let body = Arc::new(Body::copy(bytes, Some(&self.pool)));
        let mut by_queue: BTreeMap<&Arc<Queue>, Vec<Row>> = BTreeMap::new();
        for row in self.source.rows() {
            if let Some(queue) = row.message(bytes).and_then(|message| self.queues.get(&message.queue_id())) {
                by_queue.entry(queue).or_default().push(*row);
            }
        }
        by_queue.into_iter().map(|(queue, rows)| answer(queue, &body, rows)).collect()
    }

    fn end(&mut self, warnings: &mut Vec<Warning>) -> Result<Step> {
        let damage = self.source.take_damage();
        let missing = std::mem::take(&mut self.lost);
        match damage_text(&format!("store {}", self.part.path.display()), self.part.piece, &missing, &damage) {
            Some(words) if self.request.is_strict => return Err(Error::Corrupt(refusal_text(&words))),
            words => warnings.extend(words.map(Warning::Loss)),
        }
        Ok(Step::Done)
    }
}

/// Builds the scan of a copy. It also applies the tags and the SQL92 expression, which the broker applies to pulls.
///
/// # Errors
/// The SQL92 expression does not parse.
pub fn scan_of(request: &RangeRequest, ranges: &[QueueRange]) -> Result<ScanRequest> {
    let Some(QueueRange { queue: Queue { topic, broker_name, .. }, .. }) = ranges.first() else {
        return Err(Error::argument("piece: expected a range of a copy, got none"));
    };
    let subscription = &request.subscription;
    let tags = subscription.tags.as_ref().map_or_else(TagExpression::all, |tags| {
        let texts: Vec<_> = tags.iter().map(|tag| String::from_utf8_lossy(tag)).collect();
        TagExpression::of(texts.iter().map(AsRef::as_ref))
    });
    let is_sql = subscription.expression_type == "SQL92";
    let offsets = |edge: fn(&QueueRange) -> i64| {
        Some(OffsetBound::ByQueue(ranges.iter().map(|range| (range.queue.queue_id, edge(range))).collect()))
    };
    Ok(ScanRequest {
        topic: Some(topic.clone()),
        queue_ids: Some(ranges.iter().map(|range| range.queue.queue_id).collect()),
        tags,
        sql: is_sql.then(|| Sql92::parse(&subscription.expression)).transpose()?,
        start_offset: offsets(|range| range.start),
        end_offset: offsets(|range| range.end),
        broker_name: Some(broker_name.to_string()),
        ..request.scan.clone()
    })
}

fn answer(queue: &Arc<Queue>, body: &Arc<Body>, rows: Vec<Row>) -> PulledAnswer {
    let offset = |row: Option<&Row>| row.and_then(|row| row.message(body)).map_or(0, |message| message.queue_offset());
    let offsets = offset(rows.first())..offset(rows.last()) + 1;
    // no tags are set on the answer because the scan has compared them
    PulledAnswer::read(queue.clone(), offsets, body.clone(), rows)
}

impl std::fmt::Debug for CopyRows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CopyRows").field("part", &self.part).finish_non_exhaustive()
    }
}
