//! The cost of a join: ICE and DTLS of both sides of a connection, all on one core.
#![allow(missing_docs, reason = "a benchmark has no documentation")]

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use portunus_rtc::testing::{Link, Pair};

fn join(c: &mut Criterion) {
    c.bench_function("join_both_sides", |b| {
        b.iter_batched_ref(
            || Pair::new(1, Link::GOOD),
            |pair| assert!(pair.connect()),
            BatchSize::SmallInput,
        );
    });
}

criterion_group!(benches, join);
criterion_main!(benches);
