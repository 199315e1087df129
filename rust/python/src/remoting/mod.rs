//! Exposes connections and servers. Requests are answered by Python threads, which wait without the GIL.
pub mod call;
pub mod callback_table;
pub mod channel;
pub mod client;
pub mod command;
pub mod connections;
pub mod fastjson;
pub mod fastjson_writer;
pub mod mailbox;
pub mod server;
pub mod signature;
pub mod tls;
