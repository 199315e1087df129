//! The data plane over real sockets.
mod broker;
mod heavy_pulls;
mod parked_pulls;
mod pull;
mod send;
