//! The files of a store: names, reads, writes, locks. All unsafe code of this layer is in [`mmap`].
pub mod allocated;
pub mod disk;
pub mod leased;
pub mod local;
pub mod lock;
pub mod memory;
pub mod mmap;
pub mod mounts;
pub mod name;
pub mod place;
pub mod reads;
pub mod segment;
pub mod segments;
pub mod storage;

pub use allocated::{AllocatedFile, AppendFile, free_bytes};
pub use leased::KeptMap;
pub use lock::StoreLock;
pub use memory::MemoryFiles;
pub use mounts::Mount;
pub use place::{Place, local_path};
pub use reads::{ReadCounter, Reads};
pub use segment::{Io, Segment};
pub use segments::{SegmentFile, Segments};
pub use storage::{Part, RangeFile, Storage};
