use crate::frame::Limits;
use crate::tls::ServerTls;
use std::time::Duration;

#[derive(Clone, Debug)]
pub struct ServerOptions {
    pub limits: Limits,
    /// Maximum connections. Further connections are closed at once.
    pub max_connections: usize,
    pub max_outgoing: usize,
    /// Maximum time without traffic. After this time a connection is closed.
    pub max_idle: Duration,
    /// Maximum time from the first byte of a frame to its last byte.
    pub max_frame_time: Duration,
    pub max_write_time: Duration,
    pub max_handshake_time: Duration,
    /// Interval at which the TLS files are checked for changes, as in `FileWatchService.WATCH_INTERVAL`.
    pub reload_interval: Duration,
    /// TLS of the server; `None` for a server without TLS.
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
