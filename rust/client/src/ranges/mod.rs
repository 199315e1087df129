//! Reads fixed ranges of queues for jobs without a consumer group. Reading a range again returns the same messages, or
//! reports lost messages.
//!
//! [`Progress`] decides the consequence of an answer for a range, without I/O or a clock. A [`RangeReader`] pulls.
mod pool;
mod progress;
mod range;
mod reader;
mod rows;
mod warning;

pub use pool::{PoolKey, PullerPool};
pub use progress::{Progress, Trouble, Verdict};
pub use range::{QueueRange, RangeRequest};
pub use reader::{Counts, RangeReader, Step};
pub use rows::{batches, choose, unreadable};
pub use warning::Warning;
