//! The live side of a store that this process owns and appends to: who reads here neither waits for who appends nor has to open
//! the store anew.
//!
//! The appender publishes: the log's end once the records before it are written, then the end of each queue once its units are.
//! A reader takes a queue's end first and sees all that stands before it, through maps that stay.
//!
//! ```text
//! map_cache    files of one sequence, mapped once
//! checked      which bodies were compared with their CRC, where that is asked for
//! live_log     records by physical offset, and the log's bytes; log_growth wakes those who wait for more
//! live_queue   units of one queue; live_queues finds them by name
//! pull_filter  what a pull takes; places where its records go; skipped what it cannot give
//! get_message  a pull, by the rules of store/pull
//! time         offsets and store times; key_query the index
//! arrival      notifies a listener of what was appended
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
pub use get_message::Pulled;
pub use key_query::KeyFound;
pub use live::Live;
pub use live_log::{LiveLog, LiveRecord};
pub use live_queue::LiveQueue;
pub use live_queues::LiveQueues;
pub use places::{Places, Records};
pub use pull_filter::{Every, PullFilter, TagCodes};
pub use skipped::{Fault, Skipped};
