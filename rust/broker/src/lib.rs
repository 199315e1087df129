//! A broker's data plane: what happens per message. It asks tables that a control plane fills, and hands over what it does not
//! know.
//!
//! Read in this order: [`DataPlane`] says which request goes where; `send` and `pull` answer; `hold` keeps pulls that found nothing;
//! [`Tables`] is what the control plane writes.
pub mod ahead;
pub mod batch_body;
mod code;
mod counters;
mod data_plane;
mod flush_wait;
mod ground;
mod hold;
mod names;
mod offset_requests;
mod offsets;
mod options;
mod passed_over;
mod pull;
pub mod pull_header;
mod pull_status;
mod put_times;
pub mod quota;
mod reply;
mod send;
pub mod send_header;
mod sent;
mod subscription;
mod tables;

pub use code::{request, response};
pub use counters::Counters;
pub use data_plane::DataPlane;
pub use offsets::Offsets;
pub use options::{BrokerOptions, Settings};
pub use passed_over::Passed;
pub use subscription::Subscription;
pub use tables::{Group, Tables, Topic};
