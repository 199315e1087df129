//! A server on a real socket.
use rmqfast_remoting::{
    Answer, Body, Client, Command, Connection, Error, Event, Handler, Header, Limits, Mailbox, Outgoing, SerializeType,
    Server, ServerOptions, Value, frame,
};
use rmqfast_waiting::{HeldPort, PATIENCE, until};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

const ECHO: i32 = 7;
const LATER: i32 = 8;
const BIG: i32 = 9;
const PIECES: i32 = 10;

/// A body that stands elsewhere, with a piece for each of these sizes, in thousands of bytes.
#[derive(Debug)]
struct Pieces(Vec<Vec<u8>>);

impl Pieces {
    fn of(sizes: &[u8]) -> Self {
        Self(sizes.iter().map(|size| vec![*size; usize::from(*size) * 1000]).collect())
    }
}

impl Body for Pieces {
    fn bytes(&self) -> usize {
        self.0.iter().map(Vec::len).sum()
    }

    fn piece(&self, number: usize) -> Option<&[u8]> {
        self.0.get(number).map(Vec::as_slice)
    }
}

fn write_pieces(header: &Header<'_>, sizes: &[u8], out: &mut Outgoing) {
    let body = Pieces::of(sizes);
    header.write_before(body.bytes(), out.frames());
    out.push_body(Box::new(body));
}

/// Answers some codes at once, leaves others to who takes them.
struct Service {
    mailbox: Mailbox,
}

impl Handler for Service {
    fn handle(&self, connection: &Arc<Connection>, request: &Command<'_>, out: &mut Outgoing) {
        let header = Header { opaque: request.opaque, ..Header::response(request.serialize_type) };
        match request.code {
            ECHO => header.write(request.body, out.frames()),
            PIECES => write_pieces(&header, request.body, out),
            BIG => header.write(&vec![1; 1 << 20], out.frames()),
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

fn start(options: ServerOptions) -> (Server, Arc<Service>) {
    start_at("127.0.0.1:0", options)
}

fn start_at(address: &str, options: ServerOptions) -> (Server, Arc<Service>) {
    let service = Arc::new(Service { mailbox: Mailbox::new(100) });
    (Server::bind(address, options, service.clone()).expect("listening"), service)
}

fn connect(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(server.address()).expect("connected");
    stream.set_read_timeout(Some(PATIENCE)).expect("set");
    stream
}

fn request(code: i32, opaque: i32, body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    Header::request(code, opaque, &[("a", Value::Number(1))]).write(body, &mut out);
    out
}

/// Opaque and body of the next frame.
fn read(stream: &mut TcpStream) -> (i32, i32, Vec<u8>) {
    let mut length = [0; 4];
    stream.read_exact(&mut length).expect("a frame");
    let mut bytes = length.to_vec();
    bytes.resize(4 + u32::from_be_bytes(length) as usize, 0);
    stream.read_exact(&mut bytes[4..]).expect("a whole frame");
    let (frame, _) = frame::first(&bytes, &Limits::default()).expect("sound").expect("whole");
    let command = Command::decode(&frame, &Limits::default()).expect("sound");
    (command.code, command.opaque, command.body.to_vec())
}

fn is_ended(stream: &mut TcpStream) -> bool {
    match stream.read(&mut [0; 100]) {
        Ok(read) => read == 0,
        Err(error) => !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut),
    }
}

#[test]
fn frames_are_answered_in_order_however_they_are_cut() {
    let (server, _service) = start(ServerOptions::default());
    let mut stream = connect(&server);
    let sent: Vec<u8> = (0..50).flat_map(|n| request(ECHO, n, &vec![n as u8; n as usize * 97])).collect();
    for part in sent.chunks(1013) {
        stream.write_all(part).expect("sent");
    }
    for n in 0..50 {
        assert_eq!(read(&mut stream), (0, n, vec![n as u8; n as usize * 97]));
    }
}

#[test]
fn an_answer_may_come_later_from_another_thread_and_both_sides_ask() {
    let (server, service) = start(ServerOptions::default());
    let mut stream = connect(&server);
    stream.write_all(&request(LATER, 3, b"wait")).expect("sent");
    let Some(Event::Request(asked, answer)) = service.mailbox.take(PATIENCE) else { panic!("no request") };
    assert_eq!((asked.code, asked.body.as_slice()), (LATER, &b"wait"[..]));
    let connection = answer.connection.clone();
    let asking = std::thread::spawn(move || connection.request(40, &[], b"you?", PATIENCE).expect("answered").body);
    let (code, opaque, body) = read(&mut stream);
    assert_eq!((code, body), (40, b"you?".to_vec()));
    let mut reply = Vec::new();
    Header { opaque, ..Header::response(SerializeType::RocketMq) }.write(b"me", &mut reply);
    stream.write_all(&reply).expect("sent");
    assert_eq!(asking.join().expect("asked"), b"me");
    assert!(answer.send(&Header { code: 17, ..Header::response(SerializeType::Json) }, b"done"));
    assert_eq!(read(&mut stream), (17, 3, b"done".to_vec()));
    drop(stream);
    assert!(matches!(service.mailbox.take(PATIENCE), Some(Event::Closed(_, None))));
    assert!(matches!(answer.connection.request(40, &[], b"", PATIENCE), Err(Error::Closed { .. })));
}

/// Opaques of the requests that wait, in the order in which they are taken.
fn taken(mut take: impl FnMut() -> Option<Event>) -> Vec<i32> {
    let opaque = |event| match event {
        Event::Request(request, _) => request.opaque,
        other => panic!("{other:?}"),
    };
    std::iter::from_fn(|| take().map(opaque)).collect()
}

#[test]
fn connections_take_turns_and_small_requests_do_not_wait_for_large_ones() {
    let (server, service) = start(ServerOptions::default());
    let mailbox = &service.mailbox;
    let (mut busy, mut other) = (connect(&server), connect(&server));
    let wait = |count: usize| until("all requests wait", || mailbox.len() == count);
    let large = vec![0; 40_000];
    for n in 0..4 {
        busy.write_all(&request(LATER, n, b"")).expect("sent");
    }
    busy.write_all(&[request(LATER, 10, &large), request(LATER, 11, &large)].concat()).expect("sent");
    wait(6);
    other.write_all(&request(LATER, 100, b"")).expect("sent");
    wait(7);
    assert_eq!(taken(|| mailbox.take_small(Duration::ZERO)), [0, 100, 1, 2, 3]);
    busy.write_all(&[request(LATER, 4, b""), request(LATER, 5, b"")].concat()).expect("sent");
    wait(4);
    assert_eq!(taken(|| mailbox.take(Duration::ZERO)), [10, 4, 11, 5]);
}

/// Its bodies have a thousand bytes at most.
struct Strict;

impl Handler for Strict {
    fn handle(&self, _: &Arc<Connection>, request: &Command<'_>, out: &mut Outgoing) {
        Header { opaque: request.opaque, ..Header::response(request.serialize_type) }.write(request.body, out.frames());
    }

    fn refusal(&self, request: &Command<'_>, body: usize) -> Option<(i32, String)> {
        (request.code == LATER).then(|| (9, format!("{body} bytes")))
    }

    fn on_closed(&self, _: &Arc<Connection>, _: Option<&Error>) {}

    fn on_warning(&self, _: &Error) {}
}

#[test]
fn a_body_that_is_not_wanted_is_passed_over_however_it_is_cut() {
    let server = Server::bind("127.0.0.1:0", ServerOptions::default(), Arc::new(Strict)).expect("listening");
    let mut stream = connect(&server);
    let body = vec![7; 3 << 20];
    let refused = request(LATER, 1, &body);
    stream.write_all(&refused[..200]).expect("sent");
    assert_eq!(read(&mut stream), (9, 1, vec![]), "before the body came");
    stream.write_all(&refused[200..]).expect("sent");
    let rest = [request(ECHO, 2, &body), request(LATER, 3, &body), request(LATER, 4, b"small"), request(ECHO, 5, b"x")];
    let sent = std::thread::spawn({
        let mut stream = stream.try_clone().expect("cloned");
        move || rest.concat().chunks(100_003).for_each(|part| stream.write_all(part).expect("sent"))
    });
    let answers: Vec<_> = (0..4).map(|_| read(&mut stream)).collect();
    sent.join().expect("sent");
    assert_eq!(answers, [(0, 2, body), (9, 3, vec![]), (0, 4, b"small".to_vec()), (0, 5, b"x".to_vec())]);
}

#[test]
fn who_does_not_answer_and_who_goes_away_are_told_apart() {
    let (server, service) = start(ServerOptions::default());
    let mut stream = connect(&server);
    stream.write_all(&request(LATER, 1, b"")).expect("sent");
    let Some(Event::Request(_, answer)) = service.mailbox.take(PATIENCE) else { panic!("no request") };
    let asked = answer.connection.request(40, &[], b"", Duration::from_millis(50));
    assert!(matches!(asked, Err(Error::Timeout { timeout_ms: 50, .. })), "{asked:?}");
    let connection = answer.connection.clone();
    let asking = std::thread::spawn(move || connection.request(40, &[], b"", PATIENCE));
    // the second request has come, too
    assert_eq!([read(&mut stream).0, read(&mut stream).0], [40, 40]);
    drop(stream);
    assert!(matches!(asking.join().expect("ended"), Err(Error::Closed { .. })));
}

#[test]
fn what_is_no_frame_ends_the_connection_and_no_other() {
    let (server, service) = start(ServerOptions::default());
    let mut other = connect(&server);
    for wrong in [
        &b"GET / HTTP/1.1\r\n\r\n"[..],
        b"\0\0\0\x05\0\0\0\x01{",
        b"\x7f\xff\xff\xff\0\0\0\0",
        b"\0\0\0\x08\x07\0\0\x01abcd",
    ] {
        let mut stream = connect(&server);
        stream.write_all(wrong).expect("sent");
        assert!(is_ended(&mut stream), "{wrong:?}");
        assert!(matches!(service.mailbox.take(PATIENCE), Some(Event::Closed(_, Some(_)))));
    }
    other.write_all(&request(ECHO, 1, b"still here")).expect("sent");
    assert_eq!(read(&mut other).2, b"still here");
}

#[test]
fn who_sends_too_slowly_or_nothing_or_reads_nothing_is_cut_off() {
    let limit = Duration::from_millis(300);
    let options = ServerOptions { max_frame_time: limit, max_write_time: limit, ..ServerOptions::default() };
    let (server, _service) = start(options);
    let mut slow = connect(&server);
    let mut unread = connect(&server);
    let asked: Vec<u8> = (0..64).flat_map(|n| request(BIG, n, b"")).collect();
    unread.write_all(&asked).expect("sent");
    // a frame that is never whole
    let frame = request(ECHO, 1, &[0; 1_000_000]);
    let mut dripping = frame.iter();
    until("both are cut off", || {
        let _ = dripping.next().map(|byte| slow.write_all(&[*byte]));
        server.connections() == 0
    });
    let idle = ServerOptions { max_idle: limit, ..ServerOptions::default() };
    assert!(is_ended(&mut connect(&start(idle).0)));
}

#[test]
fn a_peer_that_lets_too_much_gather_is_cut_off() {
    let (server, service) = start(ServerOptions { max_outgoing: 1 << 20, ..ServerOptions::default() });
    let mut stream = connect(&server);
    stream.write_all(&request(LATER, 1, b"")).expect("sent");
    let Some(Event::Request(_, answer)) = service.mailbox.take(PATIENCE) else { panic!("no request") };
    let mut sent = 0;
    while answer.connection.send_oneway(40, &[], &[0; 64 << 10]) {
        sent += 1;
        assert!(sent < 10_000, "never cut off");
    }
    assert!(!answer.connection.is_open());
}

#[test]
fn bodies_that_stand_elsewhere_come_in_their_places() {
    let (server, service) = start(ServerOptions::default());
    let mut stream = connect(&server);
    let sizes: Vec<u8> = (0..120).collect();
    let asked =
        [(PIECES, &sizes[..]), (ECHO, b"x"), (PIECES, b""), (PIECES, &[1]), (ECHO, &sizes), (PIECES, &[250; 9])];
    let frames: Vec<u8> = asked.iter().zip(0..).flat_map(|((code, body), n)| request(*code, n, body)).collect();
    stream.write_all(&frames).expect("sent");
    for ((code, body), n) in asked.iter().zip(0..) {
        let expected = if *code == PIECES { Pieces::of(body).0.concat() } else { body.to_vec() };
        let (_, opaque, got) = read(&mut stream);
        assert!(opaque == n && got == expected, "answer {n}");
    }
    // and where another thread sends them, behind what waits already
    stream.write_all(&request(LATER, 7, b"")).expect("sent");
    let Some(Event::Request(_, answer)) = service.mailbox.take(PATIENCE) else { panic!("no request") };
    for sizes in [[200; 9], [3; 9]] {
        let mut frames = Outgoing::default();
        write_pieces(&Header::response(SerializeType::Json), &sizes, &mut frames);
        assert!(answer.connection.send_frames(frames));
    }
    assert!([[200; 9], [3; 9]].iter().all(|sizes| read(&mut stream).2 == Pieces::of(sizes).0.concat()));
}

#[test]
fn bodies_that_stand_elsewhere_count_as_what_gathers() {
    let (server, service) = start(ServerOptions { max_outgoing: 1 << 20, ..ServerOptions::default() });
    let mut stream = connect(&server);
    stream.write_all(&request(LATER, 1, b"")).expect("sent");
    let Some(Event::Request(_, answer)) = service.mailbox.take(PATIENCE) else { panic!("no request") };
    let mut frames = Outgoing::default();
    write_pieces(&Header::response(SerializeType::Json), &[255; 5], &mut frames);
    assert!(frames.len() > 1 << 20 && frames.frames().len() < 1000);
    assert!(!answer.connection.send_frames(frames) && !answer.connection.is_open());
}

#[test]
fn connections_above_the_limit_are_refused_and_a_closed_server_is_gone() {
    let held = HeldPort::new();
    let (server, _service) = start_at(&held.address, ServerOptions { max_connections: 1, ..ServerOptions::default() });
    let mut first = connect(&server);
    first.write_all(&request(ECHO, 1, b"x")).expect("sent");
    assert_eq!(read(&mut first).2, b"x");
    assert!(is_ended(&mut connect(&server)));
    server.close();
    assert!(is_ended(&mut first));
    assert!(TcpStream::connect(server.address()).is_err());
}

#[test]
fn a_client_asks_and_is_told_why_there_is_no_answer() {
    let held = HeldPort::new();
    let address = held.address.clone();
    let (server, service) = start_at(&address, ServerOptions::default());
    let mut client = Client::connect(&address, None, PATIENCE).expect("connected");
    client.send_oneway(LATER, &[], b"one way", PATIENCE).expect("sent");
    let answer = client.request(ECHO, &[("a", Value::Flag(true))], &[3; 200_000], PATIENCE).expect("answered");
    assert_eq!((answer.code, answer.version, answer.body.len()), (0, 401, 200_000));
    let Some(Event::Request(asked, answer)) = service.mailbox.take(PATIENCE) else { panic!("no request") };
    assert_eq!(
        (asked.body.as_slice(), answer.is_oneway, answer.send(&Header::response(SerializeType::Json), b"")),
        (&b"one way"[..], true, false)
    );
    let late = client.request(LATER, &[], b"", Duration::from_millis(50));
    assert!(matches!(late, Err(Error::Timeout { .. })), "{late:?}");
    server.close();
    let gone = client.request(ECHO, &[], b"", PATIENCE);
    assert!(matches!(gone, Err(Error::Closed { .. })), "{gone:?}");
    assert!(matches!(Client::connect(&address, None, PATIENCE), Err(Error::Connect { .. })));
}
