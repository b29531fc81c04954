//! Files without a regular end, or with a torn one.

use super::*;

/// Returns the repaired file.
fn repaired(file: &[u8]) -> Result<(Vec<u8>, Repaired), FileError> {
    let mut out = Vec::new();
    let repaired = repair(Cursor::new(file.to_vec()), &mut out)?;
    Ok((out, repaired))
}

/// Returns the frames of a file, its content after each edit, and the final file.
fn killed(seconds: u32) -> (Vec<Frame>, Vec<Vec<u8>>, Vec<u8>) {
    let (codecs, frames) = made_by_ffmpeg("h264-opus.mp4");
    let frames = repeated(&frames, seconds);
    let mut file = begin(&codecs, &frames);
    let mut stages = vec![file.bytes.clone()];
    for frame in &frames {
        if file.frame(frame) {
            stages.push(file.bytes.clone());
        }
    }
    (frames, stages, file.finish())
}

#[test]
fn a_torn_file_is_repaired_wherever_it_ends() {
    let (_, stages, whole) = killed(3);
    let last = stages.last().unwrap();
    for len in (0..last.len()).step_by(97).chain([last.len()]) {
        let torn = &last[..len];
        // The complete content before the tear.
        let before = stages[1..].iter().rfind(|stage| stage.len() <= len);
        let Some(before) = before else {
            assert!(repaired(torn).is_err(), "{len} bytes");
            continue;
        };
        let (file, told) = repaired(torn).unwrap();
        let expected = read(before).unwrap().1;
        assert!(read(&file).unwrap().1 == expected, "{len} bytes");
        assert_eq!(told.frames, expected.len() as u64);
        assert_eq!(told.cut, (len - before.len()) as u64);
        assert!(!told.was_whole);
        assert_eq!(
            open(&file).unwrap().duration().unwrap().as_millis(),
            told.duration.as_millis()
        );
        // It equals a regularly ended file, and a second repair changes nothing.
        let (again, second) = repaired(&file).unwrap();
        assert!(second.was_whole && again == file);
    }
    let (file, told) = repaired(&whole).unwrap();
    assert!(told.was_whole && file == whole);
}

#[test]
fn what_is_repaired_plays() {
    let (_, stages, _) = killed(5);
    let mut torn = stages.last().unwrap().clone();
    torn.truncate(torn.len() - 5);
    let (file, told) = repaired(&torn).unwrap();
    let entries = [
        "-count_packets",
        "-show_entries",
        "format=duration:stream=nb_read_packets",
        "-of",
        "csv=p=0",
    ];
    if let Some(found) = ffprobe(&file, &entries) {
        let numbers: Vec<f64> = found
            .split_whitespace()
            .map(|it| it.trim_end_matches(',').parse().unwrap())
            .collect();
        assert_eq!(numbers[0] + numbers[1], told.frames as f64);
        assert!((numbers[2] - told.duration.as_secs_f64()).abs() < 0.002);
    }
}

#[test]
fn files_of_others_are_repaired() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/fragmented.mp4");
    let file = std::fs::read(path).unwrap();
    let (whole, told) = repaired(&file).unwrap();
    assert!(told.was_whole);
    assert!(read(&whole).unwrap() == read(&file).unwrap());
    let (left, told) = repaired(&file[..file.len() * 2 / 3]).unwrap();
    assert!(!told.was_whole && told.frames > 0);
    let left = read(&left).unwrap().1;
    assert!(read(&file).unwrap().1.starts_with(&left));
}

#[test]
fn what_cannot_be_repaired_is_told() {
    let (_, stages, _) = killed(1);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/h264-opus.mp4");
    let plain = std::fs::read(path).unwrap();
    for (bytes, word) in [
        (&stages[0][..200], "truncated"),
        (&stages[0], "no media"),
        (&plain, "no media"),
    ] {
        let error = repaired(bytes).unwrap_err().to_string();
        assert!(error.contains(word), "{error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn damage_is_cut_out_or_told(changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6), len in any::<prop::sample::Index>()) {
        let (_, _, mut file) = killed(1);
        for (at, byte) in changes {
            let at = at.index(file.len());
            file[at] = byte;
        }
        file.truncate(len.index(file.len()) + 1);
        let _ = open(&file).map(|mut file| {
            while let Some(Ok(_)) = file.next() {}
            let _ = file.seek(Duration::from_millis(500));
        });
        if let Ok((file, told)) = repaired(&file) {
            prop_assert!(told.frames > 0);
            let (again, second) = repaired(&file).unwrap();
            prop_assert!(second.was_whole && again == file);
        }
    }
}

#[test]
fn half_a_fragment_is_passed_over() {
    let (codecs, frames) = made_by_ffmpeg("h264-opus.mp4");
    let frames = repeated(&frames, 3);
    let mut file = begin(&codecs, &frames);
    let mut fragments = 0;
    for frame in &frames {
        let out = FrameOut {
            track: frame.track,
            at: frame.at,
            duration: Duration::ZERO,
            keyframe: frame.keyframe,
            data: &frame.data,
        };
        file.writer.frame(&out, &mut file.edits).unwrap();
        let append = file.edits.append.clone();
        if append.is_empty() {
            continue;
        }
        fragments += 1;
        let expected = read(&file.bytes).ok();
        for len in [
            1,
            7,
            8,
            60,
            append.len() / 2,
            append.len() - 1,
            append.len(),
        ] {
            let torn = [file.bytes.as_slice(), &append[..len]].concat();
            assert!(read(&torn).ok() == expected, "{len} bytes");
            if fragments == 3 {
                ffprobe(&torn, &["-show_packets"]);
            }
        }
        file.apply();
    }
    assert!(fragments > 3);
}
