//! Delays answers to sends until the messages are on the disk (`SYNC_FLUSH`) or on a slave (`SYNC_MASTER`). One thread
//! waits for all of them together.
//!
//! Source: `CommitLog.submitFlushRequest`, `CommitLog.submitReplicaRequest`, `GroupCommitService`.
use crate::options::BrokerOptions;
use rmqfast_remoting::code::response;
use rmqfast_remoting::{Answer, Body, Command, Header, Outgoing, SerializeType, Value};
use rmqfast_store::format::host::Host;
use rmqfast_store::format::message_id::OffsetMessageId;
use rmqfast_store::store::append::Place;
use rmqfast_store::store::serve::Places;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// The answer to a send. Holds the ids of the messages, and queue and offset of the first message.
#[derive(Debug)]
pub struct SendReceipt {
    ids: String,
    queue_id: i32,
    queue_offset: i64,
}

impl SendReceipt {
    pub fn new(host: Host, places: &[Place], queue_id: i32) -> Self {
        // an id with an IPv4 address has 32 hex digits, plus a comma
        let mut ids = Vec::with_capacity(places.len() * 33);
        for (index, place) in places.iter().enumerate() {
            if index > 0 {
                ids.push(b',');
            }
            OffsetMessageId { host, physical_offset: place.physical_offset }.write(&mut ids);
        }
        let queue_offset = places.first().map_or(0, |place| place.queue_offset);
        // ids are ASCII, so the conversion cannot fail
        Self { ids: String::from_utf8(ids).unwrap_or_default(), queue_id, queue_offset }
    }

    pub fn write(&self, code: i32, options: &BrokerOptions, reply: &mut Reply<'_>) {
        reply.write(code, None, &self.fields(options), b"");
    }

    fn send(&self, code: i32, options: &BrokerOptions, answer: &Answer) {
        answer.send(&Header { code, fields: &self.fields(options), ..Header::response(answer.serialize_type) }, b"");
    }

    fn fields<'a>(&'a self, options: &'a BrokerOptions) -> [(&'a str, Value<'a>); 5] {
        [
            ("msgId", Value::Text(&self.ids)),
            ("queueId", Value::Number(self.queue_id.into())),
            ("queueOffset", Value::Number(self.queue_offset)),
            ("MSG_REGION", Value::Text(&options.region)),
            ("TRACE_ON", Value::Flag(options.trace_on)),
        ]
    }
}

fn refuse(remark: &str, answer: &Answer) {
    let code = response::SERVICE_NOT_AVAILABLE;
    answer.send(&Header { code, remark: Some(remark), ..Header::response(answer.serialize_type) }, b"");
}

/// An answer that is sent when the log up to `position` is on the disk, and on a slave if required.
#[derive(Debug)]
struct Pending {
    position: u64,
    slave: SlaveWait,
    answer: Answer,
    receipt: SendReceipt,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlaveWait {
    None,
    /// The answer does not wait for a slave: when the message arrived, there was none, or every slave was too far
    /// behind the end of the log.
    NotAvailable,
    /// The answer waits for a slave. Its timeout starts at this time, or after the flush if `None`.
    Since(Option<Instant>),
}

/// The reason why the messages of a send are not on the disk.
#[derive(Debug)]
pub enum NotFlushed {
    InTime,
    /// Another process changed the files. Holds the remark for the producer.
    Harmed(String),
}

/// Queue of answers that wait for the disk or a slave.
#[derive(Debug, Default)]
pub struct GroupCommit {
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Queue {
    pending: Vec<Pending>,
    is_closed: bool,
}

impl GroupCommit {
    /// Queues an answer. It is sent when the log up to `position` is on the disk, and on a slave if required. Returns
    /// the receipt if the queue is closed.
    pub fn push(
        &self,
        position: u64,
        slave: SlaveWait,
        answer: Answer,
        receipt: SendReceipt,
    ) -> Result<(), SendReceipt> {
        let mut queue = self.lock();
        if queue.is_closed {
            return Err(receipt);
        }
        queue.pending.push(Pending { position, slave, answer, receipt });
        self.changed.notify_one();
        Ok(())
    }

    /// Sends queued answers until [`close`](Self::close). `wait_flushed` waits until the log up to a position is on
    /// the disk. `wait_replicated` waits until a slave has the log up to a position, with a timeout that begins at
    /// the given time, and returns the response code.
    pub fn run(
        &self,
        options: &BrokerOptions,
        wait_flushed: impl Fn(u64) -> Result<(), NotFlushed>,
        wait_replicated: impl Fn(u64, Instant) -> i32,
    ) {
        while let Some(pending) = self.take() {
            // the log is flushed in order, so one wait for the last position serves all answers
            let position = pending.iter().map(|pending| pending.position).max().unwrap_or_default();
            let flushed = match wait_flushed(position) {
                Ok(()) => response::SUCCESS,
                Err(NotFlushed::Harmed(remark)) => {
                    pending.iter().for_each(|pending| refuse(&remark, &pending.answer));
                    continue;
                }
                // the message is stored nevertheless, so the producer gets its receipt
                Err(NotFlushed::InTime) => response::FLUSH_DISK_TIMEOUT,
            };
            // one start time for all messages of a flush, so that their timeouts do not add up
            let now = Instant::now();
            for Pending { position, slave, answer, receipt } in pending {
                let code = match slave {
                    SlaveWait::None => flushed,
                    SlaveWait::NotAvailable => response::SLAVE_NOT_AVAILABLE,
                    // slaves only get what is on the disk
                    SlaveWait::Since(_) if flushed != response::SUCCESS => flushed,
                    // in order: if the first timed out, the timeouts of those after it are over too
                    SlaveWait::Since(since) => wait_replicated(position, since.unwrap_or(now)),
                };
                receipt.send(code, options, &answer);
            }
        }
    }

    fn take(&self) -> Option<Vec<Pending>> {
        let is_idle = |queue: &mut Queue| queue.pending.is_empty() && !queue.is_closed;
        let mut queue = self.changed.wait_while(self.lock(), is_idle).unwrap_or_else(PoisonError::into_inner);
        // even after `close`: these messages are stored, and their producers wait
        (!queue.pending.is_empty()).then(|| std::mem::take(&mut queue.pending))
    }

    /// Makes [`run`](Self::run) return once no answer is queued.
    pub fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_all();
    }

    #[inline]
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An answer with at least this many bytes of records is copied chunk by chunk while it is written. A smaller answer is
/// copied at once and sent by a single write, so that the client wakes only once.
const LARGE: usize = 512 << 10;

/// A body in the mapped files of the log. The files stay mapped until the body is written or the connection ends,
/// even if retention removes them. If the peer does not read, a timeout ends the connection.
#[derive(Debug)]
struct InLog(Places);

impl Body for InLog {
    fn bytes(&self) -> usize {
        self.0.bytes()
    }

    fn piece(&self, number: usize) -> Option<&[u8]> {
        self.0.piece(number)
    }

    fn is_whole(&self) -> bool {
        self.0.are_complete()
    }
}

/// Result of a request that the control plane must answer, because it can create a missing topic or group, or has
/// information that is not in the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandOver;

/// Writes the answer to a request. Writes nothing for a oneway request.
#[derive(Debug)]
pub struct Reply<'a> {
    out: &'a mut Outgoing,
    opaque: i32,
    serialize_type: SerializeType,
    is_oneway: bool,
}

impl<'a> Reply<'a> {
    /// Creates the reply to `request`. It will be appended to `out`.
    pub fn to(request: &Command<'_>, out: &'a mut Outgoing) -> Self {
        Self { out, opaque: request.opaque, serialize_type: request.serialize_type, is_oneway: request.is_oneway() }
    }

    pub fn write(&mut self, code: i32, remark: Option<&str>, fields: &[(&str, Value<'_>)], body: &[u8]) {
        if !self.is_oneway {
            let header = Header { code, remark, fields, opaque: self.opaque, ..Header::response(self.serialize_type) };
            header.write(body, self.out.frames());
        }
    }

    /// Writes an answer whose body is records, directly from the log. Empties `records` if they are too large to
    /// copy.
    pub fn write_records(&mut self, code: i32, remark: &str, fields: &[(&str, Value<'_>)], records: &mut Places) {
        if !self.is_oneway {
            let remark = Some(remark);
            let header = Header { code, remark, fields, opaque: self.opaque, ..Header::response(self.serialize_type) };
            // to undo the header if the log was truncated meanwhile
            let start = self.out.frames().len();
            header.write_before(records.bytes(), self.out.frames());
            if records.bytes() < LARGE {
                records.write(self.out.frames());
                // lost pages of a map read as zeroes, which are no message (decision 0012)
                if !records.are_complete() {
                    self.out.frames().truncate(start);
                    self.end(response::SYSTEM_ERROR, "a file of the commit log was cut off while it was read");
                }
            } else {
                self.out.push_body(Box::new(InLog(std::mem::take(records))));
            }
        }
    }

    /// Writes an answer without fields and body.
    pub fn end(&mut self, code: i32, remark: &str) {
        self.write(code, Some(remark), &[], b"");
    }
}
