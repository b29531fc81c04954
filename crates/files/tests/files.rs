//! Files of each type, made by ffmpeg (see tests/data/README.md): their content, their packets,
//! loops, seeks, and damage.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

use std::collections::HashMap;
use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::time::Duration;

use portunus_files::{Codec, FileError, MediaFile, OpenOptions};
use portunus_rtp::codec::{VideoCodec, Vp8, Vp9, is_keyframe};
use portunus_rtp::packetize::DEFAULT_MAX_PAYLOAD;
use portunus_rtp::{Header, Pt, Ssrc};

const ONCE: OpenOptions = OpenOptions {
    audio: true,
    video: true,
    looping: false,
};

const VIDEO_ONLY: OpenOptions = OpenOptions {
    audio: false,
    ..ONCE
};

/// All playable files, with their codecs.
const PLAYED: [(&str, &[Codec]); 11] = [
    ("tone.opus", &[Codec::Opus]),
    ("tone.alaw", &[Codec::Pcma]),
    ("tone.mulaw", &[Codec::Pcmu]),
    ("vp8-opus.webm", &[Codec::Opus, Codec::Vp8]),
    ("vp9-opus.webm", &[Codec::Opus, Codec::Vp9]),
    ("av1.webm", &[Codec::Av1]),
    ("h264-opus.mp4", &[Codec::Opus, Codec::H264]),
    ("h265-opus.mp4", &[Codec::Opus, Codec::H265]),
    ("fragmented.mp4", &[Codec::H264]),
    ("h264-opus.mkv", &[Codec::Opus, Codec::H264]),
    ("h265-opus.mkv", &[Codec::Opus, Codec::H265]),
];

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data")
        .join(name)
}

fn bytes(name: &str) -> Vec<u8> {
    std::fs::read(path(name)).unwrap()
}

fn open(name: &str, options: &OpenOptions) -> Result<MediaFile, FileError> {
    MediaFile::open(&path(name), options)
}

/// A copy of a packet.
struct Kept {
    track: usize,
    at: Duration,
    header: Header,
    payload: Vec<u8>,
}

/// Returns the next packets, at most `limit`.
fn packets(file: &mut MediaFile, limit: usize) -> Result<Vec<Kept>, FileError> {
    let mut kept = Vec::new();
    while kept.len() < limit
        && let Some(packet) = file.next()
    {
        let packet = packet?;
        let header = Header::parse(packet.bytes).unwrap();
        kept.push(Kept {
            track: packet.track,
            at: packet.at,
            header,
            payload: header.payload(packet.bytes).to_vec(),
        });
    }
    Ok(kept)
}

#[test]
fn each_type_is_told_and_packetised() {
    for (name, codecs) in PLAYED {
        let mut file = open(name, &ONCE).unwrap();
        let found: Vec<_> = file.tracks().iter().map(|track| track.codec).collect();
        assert_eq!(found, codecs, "{name}");
        let packets = packets(&mut file, usize::MAX).unwrap();
        assert!(file.next().is_none(), "{name} ends");
        for (track, codec) in codecs.iter().enumerate() {
            let own: Vec<_> = packets.iter().filter(|it| it.track == track).collect();
            let mut times: Vec<_> = own.iter().map(|it| it.header.timestamp).collect();
            times.dedup();
            // A second: 25 pictures, or 50 audio packets (Opus has one more, because of its delay).
            let frames = match codec {
                Codec::Opus => 50..=52,
                Codec::Pcma | Codec::Pcmu => 50..=50,
                _ => 25..=25,
            };
            assert!(frames.contains(&times.len()), "{name}: {}", times.len());
            let step = codec.clock_rate() / if frames.contains(&25) { 25 } else { 50 };
            for pair in times.windows(2) {
                let step_here = pair[1].wrapping_sub(pair[0]);
                assert!(step_here.abs_diff(step) <= 90, "{name}: {step_here}");
            }
            for pair in own.windows(2) {
                let next = pair[0].header.sequence.wrapping_add(1);
                assert_eq!(pair[1].header.sequence, next, "{name}");
                assert_eq!(pair[1].header.ssrc, own[0].header.ssrc);
            }
            assert!(own.iter().all(|it| it.payload.len() <= DEFAULT_MAX_PAYLOAD));
            if let Some(video) = VideoCodec::from_name(codec.name()) {
                let marks = own.iter().filter(|it| it.header.marker).count();
                assert_eq!(marks, 25, "{name}: one mark a picture");
                assert!(is_keyframe(video, &own[0].payload), "{name}");
            }
        }
    }
}

#[test]
fn tracks_describe_themselves() {
    let file = open("h264-opus.mp4", &ONCE).unwrap();
    let [opus, h264] = file.tracks() else {
        panic!("two tracks")
    };
    assert_eq!((opus.channels, &opus.fmtp), (1, &None));
    let fmtp = h264.fmtp.as_deref().unwrap();
    assert!(fmtp.starts_with("profile-level-id=42"), "{fmtp}");
    assert!(fmtp.contains("packetization-mode=1"), "{fmtp}");
    let seconds = file.duration().unwrap().as_secs_f64();
    assert!((0.9..1.2).contains(&seconds), "{seconds}");
}

/// The payloads are in the file in the same form.
#[test]
fn frames_are_those_of_the_file() {
    for (name, codec) in [
        ("vp8-opus.webm", Codec::Vp8),
        ("vp9-opus.webm", Codec::Vp9),
        ("h264-opus.mp4", Codec::H264),
        ("h264-opus.mkv", Codec::H264),
    ] {
        let whole = bytes(name);
        let mut file = open(name, &VIDEO_ONLY).unwrap();
        let mut frame = Vec::new();
        let mut frames = 0;
        for packet in packets(&mut file, usize::MAX).unwrap() {
            let payload = packet.payload.as_slice();
            match codec {
                Codec::Vp8 => {
                    let len = Vp8::parse(payload).unwrap().descriptor_len();
                    frame.extend_from_slice(&payload[len..]);
                }
                Codec::Vp9 => {
                    let len = Vp9::parse(payload).unwrap().descriptor_len();
                    frame.extend_from_slice(&payload[len..]);
                }
                _ => match payload[0] & 0x1f {
                    24 => continue,
                    28 => {
                        if payload[1] & 0x80 != 0 {
                            frame = vec![payload[0] & 0xe0 | payload[1] & 0x1f];
                        }
                        frame.extend_from_slice(&payload[2..]);
                    }
                    _ => frame = payload.to_vec(),
                },
            }
            if packet.header.marker {
                let found = whole.windows(frame.len()).any(|part| part == frame);
                assert!(found, "{name}: frame {frames} of {} bytes", frame.len());
                frames += 1;
                frame.clear();
            }
        }
        assert_eq!(frames, 25, "{name}");
    }
}

#[test]
fn identities_are_taken_over() {
    let mut file = open("vp8-opus.webm", &ONCE).unwrap();
    file.set_identity(1, Pt(100), Ssrc(7));
    let packets = packets(&mut file, 20).unwrap();
    let video = packets.iter().find(|it| it.track == 1).unwrap();
    assert_eq!((video.header.pt, video.header.ssrc), (Pt(100), Ssrc(7)));
    let mut file = open("tone.alaw", &ONCE).unwrap();
    assert_eq!(packets_of(&mut file)[0].header.pt, Pt(8));
}

fn packets_of(file: &mut MediaFile) -> Vec<Kept> {
    packets(file, 10).unwrap()
}

/// Hours in virtual time: times and timestamps agree to the tick, and audio and video to the
/// rounding of their containers.
#[test]
fn hours_of_loops() {
    for (name, codecs) in PLAYED {
        let mut file = open(name, &OpenOptions::default()).unwrap();
        let mut first: HashMap<usize, (u32, Duration)> = HashMap::new();
        let mut last: HashMap<usize, (u64, u32)> = HashMap::new();
        let mut latest = Duration::ZERO;
        // Video takes long in debug builds.
        let hours = if codecs.len() == 1 { 3 } else { 1 };
        while latest < Duration::from_secs(hours * 3_600) {
            let packet = file.next().unwrap().unwrap();
            let (track, at) = (packet.track, packet.at);
            let timestamp = Header::parse(packet.bytes).unwrap().timestamp;
            let (start, began) = *first.entry(track).or_insert((timestamp, at));
            let (ticks, before) = last.entry(track).or_insert((0, start));
            let step = timestamp.wrapping_sub(*before);
            assert!(step < 1 << 31, "{name}: timestamps go forward");
            (*ticks, *before) = (*ticks + u64::from(step), timestamp);
            let rate = f64::from(codecs[track].clock_rate());
            let apart = *ticks as f64 / rate - (at - began).as_secs_f64();
            assert!(apart.abs() < 0.015, "{name} after {at:?}: {apart} s apart");
            assert!(at + Duration::from_millis(60) > latest, "{name}: order");
            latest = latest.max(at);
        }
    }
}

#[test]
fn a_single_track_of_sound_loops_without_a_seam() {
    for name in ["tone.opus", "tone.alaw"] {
        let mut file = open(name, &OpenOptions::default()).unwrap();
        let packets = packets(&mut file, 500).unwrap();
        let step = packets[1].header.timestamp - packets[0].header.timestamp;
        for pair in packets.windows(2) {
            let here = pair[1]
                .header
                .timestamp
                .wrapping_sub(pair[0].header.timestamp);
            assert_eq!(here, step, "{name}");
        }
    }
}

#[test]
fn seeks_go_to_keyframes_and_times_go_on() {
    for (name, codecs) in PLAYED {
        let mut file = open(name, &ONCE).unwrap();
        let before = packets(&mut file, 15).unwrap();
        file.seek(Duration::from_millis(700)).unwrap();
        let after = packets(&mut file, usize::MAX).unwrap();
        assert!(after[0].at >= before.last().unwrap().at, "{name}");
        let seconds = (after.last().unwrap().at - after[0].at).as_secs_f64();
        assert!(
            (0.2..0.75).contains(&seconds),
            "{name}: {seconds} s are left"
        );
        let video = codecs
            .iter()
            .enumerate()
            .find_map(|(track, codec)| Some((track, VideoCodec::from_name(codec.name())?)));
        if let Some((track, codec)) = video {
            let first = after.iter().find(|it| it.track == track).unwrap();
            assert!(is_keyframe(codec, &first.payload), "{name}");
        }
        for track in 0..codecs.len() {
            let last = before.iter().rfind(|it| it.track == track);
            let next = after.iter().find(|it| it.track == track).unwrap();
            if let Some(last) = last {
                let step = next.header.timestamp.wrapping_sub(last.header.timestamp);
                assert!((1..1 << 31).contains(&step), "{name}: forward");
                assert_eq!(next.header.sequence, last.header.sequence.wrapping_add(1));
            }
        }
        // After the end: nothing, or the start again.
        file.seek(Duration::from_secs(1_000)).unwrap();
        while let Some(packet) = file.next() {
            packet.unwrap();
        }
        let mut looping = open(name, &OpenOptions::default()).unwrap();
        looping.seek(Duration::from_secs(1_000)).unwrap();
        assert_eq!(packets(&mut looping, 100).unwrap().len(), 100);
    }
}

#[test]
fn what_was_read_ahead_of_a_seek_leaves_no_gap() {
    for (name, codecs) in PLAYED {
        let mut file = open(name, &OpenOptions::default()).unwrap();
        let mut sent = file.nothing_sent();
        let first = packets(&mut file, 200).unwrap();
        let (gone, ahead) = first.split_at(20);
        for it in gone {
            // No file has pictures in another presentation order.
            sent.add(it.track, it.header.sequence, it.at, it.at);
        }
        assert!(ahead.len() > 100, "{name}");
        file.seek_behind(&sent, Duration::from_millis(400)).unwrap();
        let after = packets(&mut file, 100).unwrap();
        let wait = after[0].at - gone.last().unwrap().at;
        assert!(wait <= Duration::from_millis(60), "{name}: {wait:?}");
        for (track, codec) in codecs.iter().enumerate() {
            let next = after.iter().find(|it| it.track == track).unwrap();
            let of_track = |it: &&Kept| it.track == track;
            match gone.iter().rfind(of_track) {
                Some(last) => {
                    assert_eq!(next.header.sequence, last.header.sequence.wrapping_add(1));
                    let step = next.header.timestamp.wrapping_sub(last.header.timestamp);
                    let rate = codec.clock_rate();
                    assert!((1..rate).contains(&step), "{name}: {step} after a seek");
                }
                // Nothing of it was sent, so it starts with the same numbers.
                None => {
                    let would = ahead.iter().find(of_track).unwrap();
                    assert_eq!(next.header.sequence, would.header.sequence);
                }
            }
        }
    }
}

#[test]
fn pictures_that_are_shown_in_another_order() {
    let mut file = open("h264-aac.mp4", &VIDEO_ONLY).unwrap();
    let packets = packets(&mut file, usize::MAX).unwrap();
    let marked: Vec<_> = packets.iter().filter(|it| it.header.marker).collect();
    assert_eq!(marked.len(), 25);
    assert!(marked.windows(2).all(|pair| pair[0].at < pair[1].at));
    let steps = marked.windows(2).map(|pair| {
        pair[1]
            .header
            .timestamp
            .wrapping_sub(pair[0].header.timestamp)
    });
    assert!(
        steps.into_iter().any(|step| step > 1 << 31),
        "B-frames go back"
    );
}

/// An MP4 whose track (the first is video) starts with an empty edit of so many ms.
fn delayed(track: usize, millis: u32) -> Vec<u8> {
    let mut bytes = bytes("h264-opus.mp4");
    let starts = |kind: &[u8; 4], bytes: &[u8]| -> Vec<usize> {
        let found = bytes.windows(4).enumerate().filter(|(_, it)| it == kind);
        found.map(|(at, _)| at - 4).collect()
    };
    let elst = starts(b"elst", &bytes)[track];
    // The movie's timescale is 1,000. The index comes after the media, so nothing else moves.
    let mut edit = millis.to_be_bytes().to_vec();
    edit.extend_from_slice(&[0xff, 0xff, 0xff, 0xff, 0, 1, 0, 0]);
    let boxes = [
        starts(b"moov", &bytes)[0],
        starts(b"trak", &bytes)[track],
        starts(b"edts", &bytes)[track],
        elst,
    ];
    for at in boxes {
        let size: [u8; 4] = bytes[at..at + 4].try_into().unwrap();
        let size = u32::from_be_bytes(size) + 12;
        bytes[at..at + 4].copy_from_slice(&size.to_be_bytes());
    }
    bytes[elst + 15] = 2;
    bytes.splice(elst + 16..elst + 16, edit);
    bytes
}

#[test]
fn a_track_that_begins_later_is_played_later() {
    let millis = Duration::from_millis;
    let first = |file: &mut MediaFile| {
        let packets = packets(file, 60).unwrap();
        [0, 1].map(|track| packets.iter().find(|it| it.track == track).unwrap().at)
    };
    let open = |bytes| MediaFile::from_reader(Cursor::new(bytes), "mp4", &ONCE).unwrap();
    // Audio is track 0 here. Its edit list starts slightly after its first frame.
    let [audio, video] = first(&mut open(bytes("h264-opus.mp4")));
    let mut file = open(delayed(0, 500));
    assert_eq!(first(&mut file), [audio, video + millis(500)]);
    assert!(file.duration().unwrap() >= millis(1_500));
    // From the start again, with all audio.
    file.seek(Duration::ZERO).unwrap();
    let again = packets(&mut file, usize::MAX).unwrap();
    let sound = again.iter().filter(|it| it.track == 0).count();
    assert!(sound >= 50, "{sound} frames of sound");
    let [audio, video] = first(&mut open(delayed(1, 500)));
    assert!(audio >= video + millis(480), "{audio:?} {video:?}");
    // An invalid edit does not wait for ever.
    let mut file = open(delayed(0, u32::MAX));
    assert!(packets(&mut file, usize::MAX).is_err());
}

#[test]
fn what_cannot_be_played_is_refused_with_advice() {
    let refused = |name| open(name, &ONCE).unwrap_err().to_string();
    assert_eq!(
        refused("h264-aac.mp4"),
        "track 2 (audio) is AAC: WebRTC does not carry it; transcode it to Opus \
         (ffmpeg -i … -c:v copy -c:a libopus …)"
    );
    assert!(open("h264-aac.mp4", &VIDEO_ONLY).is_ok(), "the picture may");
    assert!(refused("vorbis.ogg").contains("Vorbis"));
    assert!(matches!(
        open("tone.opus", &VIDEO_ONLY),
        Err(FileError::NoTrack("video"))
    ));
    assert!(matches!(
        open("tone.alaw", &VIDEO_ONLY),
        Err(FileError::NoTrack("video"))
    ));
    assert!(matches!(open("no-such-file", &ONCE), Err(FileError::Io(_))));
    let folder = MediaFile::open(&path(""), &ONCE);
    assert!(matches!(folder, Err(FileError::NotAFile)));
    let garbage = MediaFile::from_reader(Cursor::new(b"hello, world".to_vec()), "txt", &ONCE);
    assert!(matches!(garbage, Err(FileError::UnknownType)));
    for extension in ["opus", "alaw"] {
        let empty = MediaFile::from_reader(Cursor::new(Vec::new()), extension, &ONCE);
        let first = empty.map(|mut file| file.next().map(|packet| packet.map(|_| ())));
        assert!(
            matches!(
                first,
                Err(FileError::Empty) | Ok(Some(Err(FileError::Empty)))
            ),
            "{first:?}"
        );
    }
}

#[test]
fn a_file_of_empty_frames_is_an_error_and_not_read_for_ever() {
    let mut empty = bytes("h264-opus.mp4");
    // The table of sample sizes: type, version, common size, number, sizes.
    let at = |(at, bytes): (usize, &[u8])| (bytes == b"stsz").then_some(at);
    let tables: Vec<usize> = empty.windows(4).enumerate().filter_map(at).collect();
    for at in tables {
        let count = u32::from_be_bytes(empty[at + 12..at + 16].try_into().unwrap()) as usize;
        empty[at + 16..at + 16 + 4 * count].fill(0);
    }
    for looping in [false, true] {
        let options = OpenOptions { looping, ..ONCE };
        let reader = Cursor::new(empty.clone());
        let mut file = MediaFile::from_reader(reader, "mp4", &options).unwrap();
        for _ in 0..2 {
            let first = file.next().map(|packet| packet.map(|_| ()));
            assert!(
                matches!(first, Some(Err(FileError::NoPackets))),
                "{first:?}"
            );
            assert!(file.next().is_none());
            file.seek(Duration::ZERO).unwrap();
        }
    }
}

#[test]
fn an_index_that_leads_nowhere_is_as_good_as_none() {
    let whole = bytes("vp8-opus.webm");
    let cues = whole.windows(4).rposition(|id| id == b"\x1c\x53\xbb\x6b");
    // After the end, and into a cluster.
    for place in [[0xff, 0xff], [0x03, 0x33]] {
        let mut damaged = whole.clone();
        for at in cues.unwrap()..damaged.len() - 4 {
            if damaged[at..at + 2] == [0xf1, 0x82] {
                damaged[at + 2..at + 4].copy_from_slice(&place);
            }
        }
        let mut file = MediaFile::from_reader(Cursor::new(damaged), "webm", &VIDEO_ONLY).unwrap();
        file.seek(Duration::from_millis(700)).unwrap();
        let rest = packets(&mut file, usize::MAX).unwrap();
        let seconds = (rest.last().unwrap().at - rest[0].at).as_secs_f64();
        assert!((0.2..0.75).contains(&seconds), "{seconds} s are left");
    }
}

#[test]
fn a_recording_that_does_not_know_its_length_plays_round_and_round() {
    let mut recording = bytes("vp8-opus.webm");
    let whole = packets(&mut open("vp8-opus.webm", &ONCE).unwrap(), usize::MAX).unwrap();
    // As ffmpeg writes it to a pipe, and browsers record it: eight bytes of ones are an unknown
    // length (RFC 8794 section 6.2).
    recording[40..48].copy_from_slice(&[1, 255, 255, 255, 255, 255, 255, 255]);
    let reader = Cursor::new(recording.clone());
    let mut once = MediaFile::from_reader(reader, "webm", &ONCE).unwrap();
    assert_eq!(packets(&mut once, usize::MAX).unwrap().len(), whole.len());
    let reader = Cursor::new(recording);
    let mut looping = MediaFile::from_reader(reader, "webm", &OpenOptions::default()).unwrap();
    let rounds = 3 * whole.len();
    assert_eq!(packets(&mut looping, rounds).unwrap().len(), rounds);
}

#[test]
fn a_seek_without_index_walks_over_all_that_is_there() {
    let whole = bytes("vp8-opus.webm");
    let clusters = whole.windows(4).enumerate();
    let clusters = clusters.filter_map(|(at, id)| (id == b"\x1f\x43\xb6\x75").then_some(at));
    let clusters: Vec<usize> = clusters.collect();
    let (first, last) = (clusters[0], clusters[2]);
    // Torn in the last cluster; and that cluster after one with very many small unknown elements.
    let cut = whole[..last + 2_500].to_vec();
    let head = b"\x1f\x43\xb6\x75\x01\xff\xff\xff\xff\xff\xff\xff\xe7\x81\0";
    let blocks = &whole[first + 9..clusters[1]];
    let void = [0xec, 0x80].repeat(1_100_000);
    let mut far = [&whole[..first], head, blocks, &void, &whole[last..]].concat();
    // As long as the file, like a torn recording.
    far[40..48].copy_from_slice(&[1, 255, 255, 255, 255, 255, 255, 255]);
    let mut expected = None;
    // A cluster with an end before its time.
    let empty = b"\x1f\x43\xb6\x75\x80\xe7\x81\0";
    let mut early = [&whole[..first], empty, &whole[first..]].concat();
    early[40..48].copy_from_slice(&[1, 255, 255, 255, 255, 255, 255, 255]);
    for damaged in [cut, far, early] {
        let mut file = MediaFile::from_reader(Cursor::new(damaged), "webm", &VIDEO_ONLY).unwrap();
        file.seek(Duration::from_millis(990)).unwrap();
        let payload = packets(&mut file, 1).unwrap().remove(0).payload;
        // After the picture's number.
        assert_eq!(*expected.get_or_insert(payload[4..].to_vec()), payload[4..]);
    }
}

#[test]
fn an_index_of_more_samples_than_are_walked_over_is_refused() {
    let mut claims = bytes("h264-opus.mp4");
    let at = |(at, bytes): (usize, &[u8])| (bytes == b"stsz").then_some(at);
    let tables: Vec<usize> = claims.windows(4).enumerate().filter_map(at).collect();
    for at in tables {
        // All of one byte, and as many as possible: a seek would iterate over them.
        claims[at + 8..at + 16].copy_from_slice(&[0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff]);
    }
    let opened = MediaFile::from_reader(Cursor::new(claims), "mp4", &ONCE);
    let error = opened.map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("4294967295 samples"), "{error}");
}

/// Plays damaged bytes to the end, or for a while.
fn play_damaged(bytes: Vec<u8>, extension: &str) -> Result<usize, FileError> {
    let mut file = MediaFile::from_reader(Cursor::new(bytes), extension, &ONCE)?;
    let mut count = 0;
    while count < 10_000
        && let Some(packet) = file.next()
    {
        packet?;
        count += 1;
    }
    let _ = file.seek(Duration::from_millis(500));
    while count < 20_000
        && let Some(packet) = file.next()
    {
        packet?;
        count += 1;
    }
    Ok(count)
}

#[test]
fn truncated_files_give_an_error() {
    for (name, _) in PLAYED {
        let whole = bytes(name);
        let extension = name.rsplit('.').next().unwrap();
        for eighths in 0..8 {
            let cut = whole[..whole.len() * eighths / 8].to_vec();
            let result = play_damaged(cut, extension);
            // Raw audio has no end mark. Ogg may end with any page, and fragments with any complete
            // one.
            let may_end =
                ["alaw", "mulaw", "opus"].contains(&extension) || name == "fragmented.mp4";
            if !may_end {
                assert!(result.is_err(), "{name} cut to {eighths}/8: {result:?}");
            }
        }
    }
}

#[test]
fn corrupt_files_give_an_error_or_play() {
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    for (name, _) in PLAYED {
        let whole = bytes(name);
        let extension = name.rsplit('.').next().unwrap();
        for _ in 0..200 {
            let mut damaged = whole.clone();
            for _ in 0..8 {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                let at = random as usize % damaged.len();
                // Half of the damage is in the headers.
                let at = if random & 1 << 40 == 0 {
                    at
                } else {
                    at % 600.min(damaged.len())
                };
                damaged[at] = (random >> 32) as u8;
            }
            let _ = play_damaged(damaged, extension);
        }
    }
}
