//! The stream of a topic: tasks read its batches as those of a batch read do.
use crate::admission::{Admission, StreamBounds, StreamOffsets};
use crate::checkpoint::{topic_offsets, topic_text};
use crate::error::Result;
use crate::lag::Lag;
use crate::stream::{Level, Limits, Log, Stream};
use crate::topic_piece::{Range, TopicPiece};
use crate::topic_read::{TopicRead, wanted_queues};
use rmqfast_client::cluster::TopicCluster;
use rmqfast_remoting::Interrupt;
use std::collections::{BTreeMap, HashSet};
use std::time::{Duration, Instant};

/// A stream of a topic. Its offsets are `{"topic": {"broker": {"0": 23}}}`: the next offset of each queue.
///
/// Source: `RocketMQSource` of rocketmq-spark, `KafkaMicroBatchStream` of Spark.
#[derive(Debug)]
pub struct TopicStream {
    read: TopicRead,
    limits: Limits,
    commit_group: Option<String>,
    cluster: TopicCluster,
    /// Where brokers are, or were last.
    addresses: BTreeMap<String, String>,
    target: Option<StreamBounds>,
    admission: Admission,
    lag: Lag,
    log: Log,
    began: Instant,
}

impl TopicStream {
    /// A stream of what `read` says; its end is not looked at. Offsets are stored for `commit_group`, if there is one. Nobody is
    /// asked yet.
    ///
    /// # Errors
    /// There is no name server.
    pub fn new(read: TopicRead, limits: Limits, commit_group: Option<String>) -> Result<Self> {
        let request = &read.request;
        Ok(Self {
            cluster: read.open_cluster()?,
            admission: Admission::new(&request.topic, request.patience, request.is_strict),
            addresses: BTreeMap::new(),
            target: None,
            lag: Lag::default(),
            log: Log::default(),
            began: Instant::now(),
            read,
            limits,
            commit_group,
        })
    }

    /// Where the queues begin and end now. With `is_patient` those of brokers that are away are missing.
    fn bounds(&mut self, is_patient: bool, interrupt: Interrupt<'_>) -> Result<StreamBounds> {
        let route = self.cluster.route(interrupt);
        self.log.warn(self.cluster.take_warnings());
        let route = match route {
            Ok(route) => route,
            // a topic whose only broker is away is one that name servers do not know
            Err(error) if is_patient && !self.addresses.is_empty() && !is_interrupt(&error) => {
                self.log.warn([format!("topic {}: its route is not to be had now: {error}", self.read.request.topic)]);
                return Ok(StreamBounds::new());
            }
            Err(error) => return Err(error.into()),
        };
        // a broker that is away keeps its last address: its tasks wait there
        self.addresses.extend(route.addresses);
        let queues = wanted_queues(route.queues, self.read.queue_ids.as_deref())?;
        let bounds = self.cluster.bounds(&queues, is_patient, interrupt);
        self.log.warn(self.cluster.take_warnings());
        Ok(bounds?.into_iter().collect())
    }

    fn limits(&self, is_limited: bool) -> Limits {
        match (is_limited, &self.target) {
            (false, _) => Limits::default(),
            // Trigger.AvailableNow would never end if it waited for more
            (true, Some(_)) => Limits { least: None, ..self.limits },
            (true, None) => self.limits,
        }
    }

    fn now(&self) -> Duration {
        self.began.elapsed()
    }

    fn offsets(&self, text: &str) -> Result<StreamOffsets> {
        topic_offsets(&self.read.request.topic, text)
    }

    fn text(&self, offsets: &StreamOffsets) -> String {
        topic_text(&self.read.request.topic, offsets)
    }
}

impl Stream for TopicStream {
    fn initial(&mut self, interrupt: Interrupt<'_>) -> Result<String> {
        // a queue that is missing here would begin at its first message later, not where the option says
        let bounds = self.bounds(false, interrupt)?;
        let (offsets, warnings) = self.read.initial(&self.cluster, bounds.into_iter().collect(), interrupt)?;
        self.log.warn(warnings);
        Ok(self.text(&offsets.into_iter().collect()))
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
        let Some(start) = start else {
            return Ok(self.text(&bounds.into_iter().map(|(queue, (_, last))| (queue, last)).collect()));
        };
        self.lag.forget(&start);
        let end = self.admission.end(&start, &bounds, self.limits(is_limited), now, &mut self.log)?;
        Ok(self.text(&end))
    }

    fn report(&self) -> Option<String> {
        let ends = self.lag.ends();
        (!ends.is_empty()).then(|| self.text(&ends))
    }

    fn pieces(&mut self, start: &str, end: &str, interrupt: Interrupt<'_>) -> Result<Vec<Vec<u8>>> {
        let (mut start, end) = (self.offsets(start)?, self.offsets(end)?);
        if end.keys().any(|queue| !start.contains_key(queue)) {
            // where Spark did not say where the stream was
            for (queue, (first, _)) in self.bounds(true, interrupt)? {
                start.entry(queue).or_insert(first);
            }
        }
        let ranges: Vec<Range> = end
            .iter()
            .filter_map(|(queue, end)| Some((queue, *start.get(queue)?, *end)))
            .filter(|(_, start, end)| start < end)
            .map(|(queue, start, end)| (queue.broker_name.to_string(), queue.queue_id, start, end))
            .collect();
        // from the offsets alone: Spark may plan a batch more than once, and must get the same tasks
        let mut pieces = TopicPiece::cut(&ranges, self.read.max_rows, self.read.min_pieces, |broker| {
            self.addresses.get(broker).cloned()
        });
        // not the parts of a queue that was cut: the next batch may cut it elsewhere
        let whole: HashSet<&Range> = ranges.iter().collect();
        for piece in &mut pieces {
            piece.goes_on = piece.ranges.iter().all(|range| whole.contains(range));
        }
        Ok(pieces.iter().map(TopicPiece::to_bytes).collect())
    }

    fn endless_pieces(&mut self, start: &str, most: usize, interrupt: Interrupt<'_>) -> Result<Vec<Vec<u8>>> {
        let mut start = self.offsets(start)?;
        let bounds = self.bounds(true, interrupt)?;
        let now = self.now();
        self.lag.see(&bounds, now);
        for (queue, (first, _)) in bounds {
            start.entry(queue).or_insert(first);
        }
        let queues = start.iter().map(|(queue, at)| (queue.broker_name.to_string(), queue.queue_id, *at)).collect();
        let pieces = TopicPiece::endless(queues, most, |broker| self.addresses.get(broker).cloned());
        Ok(pieces.iter().map(TopicPiece::to_bytes).collect())
    }

    fn merged(&self, offsets: &[String]) -> Result<String> {
        let mut all = StreamOffsets::new();
        for text in offsets {
            all.extend(self.offsets(text)?);
        }
        Ok(self.text(&all))
    }

    fn commit(&mut self, end: &str, interrupt: Interrupt<'_>) -> Result<()> {
        let offsets: Vec<_> = self.offsets(end)?.into_iter().collect();
        let Some(group) = self.commit_group.as_ref().filter(|_| !offsets.is_empty()) else { return Ok(()) };
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
