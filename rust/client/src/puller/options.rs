//! Options of a puller: its pulls and its limits.
use crate::error::Result;
use crate::pull_body::Tags;
use rmqfast_remoting::ClientTls;
use rmqfast_store::filter::{Sql92, TagExpression};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// A queue, as `MessageQueue`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Queue {
    pub topic: String,
    /// The name of its brokers.
    pub broker_name: Arc<str>,
    /// Number of the queue in the topic.
    pub queue_id: i32,
}

/// Adds header fields to a request, as a signature, given its code, the fields that it has, and its body.
pub type Sign =
    dyn Fn(i32, &[(String, String)], &[u8]) -> std::result::Result<Vec<(String, String)>, String> + Send + Sync;

/// Options of all pulls of a puller.
#[derive(Clone)]
pub struct PullerOptions {
    /// TLS; without, the connection is plain.
    pub tls: Option<ClientTls>,
    /// The group in whose name it is pulled.
    pub consumer_group: String,
    /// Requests in flight to a broker at most; those at the end of a queue do not count.
    pub depth: usize,
    /// So many of the `depth` requests must be answered before new ones are sent, in one write: the broker, too, then reads
    /// several requests at a time. At most `depth`.
    pub burst: usize,
    /// Volume that a taker waits for.
    pub gather: Gather,
    /// Messages that a pull asks for.
    pub batch: i64,
    /// The broker holds a pull that finds nothing for this time; zero for not at all.
    pub suspend: Duration,
    /// Time to wait for an answer.
    pub timeout: Duration,
    /// Time to wait for a connection.
    pub connect_timeout: Duration,
    /// Pause of a queue after the broker refused a pull.
    pub retry: Duration,
    /// Pause of a queue after an answer with messages; if not zero, at most one request of a queue is in flight.
    pub interval: Duration,
    /// `sysFlag` of a pull; the bits for "suspend" and "commit" follow from the rest.
    pub sys_flag: i32,
    /// Limit of a queue's messages in flight, ready or in hand.
    pub of_queue: Threshold,
    /// The same of all queues together.
    pub in_all: Threshold,
    /// Offsets from the first message of a queue that is not done to the last one that came.
    pub max_span: i64,
    /// Whether pulls tell the broker where the group goes on.
    pub commits_offsets: bool,
    /// Whether what was taken counts until it is done. Otherwise it is done when it is taken.
    pub counts_until_done: bool,
    /// Header fields of every request.
    pub ext_fields: Vec<(String, String)>,
    /// Adds to them, request by request.
    pub sign: Option<Arc<Sign>>,
}

/// Volume to take at a time, where more is in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gather {
    /// Bytes; zero for whatever there is.
    pub bytes: i64,
    /// Time to wait for them after the first.
    pub pause: Duration,
}

/// Limit at which pulling stops. Answers in flight count with what they will bring at most, so that no more than this and one
/// answer is ever held; that of a filtered queue is not known before.
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
    /// Bit of `sysFlag`: the request has its own expression; otherwise that of the group's heartbeat counts.
    pub const SUBSCRIPTION: i32 = 4;
    /// `sysFlag` of a lite pull consumer.
    // 16 says that it is a lite pull; no broker makes anything of it
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
            // a broker gives no more at a time unless its `maxTransferCountOnMessageInMemory` is raised
            batch: 32,
            // `brokerSuspendMaxTimeMillis` and `consumerTimeoutMillisWhenSuspend` of Java's pull consumers: the answer to a pull
            // that is held must come before its time is over
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
        // header fields may hold what is secret
        let mut out = f.debug_struct("PullerOptions");
        out.field("consumer_group", &self.consumer_group).field("depth", &self.depth).finish_non_exhaustive()
    }
}

/// A broker at its address.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Broker {
    pub address: String,
    /// Slaves store no offsets.
    pub is_slave: bool,
}

/// Which messages of a topic are wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subscription {
    /// The filter that the broker applies.
    pub expression: String,
    pub expression_type: String,
    pub version: i64,
    /// Whole tags that the client wants, of what the broker found by their hashes.
    pub tags: Option<Arc<Tags>>,
}

/// The part of a queue to pull.
#[derive(Clone, Debug, Default)]
pub struct Assignment {
    /// The first offset to pull.
    pub start: i64,
    /// The offset before which it ends; without, it goes on for ever.
    pub end: Option<i64>,
    pub subscription: Arc<Subscription>,
    /// Whether nothing is asked before it is resumed.
    pub is_paused: bool,
    /// Whether nobody asks for tags, keys and ids of its messages: to find these takes longer than all else of an answer.
    pub without_properties: bool,
    /// The group's position, if it is known: pulls tell it to the broker.
    pub commit_offset: i64,
    /// Whether what there is behind the end is pulled, too, once all before it was taken. Nobody can take it before the
    /// queue is [resumed](super::State::resume).
    pub reads_ahead: bool,
}

impl Default for Subscription {
    fn default() -> Self {
        Self { expression: "*".into(), expression_type: "TAG".into(), version: 0, tags: None }
    }
}

impl Subscription {
    /// Messages with one of the tags of an expression, as `A || B`; all of them for `*`.
    ///
    /// # Errors
    /// [`Error::Store`]: nothing stands between the `||`.
    pub fn by_tags(expression: &str) -> Result<Self> {
        let parsed = TagExpression::parse(expression)?;
        if parsed.is_all() {
            return Ok(Self::default());
        }
        let tags: Tags = parsed.tags().iter().map(|tag| tag.clone().into_bytes()).collect();
        Ok(Self { expression: expression.to_owned(), tags: Some(tags.into()), ..Self::default() })
    }

    /// Messages whose properties match an SQL92 expression.
    ///
    /// # Errors
    /// [`Error::Store`]: it does not parse.
    pub fn by_sql(expression: &str, version: i64) -> Result<Self> {
        Sql92::parse(expression)?;
        let (expression, expression_type) = (expression.to_owned(), "SQL92".to_owned());
        Ok(Self { expression, expression_type, version, tags: None })
    }

    /// Whether it wants the same messages, in whatever version.
    pub fn is_same(&self, other: &Self) -> bool {
        let Self { expression, expression_type, version: _, tags } = self;
        (expression, expression_type, tags) == (&other.expression, &other.expression_type, &other.tags)
    }

    /// Whether the broker leaves messages out.
    pub fn is_filtered(&self) -> bool {
        // an empty expression is all messages, too (`FilterAPI.buildSubscriptionData`)
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
