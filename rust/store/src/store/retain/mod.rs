//! Retention: removes the oldest files of the log when they expire or the disk fills up, then queue and index files
//! that list only removed messages.
//!
//! ```text
//! options        limits of age and disk usage
//! delete_when    the hours of the day for removal by age
//! clock          whether the time of day can be trusted
//! disk_usage     usage of the disk
//! decision       the log files to remove, from values alone
//! clean_plan     the files to remove, of log, queues and index
//! retention      a run: plan, flush, remove oldest first; and its schedule
//! whole_queues   removal of whole queues, for admin commands
//! ```
//!
//! Source: `DefaultMessageStore.CleanCommitLogService`, `DefaultMessageStore.CleanConsumeQueueService`.
pub mod clean_plan;
pub mod clock;
pub mod decision;
pub mod delete_when;
pub mod disk_usage;
pub mod options;
pub mod retention;
pub mod whole_queues;

pub use clean_plan::{CleanPlan, Removable, preview};
pub use clock::Clock;
pub use decision::Situation;
pub use delete_when::DeleteWhen;
pub use options::RetainOptions;
pub use retention::CleanReport;
pub use whole_queues::QueueName;
