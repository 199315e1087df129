//! Reads a store that this process appends to. Readers do not wait for the appender and do not open the store again.
//!
//! The appender publishes the log's end when the records before it are written, then each queue's end when its units
//! are written. A reader reads a queue's end first, so all records of the queue before this end are in the log.
//!
//! ```text
//! map_cache    files of one sequence, mapped once, and the bodies whose CRC was checked
//! live_log     records by physical offset, and waits for more
//! live_queue   units of one queue, found by name
//! get_message  a pull and its filters, by the rules of store/pull; places holds its records
//! key_query    the index
//! arrival      notifies a listener of new messages
//! live         the façade, with offsets and store times
//! ```
pub mod arrival;
pub mod get_message;
pub mod key_query;
pub mod live;
pub mod live_log;
pub mod live_queue;
pub mod map_cache;
pub mod places;

pub use arrival::{Arrival, ArrivalListener};
pub use get_message::{Every, PullFilter, PullResult, TagCodes};
pub use key_query::KeyQueryResult;
pub use live::Live;
pub use live_log::{LiveLog, LiveRecord};
pub use live_queue::{LiveQueue, LiveQueues};
pub use places::{Fault, Places, Records, SkippedRange};
