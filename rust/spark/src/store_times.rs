//! When the last message before an offset was stored. A topic that was deleted and made again has other messages at its offsets, and
//! this tells one from the other.
//!
//! A checkpoint has the times of a broker's queues as the name of a member without queues, below the broker's topic: releases that do
//! not know it read a broker of which there is no offset, and pass it over.
use rmqfast_client::puller::Queue;
use std::collections::BTreeMap;
use std::fmt::Write;

/// When the message before a stream's offset was stored, in milliseconds, of queues of which that is known.
pub type StoreTimes = BTreeMap<Queue, i64>;

/// Between the name of the broker and its times.
const MARK: &str = " stored ";

/// The name of the member that has the times of a broker's queues: `broker-a stored 0:1700000000000 1:1700000000001`.
pub fn member_name(broker_name: &str, times: impl IntoIterator<Item = (i32, i64)>) -> String {
    let mut name = format!("{broker_name}{MARK}");
    for (number, (queue_id, time)) in times.into_iter().enumerate() {
        let _ = write!(name, "{}{queue_id}:{time}", if number == 0 { "" } else { " " });
    }
    name
}

/// The broker and the times that the name of a member says; `None` of the name of a broker.
pub fn of_member_name(name: &str) -> Option<(&str, Vec<(i32, i64)>)> {
    let (broker_name, times) = name.rsplit_once(MARK)?;
    let time = |text: &str| {
        let (queue_id, time) = text.split_once(':')?;
        Some((queue_id.parse().ok()?, time.parse().ok()?))
    };
    Some((broker_name, times.split(' ').map(time).collect::<Option<_>>()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_come_back_from_the_name_of_their_member() {
        for broker in ["broker-a", "a stored b", "a stored 0:7", ""] {
            let name = member_name(broker, [(0, 1_700_000_000_000), (17, -5)]);
            assert_eq!(of_member_name(&name), Some((broker, vec![(0, 1_700_000_000_000), (17, -5)])), "{name}");
        }
        assert_eq!(member_name("broker-a", [(0, 5), (1, 7)]), "broker-a stored 0:5 1:7");
    }

    #[test]
    fn the_name_of_a_broker_has_no_times() {
        for name in ["broker-a", " stored ", "a stored b", "a stored 0:1 ", "a stored 0:x", "a stored 4294967296:1"] {
            assert_eq!(of_member_name(name), None, "{name}");
        }
    }
}
