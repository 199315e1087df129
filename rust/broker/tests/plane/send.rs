//! Sends, and why they are refused.
use crate::broker::{
    Broker, COMMIT, GROUP, PULL, Peer, RW, SEND, SEND_BATCH, SEND_V2, SUSPEND, broker, broker_with, field, long, pull,
    records, short, sync, with,
};
use rmqfast_broker::{SyncReplication, Topic, response};
use rmqfast_remoting::{Event, Header, ONEWAY, SerializeType, Value};
use rmqfast_store::file::disk::{self, Call, Watcher};
use rmqfast_store::store::append::AppendOptions;
use rmqfast_waiting::{PATIENCE, until};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

const NOT_AVAILABLE: &str = "service not available now. It may be caused by one of the following reasons: the broker's disk is full [CL:  0.93], messages are put to the slave, message store has been shut down, etc.";
const ILLEGAL: &str = "the message is illegal, maybe msg body or properties length not matched. msg body length limit 100B, msg properties length limit 32KB.";

/// Encodes a message like a producer.
fn batch(messages: &[(i32, &[u8], &str)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (flag, body, properties) in messages {
        let size = (22 + body.len() + properties.len()) as i32;
        for number in [size, 0, 0, *flag, body.len() as i32] {
            out.extend_from_slice(&number.to_be_bytes());
        }
        out.extend_from_slice(body);
        out.extend_from_slice(&(properties.len() as i16).to_be_bytes());
        out.extend_from_slice(properties.as_bytes());
    }
    out
}

/// Bodies and property strings of a queue.
fn stored(broker: &Broker, queue_id: i64) -> Vec<(Vec<u8>, String)> {
    let answer = broker.connect().ask(PULL, &pull(queue_id, 0, 4), b"");
    records(&answer.body)
}

#[test]
fn both_names_of_fields_and_both_ways_to_write_a_header_store_the_same() {
    let broker = broker();
    let mut peer = broker.connect();
    let properties = "UNIQ_KEY\u{1}u\u{2}WAIT\u{1}true\u{2}TAGS\u{1}a";
    let mut offset = 0;
    for serialize_type in [SerializeType::Json, SerializeType::RocketMq] {
        peer.serialize_type = serialize_type;
        for (code, fields) in [(SEND, long("T", 1, properties)), (SEND_V2, short("T", 1, properties))] {
            let answer = peer.ask(code, &fields, b"body");
            assert_eq!((answer.code, answer.remark.as_deref()), (0, None));
            let fields = ["queueId", "queueOffset", "MSG_REGION", "TRACE_ON"].map(|name| field(&answer, name));
            assert_eq!(fields, ["1", offset.to_string().as_str(), "DefaultRegion", "true"]);
            assert!(field(&answer, "msgId").starts_with("7F00000100002A9F"), "{answer:?}");
            offset += 1;
        }
    }
    let expected = (b"body".to_vec(), "UNIQ_KEY\u{1}u\u{2}CLUSTER\u{1}DefaultCluster\u{2}TAGS\u{1}a".to_owned());
    assert_eq!(stored(&broker, 1), vec![expected; 4]);
}

#[test]
fn messages_of_a_batch_keep_their_properties_and_get_those_of_the_batch() {
    let broker = broker();
    let body =
        batch(&[(0, b"one", "UNIQ_KEY\u{1}1"), (0, b"", ""), (0, b"three", "TAGS\u{1}a\u{2}UNIQ_KEY\u{1}3\u{2}")]);
    let answer = broker.connect().ask(SEND_BATCH, &short("T", 2, "WAIT\u{1}true"), &body);
    assert_eq!((answer.code, field(&answer, "queueOffset"), field(&answer, "queueId")), (0, "0", "2"));
    let ids: Vec<&str> = field(&answer, "msgId").split(',').collect();
    assert_eq!((ids.len(), ids[0]), (3, "7F00000100002A9F0000000000000000"));
    let common = "CLUSTER\u{1}DefaultCluster\u{2}WAIT\u{1}true";
    let expected = [
        (b"one".to_vec(), format!("UNIQ_KEY\u{1}1\u{2}{common}")),
        (b"".to_vec(), common.to_owned()),
        (b"three".to_vec(), format!("TAGS\u{1}a\u{2}UNIQ_KEY\u{1}3\u{2}{common}")),
    ];
    assert_eq!(stored(&broker, 2), expected);
}

#[test]
fn what_is_no_batch_is_refused_whole() {
    let broker = broker_with(
        |options| options.max_message_size = 100,
        AppendOptions { max_message_size: 100, ..Default::default() },
    );
    let whole = batch(&[(0, b"one", ""), (0, b"two", "")]);
    let large = batch(&[(0, b"one", ""), (0, &[0; 101], "")]);
    let mut peer = broker.connect();
    for body in [&b""[..], b"x", &whole[..whole.len() - 1], &[&whole[..], b"\0"].concat(), &large] {
        let answer = peer.ask(SEND_BATCH, &short("T", 0, ""), body);
        assert_eq!((answer.code, answer.remark.as_deref()), (13, Some(ILLEGAL)), "{body:?}");
    }
    assert_eq!(broker.plane.state().bounds("T", 0), (0, 0));
}

#[test]
fn a_batch_does_not_go_to_who_tries_again() {
    let broker = broker();
    broker.plane.state().tables.put_topic("%RETRY%g", RW);
    let mut peer = broker.connect();
    peer.send(SEND_BATCH, &short("%RETRY%g", 0, ""), &batch(&[(0, b"a", "")]));
    let Some(Event::Request(request, answer)) = broker.control.take(PATIENCE) else { panic!("no request") };
    broker.plane.handle_again(&request, &answer, None);
    let answer = peer.next(PATIENCE).expect("an answer");
    let remark = Some("batch request does not support retry group %RETRY%g");
    assert_eq!((answer.code, answer.remark.as_deref()), (13, remark));
}

#[test]
fn refusals_say_what_java_says() {
    let broker = broker_with(
        |options| options.max_message_size = 100,
        AppendOptions { max_message_size: 100, ..Default::default() },
    );
    let tables = &broker.plane.state().tables;
    let forbidden = [
        "SCHEDULE_TOPIC_XXXX",
        "RMQ_SYS_TRANS_HALF_TOPIC",
        "RMQ_SYS_TRANS_OP_HALF_TOPIC",
        "TRANS_CHECK_MAX_TIME_TOPIC",
        "SELF_TEST_TOPIC",
        "OFFSET_MOVED_EVENT",
    ];
    let mut peer = broker.connect();
    let mut refused = |fields, body: &[u8]| {
        let answer = peer.ask(SEND_V2, &fields, body);
        assert!(answer.fields.is_empty(), "{answer:?}");
        (answer.code, answer.remark.unwrap_or_default())
    };
    for topic in forbidden {
        tables.put_topic(topic, RW);
        let remark = format!("Sending message to topic[{topic}] is forbidden.");
        assert_eq!(refused(short(topic, 0, ""), b"x"), (16, remark));
    }
    assert_eq!(refused(short("T", 0, ""), &[0; 101]), (13, ILLEGAL.into()));
    let long = format!("a\u{1}{}", "b".repeat(32_767));
    assert_eq!(refused(short("T", 0, &long), b"x"), (13, ILLEGAL.into()));
    let (code, remark) = refused(short("T", 4, ""), b"x");
    let described = "TopicConfig [topicName=T, readQueueNums=4, writeQueueNums=4, perm=RW-, topicFilterType=SINGLE_TAG, topicSysFlag=0, order=false]";
    assert_eq!(code, 1);
    assert!(
        remark.starts_with(&format!("request queueId[4] is illegal, {described} Producer: 127.0.0.1:")),
        "{remark}"
    );
    let missing: Vec<_> = short("T", 0, "").into_iter().filter(|(name, _)| *name != "g").collect();
    assert_eq!(refused(missing, b"x").0, 1);
    assert_eq!(refused(with(short("T", 0, ""), "e", Value::Text("x")), b"x").0, 1);
    tables.set_permission(4);
    tables.put_topic("ordered", Topic { is_ordered: true, ..RW });
    assert_eq!(
        refused(short("ordered", 0, ""), b"x"),
        (16, "the broker[127.0.0.1] sending message is forbidden".into())
    );
    assert_eq!(broker.connect().put(0, "", b"x").code, 0, "only ordered topics are closed");
}

#[test]
fn a_broker_may_refuse_transactions_and_begin_late() {
    let broker = broker_with(|options| options.settings.rejects_transactions = true, AppendOptions::default());
    let answer = broker.connect().ask(SEND_V2, &short("T", 0, "TRAN_MSG\u{1}true"), b"x");
    let remark = "the broker[127.0.0.1] sending transaction message is forbidden";
    assert_eq!((answer.code, answer.remark.as_deref()), (16, Some(remark)));
    let broker = broker_with(|options| options.settings.accepts_sends_from = i64::MAX, AppendOptions::default());
    let answer = broker.connect().ask(SEND_V2, &short("T", 0, ""), b"x");
    let remark = format!("broker unable to service, until {}", i64::MAX);
    assert_eq!((answer.code, answer.remark), (1, Some(remark)));
}

#[test]
fn a_store_that_takes_nothing_says_how_full_the_disk_is() {
    let broker = broker();
    broker.plane.state().set_disk_usage("CL:  0.93");
    broker.appender.close().expect("closed");
    let answer = broker.connect().ask(SEND_V2, &short("T", 0, ""), b"x");
    assert_eq!((answer.code, answer.remark.as_deref()), (14, Some(NOT_AVAILABLE)));
    let answer = broker.connect().ask(SEND_BATCH, &short("T", 0, ""), &batch(&[(0, b"a", "")]));
    assert_eq!((answer.code, answer.remark.as_deref()), (14, Some(NOT_AVAILABLE)));
}

#[test]
fn a_half_message_waits_in_its_own_topic_and_bits_of_hosts_are_the_brokers_own() {
    let broker = broker();
    let fields = with(short("T", 3, "TRAN_MSG\u{1}true\u{2}PGROUP\u{1}p"), "f", Value::Number(4 | 16 | 32));
    let answer = broker.connect().ask(SEND_V2, &fields, b"half");
    assert_eq!((answer.code, field(&answer, "queueId"), broker.plane.state().bounds("T", 3)), (0, "3", (0, 0)));
    let plain = with(short("T", 3, ""), "f", Value::Number(16 | 32 | 1));
    assert_eq!(broker.connect().ask(SEND_V2, &plain, b"plain").code, 0);
    assert_eq!(stored(&broker, 3), [(b"plain".to_vec(), "CLUSTER\u{1}DefaultCluster".to_owned())]);
    broker.plane.state().tables.put_topic("RMQ_SYS_TRANS_HALF_TOPIC", RW);
    let half = with(pull(0, 0, 4), "topic", Value::Text("RMQ_SYS_TRANS_HALF_TOPIC"));
    let (body, properties) = records(&broker.connect().ask(PULL, &half, b"").body).remove(0);
    assert_eq!(body, b"half");
    for part in ["REAL_TOPIC\u{1}T", "REAL_QID\u{1}3", "PGROUP\u{1}p"] {
        assert!(properties.contains(part), "{properties:?}");
    }
}

#[test]
fn any_queue_is_one_that_is_written_and_tags_may_be_many() {
    let broker = broker();
    broker.plane.state().tables.put_topic("T", Topic { write_queues: 2, is_multi_tag: true, ..RW });
    let mut peer = broker.connect();
    let mut queues: Vec<String> =
        (0..20).map(|_| field(&peer.ask(SEND_V2, &short("T", -1, ""), b"x"), "queueId").to_owned()).collect();
    queues.sort();
    queues.dedup();
    assert_eq!(queues, ["0", "1"]);
    let answer = peer.ask(PULL, &pull(0, 0, 4), b"");
    let record = rmqfast_store::format::message::Message::decode(&answer.body).expect("a record");
    assert_eq!(record.layout().sys_flag & 2, 2);
}

#[test]
fn what_has_to_be_made_first_goes_to_the_control_plane_and_back() {
    let broker = broker();
    let mut peer = broker.connect();
    peer.send(SEND_V2, &short("new", 0, ""), b"x");
    let Some(Event::Request(request, answer)) = broker.control.take(PATIENCE) else { panic!("no request") };
    assert_eq!((request.code, request.body.as_slice()), (SEND_V2, &b"x"[..]));
    broker.plane.handle_again(&request, &answer, None);
    let refused = peer.next(PATIENCE).expect("an answer");
    assert_eq!(refused.code, 1, "nobody made the topic");
    broker.plane.state().tables.put_topic("new", RW);
    broker.plane.handle_again(&request, &answer, Some(("T", 3)));
    let sent = peer.next(PATIENCE).expect("an answer");
    assert_eq!((sent.code, field(&sent, "queueId"), stored(&broker, 3).len()), (0, "3", 1));
    for code in [34, 999, i32::from(i16::MIN)] {
        peer.send(code, &Vec::new(), b"");
        let mut events = std::iter::from_fn(|| broker.control.take(PATIENCE));
        assert!(events.any(|event| matches!(event, Event::Request(asked, _) if asked.code == code)));
    }
}

#[test]
fn too_many_requests_for_the_control_plane_are_told_so() {
    let broker = broker();
    let overload = (2, Some("[OVERLOAD]system busy, start flow control for a while".to_owned()));
    let mut peers: Vec<_> = (0..5).map(|_| broker.connect()).collect();
    let mut fill = |each: usize, body: &[u8]| {
        for peer in &mut peers[..4] {
            for _ in 0..each {
                peer.send(999, &Vec::new(), body);
            }
            let answer = peer.ask(999, &Vec::new(), body);
            assert_eq!((answer.code, answer.remark), overload, "a connection has a quarter");
        }
        let answer = peers[4].ask(999, &Vec::new(), body);
        assert_eq!((answer.code, answer.remark), overload, "all is full");
        peers[4].put(0, "", b"the data plane goes on");
        (0..100).filter(|_| broker.control.take(Duration::ZERO).is_some()).count()
    };
    assert_eq!(fill(25, b""), 100);
    let large = vec![0; 4 << 20];
    for peer in &mut peers[..4] {
        for _ in 0..16 {
            peer.send(999, &Vec::new(), &large);
        }
    }
    until("all of them wait", || broker.control.len() == 64);
    let answer = peers[4].ask(999, &Vec::new(), &large);
    assert_eq!((answer.code, broker.control.len()), (2, 64), "memory is counted, too");
    let answer = peers[4].ask(999, &Vec::new(), &vec![0; 5 << 20]);
    assert_eq!(answer.remark.as_deref(), Some("body: expected at most 4194304 bytes, got 5242880"));
}

#[test]
fn one_way_requests_are_done_without_an_answer() {
    let broker = broker();
    let mut peer = broker.connect();
    for fields in [short("T", 0, ""), short("T", 99, ""), Vec::new()] {
        peer.write(&Header { flag: ONEWAY, ..Header::request(SEND_V2, 77, &fields) }, b"x");
    }
    peer.write(&Header { flag: ONEWAY, ..Header::request(PULL, 78, &pull(0, 0, COMMIT | SUSPEND)) }, b"");
    broker.subscribe("g", ("TAG", "*"), 9, &[]);
    peer.write(&Header { flag: ONEWAY, ..Header::request(PULL, 79, &pull(1, 0, SUSPEND)) }, b"");
    // each of these answers is the next frame that comes
    peer.put(2, "", b"behind them");
    assert_eq!(broker.plane.state().bounds("T", 0), (0, 1));
    broker.wait_parked(1);
    peer.put(1, "", b"wakes the held one");
    broker.wait_parked(0);
    peer.put(2, "", b"last");
}

/// Keeps the disk from being done.
#[derive(Default)]
struct Gate {
    is_shut: Mutex<bool>,
    changed: Condvar,
}

impl Watcher for Gate {
    fn before(&self, call: Call, _: &Path) -> std::io::Result<()> {
        if call == Call::Sync {
            let shut = self.is_shut.lock().expect("no panic");
            drop(self.changed.wait_while(shut, |shut| *shut).expect("no panic"));
        }
        Ok(())
    }

    fn after(&self, _: Call, _: &Path) {}
}

#[test]
fn a_send_that_waits_for_the_disk_is_answered_once_the_disk_has_it() {
    let broker = broker_with(|_| {}, sync());
    let gate = Arc::new(Gate { is_shut: Mutex::new(true), ..Gate::default() });
    let _watch = disk::watch(broker.path(), gate.clone());
    let mut peer = broker.connect();
    let opaque = peer.send(SEND_V2, &short("T", 0, "WAIT\u{1}true"), b"waits");
    let batched = peer.send(SEND_BATCH, &short("T", 0, ""), &batch(&[(0, b"waits, too", "")]));
    until("both are there: who reads need not wait", || broker.plane.state().bounds("T", 0) == (0, 2));
    let careless = peer.send(SEND_V2, &short("T", 0, "WAIT\u{1}false"), b"does not");
    assert_eq!(peer.next(PATIENCE).expect("an answer").opaque, careless);
    *gate.is_shut.lock().expect("no panic") = false;
    gate.changed.notify_all();
    for (number, offset) in [(opaque, "0"), (batched, "1")] {
        let answer = peer.next(PATIENCE).expect("an answer");
        assert_eq!((answer.code, answer.opaque, field(&answer, "queueOffset")), (0, number, offset));
    }
}

/// Starts the broker as a `SYNC_MASTER`.
fn sync_master(timeout: Duration, append: AppendOptions) -> Broker {
    let sync_replication = Some(SyncReplication { timeout, most_behind: 10_000 });
    broker_with(|options| options.sync_replication = sync_replication, append)
}

/// The number of its connection.
const SLAVE: u64 = 7;

#[test]
fn a_send_to_a_sync_master_is_answered_by_what_its_slave_has() {
    let broker = sync_master(Duration::from_millis(30), AppendOptions::default());
    let mut peer = broker.connect();
    let replicas = &broker.plane.state().replicas;
    let mut code = |properties, size| peer.ask(SEND_V2, &short("T", 0, properties), &vec![0; size]).code;
    assert_eq!(code("", 1), response::SLAVE_NOT_AVAILABLE, "nobody is there");
    replicas.on_report(SLAVE, Some(0));
    assert_eq!(code("", 1), response::FLUSH_SLAVE_TIMEOUT);
    assert_eq!(code("", 10_000), response::SLAVE_NOT_AVAILABLE, "so far behind is no slave");
    assert_eq!(code("WAIT\u{1}false", 1), 0, "a producer that does not want to wait");
    replicas.on_report(SLAVE, Some(u64::MAX));
    let answer = peer.ask(SEND_V2, &short("T", 0, ""), b"body");
    assert_eq!((answer.code, field(&answer, "queueOffset")), (0, "4"), "each of them was stored");
    let batch = batch(&[(0, b"one", ""), (0, b"two", "")]);
    assert_eq!(peer.ask(SEND_BATCH, &short("T", 1, ""), &batch).code, 0);
    replicas.gone(SLAVE);
    let answer = peer.ask(SEND_BATCH, &short("T", 1, ""), &batch);
    assert_eq!((answer.code, field(&answer, "queueOffset")), (response::SLAVE_NOT_AVAILABLE, "2"));
}

/// Returns once the sends of this peer wait for their slave: a later request is answered behind them.
fn assert_wait(peer: &mut Peer) {
    assert_eq!(peer.ask(PULL, &pull(0, 0, 4), b"").code, 0);
}

#[test]
fn a_send_is_answered_once_the_slave_reports_it_and_others_go_on_meanwhile() {
    let broker = sync_master(PATIENCE, AppendOptions::default());
    let (mut peer, state) = (broker.connect(), broker.plane.state());
    state.replicas.on_report(SLAVE, Some(0));
    let numbers: Vec<i32> = (0..3).map(|_| peer.send(SEND_V2, &short("T", 0, ""), b"body")).collect();
    assert_wait(&mut peer);
    // the slave is gone, and whoever asks now waits for nobody: not for those that wait, either
    state.replicas.gone(SLAVE);
    assert_eq!(broker.connect().ask(SEND_V2, &short("T", 1, ""), b"").code, response::SLAVE_NOT_AVAILABLE);
    let size = state.live.log_bounds().1 / 4;
    for (number, end) in numbers.into_iter().zip(1..) {
        assert!(peer.next(Duration::from_millis(1)).is_none());
        state.replicas.on_report(SLAVE, Some(end * size + 20));
        let answer = peer.next(PATIENCE).expect("an answer");
        assert_eq!((answer.opaque, answer.code), (number, 0));
    }
}

#[test]
fn a_send_that_waits_for_both_says_what_the_disk_lacks_and_only_then_what_the_slave_lacks() {
    let broker = sync_master(Duration::from_millis(30), sync());
    let gate = Arc::new(Gate { is_shut: Mutex::new(true), ..Gate::default() });
    let replicas = &broker.plane.state().replicas;
    replicas.on_report(SLAVE, Some(0));
    let mut peer = broker.connect();
    {
        let _watch = disk::watch(broker.path(), gate.clone());
        let number = peer.send(SEND_V2, &short("T", 0, ""), b"body");
        // longer than a slave is waited for: its time begins when the disk has the message
        assert!(peer.next(Duration::from_millis(100)).is_none());
        replicas.on_report(SLAVE, Some(u64::MAX));
        *gate.is_shut.lock().expect("no panic") = false;
        gate.changed.notify_all();
        let answer = peer.next(PATIENCE).expect("an answer");
        assert_eq!((answer.opaque, answer.code), (number, 0));
    }
    replicas.on_report(SLAVE, Some(0));
    assert_eq!(peer.ask(SEND_V2, &short("T", 0, ""), b"body").code, response::FLUSH_SLAVE_TIMEOUT);
    replicas.gone(SLAVE);
    assert_eq!(peer.ask(SEND_V2, &short("T", 0, ""), b"body").code, response::SLAVE_NOT_AVAILABLE);
    assert_eq!(broker.appender.flushed_offset(), broker.appender.live().log_bounds().1);
}

#[test]
fn sends_that_the_disk_got_together_wait_for_the_slave_together() {
    // each for itself, they would wait longer than this test does
    let broker = sync_master(PATIENCE / 50, sync());
    let gate = Arc::new(Gate { is_shut: Mutex::new(true), ..Gate::default() });
    broker.plane.state().replicas.on_report(SLAVE, Some(0));
    let mut peer = broker.connect();
    let _watch = disk::watch(broker.path(), gate.clone());
    // the first holds the disk, the others come meanwhile
    for _ in 0..60 {
        peer.send(SEND_V2, &short("T", 0, ""), b"x");
    }
    until("they are stored", || broker.plane.state().bounds("T", 0) == (0, 60));
    *gate.is_shut.lock().expect("no panic") = false;
    gate.changed.notify_all();
    for _ in 0..60 {
        assert_eq!(peer.next(PATIENCE).expect("an answer").code, response::FLUSH_SLAVE_TIMEOUT);
    }
}

#[test]
fn the_end_of_a_sync_master_waits_for_no_slave() {
    let broker = sync_master(PATIENCE, AppendOptions::default());
    let state = broker.plane.state();
    state.replicas.on_report(SLAVE, Some(0));
    let mut peer = broker.connect();
    peer.send(SEND_V2, &short("T", 0, ""), b"body");
    assert_wait(&mut peer);
    broker.plane.close();
    assert_eq!(peer.next(PATIENCE).expect("an answer").code, response::FLUSH_SLAVE_TIMEOUT);
    // one that comes too late to be waited for is answered, too
    assert_eq!(peer.ask(SEND_V2, &short("T", 0, ""), b"body").code, response::FLUSH_SLAVE_TIMEOUT);
}

#[test]
fn header_fields_of_any_kind_are_answered() {
    let broker = broker();
    broker.plane.state().tables.put_group("", GROUP);
    let mut peer = broker.connect();
    let values = [
        "",
        "x",
        "-1",
        "2147483648",
        "9223372036854775807",
        "-9223372036854775808",
        "1e3",
        "\0",
        "\u{1}",
        "%RETRY%../x",
        "../x",
    ];
    for (code, fields) in [(SEND_V2, short("T", 0, "")), (SEND, long("T", 0, "")), (PULL, pull(0, 0, 4))] {
        for (name, _) in &fields {
            for value in values {
                let changed = with(fields.clone(), name, Value::Text(value));
                let opaque = peer.send(code, &changed, b"body");
                let handed_over = loop {
                    if let Some(answer) = peer.next(Duration::from_millis(20)) {
                        assert_eq!(answer.opaque, opaque);
                        break false;
                    }
                    if let Some(Event::Request(..)) = broker.control.take(Duration::ZERO) {
                        break true;
                    }
                };
                let asks_for_names = matches!(*name, "b" | "topic" | "consumerGroup");
                assert!(!handed_over || asks_for_names, "{code} {name} {value:?}");
            }
        }
    }
}
