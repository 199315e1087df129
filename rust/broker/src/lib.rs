//! A broker's data plane. It answers the frequent requests: sends, pulls and offsets. It reads tables that the
//! control plane fills, and passes all other requests to the control plane.
//!
//! Read in this order: [`DataPlane`] dispatches requests; `send` and `pull` answer them; `parked_pulls` keeps pulls
//! that wait for a message; the control plane writes the [`Tables`].
#![allow(missing_docs, reason = "not published: fields that their names explain have none")]
mod broker_state;
mod counters;
mod data_plane;
mod group_commit;
pub mod headers;
pub mod ledger;
mod offset_requests;
mod offsets;
mod options;
mod parked_pulls;
pub mod parsed_send;
mod pull;
mod send;
mod tables;

pub use counters::{Counters, SkippedMessage};
pub use data_plane::DataPlane;
pub use offsets::Offsets;
pub use options::{BrokerOptions, EARLY_PULL_WAIT, Settings, SyncReplication};
pub use rmqfast_remoting::code::{request, response};
pub use tables::{Group, Subscription, Tables, Topic};
