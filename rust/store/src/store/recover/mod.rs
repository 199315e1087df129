//! Recovery: what a process that was killed or a machine that lost its power left of a store becomes whole again.
//!
//! The commit log is the truth; what the queues, the index and the checkpoint say is compared with it or made anew.
//!
//! ```text
//! recovery     the façade: one walk from where the checkpoint says that everything before is on the disk
//! missing_end  whether the log reaches as far as was flushed
//! log_end      where the log ends, and whether what stands behind may be cut
//! queues       every record of the walk has its unit, and nothing else has one
//! index        full files that were flushed stay, the others are built again
//! ```
//!
//! Source: `DefaultMessageStore.load`, `CommitLog.recoverNormally`, `CommitLog.recoverAbnormally`; without what they lose: bytes
//! behind the new end are made zero, a queue that lags is listed again, and so is the index.
pub mod extent;
pub mod index;
pub mod log_end;
pub mod marker;
pub mod missing_end;
pub mod queues;
pub mod recovery;

pub use extent::Extent;
pub use marker::{begin, is_begun};
pub use missing_end::MissingEnd;
pub use recovery::{Recovered, recover};
