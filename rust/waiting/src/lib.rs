//! Waits in tests until a condition is true, and never for a fixed time. `tests/waiting.py` is the same for Python.
#![allow(missing_docs)]

use rustix::fd::OwnedFd;
use rustix::net::{AddressFamily, SocketType, bind, getsockname, socket, sockopt};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::time::{Duration, Instant};

/// Maximum wait. It is far longer than any machine needs, so a test that waits for so long has failed.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until a condition is true.
///
/// # Panics
/// If the condition does not become true within a minute. The message contains `what`.
#[track_caller]
pub fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let end = deadline();
    while !condition() {
        assert!(Instant::now() < end, "not in time: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Returns the time until which a wait that begins now may last.
pub fn deadline() -> Instant {
    Instant::now() + PATIENCE
}

/// A local address that the system gives to no other process. Connections are refused until a server listens there.
pub struct HeldPort {
    pub address: String,
    _socket: OwnedFd,
}

impl HeldPort {
    /// Takes a free port of the loopback interface.
    ///
    /// # Panics
    /// If no port is free.
    #[expect(clippy::new_without_default, reason = "who takes a port says so")]
    pub fn new() -> Self {
        let socket_fd = socket(AddressFamily::INET, SocketType::STREAM, None).expect("a socket");
        bind(&socket_fd, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)).expect("bound");
        // only from now on: a server is let in, and nobody had the port before
        sockopt::set_socket_reuseaddr(&socket_fd, true).expect("set");
        let address = SocketAddr::try_from(getsockname(&socket_fd).expect("bound")).expect("an address").to_string();
        Self { address, _socket: socket_fd }
    }
}
