//! What the hot paths cost, each by itself, over data that is made here: `cargo bench -p rmqfast-micro`.
//!
//! `-- scan` runs those whose names hold "scan"; `--save-baseline before`, then
//! `--baseline before`, compares two states of the code. `make test-long` runs each once.
mod append;
mod decode;
mod format;
mod ledger;
mod pull;
mod scan;
mod serve;

use criterion::{Criterion, criterion_group, criterion_main};
use std::time::Duration;

fn quick() -> Criterion {
    let seconds = Duration::from_secs;
    Criterion::default().sample_size(20).warm_up_time(seconds(1)).measurement_time(seconds(3)).without_plots()
}

criterion_group! {
    name = micro;
    config = quick();
    targets = format::benches, pull::benches, ledger::benches, scan::benches, decode::benches, append::benches, serve::benches
}
criterion_main!(micro);
