//! Retention: removes the oldest files of the log when they expire or the disk fills up, then queue and index files
//! that list only removed messages.
//!
//! ```text
//! options        limits of age, hours and disk usage, and the log files to remove by them
//! clock          whether the time of day can be trusted
//! clean_plan     the files to remove, of log, queues and index, or whole queues for admin commands
//! retention      a run: plan, flush, remove oldest first; and its schedule
//! ```
//!
//! Source: `DefaultMessageStore.CleanCommitLogService`, `DefaultMessageStore.CleanConsumeQueueService`.
pub mod clean_plan;
pub mod clock;
pub mod options;
pub mod retention;

pub use clean_plan::{CleanPlan, QueueName, Removable, preview};
pub use clock::Clock;
pub use options::{DeleteWhen, RetainOptions, Situation};
pub use retention::CleanReport;
