//! A batch into a new store, the making of its files included; nothing is flushed to the disk.
use criterion::{BatchSize, Criterion, Throughput};
use rmqfast_micro as made_up;

const ROWS: usize = 16_384;

pub fn benches(criterion: &mut Criterion) {
    let columns = made_up::columns(ROWS);
    let new_store = || {
        let directory = tempfile::tempdir().expect("a directory");
        let appender = made_up::appender(directory.path());
        (directory, appender)
    };
    let mut group = criterion.benchmark_group("append");
    group.throughput(Throughput::Elements(ROWS as u64));
    group.bench_function("a batch", |b| {
        // what the routine returns is removed outside of the time
        b.iter_batched(
            new_store,
            |(directory, appender)| {
                assert_eq!(appender.append(&columns, None, 0).expect("appended").rows, ROWS);
                (directory, appender)
            },
            BatchSize::PerIteration,
        );
    });
    group.finish();
}
