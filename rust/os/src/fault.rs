//! Page faults in a mapped file of this process that somebody has made shorter.
#[cfg(windows)]
mod refused;
#[cfg(unix)]
mod signal;

#[cfg(windows)]
pub use refused::{Guard, come_first};
#[cfg(unix)]
pub use signal::{Guard, come_first};
