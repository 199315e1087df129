//! What happens where a map of a file that this process owns has lost its pages: somebody has made the file shorter.
#[cfg(windows)]
mod refused;
#[cfg(unix)]
mod signal;

#[cfg(windows)]
pub use refused::{Guard, come_first};
#[cfg(unix)]
pub use signal::{Guard, come_first};
