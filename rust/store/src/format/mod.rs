//! Encodes and decodes everything that RocketMQ writes to disk. Pure functions: no file access and no clock. Memory
//! is never allocated for a length that was read from a file and not checked.
pub mod checkpoint;
pub mod compression;
pub mod config;
pub mod consume_queue;
pub mod cursor;
pub mod fastjson;
pub mod host;
pub mod index;
pub mod java;
pub mod message;
pub mod message_id;
pub mod names;
pub mod properties;

pub use cursor::Malformed;
