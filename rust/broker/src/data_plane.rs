//! Answers the frequent requests (send, pull, offsets), and passes all others to the control plane.
//!
//! Source: `BrokerController.registerProcessor`.
use crate::broker_state::BrokerState;
use crate::group_commit::{HandOver, Reply};
use crate::offset_requests;
use crate::options::BrokerOptions;
use crate::parked_pulls::{Look, Message};
use crate::pull::{self, Pulling};
use crate::send::{self, PreparedSend, Sending};
use rmqfast_remoting::code::{request, response};
use rmqfast_remoting::{Answer, Command, Connection, Error, Handler, Mailbox, Outgoing, OwnedCommand};
use rmqfast_replication::{HaOptions, HaService};
use rmqfast_store::store::append::{Appender, Flush};
use rmqfast_store::store::serve::{Arrival, ArrivalListener};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Maximum bytes of a request's body, except for sends. Clients send a few hundred bytes.
const MAX_BODY: usize = 4 << 20;
const OVERLOAD: &str = "[OVERLOAD]system busy, start flow control for a while";

pub struct DataPlane {
    state: Arc<BrokerState>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    ha: Mutex<Option<HaService>>,
}

impl DataPlane {
    /// Creates the data plane for the store of `appender`. Requests that it does not answer go to the control plane,
    /// through `control`.
    pub fn new(
        appender: Arc<Appender>,
        flush: (Flush, Duration),
        options: BrokerOptions,
        control: Arc<Mailbox>,
    ) -> std::io::Result<Self> {
        let state = Arc::new(BrokerState::new(appender, flush.0, options, control));
        // weak, to avoid a cycle: the state owns the appender, which owns its listener
        state.appender.set_arrival_listener(Some(Arc::new(Arrivals(Arc::downgrade(&state)))));
        // weak, as the state owns the tables
        let weak = Arc::downgrade(&state);
        state.tables.on_subscription_change(move |group| {
            if let Some(state) = weak.upgrade() {
                pull::wake_early(&state, group);
            }
        });
        let committing = state.clone();
        let commit = move || {
            let wait_flushed = |position| committing.wait_flushed(position, flush.1);
            let wait_replicated = |position, since| committing.wait_replicated(position, since);
            committing.group_commit.run(&committing.options, wait_flushed, wait_replicated);
        };
        let filtering = state.clone();
        let filter = move || {
            filtering.heavy_pulls.run(|pull, look| pull::answer_aside(&filtering, pull, look));
        };
        let plane = Self { state, threads: Mutex::default(), ha: Mutex::default() };
        plane.spawn("rmqfast-group-commit", commit)?;
        // on an error the drop of the plane ends the first thread
        plane.spawn("rmqfast-filters", filter)?;
        Ok(plane)
    }

    fn spawn(&self, name: &str, work: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
        let thread = std::thread::Builder::new().name(name.into()).spawn(work)?;
        self.threads.lock().unwrap_or_else(PoisonError::into_inner).push(thread);
        Ok(())
    }

    pub fn state(&self) -> &BrokerState {
        &self.state
    }

    /// Listens at `address` and sends the log to slaves, until [`close`](Self::close).
    pub fn serve_log(&self, address: SocketAddr, options: HaOptions) -> std::io::Result<()> {
        let (appender, control) = (self.state.appender.clone(), self.state.control.clone());
        let tell = Box::new(move |line| control.warn(line));
        let service = HaService::start(address, appender, self.state.replicas.clone(), options, tell)?;
        *self.ha.lock().unwrap_or_else(PoisonError::into_inner) = Some(service);
        Ok(())
    }

    /// Answers a request again, after the control plane has created the missing topic or group. `target` replaces the
    /// message's topic and queue.
    pub fn handle_again(&self, request: &OwnedCommand, answer: &Answer, target: Option<(&str, i32)>) {
        let (command, connection) = (request.borrow(), &answer.connection);
        let mut out = Outgoing::default();
        // never handed over twice, or both planes could pass the request to each other for ever
        if let Err(HandOver) = self.answer(connection, &command, Some(PreparedSend { target }), &mut out) {
            let remark = format!("the request {} could not be answered: what it needs was not made", request.code);
            Reply::to(&command, &mut out).end(response::SYSTEM_ERROR, &remark);
        }
        connection.send_frames(out);
    }

    /// Answers parked pulls that waited long enough, or whose queue got messages without a notification.
    pub fn check_parked_pulls(&self) {
        pull::wake_overdue(&self.state);
    }

    /// Answers sends that wait for the disk or a slave, then stops. Parked pulls are no longer answered, and the
    /// connections of slaves are closed.
    pub fn close(&self) {
        self.state.appender.set_arrival_listener(None);
        // connections of producers are closed by now, so nobody waits for a slave
        self.state.replicas.close();
        self.state.group_commit.close();
        self.state.heavy_pulls.close();
        for thread in self.threads.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            // a panic was already printed
            let _ = thread.join();
        }
        drop(self.ha.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    fn answer<'a>(
        &'a self,
        connection: &'a Arc<Connection>,
        request: &'a Command<'a>,
        prepared: Option<PreparedSend<'a>>,
        out: &mut Outgoing,
    ) -> Result<(), HandOver> {
        let state = &self.state;
        match request.code {
            request::SEND_MESSAGE | request::SEND_MESSAGE_V2 | request::SEND_BATCH_MESSAGE => {
                Sending { state, connection, request, prepared }.answer(out)
            }
            // Lite pull consumers of 5.x send 361 with the header of 11; 4.9.4 does not know it. The second listener
            // (VIP) takes no pulls: there the control plane answers them with code 3, as in Java.
            request::PULL_MESSAGE | request::LITE_PULL_MESSAGE
                if state.options.vip_port != Some(connection.local().port()) =>
            {
                Pulling { state, connection, request, look: Look::First, is_aside: false }.answer(out)
            }
            request::QUERY_CONSUMER_OFFSET
            | request::UPDATE_CONSUMER_OFFSET
            | request::GET_MAX_OFFSET
            | request::GET_MIN_OFFSET => {
                offset_requests::answer(state, connection, request, out);
                Ok(())
            }
            _ => Err(HandOver),
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
        let is_answered = !self.state.options.hands_over_all && self.answer(connection, request, None, out).is_ok();
        if !is_answered && !self.state.hand_over(connection, request) {
            Reply::to(request, out).end(response::SYSTEM_BUSY, OVERLOAD);
        }
    }

    fn refusal(&self, request: &Command<'_>, body: usize) -> Option<(i32, String)> {
        let most = self.state.options.max_message_size;
        match request.code {
            request::SEND_MESSAGE | request::SEND_MESSAGE_V2 | request::SEND_BATCH_MESSAGE => {
                (body > most).then(|| (response::MESSAGE_ILLEGAL, send::illegal(most)))
            }
            _ => {
                // a small maxMessageSize must not refuse other requests
                let most = most.max(MAX_BODY);
                (body > most)
                    .then(|| (response::SYSTEM_ERROR, format!("body: expected at most {most} bytes, got {body}")))
            }
        }
    }

    fn on_closed(&self, connection: &Arc<Connection>, reason: Option<&Error>) {
        // otherwise the table would grow with each connection
        self.state.new_offsets.forget(connection.id());
        self.state.control.connection_closed(connection, reason);
    }

    fn on_warning(&self, error: &Error) {
        self.state.control.warn(error);
    }
}

/// Wakes parked pulls when a message arrives.
struct Arrivals(std::sync::Weak<BrokerState>);

impl ArrivalListener for Arrivals {
    fn is_waiting(&self) -> bool {
        self.0.upgrade().is_some_and(|state| state.parked_pulls.len() > 0)
    }

    fn on_arrival(&self, arrival: &Arrival<'_>) {
        if let Some(state) = self.0.upgrade() {
            let message = Message { tags_code: arrival.tags_code, properties: arrival.properties };
            pull::wake_queue(&state, (arrival.topic, arrival.queue_id), arrival.max_offset, Some(message));
        }
    }
}
