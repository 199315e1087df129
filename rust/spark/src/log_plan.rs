//! Which brokers' logs are read in place of pulls, and how their stretches are cut into pieces.
//!
//! A log has everything: the topics of others, what was rolled back, and the messages of topics that were deleted. The plan asks for
//! the first and the last message of each range, and so knows the stretch that holds all of them, and from where on it lists each
//! queue. What a log does not tell, or not to everybody, goes by pulls.
use crate::error::Error;
use crate::log_part::LogPart;
use crate::topic_piece::TopicPiece;
use crate::via::{Via, Way};
use rmqfast_client::cluster::{Bounds, Found, TopicCluster};
use rmqfast_client::puller::Queue;
use rmqfast_client::ranges::{QueueRange, RangeRequest};
use rmqfast_remoting::Interrupt;
use rmqfast_replication::{LogStretch, Sends, Source};
use std::collections::BTreeMap;

/// Connections to the HA port of a broker, one a piece: each has two threads and a megabyte there.
const MOST_PIECES: u64 = 4;
/// Bytes of a piece at least, as it takes a connection; and of what `auto` reads out of a log.
const PIECE_BYTES: u64 = 64 << 20;
/// Places at which the queues of a read are looked for, at most: a place is searched for in each queue.
const MOST_SEARCHES: usize = 256;
/// What a pulled message costs, broker and reader together, in nanoseconds: a message, and a byte of it. Then what a byte of a log
/// costs. Measured with 4.9.4: docs/benchmarks.md.
const PULLED_MESSAGE: f64 = 825.0;
const PULLED_BYTE: f64 = 0.68;
const LOG_BYTE: f64 = 0.77;

/// What of a read comes out of logs, and what is left to pulls.
#[derive(Debug, Default)]
pub struct LogPlan {
    /// Pieces of logs.
    pub pieces: Vec<TopicPiece>,
    /// Ranges that are pulled.
    pub pulled: Vec<QueueRange>,
    /// What was decided for each broker.
    pub ways: Vec<Way>,
}

/// Plans the ranges of a read.
pub struct LogPlanner<'a> {
    /// Whom to ask.
    pub cluster: &'a TopicCluster,
    /// What is read.
    pub request: &'a RangeRequest,
    /// What was asked for.
    pub via: Via,
    /// What was decided before.
    pub ways: Option<&'a [Way]>,
    /// Pieces at least, as far as there may be so many.
    pub min_pieces: i64,
    /// Why nothing of the read may come out of a log, if so.
    pub refusal: Option<String>,
}

/// Why a broker's log is not read.
enum Why {
    /// It is pulled, for this reason.
    Pulled(String),
    /// Nothing is read.
    Failed(Error),
}

/// A range, its first and its last message.
struct Ends {
    range: QueueRange,
    first: Found,
    last: Found,
}

impl LogPlanner<'_> {
    /// Decides for each broker of `ranges`.
    ///
    /// # Errors
    /// Those of `interrupt`. A broker that does not answer, or refuses, is left to pulls, which tell what that means.
    pub fn plan(
        &self,
        ranges: Vec<QueueRange>,
        address_of: impl Fn(&str) -> Option<String>,
        interrupt: Interrupt<'_>,
    ) -> Result<LogPlan, Error> {
        let mut by_broker: BTreeMap<String, Vec<QueueRange>> = BTreeMap::new();
        for range in ranges {
            by_broker.entry(range.queue.broker_name.to_string()).or_default().push(range);
        }
        let mut plan = LogPlan::default();
        for (broker_name, ranges) in by_broker {
            let pulled_because = match self.pieces(&broker_name, &ranges, interrupt) {
                Ok(pieces) => {
                    let address = address_of(&broker_name);
                    plan.pieces
                        .extend(pieces.into_iter().map(|piece| TopicPiece { address: address.clone(), ..piece }));
                    None
                }
                Err(Why::Pulled(reason)) => {
                    plan.pulled.extend(ranges);
                    Some(reason)
                }
                Err(Why::Failed(error)) => return Err(error),
            };
            plan.ways.push(Way { broker_name, pulled_because });
        }
        Ok(plan)
    }

    /// Pieces of a broker's log.
    fn pieces(
        &self,
        broker_name: &str,
        ranges: &[QueueRange],
        interrupt: Interrupt<'_>,
    ) -> Result<Vec<TopicPiece>, Why> {
        self.refusal.clone().map_or(Ok(()), |reason| Err(Why::Pulled(reason)))?;
        let decided = self.ways.and_then(|ways| ways.iter().find(|way| way.broker_name == broker_name));
        if let Some(reason) = decided.and_then(|way| way.pulled_because.clone()) {
            return Err(Why::Pulled(reason));
        }
        let Some(any) = ranges.first() else { return Ok(Vec::new()) };
        let source = self.source(&any.queue, interrupt)?;
        self.check_topics(ranges, interrupt)?;
        let ends = self.ends(ranges, interrupt)?;
        let stretch = stretch_of(source, &ends);
        if self.via == Via::Auto && decided.is_none() {
            if self.min_pieces.unsigned_abs() > MOST_PIECES {
                return Err(pulled(format!("minPartitions is more than the {MOST_PIECES} connections to a log")));
            }
            check_cost(&stretch, &ends)?;
        }
        self.cut(&stretch, &ends, interrupt)
    }

    /// Where the broker serves its log, if everybody may read that.
    fn source(&self, queue: &Queue, interrupt: Interrupt<'_>) -> Result<Source, Why> {
        let (address, config) = self.cluster.broker_config(queue, interrupt)?;
        let has_acl = ["aclEnable", "authenticationEnabled", "authorizationEnabled"]
            .iter()
            .any(|name| config.get(*name).is_some_and(|value| value.trim() == "true"));
        if has_acl {
            return Err(pulled("it has ACLs, and its log has the topics of everybody"));
        }
        let source = Source::of_config(&config, &address).map_err(Why::Pulled)?;
        match source.sends {
            Sends::NeverWait => Ok(source),
            Sends::WaitForConnections | Sends::WaitForReports => {
                Err(pulled("it is a SYNC_MASTER: who reads its log may count as a slave, for which sends wait"))
            }
        }
    }

    fn check_topics(&self, ranges: &[QueueRange], interrupt: Interrupt<'_>) -> Result<(), Why> {
        let topics: BTreeMap<&str, &Queue> = ranges.iter().map(|range| (&*range.queue.topic, &range.queue)).collect();
        for (topic, queue) in topics {
            if self.cluster.is_listed_otherwise(queue, interrupt)? {
                return Err(pulled(format!("its log does not tell what {topic} has: a topic of another kind")));
            }
        }
        Ok(())
    }

    fn ends(&self, ranges: &[QueueRange], interrupt: Interrupt<'_>) -> Result<Vec<Ends>, Why> {
        let firsts = ranges.iter().map(|range| (range.queue.clone(), range.start));
        let lasts = ranges.iter().map(|range| (range.queue.clone(), range.end - 1));
        let places: Vec<(Queue, i64)> = firsts.chain(lasts).collect();
        let found = self.cluster.messages(&places, &self.request.puller.consumer_group, interrupt)?;
        let (firsts, lasts) = found.split_at(ranges.len());
        let ends = ranges.iter().zip(firsts.iter().zip(lasts)).map(|(range, (first, last))| match (first, last) {
            (Some(first), Some(last)) if first.is_own && last.is_own => {
                Ok(Ends { range: range.clone(), first: *first, last: *last })
            }
            (Some(_), Some(_)) => {
                Err(pulled(format!("{}: its messages are records of other queues", range.queue.topic)))
            }
            _ => Err(pulled(format!("{range}: messages are not there any more"))),
        });
        ends.collect()
    }

    /// Cuts a stretch at records, into parts of about one size, of which each has the offsets of its own.
    fn cut(&self, stretch: &LogStretch, ends: &[Ends], interrupt: Interrupt<'_>) -> Result<Vec<TopicPiece>, Why> {
        let len = stretch.end - stretch.from;
        let wanted = (len / PIECE_BYTES).max(self.min_pieces.unsigned_abs());
        let count = wanted.clamp(1, MOST_PIECES).min((MOST_SEARCHES / ends.len()) as u64 + 1);
        let mut starts: Vec<i64> = ends.iter().map(|ends| ends.range.start).collect();
        let (mut from, mut pieces) = (stretch.from, Vec::new());
        for number in 1..count {
            let near = stretch.from + (u128::from(len) * u128::from(number) / u128::from(count)) as u64;
            let edges = self.offsets_behind(near, ends, interrupt)?;
            let Some(place) = self.first_place(ends, &edges, interrupt)? else { break };
            pieces.extend(piece(stretch, (from, place), ends, &starts, &edges));
            (from, starts) = (place, edges);
        }
        let edges: Vec<i64> = ends.iter().map(|ends| ends.range.end).collect();
        pieces.extend(piece(stretch, (from, stretch.end), ends, &starts, &edges));
        Ok(pieces)
    }

    /// Where the first of the messages at offsets of ranges stands; none where all are at their ends.
    fn first_place(&self, ends: &[Ends], edges: &[i64], interrupt: Interrupt<'_>) -> Result<Option<u64>, Why> {
        let left = ends.iter().zip(edges).filter(|(ends, edge)| **edge < ends.range.end);
        let places: Vec<(Queue, i64)> = left.map(|(ends, edge)| (ends.range.queue.clone(), *edge)).collect();
        let found = self.cluster.messages(&places, &self.request.puller.consumer_group, interrupt)?;
        Ok(found.into_iter().flatten().map(|found| found.physical_offset.cast_unsigned()).min())
    }

    /// The first offset of each range at a place of the log or behind it.
    fn offsets_behind(&self, place: u64, ends: &[Ends], interrupt: Interrupt<'_>) -> Result<Vec<i64>, Why> {
        let ranges: Vec<(Queue, Bounds, i64)> = ends.iter().map(|ends| ends.near(place)).collect();
        let group = &self.request.puller.consumer_group;
        Ok(self.cluster.offsets_behind(place.cast_signed(), &ranges, group, interrupt)?)
    }
}

impl Ends {
    /// Where to begin to look for a place: messages of a queue stand about equally far from each other.
    fn near(&self, place: u64) -> (Queue, Bounds, i64) {
        let QueueRange { queue, start, end } = &self.range;
        let (first, last) = (self.first.physical_offset, self.last.physical_offset);
        let (part, whole) = (place.cast_signed() - first, (last - first).max(1));
        let hint = i128::from(*start) + i128::from(end - start) * i128::from(part) / i128::from(whole);
        (queue.clone(), (*start, *end), hint.clamp((*start).into(), (*end).into()) as i64)
    }
}

impl From<rmqfast_client::Error> for Why {
    fn from(error: rmqfast_client::Error) -> Self {
        match error {
            rmqfast_client::Error::Remoting(rmqfast_remoting::Error::Interrupted) => Self::Failed(error.into()),
            error => Self::Pulled(error.to_string()),
        }
    }
}

fn pulled(reason: impl Into<String>) -> Why {
    Why::Pulled(reason.into())
}

/// The stretch from the first message of all to the last one.
fn stretch_of(source: Source, ends: &[Ends]) -> LogStretch {
    let Source { addresses, file_size, max_record, .. } = source;
    let from = ends.iter().map(|ends| ends.first.physical_offset.cast_unsigned()).min().unwrap_or_default();
    let end = ends.iter().map(|ends| ends.last.physical_offset.cast_unsigned() + u64::from(ends.last.len)).max();
    LogStretch { addresses, file_size, max_record, from, end: end.unwrap_or_default() }
}

/// A log has everything, so it costs less only where the messages are much of it.
fn check_cost(stretch: &LogStretch, ends: &[Ends]) -> Result<(), Why> {
    let len = stretch.end.saturating_sub(stretch.from);
    if len < PIECE_BYTES {
        return Err(pulled("it is little"));
    }
    let messages: f64 = ends.iter().map(|ends| (ends.range.end - ends.range.start) as f64).sum();
    let bytes: f64 = ends
        .iter()
        .map(|ends| {
            (ends.range.end - ends.range.start) as f64 * (f64::from(ends.first.len) + f64::from(ends.last.len)) / 2.0
        })
        .sum();
    let share = bytes / len as f64;
    let record = bytes / messages;
    let least = record * LOG_BYTE / (PULLED_MESSAGE + record * PULLED_BYTE);
    if share < least {
        let percent = |share: f64| (100.0 * share).round();
        let text = format!("the messages are {} % of its log, which pays from {} % on", percent(share), percent(least));
        return Err(pulled(text));
    }
    Ok(())
}

/// The piece with the offsets between `starts` and `edges`, which stand between two places of the log; none where there is no offset.
fn piece(
    stretch: &LogStretch,
    (from, end): (u64, u64),
    ends: &[Ends],
    starts: &[i64],
    edges: &[i64],
) -> Option<TopicPiece> {
    let (mut ranges, mut since) = (Vec::new(), Vec::new());
    for (ends, (start, edge)) in ends.iter().zip(starts.iter().zip(edges)) {
        if start < edge {
            ranges.push(QueueRange { queue: ends.range.queue.clone(), start: *start, end: *edge });
            since.push(from.max(ends.first.physical_offset.cast_unsigned()));
        }
    }
    // what stands before the first message of all is of no use
    let from = since.iter().copied().min()?;
    let stretch = LogStretch { from, end, ..stretch.clone() };
    Some(TopicPiece { address: None, ranges, goes_on: false, log: Some(LogPart { stretch, since }) })
}
