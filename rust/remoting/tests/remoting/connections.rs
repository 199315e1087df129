//! A client's connections on real sockets.
use rmqfast_remoting::{
    Answer, Ask, Command, Completion, Completions, Connection, Connections, ConnectionsOptions, Error, Event, Handler,
    Header, Mailbox, Outgoing, Server, ServerOptions,
};
use rmqfast_waiting::{HeldPort, PATIENCE, until};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

const ECHO: i32 = 7;
const LATER: i32 = 8;

/// Answers one code at once, leaves others to who takes them.
struct Service {
    mailbox: Mailbox,
}

impl Service {
    fn new() -> Arc<Self> {
        Arc::new(Self { mailbox: Mailbox::new(100_000) })
    }

    /// The next request that was left.
    fn next(&self) -> Answer {
        loop {
            match self.mailbox.take(PATIENCE).expect("in time") {
                Event::Request(_, answer) => return answer,
                _ => continue,
            }
        }
    }

    fn next_closed(&self) -> Arc<Connection> {
        loop {
            match self.mailbox.take(PATIENCE).expect("in time") {
                Event::Closed(connection, _) => return connection,
                _ => continue,
            }
        }
    }
}

impl Handler for Service {
    fn handle(&self, connection: &Arc<Connection>, request: &Command<'_>, out: &mut Outgoing) {
        match request.code {
            ECHO => {
                let header = Header { opaque: request.opaque, ..Header::response(request.serialize_type) };
                header.write(request.body, out.frames());
            }
            _ => assert!(self.mailbox.request(request, Answer::to(connection, request))),
        }
    }

    fn on_closed(&self, connection: &Arc<Connection>, reason: Option<&Error>) {
        self.mailbox.connection_closed(connection, reason);
    }

    fn on_warning(&self, error: &Error) {
        self.mailbox.warn(error);
    }
}

fn serve(address: &str) -> (Server, Arc<Service>, String) {
    let service = Service::new();
    let server = Server::bind(address, ServerOptions::default(), service.clone()).expect("listening");
    let address = server.address().to_string();
    (server, service, address)
}

fn connections(max_in_flight: usize) -> (Connections, Arc<Service>) {
    let service = Service::new();
    let completions = Arc::new(Completions::new(max_in_flight, 1));
    (Connections::new(ConnectionsOptions::default(), service.clone(), completions), service)
}

fn ask(code: i32, body: &[u8]) -> Ask<'_> {
    Ask::new(code, &[], body, PATIENCE)
}

fn request(connections: &Connections, address: &str, body: &[u8]) -> Result<Vec<u8>, Error> {
    connections.request(address, ask(ECHO, body), |_, body| body.to_vec())
}

/// How so many requests ended, by their tokens.
fn ends(connections: &Connections, count: usize) -> HashMap<u64, Result<Vec<u8>, Error>> {
    let mut ends = HashMap::new();
    while ends.len() < count {
        let taken = connections.completions().take(64, PATIENCE).expect("not over");
        assert!(!taken.is_empty(), "{} of {count} ended", ends.len());
        for Completion { token, outcome } in taken {
            assert!(ends.insert(token, outcome.map(|answer| answer.body)).is_none(), "{token} ended twice");
        }
    }
    ends
}

#[test]
fn many_requests_in_flight_end_once_each_with_their_own_answers() {
    let (_server, _, address) = serve("127.0.0.1:0");
    let (connections, _) = connections(1000);
    std::thread::scope(|scope| {
        let (connections, address) = (&connections, &address);
        for thread in 0..4_u64 {
            scope.spawn(move || {
                for n in thread * 5000..(thread + 1) * 5000 {
                    let body = n.to_be_bytes();
                    connections.submit(address, ask(ECHO, &body), n, true).expect("submitted");
                }
            });
        }
        for (token, outcome) in ends(connections, 20_000) {
            assert_eq!(outcome.expect("answered"), token.to_be_bytes());
        }
    });
    assert_eq!(connections.completions().in_flight(), 0);
}

#[test]
fn requests_that_race_with_the_end_of_their_connection_end_once_each() {
    let (server, service, address) = serve("127.0.0.1:0");
    let (connections, _) = connections(1_000_000);
    let (submitted, closed) = std::thread::scope(|scope| {
        let (connections, address) = (&connections, &address);
        let submit = |token| connections.submit(address, ask(LATER, b""), token, true);
        let threads: Vec<_> = (0..4_u64)
            .map(|thread| scope.spawn(move || (0..5000).filter(|n| submit(thread << 32 | n).is_ok()).count()))
            .collect();
        let mut closed = 0;
        until("all are submitted", || {
            if let Some(Event::Request(_, answer)) = service.mailbox.take(Duration::ZERO)
                && answer.connection.is_open()
            {
                answer.connection.close();
                closed += 1;
            }
            closed > 0 && threads.iter().all(|thread| thread.is_finished())
        });
        let submitted: usize = threads.into_iter().map(|thread| thread.join().expect("ended")).sum();
        server.close();
        (submitted, closed)
    });
    assert!(closed > 0 && submitted > 0);
    for (_, outcome) in ends(&connections, submitted) {
        assert!(matches!(outcome, Err(Error::Closed { .. })), "{outcome:?}");
    }
    assert_eq!(connections.completions().in_flight(), 0);
}

#[test]
fn a_request_that_was_given_up_ends_once_and_its_answer_never() {
    let (_server, service, address) = serve("127.0.0.1:0");
    let (connections, _) = connections(10);
    let short = Ask { timeout: Duration::from_millis(120), ..ask(LATER, b"") };
    let began = Instant::now();
    connections.submit(&address, short, 1, true).expect("submitted");
    let late = service.next();
    let end = ends(&connections, 1).remove(&1);
    assert!(matches!(end, Some(Err(Error::Timeout { timeout_ms: 120, .. }))), "{end:?}");
    assert!(began.elapsed() >= Duration::from_millis(120));
    assert!(late.send(&Header::response(late.serialize_type), b"late"));
    connections.submit(&address, ask(ECHO, b"next"), 2, true).expect("submitted");
    assert_eq!(ends(&connections, 1).remove(&2).expect("the second").expect("answered"), b"next");
}

#[test]
fn a_connection_whose_peer_came_again_is_not_used_once_more() {
    let held = HeldPort::new();
    let (server, _, address) = serve(&held.address);
    let (connections, events) = connections(10);
    request(&connections, &address, b"a").expect("answered");
    connections.control(&address, ask(ECHO, b"a")).expect("answered");
    server.close();
    let (server, _, _) = serve(&address);
    assert_eq!(request(&connections, &address, b"b").expect("answered"), b"b");
    assert_eq!(events.next_closed().address(), address);
    assert_eq!(connections.control(&address, ask(ECHO, b"c")).expect("answered").body, b"c");
    assert_eq!(server.connections(), 2);
}

#[test]
fn callers_at_the_same_time_share_one_connection_and_one_try() {
    let (server, _, address) = serve("127.0.0.1:0");
    let (connections, _) = connections(1000);
    std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| connections.control(&address, ask(ECHO, b"")).expect("answered"));
        }
    });
    assert_eq!(server.connections(), 1);
}

/// How long it is left alone is the matter of `address.rs`.
#[test]
fn an_address_where_nobody_is_says_so_and_is_tried_again() {
    let held = HeldPort::new();
    let (connections, _) = connections(10);
    let refused = request(&connections, &held.address, b"").expect_err("nobody there");
    assert!(matches!(refused, Error::Connect { .. }), "{refused}");
    let (_server, _, _) = serve(&held.address);
    until("it is tried again", || request(&connections, &held.address, b"").is_ok());
    assert!(connections.control(&held.address, ask(ECHO, b"")).is_ok());
}

#[test]
fn close_ends_all_that_waits_and_tells_that_it_is_over() {
    let (server, service, address) = serve("127.0.0.1:0");
    let (connections, _) = connections(2);
    connections.submit(&address, ask(LATER, b""), 1, true).expect("submitted");
    connections.submit(&address, ask(LATER, b""), 2, true).expect("submitted");
    std::thread::scope(|scope| {
        let driven = scope.spawn(|| connections.request(&address, ask(LATER, b""), |_, _| ()));
        let waiting = scope.spawn(|| connections.submit(&address, ask(ECHO, b""), 3, true));
        (0..3).for_each(|_| drop(service.next()));
        connections.close();
        assert!(matches!(driven.join().expect("ended"), Err(Error::Closed { .. })));
        assert!(matches!(waiting.join().expect("ended"), Err(Error::Closed { .. })));
    });
    assert!(ends(&connections, 2).values().all(|end| matches!(end, Err(Error::Closed { .. }))));
    assert!(connections.completions().take(1, PATIENCE).is_none());
    assert!(matches!(request(&connections, &address, b""), Err(Error::Closed { .. })));
    until("all are closed", || server.connections() == 0);
}

#[test]
fn whoever_is_interrupted_waits_no_longer() {
    let (_server, _, address) = serve("127.0.0.1:0");
    let (connections, _) = connections(10);
    let stopped = Ask { interrupt: &|| Err(Error::Interrupted), ..ask(LATER, b"") };
    let asked = connections.request(&address, stopped, |_, _| ());
    assert!(matches!(asked, Err(Error::Interrupted)));
    let asked = connections.control(&address, stopped);
    assert!(matches!(asked, Err(Error::Interrupted)));
}
