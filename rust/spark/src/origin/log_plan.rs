//! Decides which brokers' logs are read, instead of pulling the brokers' messages. Cuts these logs into pieces.
//!
//! A log also has messages of other topics, of rolled-back transactions and of deleted topics. The plan asks the broker
//! for the first and the last message of each range. Their physical offsets bound the part of the log that must be
//! read, and tell from where on the log lists each queue. Queues whose messages the log does not show, or shows only to
//! some accounts, are pulled.
use crate::error::Error;
use crate::origin::log_source::{LogSource, Refusal, log_sources, pull_because};
use crate::origin::piece::{LogPart, TopicPiece};
use crate::origin::{BrokerWay, Via};
use rmqfast_client::cluster::{Bounds, FoundMessage, TopicCluster};
use rmqfast_client::puller::Queue;
use rmqfast_client::ranges::{QueueRange, RangeRequest};
use rmqfast_replication::{LogStretch, Source};
use std::collections::BTreeMap;

/// Maximum connections of one read to a broker's HA port. Each piece needs a connection, which costs the broker two
/// threads and a megabyte.
const MOST_PIECES: u64 = 4;
/// Minimum bytes of a piece, since each piece needs a connection. With `via=auto`, smaller reads are pulled.
const PIECE_BYTES: u64 = 64 << 20;
/// Maximum number of times that one plan asks a broker for the offset at a position of its log.
const MOST_SEARCHES: usize = 256;
/// Estimated time that broker and reader together need for a pulled message, in nanoseconds. The next two values are
/// for a pulled byte, and for a byte of a log. From the figures of RocketMQ 4.9.4 in docs/benchmarks.md.
const PULLED_MESSAGE: f64 = 1100.0;
const PULLED_BYTE: f64 = 1.1;
const LOG_BYTE: f64 = 0.8;

/// The pieces that read logs, and the ranges that are pulled.
#[derive(Debug, Default)]
pub struct LogPlan {
    pub pieces: Vec<TopicPiece>,
    pub pulled: Vec<QueueRange>,
    pub ways: Vec<BrokerWay>,
}

/// Plans which brokers' logs are read for the queue ranges of a read.
pub struct LogPlanner<'a> {
    pub cluster: &'a TopicCluster,
    pub request: &'a RangeRequest,
    pub via: &'a Via,
    /// Decisions of an earlier plan of the same read. This plan follows them.
    pub ways: Option<&'a [BrokerWay]>,
    /// Minimum number of pieces. A small backlog may give fewer pieces.
    pub min_pieces: i64,
    /// The reason why no log can be read, so that all brokers are pulled from; `None` if logs can be read.
    pub refusal: Option<String>,
}

/// A range with its first and last message.
struct Ends {
    range: QueueRange,
    first: FoundMessage,
    last: FoundMessage,
}

/// A position at which a log is cut: the first message after it, and for each range the first offset after it.
struct Cut {
    message: FoundMessage,
    offsets: Vec<i64>,
}

impl LogPlanner<'_> {
    /// Decides for each broker whether its log is read or its messages are pulled.
    ///
    /// # Errors
    /// An interrupt. A broker that does not answer or refuses is left to pulls, which report the error.
    pub fn plan(&self, ranges: Vec<QueueRange>, address_of: impl Fn(&str) -> Option<String>) -> Result<LogPlan, Error> {
        let mut by_broker: BTreeMap<String, Vec<QueueRange>> = BTreeMap::new();
        for range in ranges {
            by_broker.entry(range.queue.broker_name.to_string()).or_default().push(range);
        }
        // each broker contributes its share of the minimum
        let min_pieces = self.min_pieces.unsigned_abs().div_ceil((by_broker.len() as u64).max(1));
        let mut plan = LogPlan::default();
        for (broker_name, ranges) in by_broker {
            let pulled_because = match self.pieces(&broker_name, &ranges, min_pieces) {
                Ok(pieces) => {
                    let address = address_of(&broker_name);
                    let pieces = pieces.into_iter().map(|piece| TopicPiece { address: address.clone(), ..piece });
                    plan.pieces.extend(pieces);
                    None
                }
                Err(Refusal::Pulled(reason)) => {
                    plan.pulled.extend(ranges);
                    Some(reason)
                }
                Err(Refusal::Failed(error)) => return Err(error),
            };
            plan.ways.push(BrokerWay { broker_name, pulled_because });
        }
        Ok(plan)
    }

    /// Returns the pieces of a broker's log, or the reason to pull.
    fn pieces(&self, broker_name: &str, ranges: &[QueueRange], min_pieces: u64) -> Result<Vec<TopicPiece>, Refusal> {
        // an earlier decision holds, so that all plans of a read agree
        let mut decided = self.ways.into_iter().flatten().filter(|way| way.broker_name == broker_name);
        let decided = decided.find_map(|way| way.pulled_because.clone());
        if let Some(reason) = self.refusal.clone().or(decided) {
            return Err(Refusal::Pulled(reason));
        }
        if *self.via == Via::Auto && min_pieces > MOST_PIECES {
            return Err(pull_because(format!("minPartitions is more than {MOST_PIECES} connections to a log give")));
        }
        let Some(any) = ranges.first() else { return Ok(Vec::new()) };
        let sources = log_sources(self.cluster, &any.queue)?;
        self.check_topics(ranges)?;
        let ends = self.ends(ranges)?;
        let (from, end) = stretch_of(&ends);
        let Source { addresses, file_size, max_record, .. } = self.first_that_reaches(end, sources)?;
        let stretch = LogStretch { addresses, file_size, max_record, from, end };
        if *self.via == Via::Auto {
            let messages = ends.iter().map(Ends::count).fold(0, i64::saturating_add);
            check_cost(stretch.end - stretch.from, messages, ends.iter().map(Ends::bytes).sum())?;
        }
        let len = stretch.end - stretch.from;
        let count = (len / PIECE_BYTES).max(min_pieces).clamp(1, MOST_PIECES);
        // each cut searches every queue, and a search takes a dozen requests
        let count = count.min((MOST_SEARCHES / ends.len()) as u64 + 1);
        self.cut(&stretch, &ends, count)
    }

    /// Returns the first source whose log reaches `end`. The log of a slave may be shorter than its master's.
    fn first_that_reaches(&self, end: u64, sources: Vec<LogSource>) -> Result<Source, Refusal> {
        let mut refusal = pull_because("nobody serves its log");
        for log in sources {
            match log.check_reaches(end, self.cluster) {
                Ok(()) => return Ok(log.source),
                Err(Refusal::Failed(error)) => return Err(Refusal::Failed(error)),
                // the next source may reach further
                Err(behind) => refusal = behind,
            }
        }
        Err(refusal)
    }

    fn check_topics(&self, ranges: &[QueueRange]) -> Result<(), Refusal> {
        let queues: BTreeMap<&str, &Queue> = ranges.iter().map(|range| (&*range.queue.topic, &range.queue)).collect();
        let queues: Vec<Queue> = queues.into_values().cloned().collect();
        let answers = self.cluster.are_listed_otherwise(&queues)?;
        match queues.iter().zip(answers).find(|(_, is_otherwise)| *is_otherwise) {
            Some((Queue { topic, .. }, _)) => {
                Err(pull_because(format!("its log does not tell what {topic} has: a topic of another kind")))
            }
            None => Ok(()),
        }
    }

    fn ends(&self, ranges: &[QueueRange]) -> Result<Vec<Ends>, Refusal> {
        let firsts = ranges.iter().map(|range| (range.queue.clone(), range.start));
        let lasts = ranges.iter().map(|range| (range.queue.clone(), range.end - 1));
        let messages = self.find_messages(&firsts.chain(lasts).collect::<Vec<_>>())?;
        let (firsts, lasts) = messages.split_at(ranges.len());
        let ends = ranges.iter().zip(firsts.iter().zip(lasts)).map(|(range, (first, last))| {
            let ends = Ends { range: range.clone(), first: *first, last: *last };
            if ends.is_sound() {
                Ok(ends)
            } else {
                Err(pull_because(format!("{range}: its messages are not in order")))
            }
        });
        ends.collect()
    }

    /// Cuts a part of the log into at most `count` pieces of similar size. Each cut is at the start of a message. Each
    /// piece gets the ranges of queue offsets that its part of the log contains.
    fn cut(&self, stretch: &LogStretch, ends: &[Ends], count: u64) -> Result<Vec<TopicPiece>, Refusal> {
        let Some(first) = ends.iter().map(|ends| ends.first).min_by_key(|first| first.physical_offset) else {
            return Ok(Vec::new());
        };
        let mut from = Cut { message: first, offsets: ends.iter().map(|ends| ends.range.start).collect() };
        let mut pieces = Vec::new();
        for number in 1..count {
            let len = u128::from(stretch.end - stretch.from);
            let near = stretch.from + (len * u128::from(number) / u128::from(count)) as u64;
            let Some(to) = self.cut_near(near, ends, &from)? else { break };
            pieces.extend(piece(stretch, to.message.physical_offset.cast_unsigned(), ends, &from, &to.offsets));
            from = to;
        }
        let last: Vec<i64> = ends.iter().map(|ends| ends.range.end).collect();
        pieces.extend(piece(stretch, stretch.end, ends, &from, &last));
        Ok(pieces)
    }

    /// Returns the cut at the first message of the ranges whose physical offset is `near` or higher. `None` if all
    /// messages are before `near`.
    fn cut_near(&self, near: u64, ends: &[Ends], from: &Cut) -> Result<Option<Cut>, Refusal> {
        let ranges: Vec<(Queue, Bounds, i64)> = ends.iter().map(|ends| ends.near(near)).collect();
        let group = &self.request.puller.consumer_group;
        let offsets = self.cluster.offsets_behind(near.cast_signed(), &ranges, group)?;
        // offsets must not decrease from one cut to the next
        if offsets.iter().zip(&from.offsets).any(|(to, from)| to < from) {
            return Err(pull_because("its queues changed while they were looked at"));
        }
        let unfinished = ends.iter().zip(&offsets).filter(|(ends, offset)| **offset < ends.range.end);
        let places: Vec<(Queue, i64)> = unfinished.map(|(ends, offset)| (ends.range.queue.clone(), *offset)).collect();
        let messages = self.find_messages(&places)?;
        let message = messages.into_iter().min_by_key(|message| message.physical_offset);
        Ok(message.map(|message| Cut { message, offsets }))
    }

    /// Returns the messages at offsets of queues. If a message is missing, returns the reason to pull instead.
    fn find_messages(&self, places: &[(Queue, i64)]) -> Result<Vec<FoundMessage>, Refusal> {
        let messages = self.cluster.messages(places, &self.request.puller.consumer_group)?;
        let messages = places.iter().zip(messages).map(|((queue, offset), message)| match message {
            Some(message) if message.is_own => Ok(message),
            Some(_) => Err(pull_because(format!("{}: its messages are records of other queues", queue.topic))),
            None => Err(pull_because(format!("{}: the message {offset} is not there any more", queue.topic))),
        });
        messages.collect()
    }
}

impl Ends {
    /// Returns whether the positions of the two messages in the log are possible: the last message is not before the
    /// first.
    fn is_sound(&self) -> bool {
        let (first, last) = (self.first.physical_offset, self.last.physical_offset);
        (0..=last).contains(&first) && last.checked_add(self.last.len.into()).is_some()
    }

    fn count(&self) -> i64 {
        self.range.end - self.range.start
    }

    /// Estimates the bytes of the range's messages from the sizes of the first and the last message.
    fn bytes(&self) -> f64 {
        self.count() as f64 * (f64::from(self.first.len) + f64::from(self.last.len)) / 2.0
    }

    /// Returns the queue, the bounds of its range, and an estimate of the queue offset at the physical offset `place`.
    /// The estimate assumes that the queue's messages are spread evenly over the log.
    fn near(&self, place: u64) -> (Queue, Bounds, i64) {
        let QueueRange { queue, start, end } = &self.range;
        let (first, last) = (self.first.physical_offset, self.last.physical_offset);
        let (part, whole) = (place.cast_signed() - first, (last - first).max(1));
        let hint = i128::from(*start) + i128::from(end - start) * i128::from(part) / i128::from(whole);
        (queue.clone(), (*start, *end), hint.clamp((*start).into(), (*end).into()) as i64)
    }
}

/// Returns the part of the log that contains all messages of the ranges, as the physical offsets of its start and end.
fn stretch_of(ends: &[Ends]) -> (u64, u64) {
    let from = ends.iter().map(|ends| ends.first.physical_offset.cast_unsigned()).min().unwrap_or_default();
    let end = ends.iter().map(|ends| ends.last.physical_offset.cast_unsigned() + u64::from(ends.last.len)).max();
    (from, end.unwrap_or(from))
}

/// Refuses to read `len` bytes of the log if this costs more than pulling `messages` messages with `bytes` bytes in
/// all.
fn check_cost(len: u64, messages: i64, bytes: f64) -> Result<(), Refusal> {
    if len < PIECE_BYTES {
        return Err(pull_because("it is little"));
    }
    let (share, record) = (bytes / len as f64, bytes / messages as f64);
    let least = record * LOG_BYTE / (PULLED_MESSAGE + record * PULLED_BYTE);
    if share < least {
        let percent = |share: f64| (100.0 * share).round();
        let text = format!("the messages are {} % of its log, which pays from {} % on", percent(share), percent(least));
        return Err(pull_because(text));
    }
    Ok(())
}

/// Returns the piece from the cut `from` to the physical offset `end`, where `to` are the queue offsets of the ranges.
/// `None` if no range has a message in this part of the log.
fn piece(stretch: &LogStretch, end: u64, ends: &[Ends], from: &Cut, to: &[i64]) -> Option<TopicPiece> {
    let place = from.message.physical_offset.cast_unsigned();
    let (mut ranges, mut begins) = (Vec::new(), Vec::new());
    for (ends, (start, end)) in ends.iter().zip(from.offsets.iter().zip(to)) {
        if start < end {
            ranges.push(QueueRange { queue: ends.range.queue.clone(), start: *start, end: *end });
            begins.push((*start, place.max(ends.first.physical_offset.cast_unsigned())));
        }
    }
    let stretch = LogStretch { from: place, end, ..stretch.clone() };
    // lets the task recognize a log that is not the planned one
    let first = (from.message.store_timestamp, from.message.body_crc);
    let log = Some(LogPart { stretch, first, begins });
    (!ranges.is_empty()).then_some(TopicPiece { address: None, ranges, goes_on: false, log, copy: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(len: u64, messages: i64, record: i64) -> Option<String> {
        match check_cost(len, messages, (messages * record) as f64) {
            Ok(()) => None,
            Err(Refusal::Pulled(reason)) => Some(reason),
            Err(Refusal::Failed(error)) => Some(error.to_string()),
        }
    }

    #[test]
    fn a_log_pays_where_the_messages_are_much_of_it() {
        let million = 1_000_000;
        assert_eq!(reason(1 << 20, 1000, 1000), Some("it is little".to_owned()));
        assert_eq!(reason(1_200_000_000, million, 1100), None);
        assert_eq!(reason(700_000_000, million, 240), None);
        let text = "the messages are 28 % of its log, which pays from 38 % on";
        assert_eq!(reason(4_000_000_000, million, 1100), Some(text.to_owned()));
        let text = "the messages are 12 % of its log, which pays from 14 % on";
        assert_eq!(reason(2_000_000_000, million, 240), Some(text.to_owned()));
    }

    #[test]
    fn messages_that_are_not_in_order_are_no_stretch() {
        let at =
            |physical_offset| FoundMessage { physical_offset, store_timestamp: 0, len: 100, body_crc: 0, is_own: true };
        let queue = Queue { topic: "t".into(), broker_name: "b".into(), queue_id: 0 };
        let sound = |first, last| {
            let range = QueueRange { queue: queue.clone(), start: 0, end: 10 };
            Ends { range, first: at(first), last: at(last) }.is_sound()
        };
        assert!(sound(0, 0) && sound(5, 900));
        assert!(!sound(-1, 5) && !sound(6, 5) && !sound(0, i64::MAX) && !sound(1, i64::MIN));
    }
}
