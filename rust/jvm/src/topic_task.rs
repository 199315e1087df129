//! A task of topics. It pulls a piece, fills batches and reports losses.
use crate::bad_bodies::BadBodyLog;
use crate::task::{Counts, Result, Task};
use crate::vectors::{Batch, Memory, Rows};
use rmqfast_client::puller::PulledAnswer;
use rmqfast_client::ranges::{PullerPool, QueueRange, Step};
use rmqfast_spark::origin::piece::TopicPiece;
use rmqfast_spark::origin::reader::PieceReader;
use rmqfast_spark::topic::checkpoint::StreamOffsets;
use rmqfast_spark::topic::position::TaskPosition;
use rmqfast_spark::topic::read::TopicRead;
use rmqfast_store::scan::ScanRequest;
use rmqfast_store::scan::columns::Chunk;
use std::collections::BTreeSet;
use std::time::Duration;

/// Connections of this executor that no task is using.
static POOL: PullerPool = PullerPool::new();

pub struct TopicTask {
    reader: PieceReader,
    batch: Batch,
    /// Answers whose bytes the vectors of the current batch use. They are kept until the next batch.
    answers: Vec<PulledAnswer>,
    /// Position at which the next batch begins: index of the answer, and index of the row in the answer.
    next: (usize, usize),
    rows_left: u64,
    filled: usize,
    /// Position before the answers of the current batch. Only for a piece without an end.
    position: Option<TaskPosition>,
    bad_bodies: BadBodyLog,
}

impl TopicTask {
    /// Opens the piece. Sends no request yet.
    ///
    /// With `is_repeated` the task is a retry. It uses no connection from the pool, because the failed attempt may
    /// have left a broken connection there. With `reads_ahead` the task also pulls messages that the next batch in
    /// this process will need.
    ///
    /// # Errors
    /// The piece has queues of several brokers.
    pub fn open(read: TopicRead, piece: TopicPiece, limit: u64, is_repeated: bool, reads_ahead: bool) -> Result<Self> {
        let ranges = &piece.ranges;
        // all rows have the same broker, since a piece has one
        let broker_name = ranges.first().map(|range| range.queue.broker_name.to_string());
        let bad_bodies = BadBodyLog::new(&read.request.scan);
        let batch = Batch::new(&ScanRequest { broker_name, ..read.request.scan.clone() });
        let is_endless = ranges.iter().any(QueueRange::is_endless);
        // endless pieces need pullers with other options, and a retry opens a new connection
        let key = read.pool_key.as_ref().filter(|_| !is_repeated);
        let key = key
            .map(|key| key.with(if is_endless { "endless" } else { "" }).with(piece.address.as_deref().unwrap_or("")));
        let reader = PieceReader::open(read.request, piece, read.cluster)?;
        let reader = if reads_ahead { reader.reading_ahead() } else { reader };
        let reader = match key {
            Some(key) => reader.with_pool(&POOL, key),
            None => reader,
        };
        let position = is_endless.then(TaskPosition::default);
        let (answers, next, filled) = (Vec::new(), (0, 0), 0);
        Ok(Self { reader, batch, answers, next, rows_left: limit, filled, position, bad_bodies })
    }

    fn rows_left(&self) -> usize {
        let rows: usize = self.answers.iter().skip(self.next.0).map(|answer| answer.rows.len()).sum();
        rows - self.next.1
    }

    fn fill(&mut self) -> Result<usize> {
        let mut damage = Vec::new();
        let mut rows = 0;
        self.batch.clear();
        while let Some(answer) = self.answers.get(self.next.0) {
            let rest = &answer.rows[self.next.1..];
            let most = usize::try_from(self.rows_left).unwrap_or(usize::MAX).min(rest.len());
            let added = self.batch.extend(Chunk { bytes: &answer.body, rows: &rest[..most] }, &mut damage);
            rows += added;
            self.rows_left -= added as u64;
            self.next = if added == rest.len() { (self.next.0 + 1, 0) } else { (self.next.0, self.next.1 + added) };
            // the batch is full or the limit is reached
            if added < rest.len() {
                break;
            }
        }
        self.batch.seal();
        let offsets: Vec<i64> = damage.iter().map(|damage| damage.offset.cast_signed()).collect();
        self.reader.unreadable(&self.answers, &offsets)?;
        self.bad_bodies.add(self.batch.take_bad_bodies())?;
        self.filled = rows;
        Ok(rows)
    }
}

impl Task for TopicTask {
    fn advance(&mut self, wait: Duration) -> Result<Option<usize>> {
        if self.rows_left == 0 {
            return Ok(None);
        }
        if self.next.0 >= self.answers.len() {
            if let Some(position) = &mut self.position {
                self.answers.iter().for_each(|answer| position.note(answer, answer.rows.len()));
            }
            // cleared first, so that the puller can reuse the memory
            self.answers.clear();
            (self.next, self.filled) = ((0, 0), 0);
            match self.reader.advance(wait)? {
                Step::Answers(answers) => self.answers = answers,
                Step::Waiting => return Ok(Some(0)),
                Step::Done => return Ok(None),
            }
        }
        self.fill().map(Some)
    }

    fn addresses(&self) -> &[i64] {
        self.batch.addresses()
    }

    fn rows(&mut self, from: usize) -> Rows {
        self.batch.rows(from, &Memory::new(self.answers.iter().map(|answer| &answer.body[..])))
    }

    fn position(&self, rows: usize) -> Result<String> {
        let mut position = self.position.clone().unwrap_or_default();
        let mut offsets: StreamOffsets = self.reader.next_offsets().map(|(queue, at)| (queue.clone(), at)).collect();
        let of_answers: usize = self.answers.iter().map(|answer| answer.rows.len()).sum();
        // consumed are all rows of the answers, except rows that are not yet in a batch or not yet returned from it
        let mut consumed = of_answers.saturating_sub(self.filled.saturating_sub(rows) + self.rows_left());
        let mut halted = BTreeSet::new();
        for answer in &self.answers {
            let count = consumed.min(answer.rows.len());
            consumed -= count;
            position.note(answer, count);
            // a queue with unconsumed rows continues at the first of them
            if count < answer.rows.len() && halted.insert(&answer.queue) {
                offsets.insert((*answer.queue).clone(), answer.offset(count));
            }
        }
        Ok(position.at(offsets).to_text())
    }

    fn take_warning(&mut self, is_over: bool) -> Option<String> {
        let mut warnings: Vec<_> = self.reader.take_warnings().iter().map(ToString::to_string).collect();
        warnings.extend(if is_over { self.bad_bodies.take_warning() } else { None });
        if warnings.is_empty() { None } else { Some(warnings.join("\n")) }
    }

    fn bad_bodies(&self) -> u64 {
        self.bad_bodies.count()
    }

    fn keep(&mut self) {
        self.reader.keep();
    }

    fn counts(&self) -> Counts {
        self.reader.counts()
    }
}
