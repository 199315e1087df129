//! Encodes messages to send: ids, property strings, request headers, batches.
mod batch;
mod batch_body;
mod body;
mod header;
mod properties;
mod unique_id;

pub use batch::{Batch, BatchOptions, BatchRow, Unsendable};
pub use batch_body::{BatchMessage, write_batch_message};
pub use body::{COMPRESS_LEVEL, compressed};
pub use header::{BATCH_CODE, CODE, REPLY_CODE, SendHeader};
pub use properties::{Properties, Unstorable};
pub use unique_id::UniqueIds;
