//! Waits for tests: until something is true, never for time to pass. `tests/waiting.py` is the same for Python.
#![allow(missing_docs)]

use rustix::fd::OwnedFd;
use rustix::net::{AddressFamily, SocketType, bind, getsockname, socket, sockopt};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::time::{Duration, Instant};

/// Far longer than any machine needs: whoever waited for so long waited in vain.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until a condition is true.
///
/// # Panics
/// It does not become true in a minute; `what` says what was waited for.
#[track_caller]
pub fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let end = deadline();
    while !condition() {
        assert!(Instant::now() < end, "not in time: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// When whoever begins to wait now has waited in vain.
pub fn deadline() -> Instant {
    Instant::now() + PATIENCE
}

/// An address that the system gives to nobody else: connections are refused until a server listens there.
pub struct HeldPort {
    pub address: String,
    _socket: OwnedFd,
}

impl HeldPort {
    /// Takes a free port of the loopback interface.
    ///
    /// # Panics
    /// None is free.
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
