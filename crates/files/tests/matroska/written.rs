//! Files have the written content, at any time.

use super::*;

#[test]
fn frames_of_each_codec_are_read_as_they_were_written() {
    for (container, setups, before) in all_codecs() {
        let codec = setups[0].setup.codec().name();
        let disk = write(container, &setups, &before, |_, _| {});
        assert_eq!(frames(&disk.0), before, "{codec}");
        let (packets, error) = packets(&disk.0);
        assert!(error.is_none(), "{codec}: {error:?}");
        let file = open(&disk.0).unwrap();
        assert_eq!(file.tracks().len(), setups.len(), "{codec}");
        for track in file.tracks() {
            let written = setups.iter().any(|it| it.setup.codec() == track.codec);
            assert!(written, "{codec}: {track:?}");
        }
        let sound = file
            .tracks()
            .iter()
            .position(|it| it.codec.kind() == Kind::Audio);
        let sent: Vec<_> = packets.iter().filter(|it| Some(it.0) == sound).collect();
        let is_sound = |frame: &&Frame| setups[frame.track].picture.is_none();
        let written: Vec<_> = before.iter().filter(is_sound).collect();
        assert_eq!(sent.len(), written.len(), "{codec}");
        for (sent, written) in sent.iter().zip(written) {
            assert_eq!(sent.1, written.data, "{codec}");
        }
        let last = Duration::from_millis(before.last().unwrap().millis);
        let duration = file.duration().unwrap();
        assert!(duration >= last && duration <= last + Duration::from_millis(45));
    }
}

#[test]
fn what_decodes_before_decodes_after() {
    for (container, setups, before) in all_codecs() {
        let codec = setups[0].setup.codec().name();
        let disk = write(container, &setups, &before, |_, _| {});
        let entries = [
            "-count_frames",
            "-show_entries",
            "stream=nb_read_frames",
            "-of",
            "csv=p=0",
        ];
        let Some(told) = ffprobe(&disk.0, &entries) else {
            return;
        };
        let mut counts: Vec<_> = told.lines().map(|line| line.trim_matches(',')).collect();
        let of_track = |track| {
            before
                .iter()
                .filter(|it| it.track == track)
                .count()
                .to_string()
        };
        let expected: Vec<_> = (0..setups.len()).map(of_track).collect();
        // Complaints of ffmpeg would be lines, too.
        counts.retain(|line| !line.is_empty());
        assert_eq!(counts, expected, "{codec}");
    }
}

#[test]
fn what_is_there_plays_at_any_time() {
    let (setups, before) = long(7, 75);
    let (of_picture, of_sound) = (1, 0);
    let mut seen = [0, 0];
    write(Container::WebM, &setups, &before, |number, file| {
        seen[usize::from(before[number].track == 0)] += 1;
        // A single track is played while the other one is empty.
        let (packets, error) = packets(file);
        assert!(error.is_none(), "behind frame {number}: {error:?}");
        let count = |track| packets.iter().filter(|packet| packet.0 == track).count();
        assert_eq!([count(of_sound), count(of_picture)], seen, "frame {number}");
        if number % 97 == 0
            && let Some(told) = ffprobe(file, COUNT_PACKETS)
        {
            let counts = told.replace("N/A", "0").replace(',', "");
            let counts: Vec<_> = counts.split_whitespace().collect();
            let expected = [seen[1].to_string(), seen[0].to_string()];
            assert_eq!(counts, expected, "frame {number}");
        }
    });
}

#[test]
fn clusters_are_short_begin_at_keyframes_and_know_their_size_once_they_are_over() {
    let (setups, before) = long(10, 75);
    let disk = write(Container::WebM, &setups, &before, |_, _| {});
    let mut rest = Cursor::new(&disk.0);
    Ebml::read_from(&mut rest).unwrap();
    let header = ElementHeader::read_from(&mut rest).unwrap();
    assert_eq!(*header.size, disk.0.len() as u64 - rest.position());
    let mut rest = Cursor::new(&disk.0);
    Ebml::read_from(&mut rest).unwrap();
    let segment = Segment::read_from(&mut rest).unwrap();
    let times: Vec<_> = segment.cluster.iter().map(|it| *it.timestamp).collect();
    assert_eq!(times, [0, 2_000, 3_000, 5_000, 6_000, 8_000, 9_000]);
    let cues = segment.cues.unwrap();
    let cued: Vec<_> = cues.cue_point.iter().map(|it| *it.cue_time).collect();
    // Each keyframe, and the first audio if there is none.
    assert_eq!(cued, [0, 2_000, 3_000, 5_000, 6_000, 8_000, 9_000]);
}

#[test]
fn the_index_leads_to_keyframes() {
    let (setups, before) = long(60, 100);
    let mut killed = Vec::new();
    let disk = write(Container::WebM, &setups, &before, |_, file| {
        killed = file.to_vec()
    });
    // Keyframes are 4 s apart, so that half of the clusters have none, and the index has those by
    // their audio.
    for (to, keyframe) in [
        (37_500, 36),
        (39_500, 36),
        (40_000, 40),
        (3_900, 0),
        (59_900, 56),
    ] {
        for file in [&disk.0, &killed] {
            let mut file = open(file).unwrap();
            file.seek(Duration::from_millis(to)).unwrap();
            let packet = loop {
                let packet = file.next().unwrap().unwrap();
                if packet.track == 1 {
                    break Header::parse(packet.bytes)
                        .unwrap()
                        .payload(packet.bytes)
                        .to_vec();
                }
            };
            // The number of the picture.
            assert_eq!(packet.last(), Some(&((keyframe * 25_u64) as u8)), "{to} ms");
        }
    }
}

#[test]
fn a_late_track_is_written_into_the_header() {
    let (setups, before) = long(5, 25);
    let mut writer = new(Container::WebM, 2);
    let (mut disk, mut edits) = (Disk::default(), Edits::default());
    writer.set_track(1, setups[1].clone(), &mut edits).unwrap();
    let mut expected = Vec::new();
    for frame in &before {
        let is_late = frame.track == 0 && frame.millis < 2_000;
        if frame.track == 0 && frame.millis == 2_000 {
            writer.set_track(0, setups[0].clone(), &mut edits).unwrap();
            disk.apply(&mut edits);
            assert_eq!(open(&disk.0).unwrap().tracks().len(), 2);
        }
        if is_late {
            let error = writer.frame(&frame.out(), &mut edits).unwrap_err();
            assert_eq!(error, ContainerError::NoSetup(0));
        } else {
            writer.frame(&frame.out(), &mut edits).unwrap();
            expected.push(frame.clone());
        }
        disk.apply(&mut edits);
    }
    writer.finish(&mut edits);
    disk.apply(&mut edits);
    assert_eq!(frames(&disk.0), expected);
}

#[test]
fn edits_may_be_made_all_at_once() {
    let (setups, before) = long(5, 25);
    let one_by_one = write(Container::WebM, &setups, &before, |_, _| {});
    let mut writer = new(Container::WebM, 2);
    let mut edits = Edits::default();
    for (track, setup) in setups.iter().enumerate() {
        writer.set_track(track, setup.clone(), &mut edits).unwrap();
    }
    for frame in &before {
        writer.frame(&frame.out(), &mut edits).unwrap();
    }
    writer.finish(&mut edits);
    let mut at_once = Disk::default();
    at_once.apply(&mut edits);
    assert_eq!(at_once.0, one_by_one.0);
}

#[test]
fn what_a_file_cannot_have_is_refused_and_changes_nothing() {
    let mut writer = new(Container::WebM, 2);
    let mut edits = Edits::default();
    let refused = |error: Result<(), ContainerError>| error.unwrap_err().to_string();
    let pcm = audio(Setup::Pcmu);
    let error = refused(writer.set_track(0, pcm.clone(), &mut edits));
    assert_eq!(error, "files of WebM have no tracks of PCMU");
    let opus = audio(Setup::Opus { channels: 2 });
    let error = refused(writer.set_track(2, opus.clone(), &mut edits));
    assert_eq!(error, "there is no track 2");
    let unknown = TrackSetup {
        picture: None,
        ..video(Setup::Vp8)
    };
    let error = refused(writer.set_track(0, unknown, &mut edits));
    assert_eq!(error, "the size of the pictures of track 0 is not known");
    assert!(writer.is_empty() && edits.is_empty());

    writer.set_track(0, video(Setup::Vp8), &mut edits).unwrap();
    let error = refused(writer.set_track(0, opus.clone(), &mut edits));
    assert_eq!(error, "track 0 changes its codec");
    let named = TrackSetup {
        name: Some("x".repeat(100_000)),
        ..opus
    };
    // Names are truncated; they leave room.
    writer.set_track(1, named, &mut edits).unwrap();
    let len = writer.len();
    let frame = FrameOut {
        track: 0,
        at: Duration::from_secs(3_000_000),
        duration: Duration::ZERO,
        keyframe: true,
        data: &[1],
    };
    assert_eq!(
        writer.frame(&frame, &mut edits),
        Err(ContainerError::TooLate)
    );
    let data = vec![0; (8 << 20) + 1];
    let frame = FrameOut {
        at: Duration::ZERO,
        data: &data,
        ..frame
    };
    let error = refused(writer.frame(&frame, &mut edits));
    assert_eq!(error, "a frame of 8388609 bytes");
    assert_eq!(writer.len(), len);
}

#[test]
fn a_setup_that_the_header_has_no_room_for_is_refused() {
    let (setups, before) = long(1, 25);
    let mut writer = new(Container::Matroska, 2);
    let (mut disk, mut edits) = (Disk::default(), Edits::default());
    writer.set_track(1, setups[1].clone(), &mut edits).unwrap();
    let all = all_codecs();
    let (_, of_h264, _) = all
        .iter()
        .find(|it| it.1[0].setup.codec() == Codec::H264)
        .unwrap();
    let Setup::H264 { sps, pps } = of_h264[0].setup.clone() else {
        panic!("not H.264");
    };
    let many = vec![[&pps[0][..], &[0x55; 1_000]].concat(); 20];
    let long = video(Setup::H264 { sps, pps: many });
    let error = writer.set_track(0, long.clone(), &mut edits).unwrap_err();
    assert!(matches!(error, ContainerError::NoRoom(_)), "{error}");
    for frame in before.iter().filter(|frame| frame.track == 1) {
        writer.frame(&frame.out(), &mut edits).unwrap();
    }
    writer.finish(&mut edits);
    disk.apply(&mut edits);
    assert_eq!(frames(&disk.0).len(), 50);
    // There is room for it at the start.
    let mut writer = new(Container::Matroska, 2);
    writer.set_track(0, long, &mut edits).unwrap();
}

#[test]
fn a_file_without_frames_is_one() {
    let mut edits = Edits::default();
    new(Container::WebM, 1).finish(&mut edits);
    assert!(edits.is_empty());
    let mut writer = new(Container::WebM, 1);
    writer.set_track(0, video(Setup::Vp8), &mut edits).unwrap();
    writer.finish(&mut edits);
    let mut disk = Disk::default();
    disk.apply(&mut edits);
    assert_eq!(disk.0.len(), HEADER_ROOM);
    assert!(matches!(open(&disk.0), Err(FileError::Empty)));
}

#[test]
fn players_are_told_how_to_turn_pictures() {
    for (rotation, degrees) in [
        (Rotation::R90, "-90"),
        (Rotation::R180, "-180"),
        (Rotation::R270, "90"),
    ] {
        let (mut setups, before) = long(1, 25);
        setups[0].rotation = rotation;
        let disk = write(Container::WebM, &setups, &before, |_, _| {});
        let entries = [
            "-show_entries",
            "stream_side_data=rotation",
            "-of",
            "csv=p=0",
        ];
        let Some(told) = ffprobe(&disk.0, &entries) else {
            return;
        };
        let told = told.lines().find(|line| !line.trim_matches(',').is_empty());
        assert_eq!(told.map(|line| line.trim_matches(',')), Some(degrees));
    }
}
