//! Tracks how far a range is read, and decides how to react to each answer. Does no I/O and reads no clock.
//!
//! ```text
//!  answer                        without a filter               with a filter
//!  ───────────────────────────────────────────────────────────────────────────────────────────────────────────────
//!  messages, next offset         as many as offsets, or a loss  no loss: the broker left messages out
//!  nothing new, before the end   the queue ends too early: retried until patience ends, then a loss;
//!                                normal for a range without end
//!  illegal offset                see `puller/illegal_offset.rs`: a loss, or the queue ends too early, as above
//!  refused                       retried until patience ends, but permanent refusals are an error at once
//! ```
//!
//! Source: `PullMessageProcessor.processRequest`, `DefaultMessageStore.getMessage`, `PullStatus`.
use super::range::QueueRange;
use crate::puller::{IllegalOffset, PullStatus, PulledAnswer};
use rmqfast_remoting::code::response;
use std::fmt;
use std::time::Duration;

// Permanent refusals: permissions, filter expressions, and the broker's configuration.
const FINAL_CODES: [i32; 4] = [
    response::NO_PERMISSION,
    response::SUBSCRIPTION_PARSE_FAILED,
    response::SUBSCRIPTION_GROUP_NOT_EXIST,
    response::FILTER_DATA_NOT_EXIST,
];
// Parts of permanent refusals that share the response code 1.
const FINAL_REMARKS: [&str; 3] = ["AclException", "is illegal, topic", "filter message by SQL92"];

/// The reaction to an answer of a range.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Whether the answer has messages to return.
    pub has_rows: bool,
    /// Description of lost messages.
    pub loss: Option<String>,
    /// Offset at which to continue, if it differs from the answer's next offset.
    pub seek: Option<i64>,
    /// Whether the reader waits before it continues at `seek`.
    pub is_late: bool,
    /// Error text of a refusal that a retry would not change.
    pub refusal: Option<String>,
}

/// Reason why a range makes no progress.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The queue ends at this offset, before the range ends.
    EndsAt(i64),
    /// The broker is not reachable or refuses, with the reason.
    Broker(String),
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EndsAt(end) => {
                write!(f, "the queue ends at {end}: its broker lost its last messages, or the topic was made anew")
            }
            Self::Broker(text) => f.write_str(text),
        }
    }
}

/// The progress of a range. All times are durations since the same moment, which the caller chooses.
#[derive(Debug)]
pub struct Progress {
    range: QueueRange,
    is_filtered: bool,
    next: i64,
    is_done: bool,
    trouble: Option<Trouble>,
    moved_at: Duration,
    last_end: i64,
}

impl Progress {
    /// Starts at the beginning of a range. `is_filtered` says whether the broker filters messages.
    pub fn new(range: QueueRange, is_filtered: bool) -> Self {
        let (next, is_done) = (range.start, range.start >= range.end);
        Self { range, is_filtered, next, is_done, trouble: None, moved_at: Duration::ZERO, last_end: -1 }
    }

    pub fn range(&self) -> &QueueRange {
        &self.range
    }

    /// Returns the next offset to read.
    pub fn next(&self) -> i64 {
        self.next
    }

    /// Returns whether the range is read to its end.
    pub fn is_done(&self) -> bool {
        self.is_done
    }

    /// Returns why the range makes no progress, or `None` if it does.
    pub fn trouble(&self) -> Option<&Trouble> {
        self.trouble.as_ref()
    }

    /// Returns the time without progress; zero while an endless range waits for new messages.
    pub fn stall_time(&self, now: Duration) -> Duration {
        // an endless range may wait for messages longer than patience lasts
        let is_held = self.range.is_endless() && self.trouble.is_none();
        if is_held { Duration::ZERO } else { now.saturating_sub(self.moved_at) }
    }

    /// Returns whether the queue ends before the range does, and the broker answers.
    pub fn ends_early(&self) -> bool {
        matches!(self.trouble, Some(Trouble::EndsAt(_)))
    }

    /// Processes an answer, whose messages then count as returned. Returns how to react to the answer.
    pub fn take(&mut self, answer: &PulledAnswer, now: Duration) -> Verdict {
        if answer.status == PullStatus::Failed {
            return self.on_refused(answer);
        }
        // a broker that recovers indexes its messages gradually: patience restarts while the queue's end grows
        if answer.max_offset > self.last_end {
            (self.last_end, self.moved_at) = (answer.max_offset, now);
        }
        if answer.status == PullStatus::OffsetIllegal {
            return self.on_offset_illegal(answer, now);
        }
        let before = self.next;
        // a broker that lost messages may return a lower offset, which would repeat messages
        self.next = before.max(answer.next_begin_offset);
        self.is_done = answer.is_end || self.next >= self.range.end;
        // at the end of an endless range this is normal: the broker held the pull and found nothing
        if self.next == before && !self.is_done && !self.range.is_endless() {
            self.trouble = Some(Trouble::EndsAt(answer.max_offset));
            return Verdict::default();
        }
        (self.moved_at, self.trouble) = (now, None);
        Verdict { has_rows: !answer.rows.is_empty(), loss: self.gap(answer, before), ..Verdict::default() }
    }

    /// Called when the connection to the broker was lost.
    pub fn on_disconnect(&mut self, reason: &str) {
        // an early end of the queue is the better explanation
        if !self.ends_early() {
            self.trouble = Some(Trouble::Broker(reason.to_owned()));
        }
    }

    /// Ends the range early and reports its rest as lost. Called when the range has made no progress for longer than
    /// `patience`.
    pub fn give_up(&mut self) -> Verdict {
        let (start, end) = (self.next, self.range.end);
        (self.next, self.is_done) = (end, true);
        let trouble = self.trouble.as_ref().map(Trouble::to_string).unwrap_or_default();
        Verdict { loss: Some(format!("offsets {start} to {end}: {trouble}")), ..Verdict::default() }
    }

    fn on_refused(&mut self, answer: &PulledAnswer) -> Verdict {
        let (code, remark) = (answer.code, &answer.remark);
        // a negative code is the client's own: no broker answered
        let text = if code >= 0 { format!("CODE: {code}  DESC: {remark}") } else { remark.clone() };
        self.on_disconnect(&text);
        let is_final =
            FINAL_CODES.contains(&code) || code > 0 && FINAL_REMARKS.iter().any(|part| remark.contains(part));
        Verdict { refusal: is_final.then_some(text), ..Verdict::default() }
    }

    fn on_offset_illegal(&mut self, answer: &PulledAnswer, now: Duration) -> Verdict {
        // a broker that recovers may still index the rest
        if IllegalOffset::of(self.next, answer.min_offset) == IllegalOffset::BehindEnd {
            self.trouble = Some(Trouble::EndsAt(answer.max_offset));
            return Verdict { seek: Some(self.next), is_late: true, ..Verdict::default() };
        }
        let (start, first) = (self.next, answer.min_offset);
        self.next = first.min(self.range.end);
        (self.is_done, self.moved_at) = (self.next >= self.range.end, now);
        let loss = format!("offsets {start} to {} have expired, the queue begins at {first}", self.next);
        Verdict { loss: Some(loss), seek: (!self.is_done).then_some(self.next), ..Verdict::default() }
    }

    fn gap(&self, answer: &PulledAnswer, before: i64) -> Option<String> {
        let missing = answer.next_begin_offset - answer.begin_offset - answer.rows.len() as i64;
        let is_lost = !self.is_filtered && missing > 0;
        is_lost.then(|| format!("{missing} of offsets {before} to {} are not in the broker's log any more", self.next))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::puller::{Answer, Queue};
    use rmqfast_store::format::message::Layout;
    use rmqfast_store::scan::row::Row;

    const SECOND: Duration = Duration::from_secs(1);

    fn progress(is_filtered: bool) -> Progress {
        let queue = Queue { topic: "orders".into(), broker_name: "broker-a".into(), queue_id: 0 };
        Progress::new(QueueRange { queue, start: 10, end: 50 }, is_filtered)
    }

    /// Returns an answer to a pull from `begin` on: it has `count` messages.
    fn answer(status: PullStatus, begin: i64, next: i64, bounds: (i64, i64), count: usize) -> PulledAnswer {
        let layout = Layout { total: 0, sys_flag: 0, body: 0, body_len: 0, topic: 0, topic_len: 0, properties_len: 0 };
        let rows = vec![Row::new(0, layout); count];
        let answer = Answer { status, next, bounds, rows, code: 0, ..Answer::failure(0, "") };
        PulledAnswer::new(progress(false).range.queue.into(), begin, answer, None)
    }

    fn found(begin: i64, next: i64, count: usize) -> PulledAnswer {
        answer(PullStatus::Found, begin, next, (0, 100), count)
    }

    fn failed(code: i32, remark: &str) -> PulledAnswer {
        PulledAnswer::new(progress(false).range.queue.into(), 10, Answer::failure(code, remark), None)
    }

    fn rows() -> Verdict {
        Verdict { has_rows: true, ..Verdict::default() }
    }

    #[test]
    fn messages_one_after_the_other_lead_to_the_end() {
        let mut progress = progress(false);
        assert_eq!(progress.take(&found(10, 20, 10), SECOND), rows());
        assert_eq!((progress.next(), progress.is_done(), progress.stall_time(5 * SECOND)), (20, false, 4 * SECOND));
        let last = PulledAnswer { is_end: true, ..found(20, 50, 30) };
        assert_eq!((progress.take(&last, 2 * SECOND), progress.is_done()), (rows(), true));
    }

    #[test]
    fn an_empty_range_is_done_at_once() {
        let range = QueueRange { end: 10, ..progress(false).range };
        assert!(Progress::new(range, false).is_done());
    }

    #[test]
    fn fewer_messages_than_offsets_are_a_loss_unless_a_filter_left_them_out() {
        let loss = Some("3 of offsets 10 to 20 are not in the broker's log any more".to_owned());
        assert_eq!(progress(false).take(&found(10, 20, 7), SECOND), Verdict { loss, ..rows() });
        assert_eq!(progress(true).take(&found(10, 20, 7), SECOND), rows());
        let removed = PulledAnswer { is_end: true, ..answer(PullStatus::NoMatchedMsg, 10, 50, (0, 100), 0) };
        let loss = progress(false).take(&removed, SECOND).loss.expect("a loss");
        assert!(loss.starts_with("40 of offsets 10 to 50"), "{loss}");
    }

    #[test]
    fn an_offset_that_expired_is_a_loss_up_to_the_first_that_is_there() {
        let mut filtered = progress(true);
        let verdict = filtered.take(&answer(PullStatus::OffsetIllegal, 10, 30, (30, 100), 0), SECOND);
        let loss = "offsets 10 to 30 have expired, the queue begins at 30".to_owned();
        assert_eq!(verdict, Verdict { loss: Some(loss), seek: Some(30), ..Verdict::default() });
        assert_eq!((filtered.next(), filtered.is_done()), (30, false));
        let mut all = progress(false);
        let loss = all.take(&answer(PullStatus::OffsetIllegal, 10, 70, (70, 100), 0), SECOND).loss;
        assert_eq!(loss.as_deref(), Some("offsets 10 to 50 have expired, the queue begins at 70"));
        assert!(all.is_done());
    }

    #[test]
    fn a_queue_that_ends_before_the_range_is_asked_again_and_is_a_loss_in_the_end() {
        for end in [5, 0] {
            let mut progress = progress(false);
            let verdict = progress.take(&answer(PullStatus::OffsetIllegal, 10, end, (0, end), 0), SECOND);
            assert_eq!(verdict, Verdict { seek: Some(10), is_late: true, ..Verdict::default() });
            assert!(progress.ends_early() && !progress.is_done());
            let loss = progress.give_up().loss.expect("a loss");
            assert!(loss.starts_with(&format!("offsets 10 to 50: the queue ends at {end}")), "{loss}");
            assert!(progress.is_done());
        }
    }

    #[test]
    fn a_queue_that_grows_again_is_waited_for() {
        let mut progress = progress(false);
        for (now, end) in [(1, 5), (30, 7), (60, 9), (70, 9)] {
            progress.take(&answer(PullStatus::OffsetIllegal, 10, end, (0, end), 0), now * SECOND);
        }
        assert_eq!(progress.stall_time(80 * SECOND), 20 * SECOND);
    }

    #[test]
    fn nothing_new_before_the_end_is_waited_for() {
        let mut progress = progress(false);
        assert_eq!(progress.take(&answer(PullStatus::NoNewMsg, 10, 10, (0, 10), 0), SECOND), Verdict::default());
        assert!(progress.ends_early() && progress.next() == 10);
        assert_eq!(progress.take(&found(10, 20, 10), SECOND), rows());
        assert!(!progress.ends_early());
    }

    #[test]
    fn a_range_without_end_waits_for_messages_and_never_loses_patience() {
        let range = QueueRange { end: QueueRange::ENDLESS, ..progress(false).range };
        let mut endless = Progress::new(range, false);
        let nothing = answer(PullStatus::NoNewMsg, 10, 10, (0, 10), 0);
        assert_eq!(endless.take(&nothing, 90 * SECOND), Verdict::default());
        assert_eq!((endless.trouble(), endless.stall_time(900 * SECOND)), (None, Duration::ZERO));
        // the queue was truncated, or the topic was created again
        let verdict = endless.take(&answer(PullStatus::OffsetIllegal, 10, 5, (0, 5), 0), 91 * SECOND);
        assert!(verdict.is_late && endless.ends_early());
        assert_eq!(endless.stall_time(100 * SECOND), 10 * SECOND);
    }

    #[test]
    fn what_will_never_be_otherwise_is_a_refusal_at_once() {
        for (code, remark) in [
            (16, "the topic[orders] pulling message is forbidden"),
            (23, "parse the consumer's subscription failed"),
            (26, "subscription group [g] does not exist"),
            (1, "queueId[9] is illegal, topic:[orders]"),
            (1, "The broker does not support consumer to filter message by SQL92"),
            (1, "org.apache.rocketmq.acl.common.AclException: Check signature failed"),
        ] {
            let refusal = progress(false).take(&failed(code, remark), SECOND).refusal;
            assert_eq!(refusal, Some(format!("CODE: {code}  DESC: {remark}")));
        }
    }

    #[test]
    fn what_may_be_otherwise_soon_is_tried_again() {
        for (code, remark) in [(2, "busy"), (17, "topic[orders] not exist"), (-1, "no answer"), (1, "?")] {
            let mut progress = progress(false);
            assert_eq!(progress.take(&failed(code, remark), 8 * SECOND), Verdict::default());
            assert!(progress.trouble().is_some_and(|trouble| trouble.to_string().contains(remark)));
            assert_eq!(progress.stall_time(9 * SECOND), 9 * SECOND);
        }
    }
}
