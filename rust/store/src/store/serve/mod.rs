//! Reads a store that this process appends to. Readers do not wait for the appender and do not open the store again.
//!
//! The appender publishes the log's end when the records before it are written, then each queue's end when its units
//! are written. A reader reads a queue's end first, so all records of the queue before this end are in the log.
//!
//! ```text
//! map_cache    files of one sequence, mapped once
//! checked      the bodies whose CRC was checked
//! live_log     records by physical offset; log_growth wakes threads that wait for more
//! live_queue   units of one queue; live_queues finds it by name
//! pull_filter  filters of a pull; places holds its records; skipped the messages it cannot return
//! get_message  a pull, by the rules of store/pull
//! time         offsets and store times; key_query the index
//! arrival      notifies a listener of new messages
//! live         the façade
//! ```
pub mod arrival;
pub mod checked;
pub mod get_message;
pub mod key_query;
pub mod live;
pub mod live_log;
pub mod live_queue;
pub mod live_queues;
pub mod log_growth;
pub mod map_cache;
pub mod places;
pub mod pull_filter;
pub mod skipped;
pub mod time;

pub use arrival::{Arrival, ArrivalListener};
pub use get_message::PullResult;
pub use key_query::KeyQueryResult;
pub use live::Live;
pub use live_log::{LiveLog, LiveRecord};
pub use live_queue::LiveQueue;
pub use live_queues::LiveQueues;
pub use places::{Places, Records};
pub use pull_filter::{Every, PullFilter, TagCodes};
pub use skipped::{Fault, SkippedRange};
