//! Scans: plan a request, read the log, filter messages, and build Arrow batches. This is the hot path of reading.
//!
//! ```text
//! Plan ── pieces of the log ──► LogWalk | QueueWalk ── blocks ──► Selector ── rows ──► BatchBuilder ──► RecordBatch
//!                               └────────────── RowSource ──────────────┘
//! ```
pub mod batch;
pub mod column;
pub mod columns;
pub mod decode;
pub mod explanation;
pub mod piece;
pub mod plan;
pub mod predicate;
pub mod push_down;
pub mod queue_walk;
pub mod request;
pub mod row;
pub mod row_source;
pub mod scanner;
pub mod selector;
pub mod substrait;
pub mod tail;
pub mod text_columns;
pub mod trust;
mod unchecked;
pub mod workers;

pub use column::{Column, TimeUnit};
pub use decode::Decode;
pub use explanation::{Explanation, PieceReads};
pub use piece::{Piece, Way};
pub use plan::{CLOCK_SLACK_MS, Plan, QueueCounts};
pub use request::{OffsetBound, PropertyNames, ScanRequest};
pub use row_source::{RowSource, Sources};
pub use scanner::{RowLimit, Scan, Scanner};
pub use tail::{Start, Tail};
