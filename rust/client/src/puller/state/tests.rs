//! A simulated broker answers in any order: no message is lost or repeated, and all are in order.
use super::*;
use crate::puller::FlowControl;
use crate::puller::PullStatus;
use crate::puller::body::Body;
use crate::puller::options::Gather;
use crate::puller::test_record::record;
use proptest::prelude::*;
use rmqfast_remoting::{Command, Frame, Header, Limits, Value, frame};

/// A broker's queue, in which some offsets have no matching message.
struct Log {
    min: i64,
    matches: Vec<bool>,
}

impl Log {
    fn max(&self) -> i64 {
        self.min + self.matches.len() as i64
    }

    fn pull(&self, from: i64, end: i64) -> Vec<i64> {
        (from.max(self.min)..self.max().min(end)).filter(|offset| self.matches[(offset - self.min) as usize]).collect()
    }
}

/// Returns the answer as it comes out of a frame.
fn answer(code: i32, (next, min, max): (i64, i64, i64), body: &[u8], topic: &str, asked: i64) -> Answer {
    let fields = [
        ("suggestWhichBrokerId", Value::Number(0)),
        ("nextBeginOffset", Value::Number(next)),
        ("minOffset", Value::Number(min)),
        ("maxOffset", Value::Number(max)),
    ];
    let mut out = Vec::new();
    Header { code, flag: 1, ..Header::request(code, 1, &fields) }.write(body, &mut out);
    let limits = Limits::default();
    let (frame, _): (Frame<'_>, usize) = frame::first(&out, &limits).expect("sound").expect("whole");
    let command = Command::decode(&frame, &limits).expect("sound");
    let queue = Queue { topic: topic.into(), broker_name: "broker-a".into(), queue_id: 0 };
    Answer::of(&command, Body::copy(command.body, None), &queue, asked, true)
}

/// Returns the broker's answer to a request; `whim` selects among the possible answers.
fn serve(log: &Log, request: &Request, whim: u32) -> Option<Answer> {
    let (topic, asked) = (request.queue.topic.as_str(), request.pull.offset);
    let reply = |code, next, body: &[u8]| Some(answer(code, (next, log.min, log.max()), body, topic, asked));
    if asked < log.min {
        return reply(21, log.min, b"");
    }
    if asked >= log.max() {
        return reply(if asked == log.max() { 19 } else { 21 }, log.max(), b"");
    }
    match whim % 16 {
        0 => return Some(Answer::failure(2, "system busy")),
        1 => return reply(20, asked, b""),
        2 => return reply(0, asked + 1, b"no record"),
        3 => return None,
        _ => {}
    }
    let most = 1 + i64::from(whim / 16 % 7) * request.pull.max_messages / 4;
    let (mut next, mut body, mut found) = (asked, Vec::new(), 0);
    while next < log.max() && found < most.min(request.pull.max_messages) && next < asked + 100 {
        if log.matches[(next - log.min) as usize] {
            body.extend(record(topic, 0, next, b""));
            found += 1;
        }
        next += 1;
    }
    reply(if found > 0 { 0 } else { 20 }, next, &body)
}

/// A simulation of requests, answers and takes. `got` holds the offsets taken, by topic and epoch.
struct Play {
    state: State,
    now: Instant,
    whims: Box<dyn FnMut() -> u32>,
    got: HashMap<(String, u64), Vec<i64>>,
    reached: HashMap<(String, u64), i64>,
    most_held: i64,
    /// Maximum messages held of one queue, including those in hand.
    most_of_queue: i64,
    /// Messages taken but not acknowledged.
    in_hand: Vec<PulledAnswer>,
}

impl Play {
    fn new(options: PullerOptions, whims: impl FnMut() -> u32 + 'static) -> Self {
        let (got, reached) = (HashMap::new(), HashMap::new());
        let state = state(options);
        Self {
            state,
            now: Instant::now(),
            whims: Box::new(whims),
            got,
            reached,
            most_held: 0,
            most_of_queue: 0,
            in_hand: Vec::new(),
        }
    }

    /// Sends requests, answers them in any order, and takes items at times, until `is_done`.
    fn run(&mut self, logs: &HashMap<String, Log>, mut is_done: impl FnMut(&Self) -> bool) {
        let mut open = Vec::new();
        for _ in 0..200_000 {
            if is_done(self) {
                return;
            }
            open.extend(self.state.requests(0, self.now));
            let whim = (self.whims)();
            if open.is_empty() || whim.is_multiple_of(64) {
                self.now += Duration::from_millis(u64::from(whim % 3000));
            }
            if whim.is_multiple_of(97) {
                self.state.on_disconnect(0, "gone".into());
                open.clear();
            }
            if !open.is_empty() {
                let request: Request = open.swap_remove(whim as usize / 7 % open.len());
                if let Some(answer) = serve(&logs[&request.queue.topic], &request, (self.whims)()) {
                    self.state.answer(request.opaque, answer, self.now);
                }
            }
            self.state.expire(0, self.now);
            self.most_held = self.most_held.max(self.state.ready_or_waiting().messages);
            let of_queues =
                self.state.queues.values().map(|queue| queue.ready_or_waiting().messages + queue.in_hand.messages);
            self.most_of_queue = of_queues.chain([self.most_of_queue]).max().unwrap_or(0);
            if whim.is_multiple_of(3) || open.is_empty() {
                let items = self.state.take((self.whims)() as usize % 4).0;
                items.into_iter().for_each(|item| self.note(item));
            }
            if whim.is_multiple_of(5) || open.is_empty() {
                let kept = (self.whims)() as usize % (self.in_hand.len() + 1);
                for done in self.in_hand.split_off(kept) {
                    self.state.acknowledge(done.epoch, Volume::of(&done), done.next_begin_offset);
                }
            }
        }
        panic!("no end after 200000 steps: {:?}", self.state);
    }

    fn note(&mut self, item: Item) {
        let Item::Answer(fetched) = item else { return };
        if self.state.options.counts_until_done {
            self.in_hand.push((*fetched).clone());
        }
        let key = (fetched.queue.topic.clone(), fetched.epoch);
        if fetched.status == PullStatus::Failed {
            return;
        }
        let reached = self.reached.entry(key.clone()).or_insert(fetched.begin_offset);
        assert_eq!(*reached, fetched.begin_offset, "an answer begins where the one before ended");
        *reached = fetched.next_begin_offset;
        let offsets = fetched
            .rows
            .iter()
            .map(|row| i64::from_be_bytes(*fetched.body[row.at as usize + 20..].first_chunk().expect("a record")));
        let got = self.got.entry(key).or_default();
        for offset in offsets {
            assert!(offset >= fetched.begin_offset && offset < fetched.next_begin_offset);
            got.push(offset);
        }
    }
}

fn queue(topic: &str) -> Queue {
    Queue { topic: topic.into(), broker_name: "b".into(), queue_id: 0 }
}

/// Returns a state with one broker.
fn state(options: PullerOptions) -> State {
    let mut state = State::new(options.into());
    state.broker(Broker { address: "b:1".into(), is_slave: false });
    state
}

fn options(depth: usize, batch: i64) -> PullerOptions {
    let of_queue = Threshold { messages: 300, bytes: 1 << 20 };
    PullerOptions { depth, batch, of_queue, in_all: Threshold { messages: 500, ..of_queue }, ..Default::default() }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn all_messages_come_once_and_in_order_whatever_the_broker_does(
        lengths in prop::collection::vec(0_usize..600, 1..4),
        min in 0_i64..100,
        density in 1_u32..=100,
        depth in 1_usize..20,
        batch in 1_i64..64,
        seed in any::<u64>(),
        is_filtered in any::<bool>(),
        (burst, gathered) in (1_usize..20, 0_i64..4000),
        counts_until_done in any::<bool>(),
    ) {
        let mut whims = whims(seed);
        let gather = Gather { bytes: gathered, ..Gather::default() };
        let options = PullerOptions { burst, gather, counts_until_done, ..options(depth, batch) };
        let mut play = Play::new(options, self::whims(seed ^ 1));
        let mut logs = HashMap::new();
        for (i, length) in lengths.into_iter().enumerate() {
            let topic = format!("t{i}");
            let matches = (0..length).map(|_| !is_filtered || whims() % 100 < density).collect();
            let log = Log { min, matches };
            let end = (i % 2 == 0).then(|| min + length as i64 * 3 / 4);
            let expression = if is_filtered { "TagA" } else { "*" }.into();
            let subscription = Subscription { expression, ..Subscription::default() }.into();
            play.state.assign(0, queue(&topic), Assignment { start: min, end, subscription, ..Assignment::default() });
            logs.insert(topic, (log, end));
        }
        let expected: HashMap<_, _> = logs.iter().map(|(topic, (log, end))| {
            let end = end.unwrap_or(log.max());
            (topic.clone(), (end, log.pull(log.min, end)))
        }).collect();
        let logs: HashMap<_, _> = logs.into_iter().map(|(topic, (log, _))| (topic, log)).collect();
        play.run(&logs, |play| {
            expected.iter().all(|(topic, (end, _))| {
                play.reached.iter().any(|((t, _), reached)| t == topic && reached >= end)
            })
        });
        for ((topic, _), got) in &play.got {
            prop_assert_eq!(got, &expected[topic].1, "{}", topic);
        }
        prop_assert!(play.most_held <= 500 + (depth as i64 + 3) * 2 * batch.max(100), "{}", play.most_held);
        // the volume of a filtered stretch is not known in advance
        prop_assert!(is_filtered || play.most_of_queue < 300 + batch, "{}", play.most_of_queue);
    }

    #[test]
    fn what_is_read_ahead_comes_once_and_in_order_when_the_queue_goes_on(
        length in 100_usize..900, steps in prop::collection::vec(1_i64..200, 1..6), density in 1_u32..=100,
        is_filtered in any::<bool>(), seed in any::<u64>(), depth in 1_usize..20, gathered in 0_i64..4000,
    ) {
        let mut whims = whims(seed);
        let log = Log { min: 0, matches: (0..length).map(|_| !is_filtered || whims() % 100 < density).collect() };
        let gather = Gather { bytes: gathered, ..Gather::default() };
        let mut play = Play::new(PullerOptions { gather, ..options(depth, 32) }, self::whims(seed ^ 1));
        let expression = if is_filtered { "TagA" } else { "*" }.into();
        let subscription = Arc::new(Subscription { expression, ..Subscription::default() });
        let logs = HashMap::from([("t".to_owned(), log)]);
        let (mut start, mut key) = (0, None);
        for step in steps {
            let end = (start + step).min(length as i64);
            let assignment = Assignment {
                start, end: Some(end), subscription: subscription.clone(), reads_ahead: true, ..Assignment::default()
            };
            let epoch = match &key {
                None => play.state.assign(0, queue("t"), assignment),
                Some(_) if start == end => break,
                Some(_) => play.state.resume(0, &queue("t"), &assignment).expect("it was taken up to there"),
            };
            let key = key.get_or_insert(("t".to_owned(), epoch)).clone();
            play.run(&logs, |play| play.reached.get(&key).is_some_and(|reached| *reached >= end));
            let expected = logs["t"].pull(0, end);
            let got = play.got.get(&key).cloned().unwrap_or_default();
            prop_assert_eq!((play.reached[&key], got), (end, expected));
            prop_assert_eq!(play.state.position(&queue("t")), Some(end));
            start = end;
        }
        prop_assert!(play.most_of_queue < 300 + 64, "{}", play.most_of_queue);
    }

    #[test]
    fn after_a_seek_only_what_belongs_to_it_comes(
        length in 50_usize..400, to in 0_i64..400, after in 0_usize..60, seed in any::<u64>(),
    ) {
        let log = Log { min: 0, matches: vec![true; length] };
        let to = to.min(log.max());
        let expected = log.pull(to, log.max());
        let max = log.max();
        let logs = HashMap::from([("t".to_owned(), log)]);
        let mut play = Play::new(options(8, 16), whims(seed));
        play.state.assign(0, queue("t"), Assignment::default());
        let mut steps = 0;
        play.run(&logs, |_| { steps += 1; steps > after });
        let epoch = play.state.seek(&queue("t"), to).expect("it is pulled");
        let key = ("t".to_owned(), epoch);
        play.run(&logs, |play| play.reached.get(&key).is_some_and(|reached| *reached >= max));
        prop_assert_eq!(play.got.get(&key).cloned().unwrap_or_default(), expected);
    }
}

/// Numbers of a generator with a period of 2^64 (splitmix64).
fn whims(seed: u64) -> impl FnMut() -> u32 + 'static {
    let mut state = seed;
    move || {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (state ^ state >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ mixed >> 31) as u32
    }
}

fn pulled_queue(depth: usize, assignment: Assignment) -> (State, Instant) {
    let mut state = state(options(depth, 32));
    state.assign(0, queue("t"), assignment);
    (state, Instant::now())
}

fn whole(state: &mut State, requests: &[Request], max: i64, now: Instant) {
    for request in requests {
        let (from, end) = (request.pull.offset, (request.pull.offset + request.pull.max_messages).min(max));
        let mut body = Vec::new();
        (from..end).for_each(|offset| body.extend(record("t", 0, offset, b"")));
        state.answer(request.opaque, answer(0, (end, 0, max), &body, "t", from), now);
    }
}

#[test]
fn one_pull_looks_where_the_queue_ends_and_then_as_many_as_allowed_are_under_way() {
    let (mut state, now) = pulled_queue(4, Assignment::default());
    let first = state.requests(0, now);
    assert_eq!(first.iter().map(|r| (r.pull.offset, r.pull.at_end)).collect::<Vec<_>>(), [(0, false)]);
    whole(&mut state, &first, 1000, now);
    let next = state.requests(0, now);
    assert_eq!(next.iter().map(|r| r.pull.offset).collect::<Vec<_>>(), [32, 64, 96, 128]);
    assert!(state.requests(0, now).is_empty());
}

#[test]
fn what_is_behind_the_end_is_asked_for_once_all_before_was_taken() {
    let assignment = Assignment { end: Some(64), reads_ahead: true, ..Assignment::default() };
    let (mut state, now) = pulled_queue(4, assignment);
    for offset in [0, 32] {
        let requests = state.requests(0, now);
        assert_eq!(requests.iter().map(|r| r.pull.offset).collect::<Vec<_>>(), [offset]);
        whole(&mut state, &requests, 1000, now);
    }
    assert!(state.requests(0, now).is_empty());
    let (items, woken) = state.take(9);
    assert_eq!((items.len(), woken), (2, vec![0]));
    let ahead = state.requests(0, now);
    assert_eq!(ahead.iter().map(|r| r.pull.offset).collect::<Vec<_>>(), [64, 96, 128, 160]);
}

#[test]
fn places_are_filled_together_once_enough_of_them_are_free() {
    let mut state = state(PullerOptions { burst: 3, ..options(4, 32) });
    let now = Instant::now();
    state.assign(0, queue("t"), Assignment::default());
    let first = state.requests(0, now);
    whole(&mut state, &first, 1000, now);
    let four = state.requests(0, now);
    assert_eq!(four.len(), 4);
    for request in &four[..2] {
        whole(&mut state, std::slice::from_ref(request), 1000, now);
        assert!(state.requests(0, now).is_empty());
    }
    whole(&mut state, &four[2..3], 1000, now);
    assert_eq!(state.requests(0, now).iter().map(|r| r.pull.offset).collect::<Vec<_>>(), [160, 192, 224]);
}

#[test]
fn what_is_gathered_is_taken_together_and_no_more_than_that_at_a_time() {
    let one = Volume { messages: 32, bytes: 32 * 96 };
    let gather = Gather { bytes: 2 * one.bytes, ..Gather::default() };
    let mut state = state(PullerOptions { gather, ..options(4, 32) });
    let now = Instant::now();
    state.assign(0, queue("t"), Assignment { end: Some(160), ..Assignment::default() });
    let first = state.requests(0, now);
    whole(&mut state, &first, 1000, now);
    assert_eq!((state.ready_or_waiting(), state.is_gathered(9), state.is_gathered(1)), (one, false, true));
    let four = state.requests(0, now);
    whole(&mut state, &four, 1000, now);
    assert!(state.is_gathered(9));
    assert_eq!([state.take(9).0.len(), state.take(9).0.len()], [2, 2]);
    assert!(state.is_gathered(9), "nothing more comes before the end");
    assert_eq!(state.take(9).0.len(), 1);
}

#[test]
fn at_the_end_one_pull_is_held_and_does_not_count() {
    let (mut state, now) = pulled_queue(1, Assignment { start: 10, ..Assignment::default() });
    let first = state.requests(0, now);
    state.answer(first[0].opaque, answer(19, (10, 0, 10), b"", "t", 10), now);
    assert!(state.requests(0, now).is_empty(), "a broker that does not hold pulls is not asked all the time");
    let now = now + Duration::from_millis(60);
    assert_eq!(state.requests(0, now).iter().map(|r| (r.pull.offset, r.pull.at_end)).collect::<Vec<_>>(), [(10, true)]);
    state.assign(0, queue("other"), Assignment::default());
    assert_eq!(state.requests(0, now).len(), 1);
}

/// Answers requests from a full queue until no more are sent. Returns the flow-control events.
fn fill(state: &mut State, now: Instant) -> Vec<FlowControl> {
    loop {
        let requests = state.requests(0, now);
        if requests.is_empty() {
            return flow_control(state);
        }
        whole(state, &requests, 100_000, now);
    }
}

/// Takes all items and returns the flow-control events.
fn flow_control(state: &mut State) -> Vec<FlowControl> {
    let (told, others) =
        std::mem::take(&mut state.ready).into_iter().partition(|item| matches!(item, Item::FlowControl(_)));
    state.ready = others;
    let told: VecDeque<Item> = told;
    told.into_iter().filter_map(|item| if let Item::FlowControl(told) = item { Some(*told) } else { None }).collect()
}

#[test]
fn nothing_is_asked_for_while_too_much_is_there_and_again_once_half_of_it_is_taken() {
    let (mut state, now) = pulled_queue(4, Assignment::default());
    let told = fill(&mut state, now);
    assert_eq!(told.iter().map(|told| (told.messages, told.times)).collect::<Vec<_>>(), [(320, 1)]);
    assert_eq!(state.ready_or_waiting().messages, 320);
    let (items, woken) = state.take(5);
    assert_eq!((items.len(), woken, state.ready_or_waiting().messages), (5, vec![], 160));
    assert!(state.requests(0, now).is_empty());
    assert_eq!((state.take(1).1, state.ready_or_waiting().messages), (vec![0], 128));
    assert_eq!(state.requests(0, now).len(), 4);
    assert_eq!(state.full_times(), 1);
}

#[test]
fn what_was_taken_counts_until_it_is_done() {
    let mut state = state(PullerOptions { counts_until_done: true, ..options(4, 32) });
    let now = Instant::now();
    let epoch = state.assign(0, queue("t"), Assignment::default());
    fill(&mut state, now);
    assert_eq!(state.take(99).0.len(), 10);
    assert_eq!((state.ready_or_waiting(), state.in_hand().messages), (Volume::default(), 320));
    assert!(state.requests(0, now).is_empty());
    let bytes = state.in_hand().bytes;
    assert!(state.acknowledge(epoch, Volume { messages: 169, bytes: bytes / 2 }, 169).is_empty());
    assert!(state.acknowledge(epoch + 1, Volume { messages: 99, bytes: 0 }, 999).is_empty(), "of another epoch");
    assert_eq!(state.acknowledge(epoch, Volume { messages: 1, bytes: 0 }, 170), [0]);
    assert!(!state.requests(0, now).is_empty());
    assert!(state.remove(&queue("t")).is_some());
    assert_eq!(state.in_hand(), Volume::default());
}

#[test]
fn of_a_small_threshold_no_more_is_there_than_it_and_one_answer() {
    let of_queue = Threshold { messages: 50, bytes: i64::MAX };
    let mut state = state(PullerOptions { of_queue, counts_until_done: true, ..options(8, 32) });
    let now = Instant::now();
    let epoch = state.assign(0, queue("t"), Assignment::default());
    let (mut most, mut next) = (0, 0);
    for _ in 0..100 {
        fill(&mut state, now);
        state.take(99);
        most = most.max(state.in_hand().messages);
        next += 7;
        state.acknowledge(epoch, Volume { messages: 7, bytes: 0 }, next);
    }
    assert_eq!(most, 64);
}

#[test]
fn all_queues_have_a_threshold_together() {
    let mut state = state(options(16, 32));
    let now = Instant::now();
    for topic in ["a", "b", "c", "d"] {
        state.assign(0, queue(topic), Assignment::default());
    }
    loop {
        let requests = state.requests(0, now);
        if requests.is_empty() {
            break;
        }
        for request in requests {
            let (topic, from) = (request.queue.topic.clone(), request.pull.offset);
            let mut body = Vec::new();
            (from..from + 32).for_each(|offset| body.extend(record(&topic, 0, offset, b"")));
            state.answer(request.opaque, answer(0, (from + 32, 0, 100_000), &body, &topic, from), now);
        }
    }
    assert_eq!((state.ready_or_waiting().messages, flow_control(&mut state).len()), (512, 1));
    assert!(state.take(7).1.is_empty());
    assert_eq!(state.take(2).1, [0]);
}

#[test]
fn what_is_done_and_what_came_last_must_not_be_too_far_apart() {
    let options = PullerOptions { max_span: 100, counts_until_done: true, ..options(4, 32) };
    let mut state = state(options);
    let now = Instant::now();
    let epoch = state.assign(0, queue("t"), Assignment::default());
    fill(&mut state, now);
    let came = state.ready_or_waiting().messages;
    assert!((101..=256).contains(&came), "{came}");
    state.take(99);
    // all but the first
    assert!(state.acknowledge(epoch, Volume { messages: came - 1, bytes: 0 }, 0).is_empty());
    assert!(state.requests(0, now).is_empty());
    assert_eq!(state.acknowledge(epoch, Volume { messages: 1, bytes: 0 }, came), [0]);
    assert!(!state.requests(0, now).is_empty());
}

#[test]
fn an_answer_that_is_given_back_is_taken_once_more_before_all_others() {
    for counts_until_done in [false, true] {
        let mut state = state(PullerOptions { counts_until_done, ..options(4, 32) });
        let now = Instant::now();
        state.assign(0, queue("t"), Assignment::default());
        fill(&mut state, now);
        let held = state.ready_or_waiting();
        let Some(Item::Answer(first)) = state.take(1).0.pop() else { panic!("nothing came") };
        state.give_back((*first).clone());
        assert_eq!((state.ready_or_waiting(), state.in_hand()), (held, Volume::default()));
        let again = state.take(1).0;
        assert!(matches!(&again[..], [Item::Answer(again)] if again.begin_offset == 0));
        state.seek(&queue("t"), 5).expect("it is pulled");
        state.give_back(*first);
        assert!(state.take(9).0.is_empty());
    }
}

#[test]
fn a_queue_moves_to_another_broker_with_what_is_there_of_it() {
    let (mut state, now) = pulled_queue(4, Assignment::default());
    let first = state.requests(0, now);
    whole(&mut state, &first, 1000, now);
    let late = state.requests(0, now);
    let slave = state.broker(Broker { address: "s:1".into(), is_slave: true });
    assert!(state.move_to(slave, &queue("t")));
    assert!(state.requests(0, now).is_empty());
    let moved = state.requests(slave, now);
    assert_eq!(moved.iter().map(|r| r.pull.offset).collect::<Vec<_>>(), [32, 64, 96, 128]);
    whole(&mut state, &late, 1000, now);
    assert_eq!(state.ready_or_waiting().messages, 32, "answers of the old one are nobody's");
    whole(&mut state, &moved, 1000, now);
    assert_eq!(state.ready_or_waiting().messages, 160);
    assert!(!state.move_to(slave, &queue("u")));
}

#[test]
fn where_the_group_goes_on_is_told_to_masters_only() {
    let options = PullerOptions { commits_offsets: true, counts_until_done: true, ..options(1, 32) };
    let mut state = state(options);
    let now = Instant::now();
    let epoch = state.assign(0, queue("t"), Assignment { start: 5, ..Assignment::default() });
    let first = state.requests(0, now);
    assert_eq!(first[0].commit_offset, 0);
    whole(&mut state, &first, 1000, now);
    state.take(9);
    state.acknowledge(epoch, Volume { messages: 3, bytes: 0 }, 8);
    state.acknowledge(epoch, Volume { messages: 1, bytes: 0 }, 7);
    let next = state.requests(0, now);
    assert_eq!(next[0].commit_offset, 8);
    let slave = state.broker(Broker { address: "s:1".into(), is_slave: true });
    state.move_to(slave, &queue("t"));
    assert_eq!(state.requests(slave, now)[0].commit_offset, 0);
}

#[test]
fn another_expression_is_asked_for_at_once_another_version_of_the_same_from_the_next_request_on() {
    let (mut state, now) = pulled_queue(1, Assignment::default());
    let first = state.requests(0, now);
    state.subscribe("t", &Subscription { version: 7, ..Subscription::default() }.into());
    assert!(state.requests(0, now).is_empty());
    whole(&mut state, &first, 1000, now);
    let second = state.requests(0, now);
    assert_eq!((second[0].subscription.version, state.ready_or_waiting().messages), (7, 32));
    let expression = "TagA".to_owned();
    state.subscribe("t", &Subscription { expression, version: 8, ..Subscription::default() }.into());
    let third = state.requests(0, now);
    assert_eq!((third[0].pull.offset, third[0].subscription.expression.as_str()), (32, "TagA"));
    whole(&mut state, &second, 1000, now);
    assert_eq!(state.ready_or_waiting().messages, 32, "what was asked with the old expression is of no use");
}

#[test]
fn with_an_interval_a_queue_has_one_request_and_a_pause_behind_each_answer_with_messages() {
    let interval = Duration::from_millis(500);
    let mut state = state(PullerOptions { interval, ..options(8, 32) });
    let now = Instant::now();
    state.assign(0, queue("t"), Assignment::default());
    for at in [now, now + interval, now + 2 * interval] {
        let requests = state.requests(0, at);
        assert_eq!(requests.len(), 1);
        whole(&mut state, &requests, 1000, at);
        assert!(state.requests(0, at).is_empty());
        assert_eq!(state.deadline(0, at), Some(interval));
    }
}

#[test]
fn a_broker_with_too_much_to_do_is_asked_again_soon() {
    let (mut state, now) = pulled_queue(4, Assignment::default());
    let first = state.requests(0, now);
    state.answer(first[0].opaque, Answer::failure(215, "flow control"), now);
    assert_eq!(state.deadline(0, now), Some(Duration::from_millis(20)));
}

#[test]
fn a_queue_that_is_assigned_paused_is_not_asked_for_until_it_is_resumed_not_even_elsewhere() {
    let (mut state, now) = pulled_queue(4, Assignment { is_paused: true, ..Assignment::default() });
    assert!(state.requests(0, now).is_empty());
    state.seek(&queue("t"), 7).expect("it is pulled");
    assert!(state.requests(0, now).is_empty());
    state.pause(&queue("t"), false);
    assert_eq!(state.requests(0, now)[0].pull.offset, 7);
    state.seek(&queue("t"), 9).expect("it is pulled");
    assert_eq!(state.requests(0, now)[0].pull.offset, 9);
}

#[test]
fn an_offset_that_the_queue_does_not_have_stops_it_until_a_seek() {
    let (mut state, now) = pulled_queue(4, Assignment { start: 5, ..Assignment::default() });
    let first = state.requests(0, now);
    state.answer(first[0].opaque, answer(21, (70, 70, 90), b"", "t", 5), now);
    let later = now + Duration::from_secs(60);
    assert!(state.requests(0, later).is_empty());
    let items = state.take(9).0;
    assert!(
        matches!(&items[..], [Item::Answer(f)] if f.status == PullStatus::OffsetIllegal && f.next_begin_offset == 70)
    );
    state.seek(&queue("t"), 70).expect("it is pulled");
    assert_eq!(state.requests(0, later)[0].pull.offset, 70);
}

#[test]
fn a_refusal_is_told_once_and_asked_again_after_a_while() {
    let (mut state, now) = pulled_queue(4, Assignment::default());
    let first = state.requests(0, now);
    whole(&mut state, &first, 1000, now);
    let four = state.requests(0, now);
    for request in &four {
        state.answer(request.opaque, Answer::failure(17, "topic[t] not exist"), now);
    }
    assert!(state.requests(0, now).is_empty());
    let items = state.take(9).0;
    let told: Vec<_> = items.iter().filter(|i| matches!(i, Item::Answer(f) if f.code == 17)).collect();
    assert_eq!(told.len(), 1);
    let later = now + Duration::from_secs(1);
    assert_eq!(state.deadline(0, now), Some(Duration::from_secs(1)));
    let mut again: Vec<_> = state.requests(0, later).iter().map(|r| r.pull.offset).collect();
    again.sort_unstable();
    assert_eq!(again, [32, 64, 96, 128]);
}

#[test]
fn a_queue_that_is_paused_or_removed_is_not_asked_for() {
    let (mut state, now) = pulled_queue(4, Assignment::default());
    assert!(state.pause(&queue("t"), true));
    assert!(state.requests(0, now).is_empty());
    assert!(state.pause(&queue("t"), false));
    let requests = state.requests(0, now);
    assert!(state.remove(&queue("t")).is_some());
    whole(&mut state, &requests, 100, now);
    assert!(state.take(9).0.is_empty());
    assert!(!state.pause(&queue("t"), true));
    assert!(state.seek(&queue("t"), 0).is_none());
}

#[test]
fn a_bounded_queue_says_when_it_ended_even_where_there_is_nothing_to_pull() {
    let (mut state, now) = pulled_queue(4, Assignment { start: 7, end: Some(7), ..Assignment::default() });
    assert!(state.requests(0, now).is_empty());
    assert!(matches!(&state.take(9).0[..], [Item::Answer(f)] if f.is_end && f.next_begin_offset == 7));
}

#[test]
fn a_request_without_an_answer_is_told_and_sent_again() {
    let (mut state, now) = pulled_queue(4, Assignment::default());
    let first = state.requests(0, now);
    let late = now + Duration::from_secs(30);
    assert_eq!(state.expire(0, now), None);
    assert_eq!(state.expire(0, late), Some(now));
    assert!(matches!(&state.take(9).0[..], [Item::Answer(f)] if f.remark == "no answer to a pull in 30000 ms"));
    let again = state.requests(0, late + Duration::from_secs(1));
    assert_eq!(again[0].pull.offset, first[0].pull.offset);
    whole(&mut state, &first, 50, late);
    assert!(state.take(9).0.is_empty(), "the late answer is nobody's");
}

#[test]
fn stretches_become_as_long_as_answers_are() {
    let (mut state, now) = pulled_queue(4, Assignment::default());
    let first = state.requests(0, now);
    whole(&mut state, &first, 100_000, now);
    for _ in 0..20 {
        for request in state.requests(0, now) {
            let end = request.pull.offset + request.pull.max_messages.min(8);
            let mut body = Vec::new();
            (request.pull.offset..end).for_each(|offset| body.extend(record("t", 0, offset, b"")));
            state.answer(request.opaque, answer(0, (end, 0, 100_000), &body, "t", request.pull.offset), now);
        }
        state.take(1000);
    }
    let lengths: Vec<_> = state.requests(0, now).iter().map(|request| request.pull.max_messages).collect();
    assert_eq!(lengths, [8; 4]);
}

#[test]
fn a_queue_goes_on_only_where_it_was_taken_up_to_and_with_the_same_messages() {
    let pull = |start, end| Assignment { start, end: Some(end), reads_ahead: true, ..Assignment::default() };
    let (mut state, now) = pulled_queue(4, pull(0, 40));
    let serve = |state: &mut State| {
        while let requests @ [_, ..] = &state.requests(0, now)[..] {
            whole(state, requests, 100, now);
        }
    };
    serve(&mut state);
    let counts = |state: &mut State| -> Vec<usize> {
        let items = state.take(9).0;
        items.iter().filter_map(|item| if let Item::Answer(f) = item { Some(f.rows.len()) } else { None }).collect()
    };
    assert_eq!(counts(&mut state), [32, 8]);
    serve(&mut state);
    assert_eq!((counts(&mut state), state.ready_or_waiting().messages), (vec![], 60));
    let tagged = Subscription::by_tags("A").expect("an expression");
    let others = [
        pull(39, 70),
        Assignment { subscription: tagged.into(), ..pull(40, 70) },
        Assignment { without_properties: true, ..pull(40, 70) },
    ];
    assert!(others.iter().all(|other| state.resume(0, &queue("t"), other).is_none()));
    assert_eq!((state.position(&queue("t")), state.is_gathered(9)), (Some(40), true));
    assert!(state.resume(0, &queue("t"), &pull(40, 70)).is_some());
    assert_eq!((counts(&mut state), state.ready_or_waiting().messages, state.has_queues()), (vec![30], 30, true));
    state.retain(|_| false);
    assert_eq!((state.ready_or_waiting(), state.has_queues(), state.was_lost()), (Volume::default(), false, false));
    state.on_disconnect(0, "gone".into());
    assert!(state.was_lost());
}

#[test]
fn an_answer_has_properties_unless_its_assignment_is_without() {
    for without_properties in [false, true] {
        let (mut state, now) = pulled_queue(4, Assignment { without_properties, ..Assignment::default() });
        let requests = state.requests(0, now);
        let (_, offset, with_properties) = state.pull_of(requests[0].opaque).expect("in flight");
        assert_eq!((offset, with_properties), (0, !without_properties));
    }
}
