//! Messages that read their values from the answers of brokers, pulls, and conversions to Arrow.
pub mod arrow;
pub mod decode;
pub mod fetched;
pub mod message_queue;
pub mod message_view;
pub mod name_servers;
pub mod puller;
pub mod routes;
pub mod single_pull;
