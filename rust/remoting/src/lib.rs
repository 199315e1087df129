//! RocketMQ's remoting protocol, for servers and clients.
//!
//! Read in this order. A [`frame`] is the bytes of one command, and a [`Command`] is its parsed header
//! ([`json_header`], [`binary_header`]) and body. A [`Connection`] is an open socket over which both sides send
//! requests. A [`Server`] has many of them. A [`Client`] is a connection that its caller reads and writes itself, and
//! [`Connections`] are all connections of a client. [`ServerTls`] and [`ClientTls`] configure TLS.
#![allow(missing_docs)]

mod accept;
mod address;
mod binary_header;
mod certificates;
mod client;
pub mod code;
mod codec;
mod command;
mod completions;
mod connection;
mod connections;
mod dial;
mod error;
mod fastjson;
pub mod frame;
mod handler;
mod header;
mod inbox;
mod interrupt;
mod json_header;
mod json_scan;
mod json_text;
mod key_material;
mod language;
mod mailbox;
mod open_connections;
mod outgoing;
mod owned_command;
mod pending;
pub mod process;
mod reload;
mod runtime;
mod server;
mod server_options;
mod session;
mod signature;
mod sweeper;
mod tls;
mod tls_socket;
mod transport;
mod validity;
mod verifier;

pub use certificates::{Certificates, Date, make_certificates};
pub use client::Client;
pub use command::{Command, ONEWAY, RESPONSE};
pub use completions::{Completion, Completions};
pub use connection::{Answer, Connection};
pub use connections::{Connections, ConnectionsOptions};
pub use error::{Error, Result};
pub use fastjson::{Json, Key, NoJson};
pub use frame::{Frame, Limits, SerializeType};
pub use handler::Handler;
pub use header::{Header, VERSION, Value};
pub use inbox::ReceivedFrame;
pub use interrupt::{Ask, Interrupt, never};
pub use json_text::json_text;
pub use key_material::KeyPair;
pub use language::Language;
pub use mailbox::{Event, Mailbox};
pub use outgoing::{Body, Outgoing};
pub use owned_command::{OwnedCommand, OwnedFields};
pub use runtime::{spawn_after, spawn_blocking};
pub use server::Server;
pub use server_options::ServerOptions;
pub use signature::{Credentials, signature_of};
pub use tls::{ClientAuth, ClientTls, ServerTls, TlsMode, Trust};
pub use tls_socket::TlsSocket;
pub use transport::{Transport, is_pause};
