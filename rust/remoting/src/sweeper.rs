//! Closes a server's connections that are idle, whose peer sends a frame too slowly, or whose peer does not read its
//! answers.
//!
//! Source: `NettyServerConfig.serverChannelMaxIdleTimeSeconds`. RocketMQ has no other timeout.
use crate::connection::{Connection, now_ms};
use crate::open_connections::OpenConnections;
use crate::server_options::ServerOptions;
use std::sync::Weak;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Checks all connections once a second, until the server is dropped.
pub async fn run(connections: Weak<OpenConnections>, patience: Patience) {
    let mut tick = tokio::time::interval(Duration::from_secs(1));
    // on a busy machine rounds are skipped, not made up for
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        let Some(connections) = connections.upgrade() else { return };
        let now = now_ms();
        for connection in connections.all() {
            if patience.has_ended(&connection, now) {
                connection.close();
            }
        }
    }
}

/// Timeouts that a peer must keep.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    pub idle: Duration,
    pub frame: Duration,
    pub write: Duration,
}

impl Patience {
    pub fn of(options: &ServerOptions) -> Self {
        Self { idle: options.max_idle, frame: options.max_frame_time, write: options.max_write_time }
    }

    /// Returns whether the connection has exceeded a timeout. `now` is in milliseconds of [`now_ms`].
    pub fn has_ended(&self, connection: &Connection, now: u64) -> bool {
        let watch = &connection.watch;
        let is_older =
            // 0 means that nothing has begun
            |since: u64, limit: Duration| since != 0 && u128::from(now.saturating_sub(since)) > limit.as_millis();
        let at = |time: &AtomicU64| time.load(Ordering::Relaxed);
        is_older(at(&watch.active), self.idle)
            || is_older(at(&watch.frame_began), self.frame)
            || is_older(at(&watch.write_began), self.write)
    }
}
