//! RocketMQ's remoting protocol, for servers and clients.
//!
//! Read in this order. A [`frame`] is the bytes of one command, and a [`Command`] is its parsed header
//! (by [`codec`]) and body. A [`Connection`] is an open socket over which both sides send
//! requests. A [`Server`] has many of them. A [`Client`] is a connection that its caller reads and writes itself, and
//! [`Connections`] are all connections of a client. [`ServerTls`] and [`ClientTls`] configure TLS.
#![allow(missing_docs)]

mod address;
mod client;
pub mod code;
mod codec;
mod command;
mod connection;
mod connections;
mod dial;
mod error;
mod fastjson;
pub mod frame;
mod interrupt;
mod json_header;
mod json_text;
mod key_material;
mod mailbox;
mod outgoing;
mod pending;
pub mod process;
mod runtime;
mod server;
mod session;
mod signature;
mod tls;
mod tls_socket;

pub use client::{Client, ReceivedFrame};
pub use command::{Command, Header, Language, ONEWAY, OwnedCommand, OwnedFields, RESPONSE, VERSION, Value};
pub use connection::{Answer, Connection};
pub use connections::{Connections, ConnectionsOptions};
pub use dial::{Transport, is_pause};
pub use error::{Error, Result};
pub use fastjson::{Json, Key, MAX_DEPTH, NoJson};
pub use frame::{Frame, Limits, SerializeType};
pub use interrupt::{Ask, Interrupt, never};
pub use json_text::json_text;
pub use key_material::{Certificates, Date, KeyPair, make_certificates};
pub use mailbox::{Event, Mailbox};
pub use outgoing::{Body, Outgoing};
pub use pending::{Completion, Completions};
pub use runtime::{spawn_after, spawn_blocking};
pub use server::{Server, ServerOptions};
pub use session::Handler;
pub use signature::{Credentials, signature_of};
pub use tls::{ClientAuth, ClientTls, ServerTls, TlsMode, Trust};
pub use tls_socket::TlsSocket;
