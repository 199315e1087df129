//! The answer to a pull: where its messages are, with and without their properties.
use super::format::log_of;
use criterion::{Criterion, Throughput};
use rmqfast_client::pull_body;
use std::hint::black_box;

/// What a broker gives at a time, unless it is told otherwise.
const MESSAGES: usize = 32;

pub fn benches(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("pull");
    group.throughput(Throughput::Elements(MESSAGES as u64));
    for len in [128, 1024] {
        let body = log_of(MESSAGES, |n| vec![n as u8; len]);
        assert_eq!(pull_body::rows(&body).expect("records").len(), MESSAGES);
        group.bench_function(format!("rows of {len} bytes"), |b| b.iter(|| pull_body::rows(black_box(&body))));
        group.bench_function(format!("rows of {len} bytes, with properties"), |b| {
            b.iter(|| pull_body::messages(black_box(&body), None));
        });
    }
    group.finish();
}
