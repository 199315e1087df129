//! What a store does, as who uses the crate sees it: one program, as linking it ten times would take longer than running it.
mod beside;
mod chance;
mod closed;
mod export;
mod faults;
mod figures;
mod follow;
mod harm;
mod layers;
mod leases;
mod looks;
mod lost_queues;
mod mounts;
mod recover;
mod replicate;
mod requests;
mod retain;
mod room;
mod scan_random;
mod serve;
mod sql92_golden;

use tempfile::TempDir;

/// A directory in memory where there is one: some tests wait for the disk many times.
fn directory() -> TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a directory")
}
