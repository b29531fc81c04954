//! Files without a regular end, or with a torn one.

use super::*;

/// Returns the repaired file.
fn repaired(file: &[u8]) -> Result<(Vec<u8>, Repaired), FileError> {
    let mut out = Vec::new();
    let repaired = repair(Cursor::new(file.to_vec()), &mut out)?;
    Ok((out, repaired))
}

#[test]
fn a_torn_file_is_repaired_wherever_it_ends() {
    let (setups, before) = long(6, 50);
    let mut killed = Vec::new();
    // The length of the file after each frame.
    let mut ends = Vec::new();
    let whole = write(Container::WebM, &setups, &before, |_, file| {
        ends.push(file.len());
        killed = file.to_vec();
    });
    for len in (0..killed.len()).step_by(7).chain([killed.len()]) {
        let count = ends.iter().filter(|end| **end <= len).count();
        let torn = &killed[..len];
        let Ok((file, told)) = repaired(torn) else {
            assert_eq!(count, 0, "{len} bytes");
            continue;
        };
        assert_eq!(frames(&file), &before[..count], "{len} bytes");
        assert_eq!(told.frames, count as u64);
        assert!(!told.was_whole);
        let end = ends[count - 1];
        assert!(told.cut <= (len - end) as u64);
        let last = before[count - 1].millis;
        assert!(told.duration >= Duration::from_millis(last));
        let duration = open(&file).unwrap().duration();
        assert_eq!(duration.unwrap_or_default(), told.duration);
    }
    let (file, told) = repaired(&whole.0).unwrap();
    assert!(told.was_whole);
    assert_eq!(told.cut, 0);
    assert_eq!(frames(&file), before);
    if let Some(packets) = ffprobe(&file, COUNT_PACKETS) {
        let counts = packets.replace(',', "");
        let counts: Vec<_> = counts.split_whitespace().collect();
        assert_eq!(counts, ["150", "300"]);
    }
}

#[test]
fn a_repaired_file_has_an_index_of_its_own() {
    let (setups, before) = long(60, 100);
    let mut killed = Vec::new();
    write(Container::WebM, &setups, &before, |_, file| {
        killed = file.to_vec()
    });
    killed.truncate(killed.len() - 3);
    let (file, _) = repaired(&killed).unwrap();
    let mut rest = Cursor::new(&file);
    Ebml::read_from(&mut rest).unwrap();
    let segment_header = ElementHeader::read_from(&mut rest).unwrap();
    let start = rest.position();
    assert_eq!(*segment_header.size, file.len() as u64 - start);
    let mut rest = Cursor::new(&file);
    Ebml::read_from(&mut rest).unwrap();
    let segment = Segment::read_from(&mut rest).unwrap();
    let cues = segment.cues.unwrap();
    assert!(cues.cue_point.len() >= 15);
    for point in cues.cue_point {
        let position = &point.cue_track_positions[0];
        let cluster = start + *position.cue_cluster_position;
        let block = position.cue_relative_position.as_ref().unwrap();
        // After the cluster's identifier and size.
        let at = (cluster + 12 + **block) as usize;
        assert_eq!(&file[cluster as usize..][..4], [0x1f, 0x43, 0xb6, 0x75]);
        assert_eq!(file[at], 0xa3);
    }
    let again = repaired(&file).unwrap();
    assert!(again.1.was_whole);
    assert_eq!(again.0, file);
}

#[test]
fn files_of_others_are_repaired() {
    for name in [
        "vp8-opus.webm",
        "vp9-opus.webm",
        "av1.webm",
        "h264-opus.mkv",
        "h265-opus.mkv",
    ] {
        let file = fixture(name);
        let (whole, told) = repaired(&file).unwrap();
        assert!(told.was_whole, "{name}");
        assert_eq!(frames(&whole), frames(&file), "{name}");
        let torn = &file[..file.len() * 2 / 3];
        let (left, told) = repaired(torn).unwrap();
        let left = frames(&left);
        assert_eq!(left, &frames(&file)[..left.len()], "{name}");
        assert_eq!(told.frames, left.len() as u64);
    }
}

#[test]
fn what_cannot_be_repaired_is_told() {
    let (setups, before) = long(1, 25);
    let disk = write(Container::WebM, &setups, &before, |_, _| {});
    for (bytes, word) in [
        (&b""[..], "no media"),
        (b"RIFF1234WAVE", "only WebM, Matroska and MP4"),
        (&disk.0[..200], "truncated"),
        (&disk.0[..HEADER_ROOM], "no media"),
    ] {
        let error = repaired(bytes).unwrap_err().to_string();
        assert!(error.contains(word), "{error}");
    }
    struct Full;
    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let error = repair(Cursor::new(disk.0), &mut Full).unwrap_err();
    assert!(matches!(error, FileError::Write(_)));
}

proptest! {
    #[test]
    fn damage_is_cut_out_or_told(at in 0..30_000_usize, byte in any::<u8>()) {
        let (setups, before) = long(3, 25);
        let mut disk = write(Container::WebM, &setups, &before, |_, _| {});
        let at = at % disk.0.len();
        disk.0[at] = byte;
        if let Ok((file, told)) = repaired(&disk.0) {
            prop_assert!(told.frames > 0);
            prop_assert!(open(&file).is_ok() || at < HEADER_ROOM);
        }
    }
}

#[test]
fn what_was_repaired_stays_as_it_is_with_tracks_told_twice() {
    let (setups, before) = long(6, 50);
    let whole = write(Container::WebM, &setups, &before, |_, _| {}).0;
    let begin = whole
        .windows(4)
        .rposition(|it| it == [0x16, 0x54, 0xae, 0x6b]);
    let begin = begin.unwrap();
    // The positions come before that. The size has as many bytes as the first one has leading
    // zeros, plus one.
    let size = &whole[begin + 4..];
    let width = size[0].leading_zeros() as usize + 1;
    let first = u64::from(size[0]) & ((1 << (8 - width)) - 1);
    let len = size[1..width]
        .iter()
        .fold(first, |len, byte| len << 8 | u64::from(*byte));
    let end = begin + 4 + width + len as usize;
    let mut again = whole[begin..end].to_vec();
    // An unused field differs.
    let language = again.windows(3).position(|it| it == b"und");
    let uid = language.unwrap_or(again.len() - 1);
    again[uid] ^= 1;
    let file = [&whole[..end], &again, &whole[end..]].concat();
    let (once, _) = repaired(&file).unwrap();
    let (twice, told) = repaired(&once).unwrap();
    assert!(told.was_whole);
    assert_eq!(once, twice);
}
