//! Recordings are written and read again, in pieces of any size, and with any damage.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

use portunus_files::mjr::{FrameReader, FrameWriter, Info, Medium, MjrError, UnixMicros};
use proptest::collection::vec;
use proptest::prelude::*;

/// The time of a frame in ms since the first, its clock, and its bytes.
type Kept = (u64, Option<u64>, Vec<u8>);

fn write(info: &Info, frames: &[(u64, Vec<u8>)]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = FrameWriter::new(info.clone(), &mut out);
    for (at, bytes) in frames {
        let at = UnixMicros(*at);
        let written = match info.medium {
            Medium::Data => writer.message(at, bytes, &mut out),
            Medium::Audio | Medium::Video => writer.packet(at, bytes, &mut out),
        };
        written.unwrap();
    }
    out
}

/// Reads up to an error.
fn read(bytes: &[u8], piece: usize) -> (Option<Info>, Vec<Kept>, Result<(), MjrError>) {
    let mut reader = FrameReader::new();
    let mut frames = Vec::new();
    for piece in bytes.chunks(piece.max(1)) {
        reader.push(piece);
        loop {
            match reader.next() {
                Ok(Some(frame)) => frames.push((
                    frame.at.as_millis() as u64,
                    frame.clock.map(|clock| clock.0),
                    frame.bytes.to_vec(),
                )),
                Ok(None) => break,
                Err(error) => return (reader.info().cloned(), frames, Err(error)),
            }
        }
    }
    (reader.info().cloned(), frames, reader.finish())
}

fn info() -> impl Strategy<Value = Info> {
    let medium = prop_oneof![Just(Medium::Audio), Just(Medium::Video), Just(Medium::Data)];
    let extension = (1..15_u8, "urn:[a-z:]{1,20}");
    (
        medium,
        "[a-z0-9-]{1,8}",
        proptest::option::of(".{0,20}"),
        proptest::option::of(".{0,20}"),
        proptest::collection::btree_map(extension.0, extension.1, 0..4),
        any::<u64>(),
        proptest::option::of(96..128_u8),
        any::<bool>(),
    )
        .prop_map(
            |(medium, codec, fmtp, description, extensions, created, red, encrypted)| Info {
                fmtp,
                description,
                extensions: extensions.into_iter().collect(),
                red,
                encrypted,
                ..Info::new(medium, codec, UnixMicros(created))
            },
        )
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(
        mut info in info(),
        start in 0..u64::MAX / 2,
        frames in vec((0..100_000_u64, vec(any::<u8>(), 0..200)), 1..20),
        piece in 1..300_usize,
    ) {
        let mut at = start;
        let frames: Vec<_> = frames
            .into_iter()
            .map(|(wait, bytes)| { at += wait; (at, bytes) })
            .collect();
        let (read_info, read, end) = read(&write(&info, &frames), piece);
        end.unwrap();
        let first = frames[0].0;
        info.first_frame = UnixMicros(first);
        prop_assert_eq!(read_info.as_ref(), Some(&info));
        let is_data = info.medium == Medium::Data;
        let expected: Vec<Kept> = frames
            .into_iter()
            .map(|(at, bytes)| ((at - first) / 1_000, is_data.then_some(at), bytes))
            .collect();
        prop_assert_eq!(read, expected);
    }

    #[test]
    fn a_file_that_is_cut_off_is_good_up_to_there(
        info in info(),
        frames in vec((0..1_000_000_u64, vec(any::<u8>(), 0..50)), 1..6),
        cut in any::<proptest::sample::Index>(),
    ) {
        let whole = write(&info, &frames);
        let (_, all, _) = read(&whole, 64);
        let cut = &whole[..cut.index(whole.len())];
        let (_, some, _) = read(cut, 64);
        prop_assert!(all.starts_with(&some));
        prop_assert!(some.len() < all.len());
    }

    #[test]
    fn nothing_is_so_damaged_that_it_panics(
        info in info(),
        frames in vec((0..1_000_000_u64, vec(any::<u8>(), 0..50)), 1..6),
        damage in vec((any::<proptest::sample::Index>(), any::<u8>()), 1..8),
        piece in 1..64_usize,
    ) {
        let mut bytes = write(&info, &frames);
        for (place, value) in damage {
            let place = place.index(bytes.len());
            bytes[place] = value;
        }
        // Pieces of another size make no difference.
        let (info, frames, end) = read(&bytes, piece);
        let (info_again, frames_again, end_again) = read(&bytes, usize::MAX);
        prop_assert_eq!(info, info_again);
        prop_assert_eq!(frames, frames_again);
        prop_assert_eq!(end.is_ok(), end_again.is_ok());
    }
}

#[test]
fn the_longest_frames_fit() {
    let info = Info::new(Medium::Video, "vp8", UnixMicros(0));
    let frames = [(0, vec![7; 65_535]), (49 * 24 * 3_600_000_000, vec![8; 12])];
    let (_, read, end) = read(&write(&info, &frames), 1_000);
    end.unwrap();
    assert_eq!(read[0].2.len(), 65_535);
    assert_eq!(read[1].0, 49 * 24 * 3_600_000);
}
