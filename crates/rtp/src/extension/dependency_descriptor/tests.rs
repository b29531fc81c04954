#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by a panic"
)]

use super::*;
use proptest::prelude::*;

/// L2T2 without a dependency from S1 to later frames of S0: six templates, four decode targets
/// (S0T0, S0T1, S1T0, S1T1), two chains.
struct Example {
    bytes: [u8; 64],
}

const NOT: u32 = 0;
const DIS: u32 = 1;
const SWI: u32 = 2;
const REQ: u32 = 3;
const DTIS: [[u32; 4]; 6] = [
    [SWI, SWI, SWI, SWI], // S0T0, key
    [REQ, REQ, REQ, REQ], // S0T0
    [NOT, DIS, NOT, REQ], // S0T1
    [NOT, NOT, SWI, SWI], // S1T0, key
    [NOT, NOT, REQ, REQ], // S1T0
    [NOT, NOT, NOT, DIS], // S1T1
];
const FRAME_DIFFS: [&[u32]; 6] = [&[], &[4], &[2], &[1], &[4, 1], &[2, 1]];
const CHAIN_DIFFS: [[u32; 2]; 6] = [[0, 0], [4, 3], [2, 1], [1, 1], [1, 1], [3, 2]];
const ID_OFFSET: u32 = 60;

impl Example {
    /// Writes a descriptor: start and end of frame, `template`, frame `number`, then the output of
    /// `more`.
    fn new(template: u32, number: u32, more: impl FnOnce(&mut BitWriter<'_>)) -> (Self, usize) {
        let mut this = Self { bytes: [0; 64] };
        let mut bits = BitWriter::new(&mut this.bytes);
        put(
            &mut bits,
            &[(3, 2), ((ID_OFFSET + template) % 64, 6), (number, 16)],
        );
        more(&mut bits);
        let len = bits.len();
        (this, len)
    }

    fn keyframe(mask: Option<u32>) -> Vec<u8> {
        let (this, len) = Self::new(0, 1, |bits| {
            put(bits, &[(1, 1), (u32::from(mask.is_some()), 1), (0, 3)]);
            put_structure(bits);
            if let Some(mask) = mask {
                put(bits, &[(mask, 4)]);
            }
        });
        this.bytes[..len].to_vec()
    }
}

fn put(bits: &mut BitWriter<'_>, fields: &[(u32, usize)]) {
    for (value, count) in fields {
        bits.write(*value, *count).unwrap();
    }
}

fn put_structure(bits: &mut BitWriter<'_>) {
    put(bits, &[(ID_OFFSET, 6), (3, 5)]);
    put(bits, &[(0, 2), (1, 2), (2, 2), (0, 2), (1, 2), (3, 2)]);
    for dti in DTIS.as_flattened() {
        put(bits, &[(*dti, 2)]);
    }
    for diffs in FRAME_DIFFS {
        for diff in diffs {
            put(bits, &[(1, 1), (diff - 1, 4)]);
        }
        put(bits, &[(0, 1)]);
    }
    // Two of up to four chains: ns(5) of 2 takes two bits. Then follows ns(2) of each target's
    // chain.
    put(bits, &[(2, 2), (0, 1), (0, 1), (1, 1), (1, 1)]);
    for diff in CHAIN_DIFFS.as_flattened() {
        put(bits, &[(*diff, 4)]);
    }
    put(bits, &[(1, 1), (639, 16), (359, 16), (1279, 16), (719, 16)]);
}

fn reader() -> DependencyReader {
    let mut reader = DependencyReader::new();
    reader.read(&Example::keyframe(None)).unwrap();
    reader
}

#[test]
fn structure_of_a_keyframe() {
    let mut reader = DependencyReader::new();
    let descriptor = reader.read(&Example::keyframe(None)).unwrap();
    assert!(descriptor.has_structure && !descriptor.targets_place.is_told);
    assert_eq!(descriptor.active_targets, 0b1111);
    assert_eq!((descriptor.spatial, descriptor.temporal), (0, 0));
    assert_eq!(descriptor.indications.of(3), Indication::Switch);
    assert_eq!(descriptor.indications.of(4), Indication::NotPresent);
    let structure = reader.structure().unwrap();
    let layers: Vec<_> = structure
        .decode_targets()
        .iter()
        .map(|target| (target.spatial, target.temporal))
        .collect();
    assert_eq!(layers, [(0, 0), (0, 1), (1, 0), (1, 1)]);
    assert_eq!((structure.max_spatial(), structure.max_temporal()), (1, 1));
    assert_eq!(structure.resolution(0), Some((640, 360)));
    assert_eq!(structure.resolution(1), Some((1280, 720)));
    assert_eq!(structure.resolution(2), None);
    assert_eq!(structure.protecting_chain(1), Some(0));
    assert_eq!(structure.protecting_chain(3), Some(1));
    assert_eq!(structure.protecting_chain(4), None);
    assert_eq!(structure.targets_within(0, 7), 0b0011);
    assert_eq!(structure.targets_within(1, 0), 0b0101);
    assert_eq!(structure.all_targets(), 0b1111);
}

#[test]
fn frames_follow_templates() {
    let mut reader = reader();
    let (example, len) = Example::new(5, 0x1234, |_| {});
    assert_eq!(len, 3);
    let descriptor = reader.read(&example.bytes[..3]).unwrap();
    let fields = descriptor.fields;
    assert!(fields.start_of_frame && fields.end_of_frame);
    assert_eq!((fields.template_id, fields.frame_number), (1, 0x1234));
    assert_eq!((descriptor.spatial, descriptor.temporal), (1, 1));
    assert_eq!(descriptor.frame_diffs.as_slice(), [2, 1]);
    assert_eq!(descriptor.chain_diffs.as_slice(), [3, 2]);
    assert!(descriptor.indications.is_present_in(0b1000));
    assert!(!descriptor.indications.is_present_in(0b0111));
}

#[test]
fn frames_with_fields_of_their_own() {
    let mut reader = reader();
    let (example, len) = Example::new(1, 9, |bits| {
        put(bits, &[(0b01111, 5), (0b0011, 4)]);
        put(bits, &[(DIS, 2), (SWI, 2), (NOT, 2), (REQ, 2)]);
        put(bits, &[(1, 2), (7, 4), (3, 2), (4095, 12), (0, 2)]);
        put(bits, &[(200, 8), (0, 8)]);
    });
    let descriptor = reader.read(&example.bytes[..len]).unwrap();
    assert_eq!(
        (descriptor.active_targets, descriptor.targets_place.is_told),
        (0b0011, true)
    );
    assert_eq!(descriptor.indications.of(0), Indication::Discardable);
    assert_eq!(descriptor.indications.of(2), Indication::NotPresent);
    assert_eq!(descriptor.frame_diffs.as_slice(), [8, 4096]);
    assert_eq!(descriptor.chain_diffs.as_slice(), [200, 0]);
    // The mask stays until the next one.
    let (example, _) = Example::new(1, 10, |_| {});
    let descriptor = reader.read(&example.bytes[..3]).unwrap();
    assert_eq!(
        (descriptor.active_targets, descriptor.targets_place.is_told),
        (0b0011, false)
    );
    assert_eq!(
        reader
            .read(&Example::keyframe(None))
            .unwrap()
            .active_targets,
        0b1111
    );
}

#[test]
fn malformed_descriptors_leave_the_reader_as_it_was() {
    let (delta, _) = Example::new(1, 9, |_| {});
    let no_structure = DependencyReader::new().read(&delta.bytes[..3]);
    assert_eq!(
        no_structure,
        Err(RtpError::Invalid("descriptor before the first structure"))
    );
    let mut reader = reader();
    let structure = reader.structure().cloned();
    let keyframe = Example::keyframe(Some(1));
    for len in 0..keyframe.len() {
        if len != 3 {
            assert!(reader.read(&keyframe[..len]).is_err(), "{len}");
        }
    }
    let (unknown, _) = Example::new(6, 9, |_| {});
    assert_eq!(
        reader.read(&unknown.bytes[..3]),
        Err(RtpError::Invalid("template id"))
    );
    let (layers, len) = Example::new(0, 9, |bits| {
        put(
            bits,
            &[
                (0b10000, 5),
                (0, 11),
                (2, 2),
                (2, 2),
                (2, 2),
                (2, 2),
                (3, 2),
                (0, 32),
            ],
        );
    });
    assert_eq!(
        reader.read(&layers.bytes[..len]),
        Err(RtpError::Invalid("template layer"))
    );
    let (many, len) = Example::new(0, 9, |bits| {
        put(bits, &[(0b10000, 5), (0, 11)]);
        put(bits, &[(0, 32); 5]);
    });
    assert_eq!(
        reader.read(&many.bytes[..len]),
        Err(RtpError::Invalid("number of templates"))
    );
    assert_eq!(reader.structure().cloned(), structure);
    assert_eq!(
        reader.read(&delta.bytes[..3]).unwrap().active_targets,
        0b1111
    );
}

#[test]
fn a_mask_is_put_in_and_replaced() {
    let mut out = [0xff; 80];
    for keyframe in [Example::keyframe(None), Example::keyframe(Some(0b1001))] {
        let mut reader = DependencyReader::new();
        let descriptor = reader.read(&keyframe).unwrap();
        let len = descriptor
            .targets_place
            .write(&keyframe, 0b0011, &mut out)
            .unwrap();
        assert_eq!(out[..len], Example::keyframe(Some(0b0011)));
        let short = descriptor
            .targets_place
            .write(&keyframe, 0b0011, &mut out[..len - 1]);
        assert!(matches!(short, Err(RtpError::NoRoom { .. })));
    }
    let mut reader = reader();
    let (delta, _) = Example::new(1, 9, |_| {});
    let before = reader.read(&delta.bytes[..3]).unwrap();
    let len = before
        .targets_place
        .write(&delta.bytes[..3], 0b0101, &mut out)
        .unwrap();
    assert_eq!(len, 5);
    let after = reader.read(&out[..len]).unwrap();
    assert_eq!(
        (after.active_targets, after.targets_place.is_told),
        (0b0101, true)
    );
    assert_eq!(
        (after.fields, after.indications),
        (before.fields, before.indications)
    );
    set_frame_number(&mut out, 77);
    assert_eq!(reader.read(&out[..len]).unwrap().fields.frame_number, 77);
}

#[test]
fn thirty_two_decode_targets() {
    let (example, len) = Example::new(0, 1, |bits| {
        put(bits, &[(0b10000, 5), (ID_OFFSET, 6), (31, 5), (3, 2)]);
        put(
            bits,
            &[(0xaaaa_aaaa, 32), (0xaaaa_aaaa, 32), (0, 1), (0, 5), (0, 1)],
        );
    });
    let mut reader = DependencyReader::new();
    let descriptor = reader.read(&example.bytes[..len]).unwrap();
    assert_eq!(descriptor.active_targets, u32::MAX);
    assert_eq!(descriptor.indications.of(31), Indication::Switch);
    assert_eq!(descriptor.indications.of(255), Indication::NotPresent);
    assert_eq!(reader.structure().unwrap().protecting_chain(0), None);
    assert_eq!(reader.structure().unwrap().resolution(0), None);
    let mut out = [0; 64];
    let len = descriptor
        .targets_place
        .write(&example.bytes[..len], 1 << 31, &mut out)
        .unwrap();
    assert_eq!(reader.read(&out[..len]).unwrap().active_targets, 1 << 31);
}

proptest! {
    #[test]
    fn arbitrary_descriptors_never_panic(
        values in proptest::collection::vec(
            (any::<bool>(), proptest::collection::vec(any::<u8>(), 0..60)), 1..6),
        targets: u32,
    ) {
        let mut reader = reader();
        for (structured, mut value) in values {
            // Most random bytes would refer to no template.
            if let Some([first, _, third, flags]) = value.first_chunk_mut() {
                *first = (*first & 0xc0) | ((60 + (*third & 7)) % 64);
                *flags = (*flags & 0x7f) | (u8::from(structured) << 7);
            }
            if let Ok(before) = reader.clone().read(&value) {
                let mut out = vec![0xff; value.len() + TargetsPlace::MAX_GROWTH];
                let len = before.targets_place.write(&value, targets, &mut out).unwrap();
                let after = reader.read(&out[..len]).unwrap();
                let mask = reader.structure().unwrap().all_targets();
                prop_assert_eq!(after.active_targets, targets & mask);
                let same = |d: &DependencyDescriptor| (
                    d.fields, d.has_structure, d.indications, d.frame_diffs, d.chain_diffs);
                prop_assert_eq!(same(&before), same(&after));
                for target in 0..40 {
                    let _ = reader.structure().unwrap().protecting_chain(target);
                }
            }
        }
    }
}

#[test]
fn another_frame_number_changes_nothing_else() {
    let mut value = Example::keyframe(None);
    let mut expected = DependencyReader::new().read(&value).unwrap();
    MandatoryFields::set_frame_number(&mut value, 0xabcd);
    expected.fields.frame_number = 0xabcd;
    assert_eq!(DependencyReader::new().read(&value).unwrap(), expected);
    let mut short = [1, 2];
    MandatoryFields::set_frame_number(&mut short, 7);
    assert_eq!(short, [1, 2]);
}
