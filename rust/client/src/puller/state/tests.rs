//! A broker that answers as it pleases, in any order: nothing is lost, nothing comes twice, all comes in order.
use super::*;
use crate::puller::body::Body;
use crate::puller::fetched::PullStatus;
use crate::puller::options::Gather;
use proptest::prelude::*;
use rmqfast_remoting::{Command, Frame, Header, Limits, Value, frame};
use rmqfast_store::format::host::Host;
use rmqfast_store::format::message::NewMessage;
use std::net::Ipv4Addr;

/// A queue as a broker has it: each message is there or was filtered out.
struct Log {
    min: i64,
    matches: Vec<bool>,
}

impl Log {
    fn max(&self) -> i64 {
        self.min + self.matches.len() as i64
    }

    fn wanted(&self, from: i64, end: i64) -> Vec<i64> {
        (from.max(self.min)..self.max().min(end)).filter(|offset| self.matches[(offset - self.min) as usize]).collect()
    }
}

pub(super) fn record(topic: &str, queue_offset: i64, out: &mut Vec<u8>) {
    let host = Host { ip: Ipv4Addr::LOCALHOST.into(), port: 1 };
    let message = NewMessage {
        queue_id: 0,
        flag: 0,
        queue_offset,
        physical_offset: 0,
        sys_flag: 0,
        born_timestamp: 0,
        born_host: host,
        store_timestamp: 0,
        store_host: host,
        reconsume_times: 0,
        prepared_transaction_offset: 0,
        body: b"body",
        topic,
        properties: b"",
    };
    message.encode(out).expect("a record");
}

/// The answer as it comes out of a frame.
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
    Answer::of(&command, Body::copied(command.body, None), topic, asked)
}

/// What a broker does with a request, as far as a number decides.
fn serve(log: &Log, request: &Request, whim: u32) -> Option<Answer> {
    let (topic, asked) = (request.queue.topic.as_str(), request.wanted.offset);
    let reply = |code, next, body: &[u8]| Some(answer(code, (next, log.min, log.max()), body, topic, asked));
    if asked < log.min {
        return reply(21, log.min, b"");
    }
    if asked >= log.max() {
        return reply(if asked == log.max() { 19 } else { 21 }, log.max(), b"");
    }
    match whim % 16 {
        0 => return Some(Answer::failed(2, "system busy")),
        1 => return reply(20, asked, b""),
        2 => return reply(0, asked + 1, b"no record"),
        3 => return None,
        _ => {}
    }
    let most = 1 + i64::from(whim / 16 % 7) * request.wanted.max_messages / 4;
    let (mut next, mut body, mut found) = (asked, Vec::new(), 0);
    while next < log.max() && found < most.min(request.wanted.max_messages) && next < asked + 100 {
        if log.matches[(next - log.min) as usize] {
            record(topic, next, &mut body);
            found += 1;
        }
        next += 1;
    }
    reply(if found > 0 { 0 } else { 20 }, next, &body)
}

/// Plays until all was handed out; what came, with where each answer begins and ends.
struct Play {
    state: State,
    now: Instant,
    whims: Box<dyn FnMut() -> u32>,
    got: HashMap<(String, u64), Vec<i64>>,
    reached: HashMap<(String, u64), i64>,
    most_held: i64,
    /// The same and what was just taken, of the queue that has most of it.
    most_of_queue: i64,
}

impl Play {
    fn new(options: PullerOptions, whims: impl FnMut() -> u32 + 'static) -> Self {
        let (got, reached) = (HashMap::new(), HashMap::new());
        let state = State::new(options.into());
        Self { state, now: Instant::now(), whims: Box::new(whims), got, reached, most_held: 0, most_of_queue: 0 }
    }

    /// Sends, answers in any order, takes now and then, until `is_done`.
    fn run(&mut self, logs: &HashMap<String, Log>, mut is_done: impl FnMut(&Self) -> bool) {
        let mut open = Vec::new();
        for _ in 0..200_000 {
            if is_done(self) {
                return;
            }
            open.extend(self.state.requests(self.now));
            let whim = (self.whims)();
            if open.is_empty() || whim.is_multiple_of(64) {
                self.now += Duration::from_millis(u64::from(whim % 3000));
            }
            if whim.is_multiple_of(97) {
                self.state.lost("gone".into());
                open.clear();
            }
            if !open.is_empty() {
                let request: Request = open.swap_remove(whim as usize / 7 % open.len());
                if let Some(answer) = serve(&logs[&request.queue.topic], &request, (self.whims)()) {
                    self.state.answer(request.opaque, answer, self.now);
                }
            }
            self.state.expire(self.now);
            self.most_held = self.most_held.max(self.state.held().messages);
            let of_queues = self.state.queues.values().map(|queue| queue.held().messages + queue.in_hand.messages);
            self.most_of_queue = of_queues.chain([self.most_of_queue]).max().unwrap_or(0);
            if whim.is_multiple_of(3) || !self.state.is_full {
                self.state.release();
                let items = self.state.take((self.whims)() as usize % 4);
                items.into_iter().for_each(|item| self.note(item));
            }
        }
        panic!("no end after 200000 steps: {:?}", self.state);
    }

    fn note(&mut self, item: Item) {
        let Item::Fetched(fetched) = item else { return };
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
    Queue { topic: topic.into(), queue_id: 0 }
}

fn options(depth: usize, batch: i64) -> PullerOptions {
    let of_queue = Allowance { messages: 300, bytes: 1 << 20 };
    PullerOptions { depth, batch, of_queue, in_all: Allowance { messages: 500, ..of_queue }, ..Default::default() }
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
    ) {
        let mut whims = whims(seed);
        let gather = Gather { bytes: gathered, ..Gather::default() };
        let options = PullerOptions { burst, gather, ..options(depth, batch) };
        let mut play = Play::new(options, self::whims(seed ^ 1));
        let mut logs = HashMap::new();
        for (i, length) in lengths.into_iter().enumerate() {
            let topic = format!("t{i}");
            let matches = (0..length).map(|_| !is_filtered || whims() % 100 < density).collect();
            let log = Log { min, matches };
            let end = (i % 2 == 0).then(|| min + length as i64 * 3 / 4);
            let expression = if is_filtered { "TagA" } else { "*" }.into();
            play.state.assign(queue(&topic), Assignment { start: min, end, expression, ..Assignment::default() });
            logs.insert(topic, (log, end));
        }
        let expected: HashMap<_, _> = logs.iter().map(|(topic, (log, end))| {
            let end = end.unwrap_or(log.max());
            (topic.clone(), (end, log.wanted(log.min, end)))
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
        // what a filter's stretch brings is not known before
        prop_assert!(is_filtered || play.most_of_queue < 300 + batch, "{}", play.most_of_queue);
    }

    #[test]
    fn after_a_seek_only_what_belongs_to_it_comes(
        length in 50_usize..400, to in 0_i64..400, after in 0_usize..60, seed in any::<u64>(),
    ) {
        let log = Log { min: 0, matches: vec![true; length] };
        let to = to.min(log.max());
        let expected = log.wanted(to, log.max());
        let max = log.max();
        let logs = HashMap::from([("t".to_owned(), log)]);
        let mut play = Play::new(options(8, 16), whims(seed));
        play.state.assign(queue("t"), Assignment::default());
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

fn pulled(depth: usize, assignment: Assignment) -> (State, Instant) {
    let mut state = State::new(options(depth, 32).into());
    state.assign(queue("t"), assignment);
    (state, Instant::now())
}

fn whole(state: &mut State, requests: &[Request], max: i64, now: Instant) {
    for request in requests {
        let (from, end) = (request.wanted.offset, (request.wanted.offset + request.wanted.max_messages).min(max));
        let mut body = Vec::new();
        (from..end).for_each(|offset| record("t", offset, &mut body));
        state.answer(request.opaque, answer(0, (end, 0, max), &body, "t", from), now);
    }
}

#[test]
fn one_pull_looks_where_the_queue_ends_and_then_as_many_as_allowed_are_under_way() {
    let (mut state, now) = pulled(4, Assignment::default());
    let first = state.requests(now);
    assert_eq!(first.iter().map(|r| (r.wanted.offset, r.wanted.at_end)).collect::<Vec<_>>(), [(0, false)]);
    whole(&mut state, &first, 1000, now);
    let next = state.requests(now);
    assert_eq!(next.iter().map(|r| r.wanted.offset).collect::<Vec<_>>(), [32, 64, 96, 128]);
    assert!(state.requests(now).is_empty());
}

#[test]
fn places_are_filled_together_once_enough_of_them_are_free() {
    let mut state = State::new(PullerOptions { burst: 3, ..options(4, 32) }.into());
    let now = Instant::now();
    state.assign(queue("t"), Assignment::default());
    let first = state.requests(now);
    whole(&mut state, &first, 1000, now);
    let four = state.requests(now);
    assert_eq!(four.len(), 4);
    for request in &four[..2] {
        whole(&mut state, std::slice::from_ref(request), 1000, now);
        assert!(state.requests(now).is_empty());
    }
    whole(&mut state, &four[2..3], 1000, now);
    assert_eq!(state.requests(now).iter().map(|r| r.wanted.offset).collect::<Vec<_>>(), [160, 192, 224]);
}

#[test]
fn what_is_gathered_is_taken_together_and_no_more_than_that_at_a_time() {
    let one = Held { messages: 32, bytes: 32 * 96 };
    let gather = Gather { bytes: 2 * one.bytes, ..Gather::default() };
    let mut state = State::new(PullerOptions { gather, ..options(4, 32) }.into());
    let now = Instant::now();
    state.assign(queue("t"), Assignment { end: Some(160), ..Assignment::default() });
    let first = state.requests(now);
    whole(&mut state, &first, 1000, now);
    assert_eq!((state.held(), state.is_gathered(9), state.is_gathered(1)), (one, false, true));
    let four = state.requests(now);
    whole(&mut state, &four, 1000, now);
    assert!(state.is_gathered(9));
    assert_eq!([state.take(9).len(), state.take(9).len()], [2, 2]);
    assert!(!state.is_gathered(9), "more may be under way, as far as is known");
    assert!(state.requests(now).is_empty());
    assert!(state.is_gathered(9), "nothing more comes");
    assert_eq!(state.take(9).len(), 1);
}

#[test]
fn at_the_end_one_pull_is_held_and_does_not_count() {
    let (mut state, now) = pulled(1, Assignment { start: 10, ..Assignment::default() });
    let first = state.requests(now);
    state.answer(first[0].opaque, answer(19, (10, 0, 10), b"", "t", 10), now);
    assert!(state.requests(now).is_empty(), "a broker that does not hold pulls is not asked all the time");
    let now = now + Duration::from_millis(60);
    assert_eq!(
        state.requests(now).iter().map(|r| (r.wanted.offset, r.wanted.at_end)).collect::<Vec<_>>(),
        [(10, true)]
    );
    state.assign(queue("other"), Assignment::default());
    assert_eq!(state.requests(now).len(), 1);
}

#[test]
fn nothing_is_asked_for_while_too_much_is_held_and_again_once_it_was_taken() {
    let (mut state, now) = pulled(4, Assignment::default());
    for _ in 0..100 {
        let requests = state.requests(now);
        whole(&mut state, &requests, 100_000, now);
    }
    let held = state.held().messages;
    assert!((300..300 + 5 * 32).contains(&held), "{held}");
    assert!(state.is_full);
    let items = state.take(100);
    assert_eq!((state.held(), items.is_empty()), (Held::default(), false));
    assert!(state.requests(now).is_empty(), "whoever took it may be about to pause the queue");
    assert!(state.release());
    assert_eq!(state.requests(now).len(), 4);
}

#[test]
fn a_queue_that_is_paused_after_a_take_brings_no_more_than_was_allowed() {
    for in_hand in 0..=4 {
        let of_queue = Allowance { messages: 4 * 32, bytes: i64::MAX };
        let mut state = State::new(PullerOptions { of_queue, in_all: of_queue, ..options(4, 32) }.into());
        let now = Instant::now();
        state.assign(queue("t"), Assignment::default());
        let answer_all = |state: &mut State| {
            for _ in 0..9 {
                let requests = state.requests(now);
                whole(state, &requests, 100_000, now);
            }
        };
        answer_all(&mut state);
        let taken = state.take(in_hand).len();
        answer_all(&mut state);
        state.pause(&queue("t"), true);
        state.release();
        answer_all(&mut state);
        assert_eq!((taken, taken + state.take(9).len()), (in_hand, 4));
    }
}

#[test]
fn a_queue_that_is_assigned_paused_is_not_asked_for_until_it_is_resumed_not_even_elsewhere() {
    let (mut state, now) = pulled(4, Assignment { is_paused: true, ..Assignment::default() });
    assert!(state.requests(now).is_empty());
    state.seek(&queue("t"), 7).expect("it is pulled");
    assert!(state.requests(now).is_empty());
    state.pause(&queue("t"), false);
    assert_eq!(state.requests(now)[0].wanted.offset, 7);
    state.seek(&queue("t"), 9).expect("it is pulled");
    assert_eq!(state.requests(now)[0].wanted.offset, 9);
}

#[test]
fn an_offset_that_the_queue_does_not_have_stops_it_until_a_seek() {
    let (mut state, now) = pulled(4, Assignment { start: 5, ..Assignment::default() });
    let first = state.requests(now);
    state.answer(first[0].opaque, answer(21, (70, 70, 90), b"", "t", 5), now);
    let later = now + Duration::from_secs(60);
    assert!(state.requests(later).is_empty());
    let items = state.take(9);
    assert!(
        matches!(&items[..], [Item::Fetched(f)] if f.status == PullStatus::OffsetIllegal && f.next_begin_offset == 70)
    );
    state.seek(&queue("t"), 70).expect("it is pulled");
    assert_eq!(state.requests(later)[0].wanted.offset, 70);
}

#[test]
fn a_refusal_is_told_once_and_asked_again_after_a_while() {
    let (mut state, now) = pulled(4, Assignment::default());
    let first = state.requests(now);
    whole(&mut state, &first, 1000, now);
    let four = state.requests(now);
    for request in &four {
        state.answer(request.opaque, Answer::failed(17, "topic[t] not exist"), now);
    }
    assert!(state.requests(now).is_empty());
    let items = state.take(9);
    let told: Vec<_> = items.iter().filter(|i| matches!(i, Item::Fetched(f) if f.code == 17)).collect();
    assert_eq!(told.len(), 1);
    let later = now + Duration::from_secs(1);
    assert_eq!(state.deadline(now), Some(Duration::from_secs(1)));
    let mut again: Vec<_> = state.requests(later).iter().map(|r| r.wanted.offset).collect();
    again.sort_unstable();
    assert_eq!(again, [32, 64, 96, 128]);
}

#[test]
fn a_queue_that_is_paused_or_removed_is_not_asked_for() {
    let (mut state, now) = pulled(4, Assignment::default());
    assert!(state.pause(&queue("t"), true));
    assert!(state.requests(now).is_empty());
    assert!(state.pause(&queue("t"), false));
    let requests = state.requests(now);
    assert!(state.remove(&queue("t")).is_some());
    whole(&mut state, &requests, 100, now);
    assert!(state.take(9).is_empty());
    assert!(!state.pause(&queue("t"), true));
    assert!(state.seek(&queue("t"), 0).is_none());
}

#[test]
fn a_bounded_queue_says_when_it_ended_even_where_there_is_nothing_to_pull() {
    let (mut state, now) = pulled(4, Assignment { start: 7, end: Some(7), ..Assignment::default() });
    assert!(state.requests(now).is_empty());
    assert!(matches!(&state.take(9)[..], [Item::Fetched(f)] if f.is_end && f.next_begin_offset == 7));
}

#[test]
fn a_request_without_an_answer_is_told_and_sent_again() {
    let (mut state, now) = pulled(4, Assignment::default());
    let first = state.requests(now);
    let late = now + Duration::from_secs(30);
    assert_eq!(state.expire(now), None);
    assert_eq!(state.expire(late), Some(now));
    assert!(matches!(&state.take(9)[..], [Item::Fetched(f)] if f.remark == "no answer to a pull in 30000 ms"));
    let again = state.requests(late + Duration::from_secs(1));
    assert_eq!(again[0].wanted.offset, first[0].wanted.offset);
    whole(&mut state, &first, 50, late);
    assert!(state.take(9).is_empty(), "the late answer is nobody's");
}

#[test]
fn stretches_become_as_long_as_answers_are() {
    let (mut state, now) = pulled(4, Assignment::default());
    let first = state.requests(now);
    whole(&mut state, &first, 100_000, now);
    for _ in 0..20 {
        for request in state.requests(now) {
            let end = request.wanted.offset + request.wanted.max_messages.min(8);
            let mut body = Vec::new();
            (request.wanted.offset..end).for_each(|offset| record("t", offset, &mut body));
            state.answer(request.opaque, answer(0, (end, 0, 100_000), &body, "t", request.wanted.offset), now);
        }
        state.take(1000);
        state.release();
    }
    let lengths: Vec<_> = state.requests(now).iter().map(|request| request.wanted.max_messages).collect();
    assert_eq!(lengths, [8; 4]);
}
