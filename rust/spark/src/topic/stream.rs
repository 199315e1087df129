//! A stream of topics. Tasks read each of its batches as they read a batch read.
use crate::error::{Error, Result};
use crate::origin::piece::TopicPiece;
use crate::stream::{Level, Limits, Log, Stream};
use crate::topic::admission::{Admission, StreamBounds, place};
use crate::topic::checkpoint::{StreamOffsets, TopicPosition, topic_offsets, topic_text};
use crate::topic::continuity::{Break, StreamStates, begun_anew, doubtful, find_ended, find_replaced, withdrawn};
use crate::topic::lag::Lag;
use crate::topic::offsets::StoreTimes;
use crate::topic::position::TaskPosition;
use crate::topic::read::TopicRead;
use rmqfast_client::cluster::TopicCluster;
use rmqfast_client::puller::Queue;
use rmqfast_client::ranges::QueueRange;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// Maximum age at which fetched queue states are still used.
const FRESH: Duration = Duration::from_secs(1);

/// A stream of topics. Its offsets are the next offset of each queue, as `{"topic": {"broker": {"0": 23}}}`.
///
/// They also hold the store time of the message before each offset, which reveals a topic that was deleted and created
/// again.
///
/// Source: `RocketMQSource` of rocketmq-spark, Spark's `KafkaMicroBatchStream`.
#[derive(Debug)]
pub struct TopicStream {
    read: TopicRead,
    cluster: TopicCluster,
    /// Topics that have existed since the stream began.
    seen: BTreeSet<String>,
    /// Last known addresses of brokers.
    addresses: BTreeMap<String, String>,
    target: Option<StreamStates>,
    /// The queue states that were fetched last, and the time at which they were fetched.
    told: Option<(Duration, StreamStates)>,
    /// Whether Spark asked for the latest offsets without telling the stream's offsets.
    is_start_unknown: bool,
    /// The last position for which it was checked that the queues continue there.
    looked_at: Option<TopicPosition>,
    /// The start position of tasks without an end. When reports are merged, a queue that no task has reported keeps
    /// this position.
    endless_start: TopicPosition,
    /// Topics and brokers without a route, so that each is logged once.
    absent: BTreeSet<(String, String)>,
    admission: Admission,
    lag: Lag,
    log: Log,
    began: Instant,
}

impl TopicStream {
    /// Creates the stream without a request.
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
            is_start_unknown: false,
            looked_at: None,
            endless_start: TopicPosition::default(),
            absent: BTreeSet::new(),
            lag: Lag::default(),
            log: Log::default(),
            began: Instant::now(),
            read,
        })
    }

    /// Returns the current queues of all topics. If `is_patient`, queues of brokers that do not answer are left out.
    fn states(&mut self, is_patient: bool) -> Result<StreamStates> {
        let Self { read, cluster, seen, addresses, log, .. } = self;
        let away =
            |what: &str, error: &dyn std::fmt::Display| format!("{what}: its route is not to be had now: {error}");
        // name servers no longer know a topic whose only broker is away
        let spares = |topic: &str, error: &rmqfast_client::Error| {
            let is_spared = is_patient && seen.contains(topic);
            log.warn(is_spared.then(|| away(&format!("topic {topic}"), error)));
            is_spared
        };
        let topic_queues = read.topics.find(cluster, None, spares);
        log.warn(cluster.take_warnings());
        let mut topic_queues = match topic_queues {
            Ok(topic_queues) => topic_queues,
            // without name servers nobody knows the topics of a pattern
            Err(Error::Client(error)) if is_patient && !seen.is_empty() && !is_interrupt(&error) => {
                log.warn([away(&read.topics.to_string(), &error)]);
                return Ok(StreamStates::new());
            }
            Err(error) => return Err(error),
        };
        // a broker that does not answer keeps its last address, where tasks wait for it
        addresses.extend(topic_queues.addresses);
        seen.extend(topic_queues.queues.iter().map(|queue| queue.topic.clone()));
        read.keep(&mut topic_queues.queues, !is_patient)?;
        self.states_of(&topic_queues.queues, is_patient)
    }

    fn states_of(&mut self, queues: &[Queue], is_patient: bool) -> Result<StreamStates> {
        let states = self.cluster.states(queues, is_patient);
        self.log.warn(self.cluster.take_warnings());
        Ok(states?.into_iter().collect())
    }

    /// Returns the queues that do not continue at the stream's offset, and queues that the topics no longer have.
    /// Removes from `states` the returned queues, and queues that could not be checked.
    fn take_breaks(&mut self, position: &TopicPosition, states: &mut StreamStates) -> Result<Vec<Break>> {
        let (mut breaks, unseen) = self.breaks(position, states)?;
        if !self.read.request.is_strict {
            self.find_next(position, states, &mut breaks)?;
        }
        let gone = self.gone(position, states)?;
        breaks.extend(withdrawn(position, &gone));
        // a queue that could not be checked is treated as if its broker did not answer
        for queue in &unseen {
            states.remove(queue);
        }
        for Break { queue, .. } in &breaks {
            states.remove(queue);
        }
        Ok(breaks)
    }

    /// Returns the queues of `states` that do not continue at the stream's offset, and the queues that could not be
    /// checked.
    fn breaks(&mut self, position: &TopicPosition, states: &StreamStates) -> Result<(Vec<Break>, Vec<Queue>)> {
        let mut breaks = find_ended(position, states);
        let places = doubtful(position, states);
        let group = &self.read.request.puller.consumer_group;
        let messages = self.cluster.messages_of_present(&places, group)?;
        self.log.warn(self.cluster.take_warnings());
        breaks.extend(find_replaced(position, states, &messages));
        let unseen = places.into_iter().map(|(queue, _)| queue).filter(|queue| !messages.contains_key(queue));
        Ok((breaks, unseen.collect()))
    }

    /// Returns where to continue in queues that lost the first messages of a batch. `first` is the position after those
    /// messages.
    fn begun_anew(&mut self, first: &TopicPosition, states: &StreamStates) -> Result<StreamOffsets> {
        let group = &self.read.request.puller.consumer_group;
        let messages = self.cluster.messages_of_present(&doubtful(first, states), group)?;
        self.log.warn(self.cluster.take_warnings());
        let mut breaks = begun_anew(first, states, &messages);
        if !self.read.request.is_strict {
            self.find_next(first, states, &mut breaks)?;
        }
        self.admission.offsets_behind(&breaks, &mut self.log)
    }

    /// Sets in `breaks` where to continue: at the first message that was stored after the last message that was read.
    /// If the topic was created again, this is the first message of the queue.
    fn find_next(&self, position: &TopicPosition, states: &StreamStates, breaks: &mut [Break]) -> Result<()> {
        for found in breaks {
            let (Some(stored), Some(state)) = (position.stored.get(&found.queue), states.get(&found.queue)) else {
                continue;
            };
            let (queue, group) = ((found.queue.clone(), state.bounds), &self.read.request.puller.consumer_group);
            let next = self.cluster.offsets_at(stored.saturating_add(1), &[queue], group)?;
            // messages from the stream's offset on are unread, whatever their store time
            found.next = next.first().map_or(found.next, |next| *next.min(&found.offset));
        }
        Ok(())
    }

    /// Returns the states of the stream's queues that the topic no longer has, although its route contains their
    /// broker. Logs brokers that are missing in the route, since they may come back.
    fn gone(&mut self, position: &TopicPosition, states: &StreamStates) -> Result<StreamStates> {
        // no states: no broker answered
        if states.is_empty() {
            return Ok(StreamStates::new());
        }
        let mut missing: Vec<Queue> =
            position.offsets.keys().filter(|queue| !states.contains_key(queue)).cloned().collect();
        self.read.keep(&mut missing, false)?;
        let (gone, absent): (Vec<Queue>, Vec<Queue>) =
            missing.into_iter().partition(|queue| self.cluster.has_broker(queue));
        for Queue { topic, broker_name, .. } in absent {
            if self.absent.insert((topic.clone(), broker_name.to_string())) {
                let text = "is not in its route now: the stream stays where it is in these queues";
                self.log.warn([format!("topic {topic}: broker {broker_name} {text}")]);
            }
        }
        if gone.is_empty() { Ok(StreamStates::new()) } else { self.states_of(&gone, true) }
    }

    /// Returns the position with `offsets`, and with the store time of the message before each offset. Queues that have
    /// not moved since `before` keep their store times.
    fn position_at(
        &mut self,
        offsets: StreamOffsets,
        before: &TopicPosition,
        states: &StreamStates,
    ) -> Result<TopicPosition> {
        let (mut stored, mut places) = (StoreTimes::new(), Vec::new());
        for (queue, offset) in &offsets {
            let state = states.get(queue);
            let time = match (before.offsets.get(queue), state) {
                (Some(at), _) if at == offset => before.stored.get(queue).copied(),
                (_, Some(state)) if state.bounds.1 == *offset && state.last_stored.is_some() => state.last_stored,
                (_, Some(state)) if (state.bounds.0 + 1..=state.bounds.1).contains(offset) => {
                    places.push((queue.clone(), offset - 1));
                    None
                }
                _ => None,
            };
            stored.extend(time.map(|time| (queue.clone(), time)));
        }
        let group = &self.read.request.puller.consumer_group;
        let messages = self.cluster.messages_of_present(&places, group)?;
        self.log.warn(self.cluster.take_warnings());
        let messages = messages.into_iter().filter_map(|(queue, message)| Some((queue, message.filter(|m| m.is_own)?)));
        stored.extend(messages.map(|(queue, message)| (queue, message.store_timestamp)));
        Ok(TopicPosition { offsets, stored })
    }

    /// Returns a position with new queues added, and with new offsets for queues that do not continue at their offset.
    fn continue_from(&mut self, mut position: TopicPosition) -> Result<TopicPosition> {
        // Spark has just asked for the latest offsets, and nobody reads until the tasks start
        let recent = self.told.take().filter(|(at, _)| self.now() - *at < FRESH);
        let mut states = match recent {
            Some((_, states)) => states,
            None => self.states(true)?,
        };
        self.tell_of_new(&position.offsets, &bounds_of(&states));
        for (queue, state) in &states {
            position.offsets.entry(queue.clone()).or_insert(state.bounds.0);
        }
        let breaks = self.take_breaks(&position, &mut states)?;
        for (queue, next) in self.admission.next_offsets(&breaks, self.now(), &mut self.log)? {
            position.stored.remove(&queue);
            position.offsets.insert(queue, next);
        }
        Ok(position)
    }

    /// Logs queues that `start` does not have, which are read from their first message. This is a warning, since
    /// messages may be read again, except for empty queues and new topics of a pattern.
    fn tell_of_new(&mut self, start: &StreamOffsets, bounds: &StreamBounds) {
        let is_usual =
            |queue: &Queue| self.read.topics.names().is_none() && !start.keys().any(|known| known.topic == queue.topic);
        for (queue, (first, last)) in bounds.iter().filter(|(queue, _)| !start.contains_key(queue)) {
            let what = "the checkpoint has no offset of it: it is read from its first one on";
            let text = format!("{}: {what}, {first}", place(queue));
            if first == last || is_usual(queue) { self.log.info(text) } else { self.log.warn([text]) }
        }
    }

    /// Returns the start of a batch that is planned again. Drops queues from `end` that the start does not have.
    ///
    /// A restarted query first plans the last batch of the earlier run again. The queues of that batch have not been
    /// checked yet.
    fn planned_again(&mut self, start: TopicPosition, end: &mut StreamOffsets) -> Result<StreamOffsets> {
        let is_whole = end.keys().all(|queue| start.offsets.contains_key(queue));
        if is_whole && self.looked_at.as_ref() == Some(&start) {
            return Ok(start.offsets);
        }
        let mut states = match self.states(true) {
            // tasks wait for a broker that does not answer, and the next batch checks again
            Err(Error::Client(error)) if is_whole && !is_interrupt(&error) => {
                self.log.warn([format!("{}: a batch is planned again, unseen: {error}", self.read.topics)]);
                return Ok(start.offsets);
            }
            states => states?,
        };
        let is_known =
            |queue: &Queue| states.contains_key(queue) || states.is_empty() || !self.cluster.has_broker(queue);
        let gone: Vec<Queue> = end.keys().filter(|queue| !is_known(queue)).cloned().collect();
        let all = states.clone();
        let mut breaks = self.take_breaks(&start, &mut states)?;
        breaks.retain(|found| !gone.contains(&found.queue));
        self.admission.tell_of_breaks(&breaks, &mut self.log)?;
        for (queue, state) in all.iter().filter(|(_, state)| state.is_of_master) {
            let last = state.bounds.1;
            let Some(end) = end.get_mut(queue).filter(|end| **end > last) else { continue };
            // the breaks of the other queues are logged already
            if states.contains_key(queue) {
                self.admission.tell_of_end(queue, *end, last, &mut self.log)?;
            }
            *end = last;
        }
        for (queue, from) in &start.offsets {
            if let Some(to) = end.get(queue).filter(|to| all.contains_key(queue) && *to < from) {
                let what = "the checkpoint has a batch that begins at offset";
                self.log.warn([format!("{}: {what} {from} and ends at {to}: it reads nothing of it", place(queue))]);
            }
        }
        let mut offsets = start.offsets;
        for queue in gone {
            // a task for a queue that no longer exists would be refused forever
            if let Some(from) = offsets.remove(&queue).filter(|from| *from < end[&queue]) {
                self.admission.tell_of_gone(&queue, (from, end[&queue]), &mut self.log)?;
            }
        }
        // a queue that joins in a batch has nothing to read there; if it has, the checkpoint lost its start
        let joined = states.iter().filter(|(queue, state)| end.get(*queue).is_some_and(|end| *end > state.bounds.0));
        let missing: StreamBounds = bounds_of(&joined.map(|(queue, state)| (queue.clone(), *state)).collect());
        self.tell_of_new(&offsets, &missing);
        for (queue, (first, _)) in missing {
            offsets.entry(queue).or_insert(first);
        }
        Ok(offsets)
    }

    fn limits(&self, is_limited: bool) -> Limits {
        match (is_limited, &self.target) {
            (false, _) => Limits::default(),
            // with Trigger.AvailableNow the stream must not wait for more messages, which may never come
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

    fn position(&self, text: &str) -> Result<TopicPosition> {
        TopicPosition::of_text(&self.read.topics, text)
    }
}

fn bounds_of(states: &StreamStates) -> StreamBounds {
    states.iter().map(|(queue, state)| (queue.clone(), state.bounds)).collect()
}

impl Stream for TopicStream {
    fn description(&self) -> String {
        format!("{} at {}", self.read.topics, self.read.cluster.name_servers.join(";"))
    }

    fn initial(&mut self) -> Result<String> {
        // a queue that is missing here would later begin at its first message, against the option
        let states = self.states(false)?;
        let bounds = bounds_of(&states).into_iter().collect();
        let (offsets, warnings) = self.read.initial(&self.cluster, bounds)?;
        self.log.warn(warnings);
        let offsets = offsets.into_iter().collect();
        Ok(self.position_at(offsets, &TopicPosition::default(), &states)?.to_text())
    }

    fn aim(&mut self) -> Result<()> {
        self.target = Some(self.states(false)?);
        Ok(())
    }

    fn latest(&mut self, start: Option<&str>, is_limited: bool) -> Result<String> {
        let start = start.map(|text| self.position(text)).transpose()?;
        let mut states = match &self.target {
            Some(target) => target.clone(),
            // without a start no later call could notice a missing queue
            None => self.states(start.is_some())?,
        };
        let now = self.now();
        self.lag.see(&bounds_of(&states), now);
        self.told = Some((now, states.clone()));
        self.is_start_unknown = start.is_none();
        let Some(start) = start else {
            let ends = states.iter().map(|(queue, state)| (queue.clone(), state.bounds.1)).collect();
            return Ok(self.position_at(ends, &TopicPosition::default(), &states)?.to_text());
        };
        self.lag.forget(&start.offsets);
        self.looked_at = Some(start.clone());
        let all = states.clone();
        let breaks = self.take_breaks(&start, &mut states)?;
        let limits = self.limits(is_limited);
        self.tell_of_new(&start.offsets, &bounds_of(&states));
        let end = self.admission.end(&start.offsets, &bounds_of(&states), &breaks, limits, now, &mut self.log)?;
        // a queue may continue at its offset with another message before it, so its old store time is dropped
        let mut before = start;
        before.stored.retain(|queue, _| !all.contains_key(queue) || breaks.iter().all(|found| found.queue != *queue));
        Ok(self.position_at(end, &before, &all)?.to_text())
    }

    fn report(&self) -> Option<String> {
        let ends = self.lag.ends();
        (!ends.is_empty()).then(|| topic_text(&ends))
    }

    fn pieces(&mut self, start: &str, end: &str) -> Result<Vec<Vec<u8>>> {
        let (start, mut end) = (self.position(start)?, self.offsets(end)?);
        // if Spark did not tell the stream's offsets, the queues have not been checked yet
        let start = if self.is_start_unknown {
            self.continue_from(start)?.offsets
        } else {
            self.planned_again(start, &mut end)?
        };
        let ranges = end.into_iter().filter_map(|(queue, end)| {
            let start = *start.get(&queue)?;
            (start < end).then_some(QueueRange { queue, start, end })
        });
        // from offsets alone: Spark may plan a batch again and must get the same tasks
        let mut pieces = TopicPiece::cut(ranges.collect(), self.read.max_rows, self.read.min_pieces, |broker| {
            self.addresses.get(broker).cloned()
        })?;
        let mut parts: BTreeMap<Queue, usize> = BTreeMap::new();
        for range in pieces.iter().flat_map(|piece| &piece.ranges) {
            *parts.entry(range.queue.clone()).or_default() += 1;
        }
        // parts of a cut queue do not go on: the next batch may cut the queue at other offsets
        for piece in &mut pieces {
            piece.goes_on = piece.ranges.iter().all(|range| parts.get(&range.queue) == Some(&1));
        }
        Ok(pieces.iter().map(TopicPiece::to_bytes).collect())
    }

    fn endless_pieces(&mut self, start: &str, most: usize) -> Result<Vec<Vec<u8>>> {
        let start = self.position(start)?;
        self.endless_start = self.continue_from(start)?;
        // queues that the options no longer select keep their offsets
        let mut queues: Vec<Queue> = self.endless_start.offsets.keys().cloned().collect();
        self.read.keep(&mut queues, false)?;
        let start = queues.into_iter().filter_map(|queue| {
            let offset = *self.endless_start.offsets.get(&queue)?;
            Some((queue, offset))
        });
        let start = start.collect::<StreamOffsets>();
        // without tasks Spark would run empty batches in a busy loop
        if start.is_empty() {
            return Err(Error::argument(format!("Real-Time Mode: {}: there is none now", self.read.topics)));
        }
        let pieces = TopicPiece::endless(start, most, |broker| self.addresses.get(broker).cloned());
        Ok(pieces.iter().map(TopicPiece::to_bytes).collect())
    }

    fn merge(&mut self, offsets: &[String]) -> Result<String> {
        let origin = self.endless_start.clone();
        // queues that no task reports keep their offsets
        let (mut end, mut moved, mut first) = (origin.clone(), BTreeSet::new(), TopicPosition::default());
        for text in offsets {
            let task = TaskPosition::of_text(&self.read.topics, text)?;
            for (queue, offset) in task.next.offsets {
                if origin.offsets.get(&queue) != Some(&offset) {
                    end.place(&queue, offset, task.next.stored.get(&queue).copied());
                    moved.insert(queue);
                }
            }
            first.extend(task.first);
        }
        let queues: Vec<Queue> = moved.iter().cloned().collect();
        let states = self.states_of(&queues, true)?;
        // a topic was created again while a task read it: the next batch starts where this one did, and finds the break
        for Break { queue, offset, .. } in self.breaks(&origin, &states)?.0 {
            end.place(&queue, offset, origin.stored.get(&queue).copied());
        }
        // a queue without a message before its start can be checked only here
        first.offsets.retain(|queue, _| !origin.stored.contains_key(queue));
        for (queue, next) in self.begun_anew(&first, &states)? {
            end.place(&queue, next, None);
        }
        // brokers tell the store times that the tasks did not report
        let mut position = end.clone();
        position.offsets.retain(|queue, _| !moved.contains(queue) || end.stored.contains_key(queue));
        Ok(self.position_at(end.offsets, &position, &states)?.to_text())
    }

    fn commit(&mut self, end: &str) -> Result<()> {
        let offsets: Vec<_> = self.offsets(end)?.into_iter().collect();
        let Some(group) = self.read.commit_group.as_ref().filter(|_| !offsets.is_empty()) else { return Ok(()) };
        let committed = self.cluster.commit(group, &offsets);
        self.log.warn(self.cluster.take_warnings());
        match committed {
            Err(error) if is_interrupt(&error) => Err(error.into()),
            // not an error, since the checkpoint has the offsets; the group's offsets are only for monitoring
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
        // warnings of a request that failed
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
