//! Sealing and opening together: the vectors of RFC 7714, reordering, roll-over, forgery.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

use portunus_rtp::{SeqNo, Ssrc};
use proptest::prelude::*;

use crate::derive::SessionKeys;
use crate::{OpenError, Opener, Profile, SealError, Sealer};

pub(crate) fn hex(digits: &str) -> Vec<u8> {
    (0..digits.len())
        .step_by(2)
        .map(|i| u8::from_str_radix(&digits[i..i + 2], 16).unwrap())
        .collect()
}

const ALL: [Profile; 4] = [
    Profile::AeadAes128Gcm,
    Profile::AeadAes256Gcm,
    Profile::Aes128CmSha1_80,
    Profile::Aes128CmSha1_32,
];
const HEADER: usize = 12;
const SSRC: Ssrc = Ssrc(0xCAFE_BABE);

fn pair(profile: Profile) -> (Sealer, Opener) {
    let key: Vec<u8> = (0..profile.key_len() as u8).collect();
    let salt: Vec<u8> = (100..100 + profile.salt_len() as u8).collect();
    (
        Sealer::new(profile, &key, &salt).unwrap(),
        Opener::new(profile, &key, &salt).unwrap(),
    )
}

fn rtp(ssrc: Ssrc, sequence: u16, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x80, 96, 0, 0, 0, 0, 0, 7];
    packet[2..4].copy_from_slice(&sequence.to_be_bytes());
    packet.extend(ssrc.0.to_be_bytes());
    packet.extend(payload);
    packet
}

fn seal(sealer: &Sealer, ssrc: Ssrc, index: u64) -> Vec<u8> {
    let mut buf = rtp(ssrc, index as u16, b"hello");
    let len = buf.len();
    buf.resize(len + sealer.profile().rtp_overhead(), 0);
    assert_eq!(
        sealer.seal_rtp(SeqNo(index), HEADER, len, &mut buf),
        Ok(buf.len())
    );
    buf
}

fn open(opener: &mut Opener, packet: &[u8]) -> Result<u64, OpenError> {
    let sequence = u16::from_be_bytes([packet[2], packet[3]]);
    let ssrc = Ssrc(u32::from_be_bytes(packet[8..12].try_into().unwrap()));
    let mut buf = packet.to_vec();
    let opened = opener.open_rtp(HEADER, ssrc, sequence, &mut buf)?;
    assert_eq!(buf[..opened.len], rtp(ssrc, sequence, b"hello"));
    Ok(opened.index.0)
}

fn rtcp(ssrc: u32) -> Vec<u8> {
    let mut packet = vec![0x80, 201, 0, 3];
    packet.extend(ssrc.to_be_bytes());
    packet.extend([9; 8]);
    packet
}

fn seal_rtcp(sealer: &mut Sealer, ssrc: u32) -> Vec<u8> {
    let mut buf = rtcp(ssrc);
    let len = buf.len();
    buf.resize(len + sealer.profile().rtcp_overhead(), 0);
    assert_eq!(sealer.seal_rtcp(len, &mut buf), Ok(buf.len()));
    buf
}

/// RFC 7714 sections 16.1 and 16.2 (SRTP), 17.1 and 17.2 (SRTCP), with given session keys.
#[test]
fn the_vectors_of_rfc_7714() {
    let salt = hex("517569642070726f2071756f");
    let rtp = hex(
        "8040f17b8041f8d35501a0b247616c6c696120657374206f6d6e69732064\
                   697669736120696e207061727465732074726573",
    );
    let rtcp = hex(
        "81c8000d4d6172734e5450314e545032525450200000042a0000e9304c756e61\
                    deadbeefdeadbeefdeadbeefdeadbeefdeadbeef",
    );
    let cases = [
        (
            Profile::AeadAes128Gcm,
            "8040f17b8041f8d35501a0b2f24de3a3fb34de6cacba861c9d7e4bcabe633bd50d294e6f\
             42a5f47a51c7d19b36de3adf8833899d7f27beb16a9152cf765ee4390cce",
            "81c8000d4d61727363e94885dcdab67ca727d7662f6b7e997ff5c0f76c06f32dc676a5f1\
             730d6fda4ce09b4686303ded0bb9275bc84aa45896cf4d2fc5abf87245d9eade800005d4",
        ),
        (
            Profile::AeadAes256Gcm,
            "8040f17b8041f8d35501a0b232b1de78a822fe12ef9f78fa332e33aab18012389a58e2f3\
             b50b2a0276ffae0f1ba63799b87b7aa3db36dfffd6b0f9bb7878d7a76c13",
            "81c8000d4d617273d50ae4d1f5ce5d304ba297e47d470c282c3ece5dbffe0a50a2eaa5c1\
             110555be8415f658c61de0476f1b6fad1d1eb30c4446839f57ff6f6cb26ac3be800005d4",
        ),
    ];
    for (profile, srtp, srtcp) in cases {
        let mut keys = SessionKeys {
            cipher: [0; 32],
            auth: [0; 20],
            salt: [0; 14],
        };
        for (i, byte) in keys.cipher.iter_mut().enumerate() {
            *byte = i as u8;
        }
        keys.salt[..12].copy_from_slice(&salt);
        let mut sealer = Sealer::with_session_keys(profile, &keys, &keys).unwrap();
        let mut opener = Opener::with_session_keys(profile, &keys, &keys).unwrap();

        let mut buf = rtp.clone();
        buf.resize(rtp.len() + 16, 0);
        assert_eq!(
            sealer.seal_rtp(SeqNo(0xf17b), 12, rtp.len(), &mut buf),
            Ok(rtp.len() + 16)
        );
        assert_eq!(buf, hex(srtp));
        let opened = opener
            .open_rtp(12, Ssrc(0x5501_a0b2), 0xf17b, &mut buf)
            .unwrap();
        assert_eq!(buf[..opened.len], rtp);

        let mut buf = rtcp.clone();
        buf.resize(rtcp.len() + 20, 0);
        sealer.set_rtcp_index(0x5d4);
        assert_eq!(sealer.seal_rtcp(rtcp.len(), &mut buf), Ok(rtcp.len() + 20));
        assert_eq!(buf, hex(srtcp));
        let len = opener.open_rtcp(&mut buf).unwrap();
        assert_eq!(buf[..len], rtcp);
    }
}

/// Master key and salt of RFC 3711 appendix B.3, and the packet for comparing implementations of
/// counter mode. The short tag is the start of the long one (RFC 3711 section 4.2.1).
#[test]
fn counter_mode_with_either_tag() {
    let key = hex("e1f97a0d3e018be0d64fa32c06de4139");
    let salt = hex("0ec675ad498afeebb6960b3aabe6");
    let plain = hex("800f1234decafbadcafebabeabababababababababababababababab");
    let sealed =
        hex("800f1234decafbadcafebabe4e55dc4ce79978d88ca4d215949d2402b78d6acc99ea179b8dbb");
    for (profile, tag) in [
        (Profile::Aes128CmSha1_80, 10),
        (Profile::Aes128CmSha1_32, 4),
    ] {
        let sealer = Sealer::new(profile, &key, &salt).unwrap();
        let mut buf = plain.clone();
        buf.resize(plain.len() + tag, 0);
        let len = sealer.seal_rtp(SeqNo(0x1234), HEADER, plain.len(), &mut buf);
        assert_eq!(len, Ok(plain.len() + tag));
        assert_eq!(buf, sealed[..plain.len() + tag]);
        let mut opener = Opener::new(profile, &key, &salt).unwrap();
        let opened = opener.open_rtp(HEADER, SSRC, 0x1234, &mut buf).unwrap();
        assert_eq!(buf[..opened.len], plain);
        // RTCP keeps the long tag.
        assert_eq!(profile.rtcp_overhead(), 14);
    }
}

#[test]
fn a_packet_is_taken_once_and_late_ones_within_the_window() {
    for profile in ALL {
        let (sealer, mut opener) = pair(profile);
        for index in [10, 12, 11, 700, 189] {
            let packet = seal(&sealer, SSRC, index);
            assert_eq!(open(&mut opener, &packet), Ok(index));
            assert_eq!(open(&mut opener, &packet), Err(OpenError::Replayed));
        }
        assert_eq!(
            open(&mut opener, &seal(&sealer, SSRC, 188)),
            Err(OpenError::Replayed)
        );
    }
}

#[test]
fn the_sequence_number_rolls_over_with_loss_and_reordering() {
    for profile in ALL {
        let (sealer, mut opener) = pair(profile);
        for index in [
            65_530, 65_535, 65_540, 65_534, 65_536, 98_300, 131_060, 131_073, 131_071, 163_000,
        ] {
            assert_eq!(open(&mut opener, &seal(&sealer, SSRC, index)), Ok(index));
        }
    }
}

#[test]
fn forgery_changes_nothing() {
    for profile in ALL {
        let (mut sealer, mut opener) = pair(profile);
        let good = seal(&sealer, SSRC, 70_000 % 65_536);
        for at in 0..good.len() {
            let mut forged = good.clone();
            forged[at] ^= 1;
            assert_eq!(
                open(&mut opener, &forged),
                Err(OpenError::Unauthenticated),
                "byte {at}"
            );
        }
        assert_eq!(open(&mut opener, &good), Ok(70_000 % 65_536));

        let good = seal_rtcp(&mut sealer, 1);
        for at in 0..good.len() {
            let mut forged = good.clone();
            forged[at] ^= 0x40;
            assert_eq!(
                opener.open_rtcp(&mut forged),
                Err(OpenError::Unauthenticated),
                "byte {at}"
            );
        }
        assert_eq!(opener.open_rtcp(&mut good.clone()), Ok(rtcp(1).len()));
    }
}

#[test]
fn a_forged_jump_does_not_move_the_window() {
    let (sealer, mut opener) = pair(Profile::AeadAes128Gcm);
    assert_eq!(open(&mut opener, &seal(&sealer, SSRC, 5)), Ok(5));
    let mut forged = seal(&sealer, SSRC, 30_000);
    *forged.last_mut().unwrap() ^= 1;
    assert_eq!(open(&mut opener, &forged), Err(OpenError::Unauthenticated));
    assert_eq!(open(&mut opener, &seal(&sealer, SSRC, 6)), Ok(6));
}

#[test]
fn rtcp_senders_count_apart() {
    for profile in ALL {
        let (mut sealer, mut opener) = pair(profile);
        let one = seal_rtcp(&mut sealer, 1);
        let two = seal_rtcp(&mut sealer, 2);
        let three = seal_rtcp(&mut sealer, 1);
        for packet in [&three, &two, &one] {
            assert_eq!(opener.open_rtcp(&mut packet.clone()), Ok(rtcp(1).len()));
            assert_eq!(
                opener.open_rtcp(&mut packet.clone()),
                Err(OpenError::Replayed)
            );
        }
    }
}

#[test]
fn sources_are_bounded_and_only_authentic_ones_count() {
    let (sealer, opener) = pair(Profile::AeadAes128Gcm);
    let mut opener = opener.with_source_limit(3);
    for ssrc in 100..200 {
        let mut forged = seal(&sealer, Ssrc(ssrc), 1);
        forged[20] ^= 1;
        assert_eq!(open(&mut opener, &forged), Err(OpenError::Unauthenticated));
    }
    for ssrc in 0..3 {
        assert_eq!(open(&mut opener, &seal(&sealer, Ssrc(ssrc), 1)), Ok(1));
    }
    assert_eq!(
        open(&mut opener, &seal(&sealer, Ssrc(3), 1)),
        Err(OpenError::TooManySources)
    );
    assert_eq!(open(&mut opener, &seal(&sealer, Ssrc(1), 2)), Ok(2));
    opener.forget(Ssrc(0));
    assert_eq!(open(&mut opener, &seal(&sealer, Ssrc(3), 1)), Ok(1));
}

#[test]
fn a_peer_may_change_its_source_for_long_and_none_is_replayed() {
    let (sealer, mut opener) = pair(Profile::AeadAes128Gcm);
    let packet = |ssrc, index| seal(&sealer, Ssrc(ssrc), index);
    for ssrc in 0..2_048 {
        assert_eq!(open(&mut opener, &packet(ssrc, 1)), Ok(1));
    }
    let one_more = open(&mut opener, &packet(2_048, 1));
    assert_eq!(one_more, Err(OpenError::TooManySources));
    for ssrc in [0, 1_000, 2_047] {
        let again = open(&mut opener, &packet(ssrc, 1));
        assert_eq!(again, Err(OpenError::Replayed));
        assert_eq!(open(&mut opener, &packet(ssrc, 2)), Ok(2));
    }
}

#[test]
fn the_caller_is_told_of_a_buffer_without_room() {
    let (mut sealer, _) = pair(Profile::AeadAes128Gcm);
    let mut buf = [0; 40];
    let room = |len| Err(SealError::Room { len, capacity: 40 });
    assert_eq!(sealer.seal_rtp(SeqNo(0), 12, 25, &mut buf), room(25));
    assert_eq!(sealer.seal_rtp(SeqNo(0), 12, 50, &mut buf), room(50));
    assert_eq!(sealer.seal_rtp(SeqNo(0), 21, 20, &mut buf), room(20));
    assert_eq!(sealer.seal_rtp(SeqNo(0), 11, 20, &mut buf), room(20));
    assert_eq!(sealer.seal_rtcp(21, &mut buf), room(21));
    assert_eq!(sealer.seal_rtcp(7, &mut buf), room(7));
    sealer.set_rtcp_index(1 << 31);
    assert_eq!(sealer.seal_rtcp(20, &mut buf), Err(SealError::Exhausted));
}

proptest! {
    #[test]
    fn whatever_arrives_is_refused(
        profile in proptest::sample::select(&ALL[..]),
        mut bytes in proptest::collection::vec(any::<u8>(), 0..200),
        header_len in 0usize..300,
        sequence: u16,
    ) {
        let (_, mut opener) = pair(profile);
        prop_assert!(opener.open_rtp(header_len, SSRC, sequence, &mut bytes).is_err());
        prop_assert!(opener.open_rtcp(&mut bytes).is_err());
    }

    #[test]
    fn whatever_is_sealed_opens(
        profile in proptest::sample::select(&ALL[..]),
        payload in proptest::collection::vec(any::<u8>(), 0..1_400),
        sequence: u16,
    ) {
        let (sealer, mut opener) = pair(profile);
        let plain = rtp(SSRC, sequence, &payload);
        let mut buf = plain.clone();
        buf.resize(plain.len() + profile.rtp_overhead(), 0);
        let len = sealer.seal_rtp(SeqNo(sequence.into()), HEADER, plain.len(), &mut buf).unwrap();
        let opened = opener.open_rtp(HEADER, SSRC, sequence, &mut buf[..len]).unwrap();
        prop_assert_eq!(&buf[..opened.len], &plain[..]);
    }
}

/// A packet with its payload in two places is sealed like one in one place.
#[test]
fn a_tail_is_sealed_as_if_it_were_in_place() {
    for profile in ALL {
        let key = vec![7; profile.key_len()];
        let salt = vec![9; profile.salt_len()];
        let sealer = Sealer::new(profile, &key, &salt).unwrap();
        let packet: Vec<u8> = [0x80, 96].into_iter().chain(0..198).collect();
        for split in [12, 13, 28, 60, 199] {
            let mut whole = [packet.clone(), vec![0; 32]].concat();
            let expected = sealer
                .seal_rtp(SeqNo(515), 12, packet.len(), &mut whole)
                .unwrap();
            let (start, tail) = packet.split_at(split);
            let mut parts = [start.to_vec(), vec![0; 250]].concat();
            let len = sealer
                .seal_rtp_with_tail(SeqNo(515), 12, split, tail, &mut parts)
                .unwrap();
            assert_eq!(parts[..len], whole[..expected], "{profile:?} {split}");
        }
    }
}
