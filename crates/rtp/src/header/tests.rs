#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

use super::*;
use proptest::prelude::*;

const FIELDS: Fields = Fields {
    marker: true,
    padding: false,
    pt: Pt(96),
    sequence: 0x1234,
    timestamp: 0x0102_0304,
    ssrc: Ssrc(0xdead_beef),
};

fn written(extensions: &[(u8, &[u8])]) -> Vec<u8> {
    let mut out = [0xaa; 2048];
    let len = write_header(&mut out, &FIELDS, extensions.iter().copied()).unwrap();
    out[..len].to_vec()
}

#[test]
fn plain_header() {
    let packet = [
        0x80, 0xe0, 0x12, 0x34, 1, 2, 3, 4, 0xde, 0xad, 0xbe, 0xef, 7, 8,
    ];
    let header = Header::parse(&packet).unwrap();
    assert!(header.marker);
    assert_eq!(header.pt, Pt(96));
    assert_eq!(header.sequence, 0x1234);
    assert_eq!(header.timestamp, 0x0102_0304);
    assert_eq!(header.ssrc, Ssrc(0xdead_beef));
    assert_eq!(header.header_len(), 12);
    assert_eq!(header.payload(&packet), [7, 8]);
    assert_eq!(header.csrcs(&packet).count(), 0);
    assert_eq!(header.extensions(&packet).count(), 0);
    assert_eq!(written(&[]), packet[..12]);
}

#[test]
fn contributing_sources_and_unknown_profile() {
    let mut packet = vec![0x92, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3];
    packet.extend([0, 0, 0, 4, 0, 0, 0, 5]);
    packet.extend([0xab, 0xcd, 0, 1, 1, 2, 3, 4, 9]);
    let header = Header::parse(&packet).unwrap();
    assert_eq!(
        header.csrcs(&packet).collect::<Vec<_>>(),
        [Ssrc(4), Ssrc(5)]
    );
    assert_eq!(header.extension_profile(), 0xabcd);
    assert_eq!(&packet[header.extension_range()], [1, 2, 3, 4]);
    assert_eq!(header.extensions(&packet).count(), 0);
    assert_eq!(header.payload(&packet), [9]);
}

#[test]
fn padding_is_removed_only_in_the_clear() {
    let packet = [0xa0, 96, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 0, 0, 3];
    assert_eq!(Header::parse(&packet).unwrap().payload(&packet), [1, 2]);
    assert_eq!(
        Header::parse_encrypted(&packet).unwrap().payload(&packet),
        [1, 2, 0, 0, 3]
    );
    for count in [0, 6] {
        let mut bad = packet;
        bad[16] = count;
        let error = Header::parse(&bad).unwrap_err();
        assert_eq!(
            error,
            RtpError::Padding {
                padding: count,
                room: 5
            }
        );
        assert!(Header::parse_encrypted(&bad).is_ok());
    }
    let empty = Header::parse(&packet[..12]).unwrap_err();
    assert_eq!(
        empty,
        RtpError::Padding {
            padding: 0,
            room: 0
        }
    );
}

#[test]
fn padding_is_written() {
    let mut packet = [0xff; 20];
    let fields = Fields {
        padding: true,
        ..FIELDS
    };
    let len = write_header(&mut packet, &fields, []).unwrap();
    write_padding(&mut packet[len..]).unwrap();
    assert!(Header::parse(&packet).unwrap().payload(&packet).is_empty());
    assert!(write_padding(&mut []).is_err());
    assert!(write_padding(&mut [0; 256]).is_err());
}

#[test]
fn truncated_and_foreign_packets_are_refused() {
    let packet = written(&[(1, b"abc")]);
    for len in 0..packet.len() {
        assert!(matches!(
            Header::parse(&packet[..len]),
            Err(RtpError::Truncated { .. })
        ));
    }
    assert_eq!(Header::parse(&[0x40; 12]), Err(RtpError::Version(1)));
    assert_eq!(
        Header::parse(&[0x80; 65_536]),
        Err(RtpError::TooLong { actual: 65_536 })
    );
}

/// The examples of RFC 8285 sections 4.2 and 4.3.
#[test]
fn extensions_of_the_rfc() {
    let packet = packet_with(0xbede, &[0x10, 9, 0x21, 8, 7, 0, 0, 0x33, 6, 5, 4, 3]);
    let header = Header::parse(&packet).unwrap();
    let expected: [(u8, &[u8]); 3] = [(1, &[9]), (2, &[8, 7]), (3, &[6, 5, 4, 3])];
    assert_eq!(header.extensions(&packet).collect::<Vec<_>>(), expected);

    let packet = packet_with(0x1005, &[1, 0, 2, 1, 9, 0, 3, 4, 6, 5, 4, 3]);
    let header = Header::parse(&packet).unwrap();
    let expected: [(u8, &[u8]); 3] = [(1, &[]), (2, &[9]), (3, &[6, 5, 4, 3])];
    assert_eq!(header.extensions(&packet).collect::<Vec<_>>(), expected);
}

#[test]
fn reserved_numbers_and_truncation_end_the_walk() {
    for tail in [[0xf0, 1], [0x01, 1], [0x5f, 1]] {
        let packet = packet_with(0xbede, &[0x10, 9, tail[0], tail[1], 0x10, 2, 0, 0]);
        let header = Header::parse(&packet).unwrap();
        assert_eq!(header.extensions(&packet).count(), 1, "{tail:?}");
    }
    let packet = packet_with(0x1000, &[1, 1, 9, 2, 200, 0, 0, 0]);
    let header = Header::parse(&packet).unwrap();
    assert_eq!(header.extensions(&packet).count(), 1);
}

#[test]
fn the_form_follows_the_elements() {
    let profile =
        |extensions| u16::from_be_bytes([written(extensions)[12], written(extensions)[13]]);
    assert_eq!(profile(&[(14, &[0; 16])]), 0xbede);
    assert_eq!(profile(&[(15, &[0])]), 0x1000);
    assert_eq!(profile(&[(1, &[])]), 0x1000);
    assert_eq!(profile(&[(1, &[0; 17])]), 0x1000);
    assert!(write_header(&mut [0; 64], &FIELDS, [(0, &[1][..])]).is_err());
    assert!(write_header(&mut [0; 640], &FIELDS, [(1, &[0; 256][..])]).is_err());
    let needed = RtpError::NoRoom {
        needed: 20,
        available: 19,
    };
    assert_eq!(
        write_header(&mut [0; 19], &FIELDS, [(1, &[1][..])]),
        Err(needed)
    );
}

#[test]
fn edits_in_place() {
    let mut packet = written(&[(3, &[1, 2, 3]), (5, &[4, 5])]);
    set_marker(&mut packet, false);
    set_pt(&mut packet, Pt(111));
    set_sequence(&mut packet, 7);
    set_timestamp(&mut packet, 8);
    set_ssrc(&mut packet, Ssrc(9));
    let header = Header::parse(&packet).unwrap();
    assert_eq!(
        (header.marker, header.pt, header.sequence),
        (false, Pt(111), 7)
    );
    assert_eq!((header.timestamp, header.ssrc), (8, Ssrc(9)));
    header
        .extension_mut(&mut packet, 3)
        .unwrap()
        .copy_from_slice(&[9, 9, 9]);
    header
        .extension_mut(&mut packet, 5)
        .unwrap()
        .copy_from_slice(&[8, 8]);
    assert!(header.extension_mut(&mut packet, 4).is_none());
    assert_eq!(header.extension(&packet, 3), Some(&[9, 9, 9][..]));
    assert_eq!(header.extension(&packet, 5), Some(&[8, 8][..]));
}

fn packet_with(profile: u16, elements: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x90, 96, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3];
    packet.extend(profile.to_be_bytes());
    packet.extend((elements.len() as u16 / 4).to_be_bytes());
    packet.extend(elements);
    packet
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(mut packet in proptest::collection::vec(any::<u8>(), 0..80), id: u8) {
        if let Some(first) = packet.first_mut() {
            *first = (*first & 0x3f) | 0x80;
        }
        for parse in [Header::parse, Header::parse_encrypted] {
            if let Ok(header) = parse(&packet) {
                prop_assert!(header.payload_range().end <= packet.len());
                let _ = header.extensions(&packet).count() + header.csrcs(&packet).count();
                let _ = header.extensions(&packet[..3]).count() + header.payload(&[]).len();
                let value = header.extension(&packet, id).map(<[u8]>::to_vec);
                let edited = header.extension_mut(&mut packet, id).map(|value| value.to_vec());
                prop_assert_eq!(value, edited);
            }
        }
    }

    #[test]
    fn what_is_written_is_parsed(
        (marker, padding, pt) in (any::<bool>(), any::<bool>(), 0u8..128),
        (sequence, timestamp, ssrc) in any::<(u16, u32, u32)>(),
        elements in proptest::collection::vec(
            (1u8..=255, proptest::collection::vec(any::<u8>(), 0..40)), 0..8),
        payload in proptest::collection::vec(any::<u8>(), 0..40),
    ) {
        let fields = Fields { marker, padding, pt: Pt(pt), sequence, timestamp, ssrc: Ssrc(ssrc) };
        let mut packet = vec![0xff; 1024];
        let extensions = elements.iter().map(|(id, value)| (*id, value.as_slice()));
        let len = write_header(&mut packet, &fields, extensions.clone()).unwrap();
        packet.truncate(len);
        packet.extend(&payload);
        if padding {
            packet.extend([0, 0, 3]);
        }
        let header = Header::parse(&packet).unwrap();
        prop_assert_eq!(header.payload(&packet), &payload);
        prop_assert_eq!(header.header_len(), len);
        let parsed = (header.marker, header.has_padding(), header.pt, header.sequence);
        prop_assert_eq!(parsed, (marker, padding, Pt(pt), sequence));
        prop_assert_eq!((header.timestamp, header.ssrc), (timestamp, Ssrc(ssrc)));
        prop_assert!(header.extensions(&packet).eq(extensions));
    }
}
