//! Recordings are played in order, by the senders' clocks, from any position on.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

use std::io::Cursor;
use std::path::PathBuf;
use std::time::Duration;

use portunus_files::mjr::{FrameWriter, Info, Medium, UnixMicros};
use portunus_files::{FileError, Play, Playback};
use portunus_rtp::{Fields, Header, Pt, Ssrc, write_header};
use proptest::prelude::*;

/// The start of the first recording.
const BEGUN: u64 = 1_700_000_000_000_000;

const VP8_KEYFRAME: [u8; 11] = [0x10, 0x10, 0, 0, 0x9d, 0x01, 0x2a, 0x80, 0x02, 0xe0, 0x01];
const VP8_DELTA: [u8; 4] = [0x10, 0x11, 0, 0];

struct Recording {
    writer: FrameWriter,
    bytes: Vec<u8>,
    begun: u64,
    ssrc: u32,
    pt: u8,
}

impl Recording {
    fn new(medium: Medium, codec: &str, begins_ms: u64) -> Self {
        Self::of(Info::new(medium, codec, UnixMicros(BEGUN)), begins_ms)
    }

    fn of(info: Info, begins_ms: u64) -> Self {
        let mut bytes = Vec::new();
        Self {
            writer: FrameWriter::new(info, &mut bytes),
            bytes,
            begun: BEGUN + begins_ms * 1_000,
            ssrc: 7,
            pt: 111,
        }
    }

    fn packet(&mut self, at_ms: u64, sequence: u16, timestamp: u32, payload: &[u8]) {
        let fields = Fields {
            marker: false,
            padding: false,
            pt: Pt(self.pt),
            sequence,
            timestamp,
            ssrc: Ssrc(self.ssrc),
        };
        let mut packet = vec![0; 12];
        write_header(&mut packet, &fields, std::iter::empty::<(u8, &[u8])>()).unwrap();
        packet.extend_from_slice(payload);
        let at = UnixMicros(self.begun + at_ms * 1_000);
        self.writer.packet(at, &packet, &mut self.bytes).unwrap();
    }

    fn message(&mut self, at_ms: u64, message: &str) {
        let at = UnixMicros(self.begun + at_ms * 1_000);
        self.writer
            .message(at, message.as_bytes(), &mut self.bytes)
            .unwrap();
    }

    /// Audio of so many packets of 20 ms, each with its number in it.
    fn opus(packets: u16, begins_ms: u64) -> Vec<u8> {
        let mut sound = Self::new(Medium::Audio, "opus", begins_ms);
        for number in 0..packets {
            let payload = [0xf8, (number >> 8) as u8, number as u8];
            let timestamp = 1_000 + u32::from(number) * 960;
            sound.packet(
                u64::from(number) * 20,
                60_000_u16.wrapping_add(number),
                timestamp,
                &payload,
            );
        }
        sound.bytes
    }

    /// Pictures of 40 ms of two packets each, with a keyframe every 50.
    fn vp8(pictures: u16, begins_ms: u64) -> Vec<u8> {
        let mut video = Self::new(Medium::Video, "vp8", begins_ms);
        for number in 0..pictures {
            let first: &[u8] = if number % 50 == 0 {
                &VP8_KEYFRAME
            } else {
                &VP8_DELTA
            };
            let (at, timestamp) = (u64::from(number) * 40, u32::from(number) * 3_600);
            video.packet(at, number * 2, timestamp, first);
            video.packet(
                at,
                number * 2 + 1,
                timestamp,
                &[0, number as u8, (number >> 8) as u8],
            );
        }
        video.bytes
    }
}

/// A played packet: track, time in ms, sequence number, timestamp, payload.
#[derive(Debug, Clone, PartialEq)]
struct Played {
    track: usize,
    ms: u64,
    header: Header,
    payload: Vec<u8>,
}

fn play(playback: &mut Playback, limit: usize) -> Vec<Played> {
    let mut played = Vec::new();
    while played.len() < limit
        && let Some(packet) = playback.next()
    {
        let packet = packet.unwrap();
        let header = Header::parse(packet.bytes).unwrap_or_default();
        let payload = match header {
            Header {
                sequence: 0,
                timestamp: 0,
                ..
            } if header == Header::default() => packet.bytes,
            _ => header.payload(packet.bytes),
        };
        played.push(Played {
            track: packet.track,
            ms: packet.at.as_millis() as u64,
            header,
            payload: payload.to_vec(),
        });
    }
    played
}

fn open(recordings: Vec<Vec<u8>>) -> Playback {
    let (playback, unreadable) =
        Playback::of_recordings(recordings.into_iter().map(Cursor::new)).unwrap();
    assert!(unreadable.is_empty(), "{unreadable:?}");
    playback
}

#[test]
fn sound_and_picture_come_at_their_times() {
    let mut playback = open(vec![Recording::opus(100, 300), Recording::vp8(50, 0)]);
    assert_eq!(
        playback.duration(),
        Some(Duration::from_millis(300 + 99 * 20))
    );
    assert_eq!(playback.tracks()[1].codec, "vp8");
    let played = play(&mut playback, usize::MAX);
    assert_eq!(played.len(), 200);
    assert!(played.is_sorted_by_key(|it| it.ms));
    let sound: Vec<_> = played.iter().filter(|it| it.track == 0).collect();
    for (number, pair) in sound.windows(2).enumerate() {
        assert_eq!(pair[0].ms, 300 + number as u64 * 20);
        let (one, two) = (pair[0].header, pair[1].header);
        assert_eq!(two.sequence.wrapping_sub(one.sequence), 1);
        assert_eq!(two.timestamp.wrapping_sub(one.timestamp), 960);
        assert_eq!(one.ssrc, two.ssrc);
    }
    let pictures: Vec<_> = played.iter().filter(|it| it.track == 1).collect();
    assert_eq!((pictures[0].ms, pictures[99].ms), (0, 49 * 40));
    assert_eq!(pictures[0].header.timestamp, pictures[1].header.timestamp);
}

#[test]
fn jitter_and_disorder_are_gone() {
    let mut sound = Recording::new(Medium::Audio, "pcma", 0);
    // Pairs are swapped, and all but each tenth come up to 90 ms late. One is missing, and one is
    // duplicated.
    for number in 0..200_u16 {
        let number = number ^ 1;
        if number == 50 {
            continue;
        }
        let late = u64::from(number % 10) * 10;
        let at = u64::from(number & !1) * 20 + late.max(u64::from(number % 2));
        sound.packet(at, number, u32::from(number) * 160, &[number as u8]);
        if number == 60 {
            sound.packet(at, number, u32::from(number) * 160, &[number as u8]);
        }
    }
    let played = play(&mut open(vec![sound.bytes]), usize::MAX);
    let numbers: Vec<_> = played.iter().map(|it| it.payload[0]).collect();
    let expected: Vec<_> = (0..200).filter(|number| *number != 50).collect();
    assert_eq!(numbers, expected);
    // The first packet came later than those after it, so it is late.
    let (first, last) = (&played[0], &played[198]);
    for it in &played[1..] {
        let number = u16::from(it.payload[0]);
        assert_eq!(
            it.header.sequence.wrapping_sub(first.header.sequence),
            number
        );
        let off = it.ms.abs_diff(last.ms - u64::from(199 - number) * 20);
        assert!(off <= 1, "packet {number} is {off} ms off");
    }
}

#[test]
fn what_is_gone_to_begins_with_a_keyframe_and_goes_on_behind_what_was_sent() {
    let mut playback = open(vec![Recording::opus(1_000, 0), Recording::vp8(500, 0)]);
    let mut sent = playback.nothing_sent();
    let before = play(&mut playback, 20);
    for it in &before[..10] {
        let at = Duration::from_millis(it.ms);
        sent.add(it.track, it.header.sequence, at, at);
    }
    let last = |track: usize| {
        before[..10]
            .iter()
            .rev()
            .find(|it| it.track == track)
            .unwrap()
            .clone()
    };
    // 13 s is within pictures 300 to 349. Then it goes back.
    for (to_ms, picture) in [(13_000, 300_u16), (2_100, 50), (19_990, 450), (0, 0)] {
        let to = Duration::from_millis(to_ms);
        playback.seek_behind(&sent, to).unwrap();
        let after = play(&mut playback, 40);
        let video = after.iter().find(|it| it.track == 1).unwrap();
        assert_eq!(video.payload, VP8_KEYFRAME, "at {to_ms}");
        let next = after.iter().filter(|it| it.track == 1).nth(1).unwrap();
        assert_eq!(next.payload[1..], picture.to_le_bytes());
        let sound = after.iter().find(|it| it.track == 0).unwrap();
        let number = u16::from_be_bytes([sound.payload[1], sound.payload[2]]);
        assert_eq!(number, picture * 2);
        for it in [video, sound] {
            let last = last(it.track);
            assert_eq!(it.header.sequence, last.header.sequence.wrapping_add(1));
            assert_eq!(it.ms, sent_until(&before[..10]), "at {to_ms}");
            let passed = it.header.timestamp.wrapping_sub(last.header.timestamp);
            let rate = [48, 90][it.track];
            assert_eq!(u64::from(passed), (it.ms - last.ms) * rate);
        }
    }
}

/// Returns the end of sent packets: the last time, plus the duration of a picture.
fn sent_until(sent: &[Played]) -> u64 {
    sent.iter().map(|it| it.ms).max().unwrap() + 20
}

#[test]
fn a_seek_of_sound_alone_is_exact() {
    let mut playback = open(vec![Recording::opus(3_000, 0)]);
    playback.seek(Duration::from_millis(31_230)).unwrap();
    let first = &play(&mut playback, 1)[0];
    let number = u16::from_be_bytes([first.payload[1], first.payload[2]]);
    assert_eq!(number, 1_562);
    assert_eq!(first.ms, 10);
    playback.seek(Duration::from_secs(3_600)).unwrap();
    assert_eq!(play(&mut playback, 1), []);
    playback.seek(Duration::ZERO).unwrap();
    assert_eq!(play(&mut playback, usize::MAX).len(), 3_000);
}

#[test]
fn a_source_that_begins_anew_goes_on() {
    let mut sound = Recording::new(Medium::Audio, "opus", 0);
    for number in 0..50_u16 {
        sound.packet(
            u64::from(number) * 20,
            number,
            u32::from(number) * 960,
            &[1],
        );
    }
    sound.ssrc = 8;
    for number in 0..50_u16 {
        let at = 2_000 + u64::from(number) * 20;
        sound.packet(
            at,
            40_000 + number,
            77_777_777 + u32::from(number) * 960,
            &[2],
        );
    }
    let played = play(&mut open(vec![sound.bytes]), usize::MAX);
    assert_eq!(played.len(), 100);
    let (last, next) = (&played[49], &played[50]);
    assert_eq!((last.ms, next.ms), (980, 2_000));
    assert_eq!(next.header.sequence, last.header.sequence.wrapping_add(1));
    let passed = next.header.timestamp.wrapping_sub(last.header.timestamp);
    assert_eq!(passed, 1_020 * 48);
    assert_eq!(last.header.ssrc, next.header.ssrc);
}

#[test]
fn redundant_audio_is_kept_or_taken_out() {
    let recording = || {
        let mut info = Info::new(Medium::Audio, "opus", UnixMicros(BEGUN));
        info.red = Some(63);
        let mut sound = Recording::of(info, 0);
        sound.pt = 63;
        sound.packet(0, 0, 0, &[109, 0xf8, 1]);
        sound.packet(20, 1, 960, &[0x80 | 109, 0x0f, 0, 2, 109, 0xf8, 1, 0xf8, 2]);
        sound.pt = 111;
        sound.packet(40, 2, 1_920, &[0xf8, 3]);
        sound.bytes
    };
    let mut kept = open(vec![recording()]);
    assert!(kept.tracks()[0].red);
    let payloads: Vec<_> = play(&mut kept, 9)
        .into_iter()
        .map(|it| it.payload)
        .collect();
    let redundant = [0x80 | 111, 0x0f, 0, 2, 111, 0xf8, 1, 0xf8, 2];
    assert_eq!(payloads, [&[111, 0xf8, 1][..], &redundant, &[111, 0xf8, 3]]);
    let mut plain = open(vec![recording()]);
    plain.take_redundancy_out(0);
    assert!(!plain.tracks()[0].red);
    let payloads: Vec<_> = play(&mut plain, 9)
        .into_iter()
        .map(|it| it.payload)
        .collect();
    assert_eq!(payloads, [[0xf8, 1], [0xf8, 2], [0xf8, 3]]);
}

#[test]
fn messages_come_at_their_times() {
    let mut data = Recording::new(Medium::Data, "text", 500);
    data.message(0, "one");
    data.message(1_500, "two");
    let mut playback = open(vec![Recording::opus(10, 0), data.bytes]);
    assert_eq!(playback.clock_rates(), [Some(48_000), None]);
    let played = play(&mut playback, usize::MAX);
    let messages: Vec<_> = played.iter().filter(|it| it.track == 1).collect();
    assert_eq!(
        (messages[0].ms, &messages[0].payload[..]),
        (500, &b"one"[..])
    );
    assert_eq!(
        (messages[1].ms, &messages[1].payload[..]),
        (2_000, &b"two"[..])
    );
    playback.seek(Duration::from_millis(1_000)).unwrap();
    let played = play(&mut playback, usize::MAX);
    assert_eq!(played[0].payload, b"two");
}

#[test]
fn a_file_that_is_cut_off_plays_to_there() {
    let whole = Recording::opus(500, 0);
    for cut in [whole.len() - 1, whole.len() - 20, whole.len() / 2, 120] {
        let mut playback = open(vec![whole[..cut].to_vec()]);
        let played = play(&mut playback, usize::MAX);
        let duration = playback.duration().unwrap_or_default();
        let last = played.last().map_or(0, |it| it.ms);
        assert_eq!(duration, Duration::from_millis(last), "cut at {cut}");
    }
}

#[test]
fn a_corrupt_part_ends_its_track_with_an_error() {
    let mut sound = Recording::opus(500, 0);
    let middle = sound.len() / 2;
    sound[middle..middle + 40].fill(0xee);
    let mut playback = open(vec![sound, Recording::vp8(300, 0)]);
    let (mut packets, mut errors) = ([0; 2], 0);
    while let Some(packet) = playback.next() {
        match packet {
            Ok(packet) => packets[packet.track] += 1,
            Err(error) => {
                assert!(matches!(error, FileError::Recording(_)), "{error}");
                errors += 1;
            }
        }
    }
    assert_eq!((packets[1], errors), (600, 1));
    assert!((240..260).contains(&packets[0]), "{packets:?}");
}

#[test]
fn what_cannot_be_played_is_told_file_by_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, bytes: &[u8]| -> PathBuf {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    };
    let sound = file("a.mjr", &Recording::opus(10, 0));
    let other = file("b.mjr", &Recording::opus(10, 0));
    let empty = file("empty.mjr", b"MJR00002");
    let old = file("old.mjr", b"MEETECHO and so on");
    let text = file("text.mjr", b"no recording at all");
    let codec = file("codec.mjr", &Recording::new(Medium::Audio, "vp8", 0).bytes);
    let missing = folder.path().join("missing.mjr");
    let files = [
        &missing, &sound, &other, &empty, &old, &text, &codec, &sound,
    ];
    let files: Vec<_> = files.into_iter().cloned().collect();
    let (playback, unreadable) = Playback::open(&files).unwrap();
    assert_eq!(playback.tracks().len(), 1);
    let told: Vec<_> = unreadable.iter().map(|it| it.file).collect();
    assert_eq!(told, [0, 2, 3, 4, 5, 6]);
    assert!(matches!(unreadable[2].error, FileError::Empty));
    let nothing = Playback::open(&files[3..6]);
    assert!(matches!(nothing, Err(FileError::Empty)), "{nothing:?}");
    assert!(matches!(Playback::open(&[]), Err(FileError::Empty)));
}

proptest! {
    #[test]
    fn damaged_recordings_play_or_are_refused(
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..30),
        cut in any::<prop::sample::Index>(),
        seeks in proptest::collection::vec(0_u64..20_000, 0..5),
    ) {
        let mut files = [Recording::opus(200, 100), Recording::vp8(100, 0)];
        for (index, (place, byte)) in changes.iter().enumerate() {
            let file = &mut files[index % 2];
            let place = place.index(file.len());
            file[place] = *byte;
        }
        let end = cut.index(files[0].len());
        files[0].truncate(end);
        let Ok((mut playback, _)) = Playback::of_recordings(files.map(Cursor::new)) else {
            return Ok(());
        };
        let mut last = Duration::ZERO;
        let mut packets = 0;
        for to in seeks.into_iter().map(Some).chain([None]) {
            if let Some(to) = to {
                playback.seek(Duration::from_millis(to)).unwrap();
            }
            while let Some(Ok(packet)) = playback.next() {
                prop_assert!(packet.at >= last);
                last = packet.at;
                packets += 1;
                prop_assert!(packets < 10_000);
            }
        }
    }
}

#[test]
fn containers_play_one_behind_the_other() {
    let folder = tempfile::tempdir().unwrap();
    let from = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/vp8-opus.webm");
    let paths = ["a.webm", "a-2.webm", "a-3.webm"].map(|name| folder.path().join(name));
    for path in &paths {
        std::fs::copy(from, path).unwrap();
    }
    std::fs::write(&paths[1], "torn").unwrap();
    let (one, _) = Playback::open(&paths[..1]).unwrap();
    let (mut all, unreadable) = Playback::open(&paths).unwrap();
    assert_eq!(unreadable[0].file, 1);
    let length = one.duration().unwrap();
    assert_eq!(all.duration(), Some(length * 2));
    // By track: the number of packets, and the numbers of the last one.
    let mut seen = vec![(0, None::<(u16, u32)>); all.tracks().len()];
    let mut end = Duration::ZERO;
    while let Some(packet) = all.next() {
        let packet = packet.unwrap();
        let header = Header::parse(packet.bytes).unwrap();
        let (count, last) = &mut seen[packet.track];
        if let Some((sequence, timestamp)) = last.replace((header.sequence, header.timestamp)) {
            assert_eq!(header.sequence, sequence.wrapping_add(1));
            assert!((header.timestamp.wrapping_sub(timestamp) as i32) >= 0);
        }
        *count += 1;
        end = end.max(packet.at);
    }
    // The last audio packet lasts longer than the file's duration.
    let most = length * 2 + Duration::from_millis(40);
    assert!(end > length * 3 / 2 && end <= most, "{end:?}");
    let counts: Vec<_> = seen.iter().map(|it| it.0).collect();
    let (mut one, _) = Playback::open(&paths[..1]).unwrap();
    let mut once = vec![0; counts.len()];
    while let Some(packet) = one.next() {
        once[packet.unwrap().track] += 1;
    }
    let twice: Vec<_> = once.iter().map(|count| count * 2).collect();
    assert_eq!(counts, twice);
    // From the second pass on, the number of packets is that of one pass.
    all.seek(length).unwrap();
    let left = std::iter::from_fn(|| all.next().map(drop)).count();
    // Audio before the first keyframe is left out.
    let all_of_one: usize = once.iter().sum();
    assert!(left <= all_of_one && left + 3 > all_of_one, "{left}");
}
