//! Sends rows of a DataFrame as messages to a topic. Each row is sent at least once.
//!
//! ```text
//! blocks of rows ──► RowBatches ──► parcels ──► lanes ──► brokers
//!                     by target      │            ▲ retries
//!                                    └─ QueueChoice
//! ```
//!
//! Only [`TopicWriter`] and [`check_topic`] call the cluster. The other parts work on values.
mod arrow_rows;
mod block;
mod columns;
mod failure;
mod handover;
mod lanes;
mod local_address;
mod options;
mod queue_choice;
mod row;
mod row_batches;
mod row_text;
mod sender;
mod topic_writer;
mod written;

pub use arrow_rows::ArrowRows;
pub use block::Block;
pub use columns::{SinkColumn, column_types, sink_columns};
pub use options::SinkOptions;
pub use sender::check_topic;
pub use topic_writer::{Month, TopicWriter, unique_ids};
pub use written::Written;
