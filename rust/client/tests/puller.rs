//! A puller against a broker at the other end of a real socket, which answers as badly as it can.
use rmqfast_client::cluster::ClusterOptions;
use rmqfast_client::puller::{
    Assignment, Broker, Gather, Item, PullStatus, PulledAnswer, Puller, PullerOptions, Queue,
};
use rmqfast_client::ranges::{PoolKey, PullerPool, QueueRange, RangeReader, RangeRequest, Step};
use rmqfast_remoting::{Command, Header, Limits, Value, frame};
use rmqfast_store::format::host::Host;
use rmqfast_store::format::message::NewMessage;
use rmqfast_store::scan::ScanRequest;
use rmqfast_waiting::{HeldPort, PATIENCE, deadline};
use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// How a broker misbehaves.
#[derive(Clone, Copy, Default)]
struct Manners {
    /// Answers out of order, and short ones.
    shuffles: bool,
    /// Ends the connection after so many answers.
    hangs_up_after: Option<usize>,
    /// Sends a frame that is none after so many answers.
    raves_after: Option<usize>,
    /// Never answers.
    is_mute: bool,
    /// Writes a few bytes at a time.
    dribbles: bool,
}

struct Fake {
    address: String,
    connections: Arc<AtomicUsize>,
    /// Messages that were sent.
    messages: Arc<AtomicUsize>,
}

impl Fake {
    /// A broker with `length` messages in each queue.
    fn start(length: i64, manners: Manners) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("listening");
        let address = listener.local_addr().expect("an address").to_string();
        let connections = Arc::new(AtomicUsize::new(0));
        let messages = Arc::new(AtomicUsize::new(0));
        let counts = (connections.clone(), messages.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                counts.0.fetch_add(1, Ordering::Relaxed);
                let (stream, messages) = (stream.expect("a connection"), counts.1.clone());
                std::thread::spawn(move || serve(stream, length, manners, &messages));
            }
        });
        Self { address, connections, messages }
    }
}

/// A pull: its number, topic, offset, and how many messages.
type Pull = (i32, String, i64, i64);

fn serve(mut stream: TcpStream, length: i64, manners: Manners, messages: &AtomicUsize) -> Option<()> {
    let (mut inbox, mut open, mut answered, mut whim) = (Vec::new(), Vec::<Pull>::new(), 0, 7_usize);
    loop {
        while let Some(pull) = next_pull(&mut inbox) {
            open.push(pull);
        }
        while !open.is_empty() && !manners.is_mute {
            whim = whim.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let chosen = if manners.shuffles { (whim >> 33) % open.len() } else { 0 };
            let pull = open.remove(chosen);
            let most = if manners.shuffles { 1 + (whim >> 40) as i64 % pull.3 } else { pull.3 };
            messages.fetch_add((length - pull.2).clamp(0, most.min(pull.3)) as usize, Ordering::Relaxed);
            let out = answer(&pull, length, most);
            let piece = if manners.dribbles { 1000 } else { out.len() };
            for piece in out.chunks(piece) {
                stream.write_all(piece).ok()?;
            }
            answered += 1;
            if manners.hangs_up_after == Some(answered) {
                return None;
            }
            if manners.raves_after == Some(answered) {
                stream.write_all(&[0xFF; 100]).ok()?;
            }
        }
        let mut more = [0; 4096];
        let read = stream.read(&mut more).ok().filter(|read| *read > 0)?;
        inbox.extend_from_slice(&more[..read]);
    }
}

fn next_pull(inbox: &mut Vec<u8>) -> Option<Pull> {
    let limits = Limits::default();
    let (frame, used) = frame::first(inbox, &limits).expect("sound")?;
    let command = Command::decode(&frame, &limits).expect("sound");
    let number = |name: &str| command.field(name).expect("it is there").parse::<i64>().expect("a number");
    assert_eq!((command.code, command.field("consumerGroup")), (11, Some("g")));
    let topic = command.field("topic").expect("it is there").to_owned();
    let pull = (command.opaque, topic, number("queueOffset"), number("maxMsgNums"));
    inbox.drain(..used);
    Some(pull)
}

/// The frame of an answer.
fn answer((opaque, topic, offset, max): &Pull, length: i64, most: i64) -> Vec<u8> {
    let end = (offset + most.min(*max)).min(length);
    let (code, next) = if *offset >= length { (19, *offset) } else { (0, end) };
    let fields = [
        ("suggestWhichBrokerId", Value::Number(0)),
        ("nextBeginOffset", Value::Number(next)),
        ("minOffset", Value::Number(0)),
        ("maxOffset", Value::Number(length)),
    ];
    let mut body = Vec::new();
    (*offset..end).for_each(|offset| record(topic, offset, &mut body));
    let mut out = Vec::new();
    Header { code, flag: 1, ..Header::request(code, *opaque, &fields) }.write(&body, &mut out);
    out
}

fn record(topic: &str, queue_offset: i64, out: &mut Vec<u8>) {
    let host = Host { ip: Ipv4Addr::LOCALHOST.into(), port: 1 };
    let message = NewMessage {
        queue_id: 0,
        flag: 0,
        queue_offset,
        physical_offset: 0,
        sys_flag: 0,
        born_timestamp: 0,
        born_host: host,
        store_timestamp: 0,
        store_host: host,
        reconsume_times: 0,
        prepared_transaction_offset: 0,
        body: &[7; 300],
        topic,
        properties: b"",
    };
    message.encode(out).expect("a record");
}

fn options() -> PullerOptions {
    let retry = Duration::from_millis(20);
    PullerOptions { consumer_group: "g".into(), retry, timeout: PATIENCE, ..PullerOptions::default() }
}

fn queue(topic: &str) -> Queue {
    Queue { topic: topic.into(), broker_name: "b".into(), queue_id: 0 }
}

fn broker(address: &str) -> Broker {
    Broker { address: address.into(), is_slave: false }
}

/// Takes until each topic's end; how many messages each had, and how often the connection was lost.
fn drain(puller: &Puller, topics: &[&str]) -> (HashMap<String, i64>, usize) {
    let (mut got, mut ended, mut lost) = (HashMap::new(), 0, 0);
    let until = deadline();
    while ended < topics.len() {
        let items = puller.take(until, 16).expect("open");
        assert!(!items.is_empty(), "no end in time: {got:?}");
        for item in items {
            match item {
                Item::Answer(fetched) if fetched.status != PullStatus::Failed => {
                    ended += usize::from(fetched.is_end);
                    note(&fetched, got.entry(fetched.queue.topic.clone()).or_insert(0));
                }
                Item::Disconnected(..) => lost += 1,
                _ => {}
            }
        }
    }
    (got, lost)
}

fn note(fetched: &PulledAnswer, next: &mut i64) {
    assert_eq!(fetched.begin_offset, *next);
    for row in &fetched.rows {
        let message = row.message(&fetched.body).expect("a message");
        assert_eq!((message.queue_offset(), message.topic()), (*next, fetched.queue.topic.as_bytes()));
        *next += 1;
    }
}

fn check(length: i64, manners: Manners) -> (Fake, usize) {
    let fake = Fake::start(length, manners);
    let puller = Puller::new(options(), None);
    for topic in ["a", "b", "c"] {
        puller
            .assign(broker(&fake.address), queue(topic), Assignment { end: Some(length), ..Assignment::default() })
            .expect("open");
    }
    let (got, lost) = drain(&puller, &["a", "b", "c"]);
    assert_eq!(got, HashMap::from(["a", "b", "c"].map(|topic| (topic.to_owned(), length))));
    puller.close();
    assert!(puller.assign(broker(&fake.address), queue("a"), Assignment::default()).is_err());
    assert!(puller.take(Instant::now(), 1).is_err());
    (fake, lost)
}

#[test]
fn queues_come_whole_over_one_connection() {
    let (fake, lost) = check(5000, Manners::default());
    assert_eq!((fake.connections.load(Ordering::Relaxed), lost), (1, 0));
}

#[test]
fn queues_of_several_brokers_come_through_one_puller_and_one_that_is_lost_keeps_no_other_up() {
    let fakes =
        [Fake::start(3000, Manners::default()), Fake::start(3000, Manners { is_mute: true, ..Manners::default() })];
    let ready = Arc::new(AtomicUsize::new(0));
    let count = ready.clone();
    let on_ready: Arc<rmqfast_client::puller::OnReady> = Arc::new(move || {
        count.fetch_add(1, Ordering::Relaxed);
    });
    let puller = Puller::new(options(), Some(on_ready));
    for (fake, topic) in fakes.iter().zip(["a", "b"]) {
        puller
            .assign(broker(&fake.address), queue(topic), Assignment { end: Some(3000), ..Assignment::default() })
            .expect("open");
    }
    assert_eq!(drain(&puller, &["a"]).0["a"], 3000);
    assert!(puller.move_to(broker(&fakes[0].address), &queue("b")).expect("open"));
    assert_eq!(drain(&puller, &["b"]).0["b"], 3000);
    assert!(ready.load(Ordering::Relaxed) > 0);
}

#[test]
fn who_gathers_takes_much_at_a_time_and_the_rest_at_the_end() {
    let fake = Fake::start(5000, Manners::default());
    let gather = Gather { bytes: 40_000, pause: Duration::from_secs(60) };
    let puller = Puller::new(PullerOptions { gather, burst: 4, ..options() }, None);
    puller
        .assign(broker(&fake.address), queue("a"), Assignment { end: Some(5000), ..Assignment::default() })
        .expect("open");
    let (mut sizes, mut next) = (Vec::new(), 0);
    while next < 5000 {
        let items = puller.take(deadline(), 1000).expect("open");
        let fetched =
            items.iter().filter_map(|item| if let Item::Answer(fetched) = item { Some(fetched) } else { None });
        sizes.push(fetched.inspect(|fetched| note(fetched, &mut next)).map(|fetched| fetched.bytes()).sum::<usize>());
    }
    let (last, others) = sizes.split_last().expect("there is one");
    assert!(*last > 0 && others.iter().all(|size| (40_000..80_000).contains(size)), "{sizes:?}");
}

#[test]
fn short_answers_out_of_order_and_in_pieces_are_put_together() {
    check(3000, Manners { shuffles: true, dribbles: true, ..Manners::default() });
}

#[test]
fn a_connection_that_ends_again_and_again_loses_nothing_and_doubles_nothing() {
    let (fake, lost) = check(2000, Manners { hangs_up_after: Some(60), shuffles: true, ..Manners::default() });
    assert!(lost > 0);
    assert!(fake.connections.load(Ordering::Relaxed) > lost / 2);
}

#[test]
fn bytes_that_are_no_frame_end_the_connection_and_the_next_one_goes_on() {
    let (_, lost) = check(2000, Manners { raves_after: Some(80), ..Manners::default() });
    assert!(lost > 0);
}

#[test]
fn a_broker_that_says_nothing_is_left_for_a_new_connection() {
    let fake = Fake::start(10, Manners { is_mute: true, ..Manners::default() });
    let timeout = Duration::from_millis(200);
    let puller = Puller::new(PullerOptions { timeout, ..options() }, None);
    puller.assign(broker(&fake.address), queue("a"), Assignment::default()).expect("open");
    let until = deadline();
    let mut seen = (false, false);
    while seen != (true, true) {
        assert!(Instant::now() < until);
        for item in puller.take(until, 9).expect("open") {
            match item {
                Item::Answer(fetched) => {
                    assert_eq!(fetched.remark, "no answer to a pull in 200 ms");
                    seen.0 = true;
                }
                Item::Disconnected(_, reason) => {
                    assert_eq!(reason, "the broker answers nothing any more");
                    seen.1 = true;
                }
                Item::Connected(_) | Item::FlowControl(_) => {}
            }
        }
    }
}

#[test]
fn nobody_at_the_address_is_told_and_tried_again() {
    let held = HeldPort::new();
    let puller = Puller::new(options(), None);
    puller.assign(broker(&held.address), queue("a"), Assignment::default()).expect("open");
    let items = puller.take(deadline(), 1).expect("open");
    assert!(matches!(&items[..], [Item::Disconnected(_, reason)] if reason.starts_with("connect to <127.0.0.1:")));
    let listener = TcpListener::bind(&held.address).expect("listening");
    listener.accept().expect("it was tried again");
}

#[test]
fn a_signature_is_in_each_request_and_a_signer_that_fails_is_told() {
    let fake = Fake::start(40, Manners::default());
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    let sign: Arc<rmqfast_client::puller::Sign> = Arc::new(move |code, fields, _| {
        assert_eq!((code, fields[0].0.as_str()), (11, "consumerGroup"));
        match counted.fetch_add(1, Ordering::Relaxed) {
            0 => Err("no key".to_owned()),
            _ => Ok(vec![("Signature".to_owned(), "s".to_owned())]),
        }
    });
    let puller = Puller::new(PullerOptions { sign: Some(sign), ..options() }, None);
    puller
        .assign(broker(&fake.address), queue("a"), Assignment { end: Some(40), ..Assignment::default() })
        .expect("open");
    let items = puller.take(deadline(), 1).expect("open");
    assert!(matches!(&items[..], [Item::Answer(f)] if f.remark == "signing a pull failed: no key"));
    assert_eq!(drain(&puller, &["a"]).0["a"], 40);
    assert!(calls.load(Ordering::Relaxed) >= 3);
}

/// Reads a range to its end; its puller comes from the pool and goes there.
fn read(pool: &'static PullerPool, address: &str, start: i64, end: i64) {
    let request = RangeRequest {
        puller: options(),
        subscription: Arc::default(),
        scan: ScanRequest::default(),
        patience: PATIENCE,
        is_strict: true,
    };
    let cluster = ClusterOptions {
        name_servers: Vec::new(),
        tls: None,
        sign: None,
        translate: None,
        connect_timeout: PATIENCE,
        timeout: PATIENCE,
        interrupt: Arc::new(rmqfast_remoting::never),
    };
    let ranges = vec![QueueRange { queue: queue("a"), start, end }];
    let reader = RangeReader::new(request, ranges, Some(address.to_owned()), cluster);
    let mut reader = reader.expect("a range").reading_ahead().with_pool(pool, PoolKey::of([address]));
    let (mut next, end_of_patience) = (start, deadline());
    loop {
        match reader.advance(PATIENCE).expect("an answer") {
            Step::Answers(answers) => answers.iter().for_each(|fetched| note(fetched, &mut next)),
            // a connection that came or went ends a wait, too
            Step::Waiting => assert!(Instant::now() < end_of_patience, "no answer in time"),
            Step::Done => return assert_eq!(next, end),
        }
    }
}

#[test]
fn a_range_goes_on_with_what_was_read_ahead_of_the_one_before() {
    static POOL: PullerPool = PullerPool::new();
    let fake = Fake::start(5000, Manners::default());
    for (start, end) in [(0, 1000), (1000, 1001), (1001, 4000), (4000, 5000)] {
        read(&POOL, &fake.address, start, end);
    }
    let counts = |fake: &Fake| [&fake.connections, &fake.messages].map(|count| count.load(Ordering::Relaxed));
    assert_eq!(counts(&fake), [1, 5000], "each message is asked for once");
    read(&POOL, &fake.address, 100, 200);
    assert_eq!(counts(&fake)[0], 2, "what is read ahead stays for whoever goes on there");
}

#[test]
fn nothing_that_was_read_ahead_outlives_its_connection() {
    static POOL: PullerPool = PullerPool::new();
    // at the hundredth answer all that may be held is there, or not
    let fake = Fake::start(20_000, Manners { hangs_up_after: Some(100), ..Manners::default() });
    for start in (0..20_000).step_by(400) {
        read(&POOL, &fake.address, start, start + 400);
    }
    let connections = fake.connections.load(Ordering::Relaxed);
    assert!(connections > 6, "{connections}");
}
