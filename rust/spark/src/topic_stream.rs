//! The stream of topics: tasks read its batches as those of a batch read do.
use crate::admission::{Admission, StreamBounds, StreamOffsets};
use crate::checkpoint::{topic_offsets, topic_text};
use crate::error::{Error, Result};
use crate::lag::Lag;
use crate::stream::{Level, Limits, Log, Stream};
use crate::topic_piece::TopicPiece;
use crate::topic_read::TopicRead;
use rmqfast_client::cluster::TopicCluster;
use rmqfast_client::puller::Queue;
use rmqfast_client::ranges::QueueRange;
use rmqfast_remoting::Interrupt;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// For how long bounds tell which queues there are.
const FRESH: Duration = Duration::from_secs(1);

/// A stream of topics. Its offsets are `{"topic": {"broker": {"0": 23}}}`: the next offset of each queue.
///
/// Source: `RocketMQSource` of rocketmq-spark, `KafkaMicroBatchStream` of Spark.
#[derive(Debug)]
pub struct TopicStream {
    read: TopicRead,
    cluster: TopicCluster,
    /// Topics that were there once.
    seen: BTreeSet<String>,
    /// Where brokers are, or were last.
    addresses: BTreeMap<String, String>,
    target: Option<StreamBounds>,
    /// What `latest` was told, and when.
    told: Option<(Duration, StreamBounds)>,
    /// Where queues are that tasks without an end do not read.
    unread: StreamOffsets,
    admission: Admission,
    lag: Lag,
    log: Log,
    began: Instant,
}

impl TopicStream {
    /// A stream of what `read` says; its end is not looked at. Nobody is asked yet.
    ///
    /// # Errors
    /// There is no name server.
    pub fn new(read: TopicRead) -> Result<Self> {
        let request = &read.request;
        Ok(Self {
            cluster: read.open_cluster()?,
            admission: Admission::new(read.topics.to_string(), request.patience, request.is_strict),
            seen: BTreeSet::new(),
            addresses: BTreeMap::new(),
            target: None,
            told: None,
            unread: StreamOffsets::new(),
            lag: Lag::default(),
            log: Log::default(),
            began: Instant::now(),
            read,
        })
    }

    /// Where the queues begin and end now, of the topics that there are now. With `is_patient` those of brokers that are away
    /// are missing.
    fn bounds(&mut self, is_patient: bool, interrupt: Interrupt<'_>) -> Result<StreamBounds> {
        let Self { read, cluster, seen, addresses, log, .. } = self;
        let away =
            |what: &str, error: &dyn std::fmt::Display| format!("{what}: its route is not to be had now: {error}");
        // a topic whose only broker is away is one that name servers do not know
        let spares = |topic: &str, error: &rmqfast_client::Error| {
            let is_spared = is_patient && seen.contains(topic);
            log.warn(is_spared.then(|| away(&format!("topic {topic}"), error)));
            is_spared
        };
        let found = read.topics.find(cluster, None, spares, interrupt);
        log.warn(cluster.take_warnings());
        let mut found = match found {
            Ok(found) => found,
            // nobody could say which topics match
            Err(Error::Client(error)) if is_patient && !seen.is_empty() && !is_interrupt(&error) => {
                log.warn([away(&read.topics.to_string(), &error)]);
                return Ok(StreamBounds::new());
            }
            Err(error) => return Err(error),
        };
        // a broker that is away keeps its last address: its tasks wait there
        addresses.extend(found.addresses);
        seen.extend(found.queues.iter().map(|queue| queue.topic.clone()));
        read.keep(&mut found.queues, !is_patient)?;
        let bounds = cluster.bounds(&found.queues, is_patient, interrupt);
        log.warn(cluster.take_warnings());
        Ok(bounds?.into_iter().collect())
    }

    fn limits(&self, is_limited: bool) -> Limits {
        match (is_limited, &self.target) {
            (false, _) => Limits::default(),
            // Trigger.AvailableNow would never end if it waited for more
            (true, Some(_)) => Limits { least: None, ..self.read.limits },
            (true, None) => self.read.limits,
        }
    }

    fn now(&self) -> Duration {
        self.began.elapsed()
    }

    fn offsets(&self, text: &str) -> Result<StreamOffsets> {
        topic_offsets(&self.read.topics, text)
    }
}

impl Stream for TopicStream {
    fn initial(&mut self, interrupt: Interrupt<'_>) -> Result<String> {
        // a queue that is missing here would begin at its first message later, not where the option says
        let bounds = self.bounds(false, interrupt)?;
        let (offsets, warnings) = self.read.initial(&self.cluster, bounds.into_iter().collect(), interrupt)?;
        self.log.warn(warnings);
        Ok(topic_text(&offsets.into_iter().collect()))
    }

    fn aim(&mut self, interrupt: Interrupt<'_>) -> Result<()> {
        self.target = Some(self.bounds(false, interrupt)?);
        Ok(())
    }

    fn latest(&mut self, start: Option<&str>, is_limited: bool, interrupt: Interrupt<'_>) -> Result<String> {
        let start = start.map(|text| self.offsets(text)).transpose()?;
        let bounds = match &self.target {
            Some(target) => target.clone(),
            // where Spark does not say where the stream was, no queue may be missing
            None => self.bounds(start.is_some(), interrupt)?,
        };
        let now = self.now();
        self.lag.see(&bounds, now);
        self.told = Some((now, bounds.clone()));
        let Some(start) = start else {
            return Ok(topic_text(&bounds.into_iter().map(|(queue, (_, last))| (queue, last)).collect()));
        };
        self.lag.forget(&start);
        let end = self.admission.end(&start, &bounds, self.limits(is_limited), now, &mut self.log)?;
        Ok(topic_text(&end))
    }

    fn report(&self) -> Option<String> {
        let ends = self.lag.ends();
        (!ends.is_empty()).then(|| topic_text(&ends))
    }

    fn pieces(&mut self, start: &str, end: &str, interrupt: Interrupt<'_>) -> Result<Vec<Vec<u8>>> {
        let (mut start, end) = (self.offsets(start)?, self.offsets(end)?);
        if end.keys().any(|queue| !start.contains_key(queue)) {
            // where Spark did not say where the stream was
            for (queue, (first, _)) in self.bounds(true, interrupt)? {
                start.entry(queue).or_insert(first);
            }
        }
        let ranges = end.into_iter().filter_map(|(queue, end)| {
            let start = *start.get(&queue)?;
            (start < end).then_some(QueueRange { queue, start, end })
        });
        // from the offsets alone: Spark may plan a batch more than once, and must get the same tasks
        let mut pieces = TopicPiece::cut(ranges.collect(), self.read.max_rows, self.read.min_pieces, |broker| {
            self.addresses.get(broker).cloned()
        });
        let mut parts: BTreeMap<Queue, usize> = BTreeMap::new();
        for range in pieces.iter().flat_map(|piece| &piece.ranges) {
            *parts.entry(range.queue.clone()).or_default() += 1;
        }
        // not the parts of a queue that was cut: the next batch may cut it elsewhere
        for piece in &mut pieces {
            piece.goes_on = piece.ranges.iter().all(|range| parts.get(&range.queue) == Some(&1));
        }
        Ok(pieces.iter().map(TopicPiece::to_bytes).collect())
    }

    fn endless_pieces(&mut self, start: &str, most: usize, interrupt: Interrupt<'_>) -> Result<Vec<Vec<u8>>> {
        let mut start = self.offsets(start)?;
        // Spark has just asked for the latest offsets, and until the tasks begin nobody reads
        let told = self.told.take().filter(|(at, _)| self.now() - *at < FRESH);
        let bounds = match told {
            Some((_, bounds)) => bounds,
            None => self.bounds(true, interrupt)?,
        };
        for (queue, (first, _)) in bounds {
            start.entry(queue).or_insert(first);
        }
        // queues that options do not ask for any more stay where they are
        let mut asked: Vec<Queue> = start.keys().cloned().collect();
        self.read.keep(&mut asked, false)?;
        let asked = BTreeSet::from_iter(asked);
        (start, self.unread) = start.into_iter().partition(|(queue, _)| asked.contains(queue));
        // Spark would run batches of no tasks one after the other, as fast as it can
        if start.is_empty() {
            return Err(Error::argument(format!("Real-Time Mode: {}: there is none now", self.read.topics)));
        }
        let pieces = TopicPiece::endless(start, most, |broker| self.addresses.get(broker).cloned());
        Ok(pieces.iter().map(TopicPiece::to_bytes).collect())
    }

    fn merged(&self, offsets: &[String]) -> Result<String> {
        let mut all = self.unread.clone();
        for text in offsets {
            all.extend(self.offsets(text)?);
        }
        Ok(topic_text(&all))
    }

    fn commit(&mut self, end: &str, interrupt: Interrupt<'_>) -> Result<()> {
        let offsets: Vec<_> = self.offsets(end)?.into_iter().collect();
        let Some(group) = self.read.commit_group.as_ref().filter(|_| !offsets.is_empty()) else { return Ok(()) };
        let committed = self.cluster.commit(group, &offsets, interrupt);
        self.log.warn(self.cluster.take_warnings());
        match committed {
            Err(error) if is_interrupt(&error) => Err(error.into()),
            // the checkpoint has the offsets: those of the group are for people to look at
            Err(error) => {
                self.log.warn([format!("group {group}: no offset is stored: {error}")]);
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    fn metrics(&self, consumed: Option<&str>) -> Result<Vec<(String, String)>> {
        let consumed = consumed.map(|text| self.offsets(text)).transpose()?;
        Ok(consumed.map(|consumed| self.lag.metrics(&consumed, self.now())).unwrap_or_default())
    }

    fn take_log(&mut self) -> Vec<(Level, String)> {
        // of a question that failed
        self.log.warn(self.cluster.take_warnings());
        self.log.take()
    }

    fn close(&mut self) {
        self.cluster.close();
    }
}

fn is_interrupt(error: &rmqfast_client::Error) -> bool {
    matches!(error, rmqfast_client::Error::Remoting(rmqfast_remoting::Error::Interrupted))
}
