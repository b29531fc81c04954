//! The cost of SRTP beyond the bare AES-128-GCM call of the crypto library, on packets of 1,200
//! bytes.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a benchmark may panic, and has no documentation"
)]

use std::hint::black_box;

use aws_lc_rs::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use portunus_rtp::{SeqNo, Ssrc};
use portunus_srtp::{Opener, Profile, Sealer};

const LEN: usize = 1_200;
const HEADER: usize = 12;

fn seal(c: &mut Criterion) {
    let mut group = c.benchmark_group("seal_1200");
    group.throughput(Throughput::Bytes(LEN as u64));

    let key = LessSafeKey::new(UnboundKey::new(&AES_128_GCM, &[7; 16]).unwrap());
    let mut buf = [0x80; LEN + 16];
    group.bench_function("bare", |b| {
        let mut index = 0_u64;
        b.iter(|| {
            index += 1;
            let mut nonce = [0; 12];
            nonce[4..].copy_from_slice(&index.to_be_bytes());
            let (header, payload) = buf[..LEN].split_at_mut(HEADER);
            let nonce = Nonce::assume_unique_for_key(nonce);
            let tag = key.seal_in_place_separate_tag(nonce, Aad::from(&*header), payload);
            buf[LEN..].copy_from_slice(black_box(tag.unwrap().as_ref()));
        });
    });

    for profile in Profile::PREFERENCE {
        let salt = vec![9; profile.salt_len()];
        let sealer = Sealer::new(profile, &vec![7; profile.key_len()], &salt).unwrap();
        group.bench_function(profile.name(), |b| {
            let mut index = 0;
            b.iter(|| {
                index += 1;
                sealer
                    .seal_rtp(SeqNo(index), HEADER, LEN, black_box(&mut buf))
                    .unwrap()
            });
        });
    }
    group.finish();
}

fn open(c: &mut Criterion) {
    let mut group = c.benchmark_group("open_1200");
    group.throughput(Throughput::Bytes(LEN as u64));
    for profile in Profile::PREFERENCE {
        let (key, salt) = (vec![7; profile.key_len()], vec![9; profile.salt_len()]);
        let sealer = Sealer::new(profile, &key, &salt).unwrap();
        let mut opener = Opener::new(profile, &key, &salt).unwrap();
        // It continues over all rounds, since the opener refuses repetitions.
        let mut index = 0_u64;
        group.bench_function(profile.name(), |b| {
            b.iter_batched_ref(
                || {
                    index += 1;
                    let mut buf = [0x80; LEN + 16];
                    let len = sealer
                        .seal_rtp(SeqNo(index), HEADER, LEN, &mut buf)
                        .unwrap();
                    (buf, len, index)
                },
                |(buf, len, index)| {
                    let ssrc = Ssrc(0x8080_8080);
                    opener
                        .open_rtp(HEADER, ssrc, *index as u16, &mut buf[..*len])
                        .unwrap()
                },
                criterion::BatchSize::SmallInput,
            );
        });
    }
    group.finish();
}

criterion_group!(benches, seal, open);
criterion_main!(benches);
