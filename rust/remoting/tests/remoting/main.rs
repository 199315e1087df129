//! Frames over real sockets.
mod connections;
mod server;
mod tls;
