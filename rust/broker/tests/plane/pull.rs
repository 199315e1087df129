//! Pulls: each check in its order, what is given, how far a group is.
use crate::broker::{
    Broker, COMMIT, Fields, GROUP, OWN, PULL, RW, SUSPEND, broker, broker_with, field, pull, records, with,
};
use rmqfast_broker::{Group, Settings, Subscription, Topic, response};
use rmqfast_remoting::{SerializeType, Value};
use rmqfast_store::format::java::tags_code;
use rmqfast_store::store::append::AppendOptions;
use rmqfast_store::store::pull::GetLimits;
use rmqfast_waiting::PATIENCE;

const FAQ: &str = "\nSee http://rocketmq.apache.org/docs/faq/ for further details.";
const LITE_PULL: i32 = 361;

fn asked(broker: &Broker, fields: &Fields<'_>) -> (i32, String) {
    let answer = broker.connect().ask(PULL, fields, b"");
    (answer.code, answer.remark.unwrap_or_default())
}

/// Each check has one of its own that fails behind it: what is mended step by step shows the next.
#[test]
fn checks_come_in_javas_order_with_javas_words() {
    let broker = broker_with(|options| options.settings.property_filter = false, AppendOptions::default());
    let tables = &broker.plane.state().tables;
    tables.set_permission(2);
    tables.put_group("g", Group { consume_enable: false, ..GROUP });
    tables.remove_topic("T");
    let fields = with(pull(9, 0, SUSPEND), "subVersion", Value::Number(6));
    let fields = with(fields, "expressionType", Value::Text("SQL92"));
    let check = |fields: &Fields<'_>, code, remark: &str| assert_eq!(asked(&broker, fields), (code, remark.to_owned()));

    check(&fields, 16, "the broker[127.0.0.1] pulling message is forbidden");
    tables.set_permission(6);
    check(&fields, 16, "subscription group no permission, g");
    tables.put_group("g", Group { broadcast_enable: false, ..GROUP });
    check(&fields, 17, &format!("topic[T] not exist, apply first please! {FAQ}"));
    tables.put_topic("T", Topic { perm: 2, ..RW });
    check(&fields, 16, "the topic[T] pulling message is forbidden");
    tables.put_topic("T", RW);
    for queue_id in [4, 9, -1] {
        let (code, remark) = asked(&broker, &with(fields.clone(), "queueId", Value::Number(queue_id)));
        let expected =
            format!("queueId[{queue_id}] is illegal, topic:[T] topicConfig.readQueueNums:[4] consumer:[127.0.0.1:");
        assert!(code == 1 && remark.starts_with(&expected), "{remark}");
    }
    let fields = with(fields, "queueId", Value::Number(0));
    let own = with(with(fields.clone(), "sysFlag", Value::Number(OWN)), "subscription", Value::Text("||"));
    let own = with(own, "expressionType", Value::Text("TAG"));
    check(&own, 23, "parse the consumer's subscription failed");
    check(&fields, 24, &format!("the consumer's group info not exist{FAQ}"));
    tables.put_online("g", true);
    check(&fields, 16, "the consumer group[g] can not consume by broadcast way");
    tables.put_group("g", GROUP);
    check(&fields, 24, &format!("the consumer's subscription not exist{FAQ}"));
    tables.put_subscription("g", "T", Subscription::new("SQL92", "a >", 5, &[]));
    check(&fields, 25, "the consumer's subscription not latest");
    for (filter_type, expression) in [("SQL92", "a >"), ("LUA", "a")] {
        tables.put_subscription("g", "T", Subscription::new(filter_type, expression, 6, &[]));
        check(&fields, 27, "The broker's consumer filter data is not exist!Your expression may be wrong!");
    }
    tables.put_subscription("g", "T", Subscription::new("SQL92", "a > 1", 7, &[]));
    check(&fields, 1, "The broker does not support consumer to filter message by SQL92");
    tables.put_subscription("g", "T", Subscription::new("TAG", "*", 7, &[]));
    check(&with(fields, "sysFlag", Value::Number(0)), 19, "NO_MESSAGE_IN_QUEUE");
}

/// A client raises the version, pulls, and only then tells.
fn early<'a>(offset: i64, version: i64, expression_type: &'a str) -> Fields<'a> {
    let fields = with(pull(0, offset, SUSPEND), "subVersion", Value::Number(version));
    with(fields, "expressionType", Value::Text(expression_type))
}

#[test]
fn an_early_pull_waits_for_its_heartbeat() {
    let broker = broker_with(|options| options.early_pull_wait = PATIENCE, AppendOptions::default());
    broker.subscribe("g", ("SQL92", "n = 1"), 5, &[]);
    let mut peer = broker.connect();
    peer.put(0, "n\u{1}1", b"one");
    peer.serialize_type = SerializeType::RocketMq;
    let opaque = peer.send(PULL, &early(0, 6, "SQL92"), b"");
    peer.put(1, "", b"answered before the pull, which has come");
    broker.subscribe("g", ("SQL92", "n = 1"), 6, &[]);
    let answer = peer.next(PATIENCE).expect("an answer");
    assert_eq!((answer.opaque, answer.code, answer.serialize_type), (opaque, 0, SerializeType::RocketMq));
    assert_eq!(records(&answer.body)[0].0, b"one");
    // at the end of the queue it is parked as any other
    peer.send(PULL, &early(1, 7, "SQL92"), b"");
    broker.subscribe("g", ("SQL92", "n = 1"), 7, &[]);
    broker.wait_parked(1);
}

#[test]
fn an_early_pull_wakes_when_its_group_is_gone_and_not_for_an_older_version() {
    let broker = broker_with(|options| options.early_pull_wait = PATIENCE, AppendOptions::default());
    broker.subscribe("g", ("SQL92", "n = 1"), 5, &[]);
    let mut peer = broker.connect();
    let opaque = peer.send(PULL, &early(0, 7, "SQL92"), b"");
    peer.put(1, "", b"answered before the pull, which has come");
    // had this one woken it, it would be refused as not the latest
    broker.subscribe("g", ("SQL92", "n = 1"), 6, &[]);
    broker.plane.state().tables.remove_online("g");
    let answer = peer.next(PATIENCE).expect("an answer");
    assert_eq!((answer.opaque, answer.code), (opaque, 24), "{answer:?}");
}

/// Java's client leaves a heartbeat out while another one is on its way: the next one comes half a minute later.
#[test]
fn an_early_pull_of_tags_gets_each_message_and_waits_for_no_heartbeat() {
    let of_a = ("TAG", "a", vec![tags_code(Some("a")) as i32]);
    for (kind, text, codes) in [("TAG", "*", vec![]), of_a, ("SQL92", "n = 1", vec![]), ("SQL92", "n =", vec![])] {
        let broker = broker_with(|options| options.early_pull_wait = PATIENCE, AppendOptions::default());
        broker.subscribe("g", (kind, text), 5, &codes);
        let mut peer = broker.connect();
        for tag in ["a", "b"] {
            peer.put(0, &format!("TAGS\u{1}{tag}"), tag.as_bytes());
        }
        let answer = peer.ask(PULL, &early(0, 6, "TAG"), b"");
        assert_eq!((answer.code, records(&answer.body).len()), (0, 2), "{text}");
        let opaque = peer.send(PULL, &early(2, 6, "TAG"), b"");
        broker.wait_parked(1);
        broker.connect().put(0, "TAGS\u{1}c", b"c");
        let woken = peer.next(PATIENCE).expect("woken");
        assert_eq!((woken.opaque, woken.code, records(&woken.body).len()), (opaque, 0, 1), "{text}");
    }
}

#[test]
fn an_early_pull_is_refused_without_a_heartbeat_where_it_does_not_say_that_it_wants_tags() {
    let broker = broker();
    broker.subscribe("g", ("TAG", "*"), 5, &[]);
    let not_latest = (25, "the consumer's subscription not latest".to_owned());
    assert_eq!(asked(&broker, &early(0, 6, "SQL92")), not_latest);
    let unsaid: Vec<_> = early(0, 6, "").into_iter().filter(|(name, _)| *name != "expressionType").collect();
    assert_eq!(asked(&broker, &unsaid), not_latest);
}

#[test]
fn a_group_that_nobody_knows_goes_to_the_control_plane_before_all_checks() {
    let broker = broker();
    broker.plane.state().tables.set_permission(2);
    let mut peer = broker.connect();
    peer.send(PULL, &with(pull(0, 0, OWN), "consumerGroup", Value::Text("unknown")), b"");
    assert!(broker.control.take(PATIENCE).is_some());
    let missing: Vec<_> = pull(0, 0, OWN).into_iter().filter(|(name, _)| *name != "commitOffset").collect();
    assert_eq!(asked(&broker, &missing).0, 1);
}

#[test]
fn every_answer_has_the_four_fields_a_status_and_the_code_for_it() {
    let broker = broker();
    let mut peer = broker.connect();
    let mut answer_to = |offset| {
        let answer = peer.ask(LITE_PULL, &pull(0, offset, OWN), b"");
        let names = ["suggestWhichBrokerId", "nextBeginOffset", "minOffset", "maxOffset"];
        let fields = names.map(|name| field(&answer, name).to_owned()).join(" ");
        (answer.code, answer.remark.unwrap_or_default(), fields, records(&answer.body).len())
    };
    assert_eq!(answer_to(0), (19, "NO_MESSAGE_IN_QUEUE".into(), "0 0 0 0".into(), 0));
    assert_eq!(answer_to(3), (21, "NO_MESSAGE_IN_QUEUE".into(), "0 0 0 0".into(), 0));
    (0..3).for_each(|_| drop(broker.connect().put(0, "", b"x")));
    assert_eq!(answer_to(0), (0, "FOUND".into(), "0 3 0 3".into(), 3));
    assert_eq!(answer_to(3), (19, "OFFSET_OVERFLOW_ONE".into(), "0 3 0 3".into(), 0));
    assert_eq!(answer_to(4), (21, "OFFSET_OVERFLOW_BADLY".into(), "0 3 0 3".into(), 0));
    assert_eq!(answer_to(-1), (21, "OFFSET_TOO_SMALL".into(), "0 0 0 3".into(), 0));
    assert_eq!(answer_to(i64::MIN), (21, "OFFSET_TOO_SMALL".into(), "0 0 0 3".into(), 0));
    assert_eq!(answer_to(i64::MAX), (21, "OFFSET_OVERFLOW_BADLY".into(), "0 3 0 3".into(), 0));
}

#[test]
fn who_reads_what_is_not_in_memory_is_sent_to_a_slave_where_slaves_may_be_read() {
    let broker = broker();
    let state = broker.plane.state();
    let mut peer = broker.connect();
    // the unit behind the last message is looked at, too, as in Java
    for body in [&b"old"[..], &[0; 3000], b"young"] {
        peer.put(0, "", body);
    }
    let mut suggested = |offset, slave_read, broker_id| {
        // all but the last bytes is old
        let limits = GetLimits { memory: 1000, ..state.settings().limits };
        state.set_settings(Settings { slave_read, limits, ..state.settings() });
        state.tables.put_group("g", Group { broker_id, slow_broker_id: 3, ..GROUP });
        let one = with(pull(0, offset, OWN), "maxMsgNums", Value::Number(1));
        field(&peer.ask(PULL, &one, b""), "suggestWhichBrokerId").to_owned()
    };
    assert_eq!([suggested(0, false, 2), suggested(2, false, 2)], ["0", "0"], "slaveReadEnable is off");
    assert_eq!([suggested(0, true, 0), suggested(2, true, 0)], ["3", "0"]);
    assert_eq!([suggested(0, true, 2), suggested(2, true, 2)], ["3", "2"], "the group's own");
}

#[test]
fn a_slave_takes_no_offsets_and_asks_again_where_it_may_be_behind() {
    let broker = broker_with(|options| options.is_slave = true, AppendOptions::default());
    let (mut peer, state) = (broker.connect(), broker.plane.state());
    let mut code = |offset, checks| {
        state.set_settings(Settings { checks_offsets_in_slave: checks, ..state.settings() });
        let answer = peer.ask(PULL, &pull(0, offset, OWN | COMMIT | SUSPEND), b"");
        (answer.code, field(&answer, "nextBeginOffset").to_owned())
    };
    assert_eq!(code(5, false), (response::PULL_RETRY_IMMEDIATELY, "5".into()), "it may be behind");
    assert_eq!(code(5, true), (response::PULL_OFFSET_MOVED, "0".into()));
    assert_eq!(state.offsets.get("g", "T", 0), None);
}

#[test]
fn an_offset_that_was_moved_is_noted_whatever_the_group_is_called() {
    let broker = broker();
    let group = "a\"b\\\n";
    broker.plane.state().tables.put_group(group, GROUP);
    broker.plane.state().tables.put_topic("OFFSET_MOVED_EVENT", RW);
    let mut peer = broker.connect();
    let fields = with(pull(1, 5, OWN), "consumerGroup", Value::Text(group));
    assert_eq!(peer.ask(PULL, &fields, b"").code, 21);
    let events = with(pull(0, 0, OWN), "topic", Value::Text("OFFSET_MOVED_EVENT"));
    let (body, properties) = records(&peer.ask(PULL, &events, b"").body).remove(0);
    let expected = r#"{"consumerGroup":"a\"b\\\n","messageQueue":{"brokerName":"b","queueId":1,"topic":"T"},"offsetNew":0,"offsetRequest":5}"#;
    assert_eq!(String::from_utf8_lossy(&body), expected);
    assert!(properties.contains(&format!("TAGS\u{1}{group}")) && properties.contains(&format!("KEYS\u{1}{group}")));
}

#[test]
fn who_waits_for_such_notes_is_woken_by_one() {
    let broker = broker();
    broker.plane.state().tables.put_topic("OFFSET_MOVED_EVENT", RW);
    let mut waiting = broker.connect();
    waiting.send(PULL, &with(pull(0, 0, OWN | SUSPEND), "topic", Value::Text("OFFSET_MOVED_EVENT")), b"");
    broker.wait_parked(1);
    assert_eq!(asked(&broker, &pull(1, 5, OWN)).0, 21);
    assert_eq!(waiting.next(PATIENCE).expect("an answer").code, 0);
}

#[test]
fn a_pull_gives_no_more_than_it_may_and_one_message_always() {
    let in_memory = GetLimits::of_broker(1 << 40);
    let in_disk = GetLimits { memory: 0, ..in_memory };
    for (limits, count, sized) in [(in_memory, 32, 5), (in_disk, 8, 1)] {
        let broker = broker_with(|options| options.settings.limits = limits, AppendOptions::default());
        let mut peer = broker.connect();
        (0..40).for_each(|_| drop(peer.put(0, "", b"small")));
        (0..8).for_each(|_| drop(peer.put(1, "", &[7; 50_000])));
        peer.put(2, "", &[1; 300_000]);
        peer.put(2, "", b"small");
        let mut count_of = |queue_id, most| {
            let answer = peer.ask(PULL, &with(pull(queue_id, 0, OWN), "maxMsgNums", Value::Number(most)), b"");
            assert_eq!(field(&answer, "nextBeginOffset"), records(&answer.body).len().to_string());
            records(&answer.body).len()
        };
        assert_eq!((count_of(0, 100), count_of(0, 5), count_of(1, 32), count_of(2, 32)), (count, 5, sized, 1));
    }
}

#[test]
fn a_tag_is_looked_for_by_its_code_and_what_the_heartbeat_says_counts() {
    let broker = broker();
    let mut peer = broker.connect();
    for tag in ["Aa", "b", "BB", "c"] {
        peer.put(0, &format!("TAGS\u{1}{tag}"), tag.as_bytes());
    }
    let mut bodies = |fields| {
        let answer = peer.ask(PULL, &fields, b"");
        let bodies: Vec<String> =
            records(&answer.body).into_iter().map(|(b, _)| String::from_utf8(b).expect("text")).collect();
        (answer.code, bodies.join(" "), field(&answer, "nextBeginOffset").to_owned())
    };
    let own = |text| with(pull(0, 0, OWN), "subscription", Value::Text(text));
    assert_eq!(bodies(own("Aa || c")), (0, "Aa BB c".into(), "4".into()), "the two codes are one");
    assert_eq!(bodies(own("none")), (20, String::new(), "4".into()));
    broker.subscribe("g", ("TAG", "b"), 9, &[tags_code(Some("b")) as i32]);
    assert_eq!(bodies(with(pull(0, 0, 0), "subscription", Value::Text("c"))), (0, "b".into(), "4".into()));
}

#[test]
fn properties_are_looked_at_by_sql92() {
    let broker = broker();
    let mut peer = broker.connect();
    for n in 0..5 {
        peer.put(0, &format!("n\u{1}{n}"), n.to_string().as_bytes());
    }
    let mut count = |fields| {
        let answer = peer.ask(PULL, &fields, b"");
        (answer.code, records(&answer.body).len(), field(&answer, "nextBeginOffset").to_owned())
    };
    let own =
        |text| with(with(pull(0, 0, OWN), "subscription", Value::Text(text)), "expressionType", Value::Text("SQL92"));
    assert_eq!(count(own("n > 2")), (0, 2, "5".into()));
    assert_eq!(count(own("m IS NOT NULL")), (20, 0, "5".into()));
    assert_eq!(count(own("n >")), (0, 5, "5".into()), "what does not compile filters nothing");
    broker.subscribe("g", ("SQL92", "n = 1"), 9, &[]);
    assert_eq!(count(pull(0, 0, 0)), (0, 1, "5".into()));
}

#[test]
fn an_offset_is_committed_by_the_first_pass_of_a_pull_that_passed_the_checks() {
    let broker = broker();
    broker.subscribe("g", ("TAG", "*"), 9, &[]);
    let committed = || broker.plane.state().offsets.get("g", "T", 0);
    let mut peer = broker.connect();
    let early = with(pull(0, 0, COMMIT), "subVersion", Value::Number(99));
    assert_eq!(asked(&broker, &with(early, "expressionType", Value::Text("SQL92"))).0, 25);
    assert_eq!((peer.ask(PULL, &pull(0, 0, 0), b"").code, committed()), (19, None));
    assert_eq!((peer.ask(PULL, &pull(0, 0, COMMIT), b"").code, committed()), (19, Some(7)));
    peer.send(PULL, &with(pull(0, 0, COMMIT | SUSPEND), "commitOffset", Value::Number(8)), b"");
    broker.wait_parked(1);
    assert_eq!(committed(), Some(8), "before it is held");
    broker.plane.state().offsets.commit("g", "T", 0, 3);
    broker.connect().put(0, "", b"x");
    assert_eq!((peer.next(PATIENCE).expect("woken").code, committed()), (0, Some(3)));
    assert_eq!(
        (peer.ask(PULL, &with(pull(0, 0, COMMIT), "commitOffset", Value::Number(-1)), b"").code, committed()),
        (0, Some(-1))
    );
}

/// Records of two queues in turns, and records of one, side by side; the log's file is gone before they are read.
#[test]
fn large_answers_are_as_the_log_though_its_file_goes_before_they_are_taken() {
    let limits = GetLimits { count_in_memory: 1024, bytes_in_memory: 8 << 20, ..GetLimits::of_broker(1 << 40) };
    let broker = broker_with(|options| options.settings.limits = limits, AppendOptions::default());
    let body = |queue_id: i64, n: u8| vec![n ^ queue_id as u8; 20_000];
    let mut peer = broker.connect();
    (0..40).for_each(|n| [0, 1].iter().for_each(|queue_id| drop(peer.put(*queue_id, "", &body(*queue_id, n)))));
    (0..40).for_each(|n| drop(peer.put(2, "", &body(2, n))));
    let rounds = 12; // 29 MB, more than sockets take
    for queue_id in (0..3).cycle().take(3 * rounds) {
        peer.send(PULL, &with(pull(queue_id, 0, OWN), "maxMsgNums", Value::Number(1024)), b"");
    }
    let first = peer.next(PATIENCE).expect("an answer");
    std::fs::remove_file(broker.path().join("commitlog/00000000000000000000")).expect("removed");
    for (queue_id, n) in (0..3).cycle().zip(0..3 * rounds) {
        let answer = if n == 0 { first.clone() } else { peer.next(PATIENCE).expect("an answer") };
        let bodies: Vec<_> = records(&answer.body).into_iter().map(|(body, _)| body).collect();
        assert!(answer.code == 0 && bodies == (0..40).map(|n| body(queue_id, n)).collect::<Vec<_>>(), "answer {n}");
    }
}
