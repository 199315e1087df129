//! Which request is answered here, and which goes to the control plane.
//!
//! Source: `BrokerController.registerProcessor`.
use crate::code::{request, response};
use crate::ground::Ground;
use crate::hold::Message;
use crate::offset_requests;
use crate::options::BrokerOptions;
use crate::pull::Pulling;
use crate::reply::Reply;
use crate::send::{self, Prepared, Sending};
use rmqfast_remoting::{Answer, Command, Connection, Error, Handler, Mailbox, Outgoing, OwnedCommand};
use rmqfast_store::store::append::{Appender, Flush};
use rmqfast_store::store::serve::{Arrival, ArrivalListener};
use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Bytes of the body of a request that is no message: clients send a few hundred.
const MAX_BODY: usize = 4 << 20;
const OVERLOAD: &str = "[OVERLOAD]system busy, start flow control for a while";

/// Whether a request was dealt with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Done {
    /// It was.
    Yes,
    /// The control plane has to do something first: create a topic, a group.
    NotYet,
}

impl Done {
    /// Whether it was.
    pub fn is_done(self) -> bool {
        self == Self::Yes
    }
}

/// A broker's data plane.
pub struct DataPlane {
    ground: Arc<Ground>,
    waits: std::sync::Mutex<Option<JoinHandle<()>>>,
}

impl DataPlane {
    /// Answers from and into `appender`'s store; `control` gets what is not answered here.
    ///
    /// # Errors
    /// What the operating system says where no thread can be started.
    pub fn new(
        appender: Arc<Appender>,
        flush: (Flush, Duration),
        options: BrokerOptions,
        control: Arc<Mailbox>,
    ) -> std::io::Result<Self> {
        let ground = Arc::new(Ground::new(appender, flush.0, options, control));
        ground.appender.set_arrival_listener(Some(Arc::new(Arrivals(Arc::downgrade(&ground)))));
        let waiting = ground.clone();
        let waits = std::thread::Builder::new().name("rmqfast-flush-waits".into());
        let waits = waits.spawn(move || waiting.flush_waits.run(&waiting, flush.1))?;
        Ok(Self { ground, waits: Some(waits).into() })
    }

    /// What requests have in common.
    pub fn ground(&self) -> &Ground {
        &self.ground
    }

    /// Answers a request once more, for which the control plane has done what was missing.
    /// `target` is where a message goes in place of its own topic and queue.
    pub fn handle_again(&self, request: &OwnedCommand, answer: &Answer, target: Option<(&str, i32)>) {
        let (command, connection) = (request.borrow(), &answer.connection);
        let mut out = Outgoing::default();
        if !self.answer(connection, &command, Some(Prepared { target }), &mut out).is_done() {
            let remark = format!("the request {} could not be answered: what it needs was not made", request.code);
            Reply::to(&command, &mut out).end(response::SYSTEM_ERROR, &remark);
        }
        connection.send_frames(out);
    }

    /// Answers pulls that have waited long enough, or whose queue has grown unseen.
    pub fn check_holds(&self) {
        self.ground.holds.check(&self.ground);
    }

    /// Answers no more sends that wait for the disk, and is told of no more messages.
    pub fn close(&self) {
        self.ground.appender.set_arrival_listener(None);
        self.ground.flush_waits.close();
        if let Some(waits) = self.waits.lock().unwrap_or_else(PoisonError::into_inner).take() {
            // it ends by itself
            let _ = waits.join();
        }
    }

    fn answer<'a>(
        &'a self,
        connection: &'a Arc<Connection>,
        request: &'a Command<'a>,
        prepared: Option<Prepared<'a>>,
        out: &mut Outgoing,
    ) -> Done {
        let ground = &self.ground;
        match request.code {
            request::SEND_MESSAGE | request::SEND_MESSAGE_V2 | request::SEND_BATCH_MESSAGE => {
                Sending { ground, connection, request, prepared }.answer(out)
            }
            request::PULL_MESSAGE | request::LITE_PULL_MESSAGE
                if ground.options.vip_port != Some(connection.local().port()) =>
            {
                let looks = ground.options.early_looks;
                Pulling { ground, connection, request, is_first: true, looks }.answer(out)
            }
            request::QUERY_CONSUMER_OFFSET
            | request::UPDATE_CONSUMER_OFFSET
            | request::GET_MAX_OFFSET
            | request::GET_MIN_OFFSET => {
                offset_requests::answer(ground, connection, request, out);
                Done::Yes
            }
            _ => Done::NotYet,
        }
    }
}

impl Drop for DataPlane {
    fn drop(&mut self) {
        self.close();
    }
}

impl Handler for DataPlane {
    fn handle(&self, connection: &Arc<Connection>, request: &Command<'_>, out: &mut Outgoing) {
        let is_done = !self.ground.options.hands_over_all && self.answer(connection, request, None, out).is_done();
        if !is_done && !self.ground.hand_over(connection, request) {
            Reply::to(request, out).end(response::SYSTEM_BUSY, OVERLOAD);
        }
    }

    fn refusal(&self, request: &Command<'_>, body: usize) -> Option<(i32, String)> {
        let most = self.ground.options.max_message_size;
        match request.code {
            request::SEND_MESSAGE | request::SEND_MESSAGE_V2 | request::SEND_BATCH_MESSAGE => {
                (body > most).then(|| (response::MESSAGE_ILLEGAL, send::illegal(most)))
            }
            _ => {
                let most = most.max(MAX_BODY);
                (body > most)
                    .then(|| (response::SYSTEM_ERROR, format!("body: expected at most {most} bytes, got {body}")))
            }
        }
    }

    fn closed(&self, connection: &Arc<Connection>, reason: Option<&Error>) {
        self.ground.new_offsets.forget(connection.id());
        self.ground.control.connection_closed(connection, reason);
    }

    fn warned(&self, error: &Error) {
        self.ground.control.warned(error);
    }
}

/// Hears of messages as long as there is a data plane.
struct Arrivals(std::sync::Weak<Ground>);

impl ArrivalListener for Arrivals {
    fn is_waiting(&self) -> bool {
        self.0.upgrade().is_some_and(|ground| ground.holds.len() > 0)
    }

    fn arrived(&self, arrival: &Arrival<'_>) {
        if let Some(ground) = self.0.upgrade() {
            let message = Message { tags_code: arrival.tags_code, properties: arrival.properties };
            ground.holds.wake(&ground, (arrival.topic, arrival.queue_id), arrival.max_offset, Some(message));
        }
    }
}
