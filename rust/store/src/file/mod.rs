//! The files of a store: names, reads, writes, locks. All unsafe code of this layer is in [`mmap`].
pub mod allocated;
pub mod append_file;
pub mod disk;
pub mod local_path;
pub mod lock;
pub mod mmap;
pub mod name;
pub mod permission;
pub mod place;
pub mod replace;
pub mod segment;
pub mod segments;
pub mod write_back;

pub use allocated::{AllocatedFile, free_bytes};
pub use append_file::AppendFile;
pub use local_path::local_path;
pub use lock::StoreLock;
pub use place::Place;
pub use segment::{Io, Segment};
pub use segments::{SegmentFile, Segments};
