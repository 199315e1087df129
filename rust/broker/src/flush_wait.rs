//! Answers that wait until the disk has what they speak of: one thread waits for all.
//!
//! Source: `CommitLog.submitFlushRequest`, `GroupCommitService`.
use crate::code::response;
use crate::ground::Ground;
use crate::options::BrokerOptions;
use crate::reply::Reply;
use rmqfast_remoting::{Answer, Header, Value};
use rmqfast_store::format::host::Host;
use rmqfast_store::format::message_id::OffsetMessageId;
use rmqfast_store::store::append::Place;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// What is told of messages that were stored.
#[derive(Debug)]
pub struct Stored {
    ids: String,
    queue_id: i32,
    queue_offset: i64,
}

impl Stored {
    /// Of messages of one request, sent to this queue.
    pub fn new(host: Host, places: &[Place], queue_id: i32) -> Self {
        let mut ids = Vec::with_capacity(places.len() * 33);
        for (index, place) in places.iter().enumerate() {
            if index > 0 {
                ids.push(b',');
            }
            OffsetMessageId { host, physical_offset: place.physical_offset }.write(&mut ids);
        }
        let queue_offset = places.first().map_or(0, |place| place.queue_offset);
        Self { ids: String::from_utf8(ids).unwrap_or_default(), queue_id, queue_offset }
    }

    /// Writes it into an answer.
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

#[derive(Debug)]
struct Waiting {
    position: u64,
    answer: Answer,
    stored: Stored,
}

/// Who waits for the disk.
#[derive(Debug, Default)]
pub struct FlushWaits {
    waiting: Mutex<(Vec<Waiting>, bool)>,
    come: Condvar,
}

impl FlushWaits {
    /// Answers once the log is on the disk up to `position`.
    pub fn push(&self, position: u64, answer: Answer, stored: Stored) {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).0.push(Waiting { position, answer, stored });
        self.come.notify_one();
    }

    /// Waits for the disk again and again, until [`close`](Self::close).
    pub fn run(&self, ground: &Ground, timeout: Duration) {
        let options = &ground.options;
        while let Some(waiting) = self.take() {
            let position = waiting.iter().map(|waiting| waiting.position).max().unwrap_or_default();
            let code = match ground.appender.wait_flushed(position, Some(timeout)) {
                Ok(()) => response::SUCCESS,
                // what is flushed may not be what was appended
                Err(_) if ground.appender.harm().is_some() => {
                    waiting.iter().for_each(|waiting| refuse(&ground.not_available(), &waiting.answer));
                    continue;
                }
                Err(_) => response::FLUSH_DISK_TIMEOUT,
            };
            waiting.iter().for_each(|waiting| waiting.stored.send(code, options, &waiting.answer));
        }
    }

    fn take(&self) -> Option<Vec<Waiting>> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        while waiting.0.is_empty() && !waiting.1 {
            waiting = self.come.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
        (!waiting.0.is_empty()).then(|| std::mem::take(&mut waiting.0))
    }

    /// Ends [`run`](Self::run) once nobody waits.
    pub fn close(&self) {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).1 = true;
        self.come.notify_all();
    }
}
