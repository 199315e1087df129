//! The data plane over real sockets.
mod broker;
mod parked_pulls;
mod pull;
mod send;
