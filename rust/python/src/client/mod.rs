//! Messages that clients received, pulls, routes, and conversions of messages to Arrow.
pub mod arrow;
pub mod decode;
pub mod fetched;
pub mod message_queue;
pub mod message_view;
pub mod name_servers;
pub mod puller;
pub mod routes;
pub mod single_pull;
