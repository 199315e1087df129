//! Differences between operating systems. No other crate asks which one it runs on.
//!
//! The tests run on Linux. On macOS, a call that only Linux has returns `Unsupported`, or does its work another way. For Windows
//! the code compiles. Nothing has run on either: `make check-platforms` compiles it.
#![allow(missing_docs)]

pub mod bell;
pub mod blocks;
pub mod clock;
pub mod disk;
pub mod fault;
pub mod file;
pub mod identity;
pub mod lock;
pub mod mode;
pub mod pages;
pub mod socket;
