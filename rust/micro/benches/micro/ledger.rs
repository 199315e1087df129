//! A pull that is noted in the broker's ledger, of a client that goes on where it was.
use criterion::Criterion;
use rmqfast_broker::Subscription;
use rmqfast_broker::ledger::{Ledger, Place};
use std::sync::Arc;

pub fn benches(c: &mut Criterion) {
    let ledger = Ledger::default();
    ledger.continue_behind(0);
    let filter = Arc::new(Subscription::parse(None, "*", 1).expect("tags"));
    let place = Place { group: "GROUP_of_orders", topic: "orders_of_the_shop", queue_id: 3 };
    let mut offset = 0;
    c.bench_function("ledger note of a pull", |b| {
        b.iter(|| {
            ledger.note_pull(place, "192.0.2.1@4711#123456789", &filter, (offset, offset + 1));
            offset += 1;
        });
    });
}
