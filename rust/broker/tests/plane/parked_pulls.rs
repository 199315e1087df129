//! Pulls that wait: for a message that matches, for their time, for nobody.
use crate::broker::{OWN, PULL, Peer, SUSPEND, broker, broker_with, field, pull, records, with};
use rmqfast_remoting::{SerializeType, Value};
use rmqfast_store::format::java::tags_code;
use rmqfast_store::store::append::AppendOptions;
use rmqfast_waiting::{PATIENCE, until};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

#[test]
fn a_message_that_matches_wakes_and_another_does_not() {
    let broker = broker();
    broker.subscribe("g", ("TAG", "a"), 9, &[tags_code(Some("a")) as i32]);
    let (mut tags, mut sql, mut other) = (broker.connect(), broker.connect(), broker.connect());
    tags.serialize_type = SerializeType::RocketMq;
    let opaque = tags.send(PULL, &pull(0, 0, SUSPEND), b"");
    let own = with(pull(0, 0, OWN | SUSPEND), "subscription", Value::Text("n = 2"));
    sql.send(PULL, &with(own, "expressionType", Value::Text("SQL92")), b"");
    broker.wait_parked(2);
    other.put(0, "TAGS\u{1}b\u{2}n\u{1}1", b"for neither");
    other.put(1, "TAGS\u{1}a\u{2}n\u{1}2", b"another queue");
    other.put(0, "TAGS\u{1}a", b"a");
    // what woke it before would have been answered before
    let woken = tags.next(PATIENCE).expect("woken");
    assert_eq!((woken.opaque, woken.code, woken.serialize_type), (opaque, 0, SerializeType::Json));
    assert_eq!((records(&woken.body).len(), field(&woken, "nextBeginOffset")), (1, "2"));
    other.put(0, "n\u{1}2", b"2");
    assert_eq!(records(&sql.next(PATIENCE).expect("woken").body)[0].0, b"2");
}

#[test]
fn a_round_answers_who_is_behind_with_what_there_is() {
    let broker = broker();
    broker.subscribe("g", ("TAG", "a"), 9, &[tags_code(Some("a")) as i32]);
    let mut waiting = broker.connect();
    waiting.send(PULL, &pull(0, 0, SUSPEND), b"");
    broker.wait_parked(1);
    broker.plane.check_parked_pulls();
    assert_eq!(broker.plane.state().parked_pulls.len(), 1, "nothing came");
    broker.connect().put(0, "TAGS\u{1}b", b"b");
    broker.plane.check_parked_pulls();
    let answer = waiting.next(PATIENCE).expect("an answer");
    assert_eq!((answer.code, field(&answer, "nextBeginOffset")), (20, "1"));
}

#[test]
fn a_pull_is_held_as_long_as_it_says_or_a_short_while() {
    const WAIT: Duration = Duration::from_millis(100);
    const HOUR: Duration = Duration::from_secs(3600);
    // whoever waits for the other one waits in vain
    for (long_polling, long, short) in [(true, WAIT, HOUR), (false, HOUR, WAIT)] {
        let broker = broker_with(
            |o| (o.settings.long_polling, o.settings.short_polling) = (long_polling, short),
            AppendOptions::default(),
        );
        let mut waiting = broker.connect();
        let began = Instant::now();
        let time = Value::Number(long.as_millis() as i64);
        waiting.send(PULL, &with(pull(0, 0, OWN | SUSPEND), "suspendTimeoutMillis", time), b"");
        broker.wait_parked(1);
        until("it is let go", || {
            broker.plane.check_parked_pulls();
            broker.plane.state().parked_pulls.len() == 0
        });
        let answer = waiting.next(PATIENCE).expect("an answer");
        assert!(began.elapsed() >= WAIT, "{:?}", began.elapsed());
        assert_eq!((answer.code, answer.remark.as_deref()), (19, Some("NO_MESSAGE_IN_QUEUE")));
        assert_eq!(broker.plane.state().parked_pulls.len(), 0);
    }
    let broker = broker();
    for time in [i64::MIN, -1, 0, i64::MAX] {
        broker.connect().send(PULL, &with(pull(0, 0, OWN | SUSPEND), "suspendTimeoutMillis", Value::Number(time)), b"");
    }
    broker.plane.check_parked_pulls();
}

#[test]
fn a_pull_of_who_is_gone_is_let_go() {
    let broker = broker();
    let mut gone = broker.connect();
    gone.send(PULL, &pull(0, 0, OWN | SUSPEND), &[1; 1 << 20]);
    broker.wait_parked(1);
    drop(gone);
    until("it is let go", || {
        broker.plane.check_parked_pulls();
        broker.plane.state().parked_pulls.len() == 0
    });
    broker.connect().put(0, "", b"nobody waits");
}

#[test]
fn thousands_may_wait_and_each_is_answered_once() {
    let broker = broker();
    let mut peers: Vec<Peer> = (0..50).map(|_| broker.connect()).collect();
    for peer in &mut peers {
        for n in 0..100 {
            peer.send(PULL, &pull(n % 4, 0, OWN | SUSPEND), b"");
        }
    }
    broker.wait_parked(5000);
    (0..4).for_each(|queue_id| drop(broker.connect().put(queue_id, "", b"x")));
    for peer in &mut peers {
        let mut opaques: Vec<i32> = (0..100)
            .map(|_| {
                let answer = peer.next(PATIENCE).expect("an answer");
                assert_eq!((answer.code, records(&answer.body).len()), (0, 1));
                answer.opaque
            })
            .collect();
        opaques.sort_unstable();
        assert_eq!(opaques, (1..=100).collect::<Vec<_>>());
    }
    assert_eq!(broker.plane.state().parked_pulls.len(), 0);
}

/// Nobody calls `check_parked_pulls`: who is not woken by the message itself would wait in vain.
#[test]
fn who_begins_to_wait_while_a_message_comes_does_not_miss_it() {
    const ROUNDS: i64 = 1000;
    let broker = broker();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for queue_id in 0..2 {
            let (mut consumer, mut producer, is_over) = (broker.connect(), broker.connect(), &is_over);
            let (ask, asked) = std::sync::mpsc::channel::<i64>();
            scope.spawn(move || {
                for n in 0..ROUNDS {
                    ask.send(n).expect("the producer lives");
                    consumer.send(PULL, &pull(queue_id, n, OWN | SUSPEND), b"");
                    let answer = consumer.next(PATIENCE);
                    if answer.is_none() {
                        is_over.store(true, Ordering::SeqCst);
                    }
                    assert_eq!(answer.expect("a message was missed").code, 0, "{n}");
                }
            });
            scope.spawn(move || {
                while let Ok(n) = asked.recv()
                    && !is_over.load(Ordering::SeqCst)
                {
                    // a little sooner, a little later than the pull
                    std::hint::black_box((0..n % 64 * 200).fold(0, |sum, n| std::hint::black_box(sum + n)));
                    producer.put(queue_id, "", &n.to_be_bytes());
                }
            });
        }
    });
    assert_eq!(broker.plane.state().parked_pulls.len(), 0);
}
