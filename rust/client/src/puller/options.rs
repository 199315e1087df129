//! Options of a puller.
use crate::error::Result;
use crate::pull_body::Tags;
use rmqfast_remoting::ClientTls;
use rmqfast_store::filter::{Sql92, TagExpression};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// A queue, like Java's `MessageQueue`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Queue {
    pub topic: String,
    /// Name that a master and its slaves share.
    pub broker_name: Arc<str>,
    pub queue_id: i32,
}

/// Returns header fields to add to a request, such as its signature. The arguments are the code, fields and body of the
/// request.
pub type Sign =
    dyn Fn(i32, &[(String, String)], &[u8]) -> std::result::Result<Vec<(String, String)>, String> + Send + Sync;

/// Options of all pulls of a puller.
#[derive(Clone)]
pub struct PullerOptions {
    /// `None` for a connection without TLS.
    pub tls: Option<ClientTls>,
    pub consumer_group: String,
    /// Maximum requests in flight per broker. Pulls at the end of a queue, which the broker holds, do not count.
    pub depth: usize,
    /// New requests are sent when `depth` leaves room for this many. They go out in one write, so that the broker also
    /// reads several requests at once. At most `depth`.
    pub burst: usize,
    /// The volume of messages for which `take` waits.
    pub gather: Gather,
    /// Maximum messages per pull.
    pub batch: i64,
    /// Time for which the broker holds a pull that finds nothing; zero for no hold.
    pub suspend: Duration,
    pub timeout: Duration,
    pub connect_timeout: Duration,
    /// Pause of a queue after the broker refused a pull.
    pub retry: Duration,
    /// Pause of a queue after an answer with messages. If this is not zero, a queue has at most one request in flight.
    pub interval: Duration,
    /// The field `sysFlag` of a pull. The bits for long polling and for committing an offset are added from other
    /// options.
    pub sys_flag: i32,
    /// Limit for the messages of one queue that are in flight, ready or in hand.
    pub of_queue: Threshold,
    /// Limit for the messages of all queues together that are in flight, ready or in hand.
    pub in_all: Threshold,
    /// Maximum difference between the last offset received and the first offset not acknowledged, per queue.
    pub max_span: i64,
    /// Whether pulls carry the group's offset, which the broker then stores.
    pub commits_offsets: bool,
    /// Whether messages count against the limits until they are acknowledged. Otherwise they count until they are
    /// taken.
    pub counts_until_done: bool,
    /// Header fields of every request.
    pub ext_fields: Vec<(String, String)>,
    /// Adds further header fields to each request.
    pub sign: Option<Arc<Sign>>,
}

/// The volume of messages for which `take` waits while more requests are in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gather {
    /// Number of bytes; with zero, `take` returns at the first item.
    pub bytes: i64,
    /// Maximum time to wait for `bytes`, counted from the first item.
    pub pause: Duration,
}

/// Limit at which pulling stops. A request in flight counts as the largest answer that it can get, so the limit is
/// exceeded by at most one answer. For filtered queues the count is only an estimate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Threshold {
    pub messages: i64,
    pub bytes: i64,
}

impl PullerOptions {
    /// Bit of `sysFlag`: the broker stores the offset that the request carries.
    pub const COMMIT_OFFSET: i32 = 1;
    /// Bit of `sysFlag`: the broker may hold the request.
    pub const SUSPEND: i32 = 2;
    /// Bit of `sysFlag`: the request carries its own filter expression. Without this bit, the broker uses the
    /// expression of the group's heartbeat.
    pub const SUBSCRIPTION: i32 = 4;
    /// `sysFlag` of a lite pull consumer.
    // 16 marks a lite pull; brokers ignore it
    pub const SYS_FLAG: i32 = Self::SUBSCRIPTION | 16;
}

impl Default for PullerOptions {
    fn default() -> Self {
        Self {
            tls: None,
            consumer_group: String::new(),
            depth: 8,
            burst: 1,
            gather: Gather::default(),
            // the broker's default limit, `maxTransferCountOnMessageInMemory`
            batch: 32,
            // `brokerSuspendMaxTimeMillis` and `consumerTimeoutMillisWhenSuspend` of Java's pull consumers: the timeout
            // must exceed the hold
            suspend: Duration::from_secs(20),
            timeout: Duration::from_secs(30),
            // `NettyClientConfig.connectTimeoutMillis`
            connect_timeout: Duration::from_secs(3),
            retry: Duration::from_secs(1),
            interval: Duration::ZERO,
            sys_flag: Self::SYS_FLAG,
            of_queue: Threshold { messages: 10_000, bytes: 32 << 20 },
            in_all: Threshold { messages: 100_000, bytes: 128 << 20 },
            max_span: i64::MAX,
            commits_offsets: false,
            counts_until_done: false,
            ext_fields: Vec::new(),
            sign: None,
        }
    }
}

impl fmt::Debug for PullerOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // header fields may hold secrets
        let mut out = f.debug_struct("PullerOptions");
        out.field("consumer_group", &self.consumer_group).field("depth", &self.depth).finish_non_exhaustive()
    }
}

/// A master or slave, known by its address.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Broker {
    pub address: String,
    /// Whether this is a slave, which stores no offsets of groups.
    pub is_slave: bool,
}

/// Filter for the messages of a topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subscription {
    /// The filter that the broker applies.
    pub expression: String,
    pub expression_type: String,
    pub version: i64,
    /// Tags that the client compares in full, as the broker only compares hashes. `None` for all messages.
    pub tags: Option<Arc<Tags>>,
}

/// The part of a queue to pull.
#[derive(Clone, Debug, Default)]
pub struct Assignment {
    /// The first offset to pull.
    pub start: i64,
    /// The offset before which pulling ends; `None` for no end.
    pub end: Option<i64>,
    pub subscription: Arc<Subscription>,
    /// Whether the queue starts paused, so that it is not pulled until it is resumed.
    pub is_paused: bool,
    /// Whether the application needs no tags, keys and ids. Parsing properties takes longer than parsing the rest of an
    /// answer.
    pub without_properties: bool,
    /// Offset that the broker shall store for the group, sent with each pull; 0 if unknown.
    pub commit_offset: i64,
    /// Whether messages after `end` are pulled in advance, as soon as all messages before `end` were taken. They can be
    /// taken after [`resume`](super::State::resume).
    pub reads_ahead: bool,
}

impl Default for Subscription {
    fn default() -> Self {
        Self { expression: "*".into(), expression_type: "TAG".into(), version: 0, tags: None }
    }
}

impl Subscription {
    /// Creates a filter that selects messages by a tag expression such as `A || B`, or all messages by `*`.
    ///
    /// # Errors
    /// [`crate::Error::Store`] if there is no tag between the `||`.
    pub fn by_tags(expression: &str) -> Result<Self> {
        let parsed = TagExpression::parse(expression)?;
        if parsed.is_all() {
            return Ok(Self::default());
        }
        let tags: Tags = parsed.tags().iter().map(|tag| tag.clone().into_bytes()).collect();
        Ok(Self { expression: expression.to_owned(), tags: Some(tags.into()), ..Self::default() })
    }

    /// Creates a filter that selects messages whose properties match an SQL92 expression.
    ///
    /// # Errors
    /// [`crate::Error::Store`] if the expression does not parse.
    pub fn by_sql(expression: &str, version: i64) -> Result<Self> {
        Sql92::parse(expression)?;
        let (expression, expression_type) = (expression.to_owned(), "SQL92".to_owned());
        Ok(Self { expression, expression_type, version, tags: None })
    }

    /// Returns whether both subscriptions select the same messages, regardless of their versions.
    pub fn is_same(&self, other: &Self) -> bool {
        let Self { expression, expression_type, version: _, tags } = self;
        (expression, expression_type, tags) == (&other.expression, &other.expression_type, &other.tags)
    }

    /// Returns whether the broker filters the messages.
    pub fn is_filtered(&self) -> bool {
        // an empty expression also selects all messages (`FilterAPI.buildSubscriptionData`)
        self.expression_type != "TAG" || !matches!(self.expression.as_str(), "" | "*")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blank_tags_match_no_message_and_separators_alone_are_an_error() {
        let blank = Subscription::by_tags(" || ").expect("a legal expression");
        assert!(blank.is_filtered() && blank.tags.is_some_and(|tags| tags.is_empty()));
        assert!(Subscription::by_tags("").expect("all").tags.is_none());
        assert!(Subscription::by_tags("||").is_err());
    }
}
