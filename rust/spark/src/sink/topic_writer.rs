//! Sends the rows of a partition in the background, so that a caller with blocks of rows never waits for long.
use super::block::Block;
use super::columns::SinkColumn;
use super::failure::Failure;
use super::handover::{ClosedAtEnd, Handover, HandoverResult};
use super::lanes::{Lanes, Running};
use super::local_address::local_address;
use super::options::SinkOptions;
use super::row_batches::{Parcel, RowBatches, RowPlace, WrongRow};
use super::sender::{Sender, now_ms};
use super::written::Written;
use crate::error::{Error, Result};
use crate::stream::Level;
use rmqfast_client::Error as ClientError;
use rmqfast_client::puller::Queue;
use rmqfast_client::send::UniqueIds;
use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Maximum number of blocks that wait for the sending thread.
const WAITING: usize = 2;
/// Number of bytes after which all collected rows are sent, even in requests that are not full. Rows of a rare target
/// would otherwise keep their blocks in memory.
const FLUSHED_AT: usize = 4 << 20;

/// Start of the current month and of the next month in local time, in milliseconds. Message ids count from the start of
/// a month.
pub type Month = (i64, i64);

/// Sends the rows of a partition. Dropping the writer stops it.
pub struct TopicWriter {
    sender: Arc<Sender>,
    inbox: Arc<Handover<Block>>,
    thread: Option<JoinHandle<()>>,
    end: Receiver<Result<Written, Failure>>,
    /// A block that did not fit into the queue.
    waiting: Option<Block>,
}

impl TopicWriter {
    /// Starts the sending thread. `partition` is the number that errors mention.
    ///
    /// If `prompt`, the rows of a block are sent at once, without waiting for more rows of the same target.
    ///
    /// # Errors
    /// There is no name server.
    pub fn new(
        options: SinkOptions,
        columns: Vec<SinkColumn>,
        partition: i32,
        month: Month,
        prompt: bool,
    ) -> Result<Self> {
        let ids = unique_ids(&options, month);
        let sender = Arc::new(Sender::new(options, columns, partition, ids)?);
        let inbox = Arc::new(Handover::new(WAITING));
        // room for the only result, so that the thread never blocks on it
        let (at_end, end) = sync_channel(1);
        let (of_thread, blocks) = (sender.clone(), inbox.clone());
        let thread = std::thread::Builder::new().name("rmqfast-sink".into());
        let thread = thread.spawn(move || send_blocks(&of_thread, &blocks, &at_end, prompt));
        let thread = thread.map_err(|error| failed(format!("a thread cannot be started: {error}")))?;
        Ok(Self { sender, inbox, thread: Some(thread), end, waiting: None })
    }

    /// Passes a block to the sending thread. Waits up to `wait` for room. If it returns `false`, call
    /// [`push_waiting`](Self::push_waiting) to try again.
    ///
    /// # Errors
    /// A row of this block or of an earlier block cannot be sent.
    pub fn push(&mut self, block: impl Into<Block>, wait: Duration) -> Result<bool> {
        self.waiting = Some(block.into());
        self.push_waiting(wait)
    }

    /// Tries again to pass on the block for which there was no room. Returns whether there was room now.
    ///
    /// # Errors
    /// See [`push`](Self::push).
    pub fn push_waiting(&mut self, wait: Duration) -> Result<bool> {
        let Some(block) = self.waiting.take() else { return Ok(true) };
        match self.inbox.push(block, wait) {
            HandoverResult::Done => Ok(true),
            HandoverResult::Full(block) => {
                self.waiting = Some(block);
                Ok(false)
            }
            // the sending thread ends early only after a failure
            HandoverResult::Closed => match self.end.recv() {
                Ok(Err(failure)) => Err(failure.into()),
                _ => Err(defect()),
            },
        }
    }

    /// Waits up to `wait` until all rows are stored. `None` if they are not stored yet. `push` must not be called any
    /// more.
    ///
    /// # Errors
    /// See [`push`](Self::push).
    pub fn finish(&mut self, wait: Duration) -> Result<Option<Written>> {
        self.inbox.close();
        match self.end.recv_timeout(wait) {
            Ok(end) => Ok(Some(end?)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(defect()),
        }
    }

    pub fn columns(&self) -> &[SinkColumn] {
        &self.sender.columns
    }

    /// Returns the log lines since the last call, about retries and about name servers that do not answer.
    pub fn take_log(&self) -> Vec<(Level, String)> {
        self.sender.take_log()
    }
}

impl Drop for TopicWriter {
    fn drop(&mut self) {
        self.sender.stop.set();
        self.inbox.close();
        // does not block for long, since waiting requests check ten times a second whether to stop
        if let Some(thread) = self.thread.take() {
            // the end of the channel has reported a panic already
            let _ = thread.join();
        }
    }
}

/// Returns the generator of message ids for this process. The ids count from the start of the month.
pub fn unique_ids(options: &SinkOptions, (start, next): Month) -> &'static UniqueIds {
    static OF_PROCESS: Mutex<Option<(u32, &UniqueIds)>> = Mutex::new(None);
    let process = rmqfast_remoting::process::id();
    let mut of_process = OF_PROCESS.lock().unwrap_or_else(PoisonError::into_inner);
    // PySpark forks its workers, so a generator that a fork inherited must not be used
    let (_, ids) = of_process.filter(|(of, _)| *of == process).unwrap_or_else(|| {
        // Java uses a class loader's hash here; a random number distinguishes processes just as well
        let hash = RandomState::new().build_hasher().finish() as i32;
        let ids = UniqueIds::new(local_address(&options.cluster.name_servers), process, hash);
        *of_process.insert((process, Box::leak(Box::new(ids))))
    });
    if ids.needs_month(now_ms()) {
        ids.begin_month(start, next);
    }
    ids
}

fn send_blocks(sender: &Sender, blocks: &Handover<Block>, at_end: &SyncSender<Result<Written, Failure>>, prompt: bool) {
    let _end = ClosedAtEnd(blocks);
    let lanes = Lanes::new(sender.options.in_flight);
    let work = |(parcel, queue): (Parcel, Queue)| sender.send(&parcel, queue);
    let sent = std::thread::scope(|scope| {
        let running = lanes.run(scope, &sender.stop, &work);
        let mut feed = Feed { sender, lanes: running, lane_of: HashMap::new(), prompt };
        let sent = feed.send_all(blocks);
        // stops the lanes at once, since their queued requests are not needed after a failure
        if let Err(failure) = &sent {
            sender.stop.fail(failure.clone());
        }
        sent.and_then(|()| feed.lanes.finish())
    });
    // the receiver is gone if the task was killed
    let _ = at_end.send(sent.map(|()| sender.written()));
}

/// Passes each request to the lane of its queue.
struct Feed<'scope, 'env, F> {
    sender: &'env Sender,
    lanes: Running<'scope, 'env, (Parcel, Queue), F>,
    lane_of: HashMap<Queue, usize>,
    prompt: bool,
}

impl<'env, F: Fn((Parcel, Queue)) -> Result<(), Failure> + Sync> Feed<'_, 'env, F> {
    fn send_all(&mut self, blocks: &Handover<Block>) -> Result<(), Failure> {
        let Sender { options, columns, ids, .. } = self.sender;
        let mut batches = RowBatches::new(options, columns, options.batch_size, ids);
        let (mut number, mut bytes) = (0, 0);
        while let Some(block) = blocks.take() {
            let block = Arc::new(block);
            let now_ms = now_ms();
            let mut at = 0;
            while at < block.end() {
                let Some((row, next)) = block.row(columns, at) else { return Err(malformed(number)) };
                let place = RowPlace { block: block.clone(), at, number };
                let full = batches.add(&row, place, now_ms).map_err(|wrong| self.wrong(&wrong))?;
                full.map_or(Ok(()), |parcel| self.put(parcel))?;
                // `next` always moves on because every row has a body
                at = next;
                number += 1;
            }
            bytes += block.bytes();
            if self.prompt || bytes >= FLUSHED_AT {
                bytes = 0;
                batches.flush(now_ms).into_iter().try_for_each(|parcel| self.put(parcel))?;
            }
        }
        batches.flush(now_ms()).into_iter().try_for_each(|parcel| self.put(parcel))
    }

    fn put(&mut self, parcel: Parcel) -> Result<(), Failure> {
        let queue = self.sender.first_queue(&parcel.target, &parcel.rows)?;
        // a queue keeps its lane, so that its requests are sent in order
        let next = self.lane_of.len();
        let lane = match self.lane_of.get(&queue) {
            Some(lane) => *lane,
            None => *self.lane_of.entry(queue.clone()).or_insert(next),
        };
        self.lanes.put(lane, (parcel, queue))
    }

    fn wrong(&self, wrong: &WrongRow) -> Failure {
        let WrongRow { target, place, text } = wrong;
        let rows = std::slice::from_ref(place);
        // an unknown topic or queue is reported before an invalid row
        let first = self.sender.first_queue(target, rows).err();
        let error = ClientError::Argument(text.clone());
        first.unwrap_or_else(|| self.sender.failed(target, rows, text, &error))
    }
}

fn malformed(number: u64) -> Failure {
    Failure { text: format!("a defect of rmqfast: row {number} is not made of the columns that are sent"), code: -1 }
}

fn defect() -> Error {
    failed("a defect of rmqfast: the thread that sends has ended".to_owned())
}

fn failed(text: String) -> Error {
    Failure { text, code: -1 }.into()
}
