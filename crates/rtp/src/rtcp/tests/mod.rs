#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

mod twcc;

use super::*;
use crate::Ssrc;
use proptest::prelude::*;

const SENDER: Ssrc = Ssrc(0x0102_0304);
const MEDIA: Ssrc = Ssrc(0x0506_0708);

fn written(packet: &impl WritePacket) -> Vec<u8> {
    let mut out = vec![0xff; packet.size() + 4];
    let len = packet.write_into(&mut out).unwrap();
    assert_eq!(len, packet.size());
    assert_eq!(out[len..], [0xff; 4]);
    out.truncate(len);
    let short = packet.write_into(&mut out[..len - 1]);
    assert_eq!(
        short,
        Err(RtpError::NoRoom {
            needed: len,
            available: len - 1
        })
    );
    packet.write_into(&mut out).unwrap();
    out
}

fn only(bytes: &[u8]) -> Packet<'_> {
    let mut walk = Compound::new(bytes);
    let packet = walk.next().unwrap().unwrap();
    assert!(walk.next().is_none());
    packet
}

macro_rules! parsed {
    ($kind:ident, $bytes:expr) => {
        match only($bytes) {
            Packet::$kind(view) => view,
            other => panic!("{other:?}"),
        }
    };
}

const BLOCK: ReportBlock = ReportBlock {
    ssrc: MEDIA,
    fraction_lost: 64,
    cumulative_lost: -2,
    highest_sequence: 0x0001_0002,
    jitter: 7,
    last_sr: 0x1234_5678,
    delay_since_last_sr: 65_536,
};

#[test]
fn sender_report_round_trips() {
    let info = SenderInfo {
        ntp: 0x1111_2222_3333_4444,
        rtp: 5,
        packets: 6,
        octets: 7,
    };
    let bytes = written(&SenderReportWriter {
        ssrc: SENDER,
        info,
        blocks: &[BLOCK, BLOCK],
    });
    assert_eq!(bytes[..4], [0x82, 200, 0, 18]);
    let report = parsed!(SenderReport, &bytes);
    assert_eq!((report.ssrc, report.info), (SENDER, info));
    assert_eq!(report.info.compact_ntp(), 0x2222_3333);
    assert_eq!(report.blocks().collect::<Vec<_>>(), [BLOCK, BLOCK]);
}

#[test]
fn receiver_report_round_trips_and_clamps() {
    let excess = ReportBlock {
        cumulative_lost: i32::MAX,
        ..BLOCK
    };
    let bytes = written(&ReceiverReportWriter {
        ssrc: SENDER,
        blocks: &[BLOCK, excess],
    });
    let report = parsed!(ReceiverReport, &bytes);
    assert_eq!(report.ssrc, SENDER);
    let clamped = ReportBlock {
        cumulative_lost: 0x7f_ffff,
        ..BLOCK
    };
    assert_eq!(report.blocks().collect::<Vec<_>>(), [BLOCK, clamped]);
    let many = [BLOCK; 32];
    let error = ReceiverReportWriter {
        ssrc: SENDER,
        blocks: &many,
    }
    .write_into(&mut [0; 2048]);
    assert_eq!(error, Err(RtpError::OutOfRange("count")));
}

#[test]
fn cname_of_every_length_round_trips() {
    for len in 0..=300 {
        let cname = "x".repeat(len);
        let bytes = written(&CnameWriter {
            ssrc: SENDER,
            cname: &cname,
        });
        assert_eq!(bytes.len() % 4, 0);
        assert_eq!(
            parsed!(Sdes, &bytes).cname(SENDER),
            Some(&cname.as_bytes()[..len.min(255)])
        );
    }
}

#[test]
fn sdes_of_two_sources() {
    let bytes = [
        0x82, 202, 0, 6, 0, 0, 0, 1, 1, 2, b'a', b'b', 6, 1, b't', 0, 0, 0, 0, 2, 1, 1, b'c', 0, 0,
        0, 0, 0,
    ];
    let sdes = parsed!(Sdes, &bytes);
    let chunks: Vec<_> = sdes.chunks().collect();
    assert_eq!(chunks.len(), 2);
    assert_eq!(
        chunks[0].items().map(|item| item.kind).collect::<Vec<_>>(),
        [1, 6]
    );
    assert_eq!(sdes.cname(Ssrc(1)), Some(&b"ab"[..]));
    assert_eq!(sdes.cname(Ssrc(2)), Some(&b"c"[..]));
}

#[test]
fn bye_round_trips() {
    for reason in ["", "teardown", "bye"] {
        let bytes = written(&ByeWriter {
            ssrcs: &[SENDER, MEDIA],
            reason,
        });
        let bye = parsed!(Bye, &bytes);
        assert_eq!(bye.ssrcs().collect::<Vec<_>>(), [SENDER, MEDIA]);
        assert_eq!(bye.reason(), reason.as_bytes());
    }
}

#[test]
fn nack_packs_neighbours() {
    let lost = [65_530, 65_535, 0, 10, 11, 12, 28, 28, 29];
    let bytes = written(&NackWriter {
        sender: SENDER,
        media: MEDIA,
        lost,
    });
    assert_eq!(bytes[..4], [0x81, 205, 0, 5]);
    let nack = parsed!(Nack, &bytes);
    assert_eq!((nack.sender, nack.media), (SENDER, MEDIA));
    let back: Vec<_> = nack.lost().collect();
    assert_eq!(back, [65_530, 65_535, 0, 10, 11, 12, 28, 29]);
}

#[test]
fn keyframe_requests_round_trip() {
    let pli = Pli {
        sender: SENDER,
        media: MEDIA,
    };
    let bytes = written(&pli);
    assert_eq!(bytes, [0x81, 206, 0, 2, 1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(parsed!(Pli, &bytes), pli);
    let entries = [
        FirEntry {
            ssrc: MEDIA,
            sequence: 9,
        },
        FirEntry {
            ssrc: SENDER,
            sequence: 0,
        },
    ];
    let bytes = written(&FirWriter {
        sender: SENDER,
        entries: &entries,
    });
    let fir = parsed!(Fir, &bytes);
    assert_eq!(fir.sender, SENDER);
    assert_eq!(fir.entries().collect::<Vec<_>>(), entries);
}

#[test]
fn remb_keeps_eighteen_bits() {
    for (bitrate, back) in [
        (0, 0),
        (262_143, 262_143),
        (262_145, 262_144),
        (2_500_000, 2_500_000),
        (u64::MAX, 0x3_ffff << 46),
    ] {
        let bytes = written(&RembWriter {
            sender: SENDER,
            bitrate,
            ssrcs: &[MEDIA],
        });
        let remb = parsed!(Remb, &bytes);
        assert_eq!((remb.sender, remb.bitrate), (SENDER, back));
        assert_eq!(remb.ssrcs().collect::<Vec<_>>(), [MEDIA]);
    }
    let excess = [
        0x8f, 206, 0, 4, 0, 0, 0, 1, 0, 0, 0, 0, b'R', b'E', b'M', b'B', 0, 255, 255, 255,
    ];
    assert_eq!(parsed!(Remb, &excess).bitrate, u64::MAX);
}

#[test]
fn extended_reports() {
    let bytes = [
        0x80, 207, 0, 10, 1, 2, 3, 4, 4, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2, 5, 0, 0, 3, 5, 6, 7, 8,
        0, 0, 0, 9, 0, 0, 0, 10, 99, 7, 0, 1, 1, 1, 1, 1,
    ];
    let xr = parsed!(Xr, &bytes);
    assert_eq!(xr.sender, SENDER);
    let blocks: Vec<_> = xr.blocks().collect();
    let [
        XrBlock::ReceiverReferenceTime(ntp),
        XrBlock::Dlrr(answers),
        XrBlock::Other { kind, .. },
    ] = blocks[..]
    else {
        panic!("{blocks:?}");
    };
    assert_eq!((ntp, kind), ((1 << 32) | 2, 99));
    assert_eq!(
        Dlrr::parse(&answers[0]),
        Dlrr {
            ssrc: MEDIA,
            last_rr: 9,
            delay: 10
        }
    );
}

#[test]
fn a_compound_skips_what_it_does_not_know() {
    let mut out = [0; 256];
    let mut compound = CompoundWriter::new(&mut out);
    assert!(compound.is_empty());
    compound
        .push(&ReceiverReportWriter {
            ssrc: SENDER,
            blocks: &[],
        })
        .unwrap();
    compound
        .push(&CnameWriter {
            ssrc: SENDER,
            cname: "me",
        })
        .unwrap();
    let mut bytes = compound.as_bytes().to_vec();
    // APP, feedback of an unknown format, and application feedback other than REMB.
    bytes.extend([0x80, 204, 0, 2, 1, 2, 3, 4, b'n', b'a', b'm', b'e']);
    bytes.extend([0x9e, 205, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2]);
    bytes.extend([
        0x8f, 206, 0, 3, 0, 0, 0, 1, 0, 0, 0, 2, b'L', b'N', b'T', b'F',
    ]);
    // A truncated PLI, and a good one with padding.
    bytes.extend([0x81, 206, 0, 1, 0, 0, 0, 1]);
    bytes.extend([0xa1, 206, 0, 3, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 4]);
    let kinds: Vec<_> = Compound::new(&bytes).collect();
    assert!(matches!(
        kinds[..],
        [
            Ok(Packet::ReceiverReport(_)),
            Ok(Packet::Sdes(_)),
            Err(RtpError::Truncated {
                expected: 8,
                actual: 4
            }),
            Ok(Packet::Pli(Pli {
                sender: Ssrc(1),
                media: Ssrc(2)
            }))
        ]
    ));
    assert!(is_rtcp(&bytes));
    assert!(!is_rtcp(&[0x80, 96 | 0x80]));
    assert!(!is_rtcp(&[22, 200]));
}

#[test]
fn a_broken_frame_ends_the_walk() {
    for bytes in [
        &[0x81, 206, 0, 3, 1, 2, 3, 4][..],
        &[0x41, 206, 0, 0],
        &[0x81, 206],
        &[0xa1, 206, 0, 1, 0, 0, 0, 5],
        &[0xa1, 206, 0, 1, 0, 0, 0, 0],
        &[0xa1, 206, 0, 0],
    ] {
        let mut walk = Compound::new(bytes);
        assert!(walk.next().unwrap().is_err(), "{bytes:?}");
        assert!(walk.next().is_none());
    }
}

/// Reads all content of a datagram.
fn exhaust(datagram: &[u8]) {
    for packet in Compound::new(datagram).flatten() {
        let _ = match packet {
            Packet::SenderReport(view) => view.blocks().count(),
            Packet::ReceiverReport(view) => view.blocks().count(),
            Packet::Sdes(view) => view.chunks().map(|chunk| chunk.items().count()).sum(),
            Packet::Bye(view) => view.ssrcs().count() + view.reason().len(),
            Packet::Nack(view) => view.lost().count(),
            Packet::Pli(_) => 0,
            Packet::Fir(view) => view.entries().count(),
            Packet::Remb(view) => view.ssrcs().count(),
            Packet::Twcc(view) => view.statuses().count(),
            Packet::Xr(view) => view.blocks().count(),
        };
    }
}

proptest! {
    #[test]
    fn arbitrary_packets_never_panic(
        packets in proptest::collection::vec(
            (0u8..64, 200u8..208, proptest::collection::vec(any::<u8>(), 0..80)), 1..4),
        cut in 0usize..8,
    ) {
        let mut bytes = vec![];
        for (low, packet_type, mut body) in packets {
            body.truncate(body.len() / 4 * 4);
            bytes.extend([0x80 | low, packet_type, 0, (body.len() / 4) as u8]);
            bytes.extend(body);
        }
        exhaust(&bytes);
        exhaust(&bytes[..bytes.len().saturating_sub(cut)]);
    }

    #[test]
    fn lost_packets_round_trip(first: u16, gaps in proptest::collection::vec(1u16..40, 0..60)) {
        let lost: Vec<u16> = gaps
            .iter()
            .scan(first, |at, gap| { *at = at.wrapping_add(*gap); Some(*at) })
            .collect();
        let nack = NackWriter { sender: SENDER, media: MEDIA, lost: lost.iter().copied() };
        let bytes = written(&nack);
        prop_assert!(parsed!(Nack, &bytes).lost().eq(lost));
    }
}
