//! Handles page faults in a mapped file that another process has truncated.
#[cfg(windows)]
mod refused;
#[cfg(unix)]
mod signal;

#[cfg(windows)]
pub use refused::{Guard, come_first};
#[cfg(unix)]
pub use signal::{Guard, come_first};
