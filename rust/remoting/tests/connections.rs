//! A client's connections on real sockets.
use rmqfast_remoting::{
    Answer, Ask, Command, Completion, Completions, Connection, Connections, ConnectionsOptions, Error, Event, Handler,
    Header, Mailbox, Outgoing, Server, ServerOptions, never,
};
use std::collections::HashMap;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const ECHO: i32 = 7;
const LATER: i32 = 8;
const PATIENCE: Duration = Duration::from_secs(20);

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

    fn closed(&self, connection: &Arc<Connection>, reason: Option<&Error>) {
        self.mailbox.connection_closed(connection, reason);
    }

    fn warned(&self, error: &Error) {
        self.mailbox.warned(error);
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
    Ask { code, fields: &[], body, timeout: PATIENCE }
}

fn request(connections: &Connections, address: &str, body: &[u8]) -> Result<Vec<u8>, Error> {
    connections.request(address, ask(ECHO, body), &mut never, |_, body| body.to_vec())
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
                    connections.submit(address, ask(ECHO, &body), n, true, &mut never).expect("submitted");
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
    let is_over = AtomicBool::new(false);
    let submitted = std::thread::scope(|scope| {
        let (connections, address, is_over) = (&connections, &address, &is_over);
        let threads: Vec<_> = (0..4_u64)
            .map(|thread| {
                scope.spawn(move || {
                    let mut submitted = 0;
                    for n in 0.. {
                        if is_over.load(Ordering::Relaxed) {
                            break;
                        }
                        let token = thread << 32 | n;
                        if connections.submit(address, ask(LATER, b""), token, true, &mut never).is_ok() {
                            submitted += 1;
                        }
                    }
                    submitted
                })
            })
            .collect();
        for _ in 0..20 {
            service.next().connection.close();
            std::thread::sleep(Duration::from_millis(5));
        }
        is_over.store(true, Ordering::Relaxed);
        let submitted: usize = threads.into_iter().map(|thread| thread.join().expect("ended")).sum();
        server.close();
        submitted
    });
    assert!(submitted > 100);
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
    connections.submit(&address, short, 1, true, &mut never).expect("submitted");
    let late = service.next();
    let end = ends(&connections, 1).remove(&1);
    assert!(matches!(end, Some(Err(Error::Timeout { timeout_ms: 120, .. }))), "{end:?}");
    assert!(began.elapsed() >= Duration::from_millis(120));
    assert!(late.send(&Header::response(late.serialize_type), b"late"));
    connections.submit(&address, ask(ECHO, b"next"), 2, true, &mut never).expect("submitted");
    assert_eq!(ends(&connections, 1).remove(&2).expect("the second").expect("answered"), b"next");
}

#[test]
fn a_connection_whose_peer_came_again_is_not_used_once_more() {
    let (server, _, address) = serve("127.0.0.1:0");
    let (connections, told) = connections(10);
    request(&connections, &address, b"a").expect("answered");
    connections.control(&address, ask(ECHO, b"a"), &mut never).expect("answered");
    server.close();
    let (server, _, _) = serve(&address);
    assert_eq!(request(&connections, &address, b"b").expect("answered"), b"b");
    assert_eq!(told.next_closed().address(), address);
    assert_eq!(connections.control(&address, ask(ECHO, b"c"), &mut never).expect("answered").body, b"c");
    assert_eq!(server.connections(), 2);
}

#[test]
fn callers_at_the_same_time_share_one_connection_and_one_try() {
    let (server, _, address) = serve("127.0.0.1:0");
    let (connections, _) = connections(1000);
    std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| connections.control(&address, ask(ECHO, b""), &mut never).expect("answered"));
        }
    });
    assert_eq!(server.connections(), 1);
}

#[test]
fn an_address_where_nobody_is_says_so_to_all_and_is_left_alone_for_a_while() {
    let address = {
        let taken = TcpListener::bind("127.0.0.1:0").expect("bound");
        taken.local_addr().expect("bound").to_string()
    };
    let (connections, _) = connections(10);
    let first = request(&connections, &address, b"").expect_err("nobody there").to_string();
    let (_server, _, _) = serve(&address);
    let again = connections.control(&address, ask(ECHO, b""), &mut never).expect_err("left alone");
    assert!(matches!(again, Error::Connect { .. }));
    assert_eq!(again.to_string(), first);
    std::thread::sleep(Duration::from_millis(120));
    assert!(request(&connections, &address, b"").is_ok());
}

#[test]
fn close_ends_all_that_waits_and_tells_that_it_is_over() {
    let (server, service, address) = serve("127.0.0.1:0");
    let (connections, _) = connections(2);
    connections.submit(&address, ask(LATER, b""), 1, true, &mut never).expect("submitted");
    connections.submit(&address, ask(LATER, b""), 2, true, &mut never).expect("submitted");
    std::thread::scope(|scope| {
        let driven = scope.spawn(|| connections.request(&address, ask(LATER, b""), &mut never, |_, _| ()));
        let waiting = scope.spawn(|| connections.submit(&address, ask(ECHO, b""), 3, true, &mut never));
        (0..3).for_each(|_| drop(service.next()));
        connections.close();
        assert!(matches!(driven.join().expect("ended"), Err(Error::Closed { .. })));
        assert!(matches!(waiting.join().expect("ended"), Err(Error::Closed { .. })));
    });
    assert!(ends(&connections, 2).values().all(|end| matches!(end, Err(Error::Closed { .. }))));
    assert!(connections.completions().take(1, PATIENCE).is_none());
    assert!(matches!(request(&connections, &address, b""), Err(Error::Closed { .. })));
    let until = Instant::now() + PATIENCE;
    while server.connections() > 0 {
        assert!(Instant::now() < until, "{} still open", server.connections());
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn whoever_is_interrupted_waits_no_longer() {
    let (_server, _, address) = serve("127.0.0.1:0");
    let (connections, _) = connections(10);
    let mut stop = || Err(Error::Interrupted);
    let began = Instant::now();
    let asked = connections.request(&address, ask(LATER, b""), &mut stop, |_, _| ());
    assert!(matches!(asked, Err(Error::Interrupted)));
    let asked = connections.control(&address, ask(LATER, b""), &mut stop);
    assert!(matches!(asked, Err(Error::Interrupted)));
    assert!(began.elapsed() < Duration::from_secs(5));
}
