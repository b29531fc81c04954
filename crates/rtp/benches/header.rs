//! The cost per packet: its header is parsed once, and written once for each sink.
#![allow(missing_docs, reason = "a benchmark has no documentation")] // criterion's macro makes a public function

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use portunus_rtp::{Fields, Header, Pt, RtpError, Ssrc, header, write_header};

const FIELDS: Fields = Fields {
    marker: true,
    padding: false,
    pt: Pt(96),
    sequence: 4711,
    timestamp: 90_000,
    ssrc: Ssrc(0x1234_5678),
};

/// The extensions of a browser's video: mid, abs-send-time, transport-cc, playout delay.
const EXTENSIONS: [(u8, &[u8]); 4] = [
    (1, b"video0"),
    (3, &[1, 2, 3]),
    (4, &[0, 1]),
    (6, &[0, 0, 0]),
];

fn packet(extensions: &[(u8, &[u8])]) -> Result<Vec<u8>, RtpError> {
    let mut packet = vec![0; 1200];
    write_header(&mut packet, &FIELDS, extensions.iter().copied())?;
    Ok(packet)
}

fn parse(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("parse");
    group.throughput(Throughput::Elements(1));
    for (name, extensions) in [("plain", &[][..]), ("extensions", &EXTENSIONS)] {
        let Ok(packet) = packet(extensions) else {
            return;
        };
        group.bench_function(name, |b| b.iter(|| Header::parse(black_box(&packet))));
    }
    let Ok(packet) = packet(&EXTENSIONS) else {
        return;
    };
    let Ok(header) = Header::parse(&packet) else {
        return;
    };
    group.bench_function("walk extensions", |b| {
        b.iter(|| {
            header
                .extensions(black_box(&packet))
                .fold(0, |sum, (id, _)| sum + u32::from(id))
        })
    });
    group.finish();
}

fn write(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("write");
    group.throughput(Throughput::Elements(1));
    let mut out = [0; 1500];
    group.bench_function("plain", |b| {
        b.iter(|| write_header(black_box(&mut out), black_box(&FIELDS), []))
    });
    group.bench_function("extensions", |b| {
        b.iter(|| {
            write_header(
                black_box(&mut out),
                black_box(&FIELDS),
                black_box(EXTENSIONS),
            )
        })
    });
    group.bench_function("edit in place", |b| {
        b.iter(|| {
            let packet = black_box(&mut out);
            header::set_sequence(packet, 1);
            header::set_timestamp(packet, 2);
            header::set_ssrc(packet, Ssrc(3));
            header::set_pt(packet, Pt(97));
        })
    });
    group.finish();
}

criterion_group!(benches, parse, write);
criterion_main!(benches);
