//! The attempts of one send: chooses the queue of each attempt, and decides whether a failure is retried.
//!
//! Source: `DefaultMQProducerImpl.sendDefaultImpl`, `MQClientAPIImpl.sendMessageAsync`, `onExceptionImpl`.
use super::fault_strategy::FaultStrategy;
use super::publish_queues::{Choice, PublishQueues};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

// Codes of Java's `ClientErrorCode`.
const CONNECT_BROKER: i32 = 10001;
const ACCESS_BROKER_TIMEOUT: i32 = 10002;
const BROKER_NOT_EXIST: i32 = 10003;

/// Rules for retries of a send.
#[derive(Clone, Debug)]
pub struct RetryRules {
    pub retries: usize,
    /// Response codes that are retried. Failures of the connection are always retried.
    pub response_codes: HashSet<i32>,
    /// Whether a message is sent to another broker after a status other than SEND_OK.
    pub retry_another_broker: bool,
    /// Whether a retry may go to another queue. False if the application chose the queue.
    pub moves: bool,
    /// Whether the rules of Java's asynchronous sends apply: a retry keeps the queue id at the next broker, and the
    /// send fails with its last error.
    pub is_async: bool,
}

impl RetryRules {
    /// Returns the rules for a single attempt, to a queue that the application chose.
    pub fn once() -> Self {
        let response_codes = HashSet::new();
        Self { retries: 0, response_codes, retry_another_broker: false, moves: false, is_async: false }
    }

    /// Returns the same rules, except that a retry may go to another queue.
    #[must_use]
    pub fn moving(self) -> Self {
        Self { moves: true, ..self }
    }
}

/// The outcome of one attempt to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptEnd {
    /// The message is stored. `is_safe` is true for SEND_OK.
    Stored {
        is_safe: bool,
    },
    /// The broker answered with an error code.
    Response(i32),
    Connect,
    /// No answer within the timeout.
    Timeout,
    /// An answer without a required field.
    Malformed,
    /// The connection failed for another reason than a timeout.
    Remoting,
    /// The client could not send the request, for example to an unknown broker.
    Client,
    /// An error for which another broker is not tried, for example a call in a forked process.
    Other,
}

/// The send's timeout was over before an attempt began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeOver(pub &'static str);

/// The attempts of one send. The caller repeats three steps until `record` returns false: [`begin`](Self::begin), the
/// request itself, and [`record`](Self::record).
#[derive(Debug)]
pub struct Attempts {
    rules: Arc<RetryRules>,
    began: Instant,
    attempt_began: Instant,
    deadline: Instant,
    choice: Option<Choice>,
    brokers: Vec<Arc<str>>,
    is_stored: bool,
    failure: Option<AttemptEnd>,
    is_refused: bool,
}

impl Attempts {
    /// Creates a send that began at `began`. `choice` is the queue of the first attempt, if the application chose it.
    pub fn new(rules: Arc<RetryRules>, choice: Option<Choice>, began: Instant, timeout: Duration) -> Self {
        let deadline = began + timeout;
        let (brokers, failure) = (Vec::with_capacity(1), None);
        Self {
            rules,
            began,
            attempt_began: began,
            deadline,
            choice,
            brokers,
            is_stored: false,
            failure,
            is_refused: false,
        }
    }

    /// Returns the deadline of all attempts together.
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Begins the next attempt and returns its queue.
    ///
    /// # Errors
    /// The timeout is over.
    pub fn begin(
        &mut self,
        queues: &PublishQueues,
        strategy: Option<&FaultStrategy>,
        now: Instant,
    ) -> Result<Choice, TimeOver> {
        let rules = &self.rules;
        // an asynchronous send checks the timeout after an attempt: see `record`
        if now > self.deadline && !rules.is_async {
            return Err(TimeOver(if rules.moves { "sendDefaultImpl call timeout" } else { "call timeout" }));
        }
        let last = self.brokers.last();
        let choice = match self.choice.take() {
            Some(choice) if !rules.moves || last.is_none() => choice,
            before => {
                let selected = match strategy {
                    Some(strategy) => strategy.select(queues, now),
                    None => queues.select(last.map(|name| &**name)).map(Choice::Listed),
                };
                // no queue to send to
                let selected = selected.ok_or(TimeOver("sendDefaultImpl call timeout"))?;
                match before.filter(|_| rules.is_async) {
                    // Java sends the same request to another broker, and its header contains the queue id
                    Some(before) => Choice::Named(selected.broker_name(queues).clone(), before.queue_id(queues)),
                    None => selected,
                }
            }
        };
        self.brokers.push(choice.broker_name(queues).clone());
        self.attempt_began = now;
        self.choice = Some(choice.clone());
        Ok(choice)
    }

    /// Records the outcome of an attempt. Returns whether another attempt follows. `latency` is what the fault strategy
    /// learns of the broker; by default it is the duration of the attempt.
    pub fn record(
        &mut self,
        end: AttemptEnd,
        strategy: Option<&FaultStrategy>,
        now: Instant,
        latency: Option<Duration>,
    ) -> bool {
        let rules = &self.rules;
        // Java does not record the latency of a blocking send to a queue that the application chose
        let records = rules.moves || rules.is_async;
        if let (Some(strategy), Some(broker_name)) = (strategy.filter(|_| records), self.brokers.last()) {
            let latency = latency.unwrap_or_else(|| now.saturating_duration_since(self.attempt_began));
            let isolates = !matches!(end, AttemptEnd::Stored { .. });
            strategy.update(broker_name, latency.as_millis() as u64, isolates, now);
        }
        let again = match end {
            AttemptEnd::Stored { is_safe } => {
                self.is_stored = true;
                rules.retry_another_broker && !is_safe
            }
            end => {
                self.failure = Some(end);
                self.is_refused = matches!(end, AttemptEnd::Response(code) if !rules.response_codes.contains(&code));
                // as in Java, an asynchronous send does not retry after a malformed answer
                let is_final = self.is_refused || end == AttemptEnd::Other;
                !(is_final || rules.is_async && end == AttemptEnd::Malformed)
            }
        };
        again && self.brokers.len() <= rules.retries && !(rules.is_async && now >= self.deadline)
    }

    /// Returns whether the send fails with its last error unchanged, instead of [`failed_text`](Self::failed_text).
    pub fn ends_with_last_error(&self) -> bool {
        self.is_refused || self.rules.is_async || !self.rules.moves
    }

    pub fn is_stored(&self) -> bool {
        self.is_stored
    }

    /// Returns the text of the error after all attempts failed.
    pub fn failed_text(&self, topic: &str, now: Instant) -> String {
        let cost = now.saturating_duration_since(self.began).as_millis();
        let asked = self.brokers.iter().map(|name| &**name);
        // Java prints an array with one place per allowed attempt, hence "null" for unused places
        let total = self.rules.retries + 1;
        let names: Vec<&str> = asked.chain(std::iter::repeat("null")).take(total.max(self.brokers.len())).collect();
        let (times, names) = (self.brokers.len(), names.join(", "));
        format!("Send [{times}] times, still failed, cost [{cost}]ms, Topic: {topic}, BrokersSent: [{names}]")
    }

    /// Returns the code of the error after all attempts failed.
    pub fn failed_code(&self) -> i32 {
        match self.failure {
            Some(AttemptEnd::Response(code)) => code,
            Some(AttemptEnd::Connect) => CONNECT_BROKER,
            Some(AttemptEnd::Timeout) => ACCESS_BROKER_TIMEOUT,
            Some(AttemptEnd::Client) => BROKER_NOT_EXIST,
            _ => -1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OK: AttemptEnd = AttemptEnd::Stored { is_safe: true };
    const UNSAFE: AttemptEnd = AttemptEnd::Stored { is_safe: false };
    const CODES: [i32; 6] = [17, 14, 1, 16, 204, 205];

    fn waited() -> RetryRules {
        RetryRules {
            retries: 2,
            response_codes: CODES.into(),
            retry_another_broker: false,
            moves: true,
            is_async: false,
        }
    }

    fn in_callbacks() -> RetryRules {
        RetryRules { response_codes: HashSet::new(), is_async: true, ..waited() }
    }

    fn chosen() -> Option<Choice> {
        Some(Choice::Named("b".into(), 7))
    }

    /// A simulated send: the queue and remaining milliseconds of each attempt, and the state afterwards.
    struct Driven {
        attempts: Attempts,
        asked: Vec<(String, i32, u128)>,
        time_over: Option<TimeOver>,
        now: Instant,
    }

    fn drive(rules: RetryRules, choice: Option<Choice>, ends: &[(u64, AttemptEnd)]) -> Driven {
        drive_for(rules, choice, ends, None)
    }

    fn drive_for(
        rules: RetryRules,
        choice: Option<Choice>,
        ends: &[(u64, AttemptEnd)],
        strategy: Option<&FaultStrategy>,
    ) -> Driven {
        let queues = PublishQueues::for_tests(&[("a", 1), ("b", 1)], u32::MAX);
        let mut now = Instant::now();
        let mut attempts = Attempts::new(Arc::new(rules), choice, now, Duration::from_secs(3));
        let (mut asked, mut ends) = (Vec::new(), ends.iter());
        let time_over = loop {
            match attempts.begin(&queues, strategy, now) {
                Err(over) => break Some(over),
                Ok(choice) => {
                    let left = attempts.deadline().saturating_duration_since(now).as_millis();
                    asked.push((choice.broker_name(&queues).to_string(), choice.queue_id(&queues), left));
                }
            }
            let (ms, end) = ends.next().expect("no further attempt");
            now += Duration::from_millis(*ms);
            if !attempts.record(*end, strategy, now, None) {
                break None;
            }
        };
        assert_eq!(ends.next(), None);
        Driven { attempts, asked, time_over, now }
    }

    fn places(asked: &[(&str, i32, u128)]) -> Vec<(String, i32, u128)> {
        asked.iter().map(|(name, id, left)| ((*name).to_owned(), *id, *left)).collect()
    }

    #[test]
    fn a_broker_that_takes_it_is_asked_once() {
        let sent = drive(waited(), None, &[(100, OK)]);
        assert_eq!(sent.asked, places(&[("a", 0, 3000)]));
        assert!(sent.attempts.is_stored());
    }

    #[test]
    fn what_another_broker_may_do_is_tried_there_with_the_time_that_is_left() {
        let refusals = CODES.map(AttemptEnd::Response);
        let failures = [AttemptEnd::Connect, AttemptEnd::Timeout, AttemptEnd::Remoting, AttemptEnd::Client];
        for end in failures.into_iter().chain(refusals) {
            let sent = drive(waited(), None, &[(1000, end), (500, end), (100, OK)]);
            assert_eq!(sent.asked, places(&[("a", 0, 3000), ("b", 0, 2000), ("a", 0, 1500)]));
        }
    }

    #[test]
    fn other_answers_are_final() {
        for code in [2, 13, 15, 26] {
            let sent = drive(waited(), None, &[(100, AttemptEnd::Response(code))]);
            assert!(sent.attempts.ends_with_last_error() && !sent.attempts.is_stored());
        }
    }

    #[test]
    fn where_all_fail_the_error_says_where_it_was_tried() {
        for (end, code) in [
            (AttemptEnd::Response(14), 14),
            (AttemptEnd::Connect, 10001),
            (AttemptEnd::Timeout, 10002),
            (AttemptEnd::Client, 10003),
            (AttemptEnd::Remoting, -1),
        ] {
            let sent = drive(waited(), None, &[(500, end); 3]);
            let text = sent.attempts.failed_text("t", sent.now);
            assert_eq!(text, "Send [3] times, still failed, cost [1500]ms, Topic: t, BrokersSent: [a, b, a]");
            assert!(!sent.attempts.ends_with_last_error());
            assert_eq!(sent.attempts.failed_code(), code);
        }
        let once = drive(RetryRules { retries: 0, ..waited() }, None, &[(0, AttemptEnd::Connect)]);
        assert!(once.attempts.failed_text("t", once.now).ends_with("BrokersSent: [a]"));
    }

    #[test]
    fn no_attempt_begins_once_the_time_is_over() {
        let sent = drive(waited(), None, &[(3500, AttemptEnd::Connect)]);
        assert_eq!(sent.time_over, Some(TimeOver("sendDefaultImpl call timeout")));
    }

    #[test]
    fn a_message_that_is_stored_less_safely_is_sent_again_where_that_is_asked_for() {
        drive(waited(), None, &[(100, UNSAFE)]);
        let again = RetryRules { retry_another_broker: true, ..waited() };
        drive(again.clone(), None, &[(100, UNSAFE), (100, OK)]);
        // a later failure does not hide that the message is stored
        assert!(drive(again, None, &[(100, UNSAFE), (100, AttemptEnd::Response(13))]).attempts.is_stored());
    }

    #[test]
    fn where_the_application_chose_the_queue_there_is_one_attempt() {
        for end in [AttemptEnd::Connect, AttemptEnd::Response(14), AttemptEnd::Client] {
            let sent = drive(RetryRules::once(), chosen(), &[(100, end)]);
            assert_eq!(sent.asked, places(&[("b", 7, 3000)]));
            assert!(sent.attempts.ends_with_last_error());
        }
        let queues = PublishQueues::for_tests(&[("b", 8)], 0);
        let began = Instant::now();
        let mut late = Attempts::new(Arc::new(RetryRules::once()), chosen(), began, Duration::ZERO);
        let over = late.begin(&queues, None, began + Duration::from_millis(1));
        assert_eq!(over, Err(TimeOver("call timeout")));
    }

    #[test]
    fn an_asynchronous_send_keeps_the_number_of_its_queue_and_ends_with_the_last_error() {
        let failures = [(500, AttemptEnd::Connect), (500, AttemptEnd::Remoting)];
        let sent = drive(in_callbacks(), chosen(), &[failures[0], failures[1], (100, OK)]);
        assert_eq!(sent.asked, places(&[("b", 7, 3000), ("a", 7, 2500), ("b", 7, 2000)]));
        let sent = drive(in_callbacks(), chosen(), &[failures[0], failures[1], failures[0]]);
        assert!(sent.attempts.ends_with_last_error());
    }

    #[test]
    fn an_asynchronous_send_to_a_queue_that_was_chosen_is_tried_there_again() {
        let stays = RetryRules { moves: false, ..in_callbacks() };
        let sent = drive(stays, chosen(), &[(500, AttemptEnd::Connect), (100, OK)]);
        assert_eq!(sent.asked, places(&[("b", 7, 3000), ("b", 7, 2500)]));
    }

    #[test]
    fn an_asynchronous_send_is_not_tried_again_after_an_answer_or_once_its_time_is_over() {
        for end in [AttemptEnd::Response(14), AttemptEnd::Malformed, AttemptEnd::Other] {
            drive(in_callbacks(), chosen(), &[(500, end)]);
        }
        drive(in_callbacks(), chosen(), &[(3500, AttemptEnd::Remoting)]);
    }

    #[test]
    fn a_blocking_send_to_a_chosen_queue_is_not_recorded() {
        let failed = [(100, AttemptEnd::Connect)];
        let (blocking, asynchronous) = (FaultStrategy::default(), FaultStrategy::default());
        let sent = drive_for(RetryRules::once(), chosen(), &failed, Some(&blocking));
        assert!(blocking.is_available("b", sent.now));
        let rules = RetryRules { is_async: true, ..RetryRules::once() };
        let sent = drive_for(rules, chosen(), &failed, Some(&asynchronous));
        assert!(!asynchronous.is_available("b", sent.now));
    }

    #[test]
    fn the_strategy_is_told_how_each_attempt_went() {
        let strategy = FaultStrategy::default();
        let sent = drive_for(waited(), None, &[(100, AttemptEnd::Connect), (700, OK)], Some(&strategy));
        assert_eq!(sent.asked.iter().map(|(name, ..)| name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
        let available = ["a", "b", "c"].map(|name| strategy.is_available(name, sent.now));
        assert_eq!(available, [false, false, true]);
    }
}
