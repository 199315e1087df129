//! Retention: the oldest files of the log go by age or as the disk fills up, then what lists only messages that are gone.
//!
//! ```text
//! options        how long and how full
//! delete_when    the hours of the day at which files go by age
//! clock          the time of day, and whether it is to be believed
//! disk_usage     how full the disk is
//! decision       from values alone: does anything go, and which of the log's files
//! clean_plan     the files that go, of log, queues and index
//! retention      a run: plan, flush, remove oldest first; and when it runs by itself
//! whole_queues   queues that go as a whole, as admin commands want it
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
pub use retention::Cleaned;
pub use whole_queues::QueueName;
