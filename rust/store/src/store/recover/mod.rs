//! Recovery of a store after its process was killed or the machine lost power.
//!
//! The commit log is authoritative. Queues, index and checkpoint are compared with the log or rebuilt from it.
//!
//! ```text
//! recovery     the façade: one walk over the log, from the point up to which the checkpoint says everything is flushed
//! missing_end  detects a log that ends before its flushed end
//! log_end      the end of the log, and cutting behind it
//! queues       gives every record of the walk its unit, and removes all others
//! index        keeps full, flushed files and rebuilds the others
//! ```
//!
//! Source: `DefaultMessageStore.load`, `CommitLog.recoverNormally`, `CommitLog.recoverAbnormally`. Unlike RocketMQ, this
//! recovery loses nothing: bytes behind the new end are set to zero, and queues and index that lag are built again.
pub mod index;
pub mod log_end;
pub mod missing_end;
pub mod queues;
pub mod recovery;

pub use log_end::{Extent, begin, is_begun};
pub use missing_end::MissingEnd;
pub use recovery::{RecoveryReport, recover};
