//! Reads fixed ranges of queues, for jobs without a consumer group: each read of a range gives the same
//! messages, or says which are lost.
//!
//! [`Progress`] decides what an answer means for a range, without a socket or a clock; a [`RangeReader`] pulls.
mod pool;
mod progress;
mod range;
mod reader;
mod rows;

pub use pool::{PoolKey, PullerPool};
pub use progress::{Progress, Trouble, Verdict};
pub use range::{QueueRange, RangeRequest};
pub use reader::{Counts, RangeReader, Step};
pub use rows::{batches, choose, unreadable};
