//! Limits, timeouts and certificates of a server.
use crate::frame::Limits;
use crate::tls::ServerTls;
use std::time::Duration;

/// Limits, patience and TLS of a server.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Limits of a frame.
    pub limits: Limits,
    /// Connections at most; further ones are closed at once.
    pub max_connections: usize,
    /// Bytes that may wait for a peer that does not read.
    pub max_outgoing: usize,
    /// A connection without traffic is closed after this time.
    pub max_idle: Duration,
    /// Time for a frame to arrive.
    pub max_frame_time: Duration,
    /// Time for a write.
    pub max_write_time: Duration,
    /// Time for a TLS handshake.
    pub max_handshake_time: Duration,
    /// Between two looks at the TLS files, as `FileWatchService.WATCH_INTERVAL`.
    pub reload_interval: Duration,
    /// TLS, unless all is plain.
    pub tls: Option<ServerTls>,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            max_connections: 65_536,
            max_outgoing: 64 << 20,
            max_idle: Duration::from_secs(120),
            max_frame_time: Duration::from_secs(30),
            max_write_time: Duration::from_secs(60),
            max_handshake_time: Duration::from_secs(10),
            reload_interval: Duration::from_millis(500),
            tls: None,
        }
    }
}
