//! Encodes and decodes everything that RocketMQ writes to disk. Pure functions: no file access and no clock. No length is trusted before
//! memory is allocated for it.
pub mod checkpoint;
pub mod compression;
pub mod config;
pub mod consume_queue;
pub mod cursor;
pub mod host;
pub mod index;
pub mod java_map;
pub mod malformed;
pub mod message;
pub mod message_id;
pub mod names;
pub mod properties;
pub mod tag;

pub use malformed::Malformed;
