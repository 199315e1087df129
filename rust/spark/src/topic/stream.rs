//! The stream of topics: tasks read its batches as those of a batch read do.
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

/// For how long bounds tell which queues there are.
const FRESH: Duration = Duration::from_secs(1);

/// A stream of topics. Its offsets are `{"topic": {"broker": {"0": 23}}}`: the next offset of each queue; beside them stands when the
/// message before each was stored, which tells a topic that was made anew.
///
/// Source: `RocketMQSource` of rocketmq-spark, `KafkaMicroBatchStream` of Spark.
#[derive(Debug)]
pub struct TopicStream {
    read: TopicRead,
    cluster: TopicCluster,
    /// Topics that were there once.
    seen: BTreeSet<String>,
    /// Last known addresses of brokers.
    addresses: BTreeMap<String, String>,
    target: Option<StreamStates>,
    /// Time and answer of the last question for ends.
    told: Option<(Duration, StreamStates)>,
    /// Spark asked for the latest offsets and did not say where the stream is.
    is_start_unknown: bool,
    /// Position at the last check that its queues continue there.
    looked_at: Option<TopicPosition>,
    /// Start of tasks without an end, and the queues that they do not read.
    endless_start: TopicPosition,
    /// Brokers of topics that were not there, which is told once.
    absent: BTreeSet<(String, String)>,
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

    /// The queues as they are now, of the topics that there are now. With `is_patient` those of brokers that are away are missing.
    fn states(&mut self, is_patient: bool) -> Result<StreamStates> {
        let Self { read, cluster, seen, addresses, log, .. } = self;
        let away =
            |what: &str, error: &dyn std::fmt::Display| format!("{what}: its route is not to be had now: {error}");
        // a topic whose only broker is away is one that name servers do not know
        let spares = |topic: &str, error: &rmqfast_client::Error| {
            let is_spared = is_patient && seen.contains(topic);
            log.warn(is_spared.then(|| away(&format!("topic {topic}"), error)));
            is_spared
        };
        let topic_queues = read.topics.find(cluster, None, spares);
        log.warn(cluster.take_warnings());
        let mut topic_queues = match topic_queues {
            Ok(topic_queues) => topic_queues,
            // nobody could say which topics match
            Err(Error::Client(error)) if is_patient && !seen.is_empty() && !is_interrupt(&error) => {
                log.warn([away(&read.topics.to_string(), &error)]);
                return Ok(StreamStates::new());
            }
            Err(error) => return Err(error),
        };
        // a broker that is away keeps its last address: its tasks wait there
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

    /// Takes those queues out of `states` that do not go on where the stream is, and tells how they do; also of those that the topics
    /// have no more.
    fn take_breaks(&mut self, position: &TopicPosition, states: &mut StreamStates) -> Result<Vec<Break>> {
        let (mut breaks, unseen) = self.breaks(position, states)?;
        if !self.read.request.is_strict {
            self.find_next(position, states, &mut breaks)?;
        }
        let gone = self.gone(position, states)?;
        breaks.extend(withdrawn(position, &gone));
        // what cannot be looked at is away
        for queue in &unseen {
            states.remove(queue);
        }
        for Break { queue, .. } in &breaks {
            states.remove(queue);
        }
        Ok(breaks)
    }

    /// The queues of `states` that do not go on where the stream is, and those of which it cannot be told now.
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

    /// Next offsets of queues that lost the first messages of a batch at the places `first`.
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

    /// Finds where queues go on that do not at the stream's offset: at the first message that was stored after the last one that was
    /// read. Of a topic that was made anew that is its first.
    fn find_next(&self, position: &TopicPosition, states: &StreamStates, breaks: &mut [Break]) -> Result<()> {
        for found in breaks {
            let (Some(stored), Some(state)) = (position.stored.get(&found.queue), states.get(&found.queue)) else {
                continue;
            };
            let (queue, group) = ((found.queue.clone(), state.bounds), &self.read.request.puller.consumer_group);
            let next = self.cluster.offsets_at(stored.saturating_add(1), &[queue], group)?;
            // what is behind the stream's offset was not read, whenever it was stored
            found.next = next.first().map_or(found.next, |next| *next.min(&found.offset));
        }
        Ok(())
    }

    /// The queues of the stream that topics have no more though their brokers are there. Of brokers that do not have a topic now it is
    /// told: they may come back.
    fn gone(&mut self, position: &TopicPosition, states: &StreamStates) -> Result<StreamStates> {
        // nobody could say what there is
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

    /// The position at these offsets: when the message before each was stored, where a broker tells. Of queues that stay it is what it
    /// was.
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

    /// The next position, with new queues.
    fn continue_from(&mut self, mut position: TopicPosition) -> Result<TopicPosition> {
        // Spark has just asked for the latest offsets, and until the tasks begin nobody reads
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

    /// Tells which queues join the stream at their first messages: one that the checkpoint has lost is read again. Of a pattern,
    /// topics come by themselves.
    fn tell_of_new(&mut self, start: &StreamOffsets, bounds: &StreamBounds) {
        let is_usual =
            |queue: &Queue| self.read.topics.names().is_none() && !start.keys().any(|known| known.topic == queue.topic);
        for (queue, (first, last)) in bounds.iter().filter(|(queue, _)| !start.contains_key(queue)) {
            let what = "the checkpoint has no offset of it: it is read from its first one on";
            let text = format!("{}: {what}, {first}", place(queue));
            if first == last || is_usual(queue) { self.log.info(text) } else { self.log.warn([text]) }
        }
    }

    /// Start of the queues of a batch; drops queues of `end` that the start lacks. A restarted run first plans the last
    /// batch of the run before, whose continuity nobody has checked.
    fn planned_again(&mut self, start: TopicPosition, end: &mut StreamOffsets) -> Result<StreamOffsets> {
        let is_whole = end.keys().all(|queue| start.offsets.contains_key(queue));
        if is_whole && self.looked_at.as_ref() == Some(&start) {
            return Ok(start.offsets);
        }
        let mut states = match self.states(true) {
            // a broker that is away: tasks wait for it, and the next batch looks once more
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
            // of the others it is told already
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
            // a task would be refused, again and again
            if let Some(from) = offsets.remove(&queue).filter(|from| *from < end[&queue]) {
                self.admission.tell_of_gone(&queue, (from, end[&queue]), &mut self.log)?;
            }
        }
        // a queue that joined with the batch had nothing to read in it: else the checkpoint has lost where it begins
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
        // a queue that is missing here would begin at its first message later, not where the option says
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
            // where Spark does not say where the stream was, no queue may be missing
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
        // a queue may go on where it is, and the message before that is another one
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
        // where Spark did not say where the stream was, nobody has looked yet whether its queues go on there
        let start = if self.is_start_unknown {
            self.continue_from(start)?.offsets
        } else {
            self.planned_again(start, &mut end)?
        };
        let ranges = end.into_iter().filter_map(|(queue, end)| {
            let start = *start.get(&queue)?;
            (start < end).then_some(QueueRange { queue, start, end })
        });
        // from the offsets alone: Spark may plan a batch more than once, and must get the same tasks
        let mut pieces = TopicPiece::cut(ranges.collect(), self.read.max_rows, self.read.min_pieces, |broker| {
            self.addresses.get(broker).cloned()
        })?;
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

    fn endless_pieces(&mut self, start: &str, most: usize) -> Result<Vec<Vec<u8>>> {
        let start = self.position(start)?;
        self.endless_start = self.continue_from(start)?;
        // queues that options do not ask for any more stay where they are
        let mut queues: Vec<Queue> = self.endless_start.offsets.keys().cloned().collect();
        self.read.keep(&mut queues, false)?;
        let start = queues.into_iter().filter_map(|queue| {
            let offset = *self.endless_start.offsets.get(&queue)?;
            Some((queue, offset))
        });
        let start = start.collect::<StreamOffsets>();
        // Spark would run batches of no tasks one after the other, as fast as it can
        if start.is_empty() {
            return Err(Error::argument(format!("Real-Time Mode: {}: there is none now", self.read.topics)));
        }
        let pieces = TopicPiece::endless(start, most, |broker| self.addresses.get(broker).cloned());
        Ok(pieces.iter().map(TopicPiece::to_bytes).collect())
    }

    fn merge(&mut self, offsets: &[String]) -> Result<String> {
        let origin = self.endless_start.clone();
        // a task says nothing of queues that it gave up: they stay where they were
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
        // a task goes on in a queue that was made anew amid its work: the next batch begins where this one did, and sees that
        for Break { queue, offset, .. } in self.breaks(&origin, &states)?.0 {
            end.place(&queue, offset, origin.stored.get(&queue).copied());
        }
        // only this one can see it of a queue without a message before its beginning
        first.offsets.retain(|queue, _| !origin.stored.contains_key(queue));
        for (queue, next) in self.begun_anew(&first, &states)? {
            end.place(&queue, next, None);
        }
        // brokers tell the times that the tasks did not
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
