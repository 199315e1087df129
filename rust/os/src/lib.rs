//! What operating systems do differently. No other crate asks which one it runs on.
//!
//! Linux is what the tests run on. macOS has all of it but the calls that only Linux knows, and those tell so or do more work. For
//! Windows it compiles (`make check-platforms`), and nothing of it has run there.
pub mod blocks;
pub mod clock;
pub mod disk;
pub mod fault;
pub mod file;
pub mod lock;
pub mod mode;
pub mod pages;
pub mod socket;
