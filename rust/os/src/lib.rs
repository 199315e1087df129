//! Differences between operating systems. No other crate depends on the operating system.
//!
//! The tests run on Linux. On macOS, calls that only Linux has return `Unsupported` or use another way. For macOS and
//! Windows the code is only compiled, by `make check-platforms`, and has never run.
#![allow(missing_docs)]

pub mod bell;
pub mod blocks;
pub mod clock;
pub mod disk;
pub mod fault;
pub mod file;
pub mod identity;
pub mod lease;
pub mod lock;
pub mod mode;
pub mod pages;
pub mod socket;
