//! RocketMQ's remoting protocol.
//!
//! Read in this order: a [`frame`] is bytes, a [`Command`] what its header says ([`json_header`], [`binary_header`]), a
//! [`Connection`] an open socket over which both sides ask and answer, a [`Server`] many of them; a [`Client`]
//! is the other end, [`Connections`] all of a client. [`ServerTls`] and [`ClientTls`] say how what they say is kept secret.
mod accept;
mod address;
mod binary_header;
mod certificates;
mod client;
mod command;
mod completions;
mod connection;
mod connections;
mod dial;
mod error;
pub mod frame;
mod header;
mod inbox;
mod interrupt;
mod json_header;
mod json_scan;
mod json_text;
mod key_material;
mod language;
mod limits;
mod mailbox;
mod outgoing;
mod owned_fields;
mod pending;
pub mod process;
mod reload;
mod runtime;
mod server;
mod session;
mod sweeper;
mod tls;
mod transport;
mod validity;
mod verifier;

pub use certificates::{Certificates, Date, make_certificates};
pub use client::Client;
pub use command::{Command, ONEWAY, RESPONSE};
pub use completions::{Completion, Completions};
pub use connection::{Answer, Connection};
pub use connections::{Ask, Connections, ConnectionsOptions};
pub use error::{Error, Result};
pub use frame::{Frame, SerializeType};
pub use header::{Header, VERSION, Value};
pub use inbox::Received;
pub use interrupt::{Interrupt, never};
pub use json_text::json_text;
pub use language::Language;
pub use limits::Limits;
pub use mailbox::{Event, Mailbox, OwnedCommand};
pub use outgoing::{Body, Outgoing};
pub use owned_fields::OwnedFields;
pub use runtime::{spawn_after, spawn_blocking};
pub use server::{Handler, Server, ServerOptions};
pub use tls::{ClientAuth, ClientTls, KeyPair, ServerTls, TlsMode, Trust};
pub use transport::{Transport, is_pause};
