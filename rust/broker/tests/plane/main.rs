//! The data plane over real sockets.
mod broker;
mod hold;
mod pull;
mod send;
