//! How a puller asks, and how much it may hold.
use crate::pull_body::Tags;
use rmqfast_remoting::ClientTls;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Adds header fields to a request, as a signature, given its code and the fields that it has.
pub type Sign = dyn Fn(i32, &[(String, String)]) -> Result<Vec<(String, String)>, String> + Send + Sync;

/// What all pulls of a puller have in common.
#[derive(Clone)]
pub struct PullerOptions {
    /// TLS; without, the connection is plain.
    pub tls: Option<ClientTls>,
    /// The group in whose name it is pulled.
    pub consumer_group: String,
    /// Requests over all queues that may be without an answer, beside one for each queue whose end is reached.
    pub depth: usize,
    /// Places of `depth` that must be free before they are filled, with one write: the broker, too, then reads several
    /// requests at a time. At most `depth`.
    pub burst: usize,
    /// What a taker waits for.
    pub gather: Gather,
    /// Messages that a pull asks for.
    pub batch: i64,
    /// How long the broker shall hold a pull that finds nothing; zero for not at all.
    pub suspend: Duration,
    /// How long to wait for an answer.
    pub timeout: Duration,
    /// How long to wait for a connection.
    pub connect_timeout: Duration,
    /// How long a queue is left alone after the broker refused.
    pub retry: Duration,
    /// `sysFlag` of a pull; the bit for "suspend" follows from `suspend`.
    pub sys_flag: i32,
    /// What may be held that nobody took.
    pub of_queue: Allowance,
    /// The same of all queues together.
    pub in_all: Allowance,
    /// Header fields of every request.
    pub ext_fields: Vec<(String, String)>,
    /// Adds to them, request by request.
    pub sign: Option<Arc<Sign>>,
}

/// How much shall be taken at a time, where more is under way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gather {
    /// Bytes; zero for whatever there is.
    pub bytes: i64,
    /// How long to wait for them once something is there.
    pub pause: Duration,
}

/// Bounds of what may be held, in flight or just taken; the last answer may pass them by all but one of its messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowance {
    /// Messages.
    pub messages: i64,
    /// Bytes.
    pub bytes: i64,
}

impl PullerOptions {
    /// Bit of `sysFlag`: the broker may hold the request.
    pub const SUSPEND: i32 = 2;
    /// `sysFlag` of a lite pull consumer, without the bit for "suspend": the request has its own expression.
    pub const SYS_FLAG: i32 = 4 | 16;
}

impl Default for PullerOptions {
    fn default() -> Self {
        Self {
            tls: None,
            consumer_group: String::new(),
            depth: 8,
            burst: 1,
            gather: Gather::default(),
            batch: 32,
            suspend: Duration::from_secs(20),
            timeout: Duration::from_secs(30),
            connect_timeout: Duration::from_secs(3),
            retry: Duration::from_secs(1),
            sys_flag: Self::SYS_FLAG,
            of_queue: Allowance { messages: 10_000, bytes: 32 << 20 },
            in_all: Allowance { messages: 100_000, bytes: 128 << 20 },
            ext_fields: Vec::new(),
            sign: None,
        }
    }
}

impl fmt::Debug for PullerOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // header fields may hold what is secret
        let mut shown = f.debug_struct("PullerOptions");
        shown.field("consumer_group", &self.consumer_group).field("depth", &self.depth).finish_non_exhaustive()
    }
}

/// Which messages of a queue are wanted.
#[derive(Clone, Debug)]
pub struct Assignment {
    /// The first offset to pull.
    pub start: i64,
    /// The offset before which it ends; without, it goes on for ever.
    pub end: Option<i64>,
    /// What the broker filters by.
    pub expression: String,
    /// `TAG` or `SQL92`.
    pub expression_type: String,
    /// Version of the subscription.
    pub sub_version: i64,
    /// Whole tags that the client wants, of what the broker found by their hashes.
    pub tags: Option<Arc<Tags>>,
    /// Whether nothing is asked before it is resumed.
    pub is_paused: bool,
}

impl Default for Assignment {
    fn default() -> Self {
        let (expression, expression_type) = ("*".into(), "TAG".into());
        Self { start: 0, end: None, expression, expression_type, sub_version: 0, tags: None, is_paused: false }
    }
}

impl Assignment {
    /// Whether the broker leaves messages out.
    pub fn is_filtered(&self) -> bool {
        self.expression_type != "TAG" || !matches!(self.expression.as_str(), "" | "*")
    }
}
