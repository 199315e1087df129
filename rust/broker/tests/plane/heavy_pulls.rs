//! Pulls by filters that cost much: they wait for a thread of their own, and too many are refused.
use crate::broker::{Broker, Fields, OWN, PULL, Peer, broker, pull, records, with};
use rmqfast_broker::response;
use rmqfast_remoting::Value;
use rmqfast_waiting::{PATIENCE, until};

/// Bytes of an expression, nearly the most there may be, and how many of them are more than may wait.
const SIZE: usize = (4 << 20) - 100;
const TOO_MANY: usize = 24;

/// The `number`th of expressions that a message with `n` = 1 matches; none is like another one, so each is compiled.
fn large_filter(number: usize) -> String {
    let names = "'some name', ".repeat(SIZE / 13);
    format!("m IN ({names}'{number}') OR n = 1")
}

fn by_filter(expression: &str) -> Fields<'_> {
    with(with(pull(0, 0, OWN), "subscription", Value::Text(expression)), "expressionType", Value::Text("SQL92"))
}

/// Asks for as many as cannot wait together; how many are refused.
fn refused_of_many(peer: &mut Peer, expressions: &[String]) -> usize {
    for expression in expressions {
        peer.send(PULL, &by_filter(expression), b"");
    }
    let refusal = "[OVERLOAD]too many pulls by large filters wait, start flow control for a while";
    let mut refused = 0;
    for _ in expressions {
        let answer = peer.next(PATIENCE).expect("an answer");
        if answer.code == response::SYSTEM_BUSY {
            assert_eq!(answer.remark.as_deref(), Some(refusal));
            refused += 1;
        } else {
            assert_eq!((answer.code, records(&answer.body).len()), (0, 1));
        }
    }
    refused
}

#[test]
fn pulls_by_large_filters_beyond_what_may_wait_are_refused_and_later_ones_are_answered() {
    let broker: Broker = broker();
    broker.connect().put(0, "n\u{1}1", b"one");
    let mut peer = broker.connect();
    let expressions: Vec<_> = (0..TOO_MANY).map(large_filter).collect();
    // a thread that is as fast as they come has room for each
    until("one is refused", || refused_of_many(&mut peer, &expressions) > 0);
    let answer = peer.ask(PULL, &by_filter(&expressions[0]), b"");
    assert_eq!((answer.code, records(&answer.body).len()), (0, 1));
}
