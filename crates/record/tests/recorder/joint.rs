//! What somebody sends as one file.

use std::time::{Duration, Instant};

use portunus_files::manifest::{Clock, GapReason};
use portunus_files::summary::{Depth, Summary};
use portunus_files::{MediaFile, OpenOptions};
use portunus_media::testing::RequestedOutlet;
use portunus_media::{SourceRef, TappedReport};
use portunus_record::{
    End, FileEnd, Format, JointRecording, JointSpec, Participant, RecordError, RecordedMedia,
    TrackSpec,
};
use portunus_sdp::negotiated::Codec;
use portunus_sdp::{CodecName, Kind};

use crate::rig::{Rig, participant, rtp, until};

fn track(rig: &Rig, key: &str, codec: CodecName) -> TrackSpec {
    TrackSpec {
        key: key.to_owned(),
        media: RecordedMedia::codec(codec).with_mid(Some(key.to_owned())),
        from: rig.source(codec.codec()),
        open: true,
    }
}

fn spec(name: &str, format: Format, tracks: Vec<TrackSpec>) -> JointSpec {
    JointSpec {
        dir: None,
        name: name.to_owned(),
        format,
        of: None,
        tracks,
    }
}

fn start(rig: &Rig, name: &str, of: Option<Participant>) -> JointRecording {
    let tracks = vec![
        track(rig, "0", CodecName::Opus),
        track(rig, "1", CodecName::Vp8),
    ];
    let spec = JointSpec {
        of,
        ..spec(name, Format::WebM, tracks)
    };
    rig.recorder.joint(&rig.media, spec).unwrap()
}

/// Someone who sends sound and pictures in time.
struct Sender {
    sound: RequestedOutlet,
    picture: RequestedOutlet,
    begun: Instant,
    /// Packets of sound so far.
    count: u16,
}

/// A packet of a VP8 frame of 64 x 48.
fn vp8(sequence: u16, timestamp: u32, keyframe: bool) -> Vec<u8> {
    let mut payload = vec![0x10, u8::from(!keyframe), 0, 0];
    payload.extend_from_slice(&[0x9d, 0x01, 0x2a, 64, 0, 48, 0]);
    payload.extend_from_slice(&[7; 40]);
    let mut packet = rtp(sequence, timestamp, &payload);
    packet[1] |= 0x80;
    packet
}

impl Sender {
    /// With the last two taps.
    fn new(rig: &Rig) -> Self {
        let mut taps = rig.taps();
        let picture = taps.pop().unwrap();
        Self {
            sound: taps.pop().unwrap(),
            picture,
            begun: Instant::now(),
            count: 0,
        }
    }

    /// Sends so many packets of sound, of 20 ms each, with a frame for every second one; each arrives when it is sent.
    fn send(&mut self, packets: u16) {
        for _ in 0..packets {
            let count = self.count;
            let at = self.begun + Duration::from_millis(20) * u32::from(count);
            let sound = rtp(count, u32::from(count) * 960, &[0xfc, 1, 2, 3]);
            self.sound.pretend_packet(&sound, Codec::Opus, at);
            if count.is_multiple_of(2) {
                let frame = vp8(
                    count / 2,
                    u32::from(count) * 1_800,
                    count.is_multiple_of(100),
                );
                self.picture.pretend_packet(&frame, Codec::Vp8, at);
            }
            self.count += 1;
        }
    }
}

/// The codecs of a file, and how long it is.
fn read(path: &std::path::Path) -> (Vec<String>, Duration) {
    let file = MediaFile::open(path, &OpenOptions::default()).unwrap();
    let names = file
        .tracks()
        .iter()
        .map(|track| track.codec.name().to_owned());
    (names.collect(), file.duration().unwrap())
}

/// How many frames of each track are in a file.
fn frames_of(path: &std::path::Path) -> Vec<u64> {
    let summary = Summary::of(path, Depth::All).unwrap();
    summary.tracks.iter().map(|track| track.frames).collect()
}

/// How many packets a file is when it is played.
fn packets_of(path: &std::path::Path) -> usize {
    let options = OpenOptions {
        looping: false,
        ..OpenOptions::default()
    };
    let mut file = MediaFile::open(path, &options).unwrap();
    std::iter::from_fn(|| file.next().map(|packet| packet.is_ok())).count()
}

async fn end(rig: &Rig, recording: JointRecording) {
    let outcome = recording.outcome();
    drop(recording);
    outcome.ended().await.unwrap();
    rig.recorder.finished().await;
}

#[tokio::test]
async fn sound_and_picture_are_in_one_file() {
    let rig = Rig::new();
    let recording = start(&rig, "ann", None);
    recording.outcome().opened().await.unwrap();
    assert_eq!(recording.file_names(), ["ann.webm"]);
    let mut sender = Sender::new(&rig);
    sender.send(150);
    drop(sender);
    end(&rig, recording).await;
    let (codecs, duration) = read(&rig.path("ann.webm"));
    assert_eq!(codecs, ["opus", "VP8"]);
    assert!(
        duration.abs_diff(Duration::from_secs(3)) < Duration::from_millis(100),
        "{duration:?}"
    );
    let totals = rig.recorder.totals();
    assert_eq!((totals.open, totals.completed, totals.failed), (0, 1, 0));
    assert_eq!(totals.frames, 150 + 75);
    assert_eq!(totals.bytes, rig.path("ann.webm").metadata().unwrap().len());
}

#[tokio::test]
async fn what_the_container_lacks_is_beside_it_and_in_the_manifest() {
    let rig = Rig::new();
    let session = rig.session("demo");
    let tracks = vec![
        track(&rig, "0", CodecName::Opus),
        track(&rig, "1", CodecName::G722),
        TrackSpec {
            media: RecordedMedia::data(true),
            ..track(&rig, "2", CodecName::Opus)
        },
        TrackSpec {
            media: RecordedMedia::codec(CodecName::Opus).with_encryption(true),
            ..track(&rig, "3", CodecName::Opus)
        },
    ];
    let spec = JointSpec {
        of: Some(participant(&session, "42")),
        ..spec("ann", Format::Mp4, tracks)
    };
    let recording = rig.recorder.joint(&rig.media, spec).unwrap();
    recording.outcome().opened().await.unwrap();
    let mut names = recording.file_names();
    names.sort();
    assert_eq!(
        names,
        [
            "ann-audio-3.mjr",
            "ann-audio.mjr",
            "ann-data.mjr",
            "ann.mp4"
        ]
    );
    let taps = rig.taps();
    let narrow = rtp(0, 0, b"x");
    assert!(taps[1].pretend_packet(&narrow, Codec::G722, Instant::now()));
    assert!(taps[2].pretend_first(Kind::Data) && taps[3].pretend_first(Kind::Audio));
    drop((session, taps));
    end(&rig, recording).await;
    let manifest = rig.manifest("demo.json");
    let files = &manifest.participants[0].files;
    // Nothing came: there is no such file.
    assert!(!rig.path("ann.mp4").exists());
    let mut names: Vec<_> = files.iter().map(|file| file.file.as_str()).collect();
    names.sort();
    assert_eq!(names, ["ann-audio-3.mjr", "ann-audio.mjr", "ann-data.mjr"]);
    assert!(files.iter().any(|file| file.encrypted));
}

#[tokio::test]
async fn gaps_and_losses_are_in_the_manifest() {
    let rig = Rig::new();
    let session = rig.session("demo");
    let mut recording = start(&rig, "ann", Some(participant(&session, "42")));
    recording.outcome().opened().await.unwrap();
    let mut sender = Sender::new(&rig);
    sender.send(50);
    recording.set_open("0", false);
    recording.set_open("0", true);
    // A second of nothing, and of the picture a packet is missing.
    sender.count += 51;
    sender.send(149);
    drop(sender);
    until("a gap is told", || {
        let manifest = session.manifest();
        let file = manifest
            .participants
            .first()
            .and_then(|it| it.files.first());
        file.is_some_and(|file| file.tracks.iter().any(|track| !track.gaps.is_empty()))
    })
    .await;
    drop(session);
    end(&rig, recording).await;
    let manifest = rig.manifest("demo.json");
    let file = &manifest.participants[0].files[0];
    assert_eq!(
        (file.file.as_str(), file.format.as_str()),
        ("ann.webm", "webm")
    );
    assert_eq!(file.end, Some(FileEnd::Stopped));
    let [sound, picture] = file.tracks.as_slice() else {
        panic!("{:?}", file.tracks);
    };
    assert_eq!(
        (sound.codec.as_str(), picture.codec.as_str()),
        ("opus", "vp8")
    );
    assert_eq!((sound.mid.as_str(), picture.mid.as_str()), ("0", "1"));
    assert_eq!(sound.clock, Clock::Arrival);
    assert_eq!(sound.packets, 199);
    let change = picture.changes[0];
    assert_eq!((change.width, change.height), (Some(64), Some(48)));
    assert!(picture.lost > 0, "{picture:?}");
    let why: Vec<_> = picture.gaps.iter().map(|gap| gap.why).collect();
    assert!(why.contains(&GapReason::Loss), "{picture:?}");
    assert!(rig.recorder.totals().gaps > 0);
    // A keyframe was asked for at once.
    assert!(!rig.media.requested().outlet_keyframes.is_empty());
}

#[tokio::test]
async fn what_was_sent_before_a_mute_is_in_the_file() {
    let rig = Rig::new();
    let mut recording = start(&rig, "ann", None);
    recording.outcome().opened().await.unwrap();
    let mut sender = Sender::new(&rig);
    // Beginning 2 s ago: all of it came before now.
    sender.begun = Instant::now() - Duration::from_secs(2);
    sender.send(20);
    until("the file has begun", || rig.recorder.totals().frames > 0).await;
    // The rest comes between two turns of the disk, and the mute as well.
    sender.send(70);
    recording.set_open("0", false);
    recording.set_open("1", false);
    drop(sender);
    end(&rig, recording).await;
    assert_eq!(frames_of(&rig.path("ann.webm"))[1], 45);
}

#[tokio::test]
async fn another_codec_is_another_part() {
    let rig = Rig::new();
    let session = rig.session("demo");
    let recording = start(&rig, "ann", Some(participant(&session, "42")));
    std::fs::write(rig.path("ann-2.mkv"), "mine").unwrap();
    let mut completed = rig.recorder.completed();
    let mut sender = Sender::new(&rig);
    sender.send(100);
    // The sound goes on as G.711, which WebM does not have.
    for count in 100..250_u16 {
        let at = sender.begun + Duration::from_millis(20) * u32::from(count);
        let sound = rtp(count, u32::from(count) * 160, &[0xff; 160]);
        sender.sound.pretend_packet(&sound, Codec::Pcmu, at);
        if count % 2 == 0 {
            let frame = vp8(count / 2, u32::from(count) * 1_800, count % 10 == 0);
            sender.picture.pretend_packet(&frame, Codec::Vp8, at);
        }
    }
    drop((sender, session));
    end(&rig, recording).await;
    assert_eq!(read(&rig.path("ann.webm")).0, ["opus", "VP8"]);
    // A name that is taken is left alone.
    assert_eq!(std::fs::read(rig.path("ann-2.mkv")).unwrap(), b"mine");
    assert_eq!(read(&rig.path("ann-3.mkv")).0, ["PCMU", "VP8"]);
    let manifest = rig.manifest("demo.json");
    let files = &manifest.participants[0].files;
    let shown = files
        .iter()
        .map(|it| (it.file.as_str(), it.part, it.end.unwrap()));
    assert_eq!(
        shown.collect::<Vec<_>>(),
        [
            ("ann.webm", 1, FileEnd::Part),
            ("ann-3.mkv", 3, FileEnd::Stopped)
        ]
    );
    assert!(files[1].offset_ms.unwrap() > files[0].offset_ms.unwrap() + 1_500.0);
    let told = [completed.try_recv().unwrap(), completed.try_recv().unwrap()];
    assert_eq!(told[0].end, FileEnd::Part);
    assert_eq!(told[1].file, rig.path("ann-3.mkv"));
}

#[tokio::test]
async fn tracks_come_and_go() {
    let rig = Rig::new();
    let spec = spec("ann", Format::WebM, vec![track(&rig, "0", CodecName::Opus)]);
    let mut recording = rig.recorder.joint(&rig.media, spec).unwrap();
    recording.outcome().opened().await.unwrap();
    let sound = rig.tap();
    let begun = Instant::now();
    let send = |count: u16| {
        let at = begun + Duration::from_millis(20) * u32::from(count);
        let packet = rtp(count, u32::from(count) * 960, &[0xfc, 1]);
        assert!(sound.pretend_packet(&packet, Codec::Opus, at));
        at
    };
    for count in 0..100 {
        send(count);
    }
    until("the file has begun", || {
        rig.path("ann.webm").metadata().unwrap().len() > 0
    })
    .await;
    recording.add(track(&rig, "1", CodecName::Vp8));
    assert_eq!(recording.keys().collect::<Vec<_>>(), ["0", "1"]);
    let picture = rig.tap();
    for count in 100..200 {
        let at = send(count);
        let frame = vp8(count, u32::from(count) * 1_800, count == 100);
        picture.pretend_packet(&frame, Codec::Vp8, at);
    }
    drop(picture);
    recording.remove("1");
    for count in 200..250 {
        send(count);
    }
    assert!(!recording.is_over());
    // Of a source that ends, unlike one that is taken away, the recording ends.
    drop(sound);
    let SourceRef::Ingest(ingest) = rig.media.requested().outlets[0].from else {
        panic!("an ingest was added");
    };
    rig.media.remove_ingest(ingest);
    assert_eq!(recording.outcome().ended().await.unwrap(), End::Source);
    assert!(recording.is_over());
    let (codecs, duration) = read(&rig.path("ann.webm"));
    assert_eq!(codecs, ["opus", "VP8"]);
    assert!(duration > Duration::from_millis(4_900), "{duration:?}");
}

/// A packet of a VP9 keyframe of this size.
fn vp9(sequence: u16, timestamp: u32, (width, height): (u16, u16)) -> Vec<u8> {
    // A frame in one packet; marker, profile 0, shown keyframe, the code, BT.601, and the size, 4 bits later.
    let size = u64::from(width - 1) << 16 | u64::from(height - 1);
    let bits = (1_u64 << 33 | size) << 4;
    let mut payload = vec![0x0c, 0x82, 0x49, 0x83, 0x42];
    payload.extend_from_slice(&bits.to_be_bytes()[3..]);
    payload.extend_from_slice(&[7; 20]);
    let mut packet = rtp(sequence, timestamp, &payload);
    packet[1] |= 0x80;
    packet
}

#[tokio::test]
async fn another_size_is_another_part_of_mp4_and_none_of_webm() {
    for (format, files) in [
        (Format::Mp4, &["ann.mp4", "ann-2.mp4"][..]),
        (Format::WebM, &["ann.webm"]),
    ] {
        let rig = Rig::new();
        let tracks = vec![track(&rig, "0", CodecName::Vp9)];
        let recording = rig.recorder.joint(&rig.media, spec("ann", format, tracks));
        let recording = recording.unwrap();
        recording.outcome().opened().await.unwrap();
        let begun = Instant::now();
        for count in 0..60_u16 {
            let size = if count < 30 { (640, 480) } else { (320, 240) };
            let at = begun + Duration::from_millis(40) * u32::from(count);
            let packet = vp9(count, u32::from(count) * 3_600, size);
            assert!(rig.tap().pretend_packet(&packet, Codec::Vp9, at));
        }
        end(&rig, recording).await;
        // Each frame is one packet.
        let packets = files.iter().map(|name| packets_of(&rig.path(name)));
        let expected: &[usize] = if files.len() == 1 { &[60] } else { &[30, 30] };
        assert_eq!(packets.collect::<Vec<_>>(), expected, "{format:?}");
        assert!(!rig.path("ann-2.webm").exists());
    }
}

/// Sound on a tap, in packets of 20 ms from this one on, which come as fast.
fn talk(tap: &RequestedOutlet, begun: Instant, packets: std::ops::Range<u16>) {
    for count in packets {
        let at = begun + Duration::from_millis(20) * u32::from(count);
        let packet = rtp(count, u32::from(count) * 960, &[0xfc, 1]);
        assert!(tap.pretend_packet(&packet, Codec::Opus, at));
    }
}

#[tokio::test]
async fn what_comes_again_goes_on_in_the_same_track() {
    let rig = Rig::new();
    let mut recording = start(&rig, "ann", None);
    recording.outcome().opened().await.unwrap();
    let mut sender = Sender::new(&rig);
    sender.send(100);
    until("the file has begun", || rig.recorder.totals().frames > 0).await;
    // More often than a file has tracks.
    for round in 1..=8 {
        recording.remove("1");
        recording.add(track(&rig, "1", CodecName::Vp8));
        sender.picture = rig.tap();
        sender.count = round * 100;
        sender.send(100);
    }
    assert_eq!(recording.file_names(), ["ann.webm"]);
    drop(sender);
    end(&rig, recording).await;
    assert_eq!(read(&rig.path("ann.webm")).0, ["opus", "VP8"]);
    assert_eq!(frames_of(&rig.path("ann.webm")), [900, 450]);
    assert!(!rig.path("ann-2.webm").exists());
}

#[tokio::test]
async fn further_tracks_have_the_numbers_of_those_that_went_or_another_file() {
    let rig = Rig::new();
    let tracks = (0..6).map(|key| track(&rig, &key.to_string(), CodecName::Opus));
    let spec = spec("ann", Format::WebM, tracks.collect());
    let mut recording = rig.recorder.joint(&rig.media, spec).unwrap();
    recording.outcome().opened().await.unwrap();
    let begun = Instant::now();
    for tap in rig.taps() {
        talk(&tap, begun, 0..100);
    }
    until("the file has begun", || rig.recorder.totals().frames > 0).await;
    // There is no room for a seventh.
    recording.add(track(&rig, "6", CodecName::Opus));
    talk(&rig.tap(), begun, 100..150);
    // And there is for another one instead of one of the six.
    recording.remove("2");
    recording.add(track(&rig, "7", CodecName::Opus));
    talk(&rig.tap(), begun, 200..250);
    end(&rig, recording).await;
    let tracks = |name: &str| frames_of(&rig.path(name)).len();
    assert_eq!((tracks("ann.webm"), tracks("ann-2.webm")), (6, 1));
    assert_eq!(tracks("ann-3.webm"), 1);
}

#[tokio::test]
async fn messages_that_come_again_are_in_another_file() {
    let rig = Rig::new();
    let data = |rig: &Rig| TrackSpec {
        media: RecordedMedia::data(true),
        ..track(rig, "0", CodecName::Opus)
    };
    let tracks = vec![data(&rig)];
    let mut recording = rig
        .recorder
        .joint(&rig.media, spec("ann", Format::WebM, tracks))
        .unwrap();
    assert!(rig.tap().pretend_first(Kind::Data));
    recording.add(data(&rig));
    assert!(rig.tap().pretend_first(Kind::Data));
    recording.outcome().opened().await.unwrap();
    end(&rig, recording).await;
    assert!(rig.path("ann-data.mjr").exists());
    assert!(rig.path("ann-data-2.mjr").exists());
    assert_eq!(rig.recorder.totals().failed, 0);
}

#[tokio::test]
async fn what_comes_after_the_end_is_in_the_next_file() {
    let rig = Rig::new();
    let tracks = vec![track(&rig, "0", CodecName::Opus)];
    let spec = spec("ann", Format::WebM, tracks);
    let mut recording = rig.recorder.joint(&rig.media, spec).unwrap();
    recording.outcome().opened().await.unwrap();
    let begun = Instant::now();
    talk(&rig.tap(), begun, 0..100);
    let SourceRef::Ingest(ingest) = rig.taps()[0].from else {
        panic!("an ingest was added");
    };
    rig.media.remove_ingest(ingest);
    until("it is over", || recording.is_over()).await;
    recording.add(track(&rig, "1", CodecName::Opus));
    assert!(!recording.is_over());
    recording.outcome().opened().await.unwrap();
    talk(&rig.tap(), begun, 0..50);
    end(&rig, recording).await;
    assert_eq!(frames_of(&rig.path("ann.webm")), [100]);
    assert_eq!(frames_of(&rig.path("ann-2.webm")), [50]);
}

#[tokio::test]
async fn what_comes_after_a_failure_holds_nothing() {
    let rig = Rig::with(|config| config.keep_free_mb = u64::MAX);
    let tracks = vec![track(&rig, "0", CodecName::Opus)];
    let spec = spec("ann", Format::WebM, tracks);
    let mut recording = rig.recorder.joint(&rig.media, spec).unwrap();
    recording.outcome().ended().await.unwrap_err();
    let taps = rig.taps().len();
    recording.add(track(&rig, "1", CodecName::Opus));
    assert_eq!(rig.taps().len(), taps);
    assert_eq!(recording.keys().collect::<Vec<_>>(), ["0", "1"]);
    assert!(recording.is_over());
    assert_eq!(rig.recorder.totals().waiting_bytes, 0);
}

#[tokio::test]
async fn names_that_cannot_be_are_refused_and_full_disks_end_it() {
    let rig = Rig::new();
    let joint = |rig: &Rig, name: &str| {
        let tracks = vec![track(rig, "0", CodecName::Opus)];
        rig.recorder
            .joint(&rig.media, spec(name, Format::WebM, tracks))
    };
    assert!(matches!(joint(&rig, "../a"), Err(RecordError::Name(_))));
    assert!(matches!(
        joint(&rig, "/etc/a"),
        Err(RecordError::Outside(_))
    ));
    let first = joint(&rig, "a").unwrap();
    assert!(matches!(joint(&rig, "a"), Err(RecordError::Busy(_))));
    first.outcome().opened().await.unwrap();
    std::fs::write(rig.path("b.webm"), "mine").unwrap();
    let error = joint(&rig, "b")
        .unwrap()
        .outcome()
        .opened()
        .await
        .unwrap_err();
    assert!(matches!(&*error, RecordError::Exists(_)), "{error}");
    let error = joint(&rig, "b.webm/c").unwrap();
    let error = error.outcome().ended().await.unwrap_err();
    assert!(matches!(&*error, RecordError::Create { .. }), "{error}");
    assert_eq!(std::fs::read(rig.path("b.webm")).unwrap(), b"mine");
    drop(first);

    let rig = Rig::with(|config| config.keep_free_mb = u64::MAX);
    let error = joint(&rig, "a").unwrap().outcome().opened().await;
    assert!(matches!(&*error.unwrap_err(), RecordError::NoRoom { .. }));
    assert!(!rig.path("a.webm").exists());
    let rig = Rig::with(|config| config.enabled = false);
    assert!(matches!(joint(&rig, "a"), Err(RecordError::Disabled)));
}

#[tokio::test]
async fn a_file_becomes_no_longer_than_it_may_and_plays() {
    const LIMIT: u64 = 30_000;
    let rig = Rig::with(|config| config.max_file_bytes = LIMIT);
    let session = rig.session("demo");
    let recording = start(&rig, "ann", Some(participant(&session, "42")));
    recording.outcome().opened().await.unwrap();
    let mut sender = Sender::new(&rig);
    sender.send(1_500);
    let error = recording.outcome().ended().await.unwrap_err();
    assert!(
        matches!(&*error, RecordError::Full { limit: LIMIT, .. }),
        "{error}"
    );
    assert!(recording.is_over());
    drop((recording, sender, session));
    rig.recorder.finished().await;
    let len = rig.path("ann.webm").metadata().unwrap().len();
    assert!((20_000..=LIMIT).contains(&len), "{len}");
    assert!(read(&rig.path("ann.webm")).1 > Duration::from_secs(2));
    assert_eq!(
        rig.manifest("demo.json").participants[0].files[0].end,
        Some(FileEnd::Limit)
    );
    assert_eq!(rig.recorder.totals().failed, 1);
}

#[tokio::test]
async fn files_of_a_room_are_lined_up_by_their_senders_clocks() {
    let rig = Rig::new();
    let session = rig.session("demo");
    let begun = Instant::now();
    let names = ["ann", "bob", "eve"];
    let mut recordings = Vec::new();
    for (index, name) in names.into_iter().enumerate() {
        let of = Some(participant(&session, name));
        let recording = start(&rig, name, of);
        recording.outcome().opened().await.unwrap();
        // Each began at another time, by a clock that is off by hours and runs by 100 ppm too fast or too slow.
        let later = Duration::from_millis(700) * index as u32;
        let rate = 1.0 + (index as f64 - 1.0) * 100e-6;
        let ntp = (3_900_000_000 + 5_000 * index as u64) << 32;
        let sender = Sender::new(&rig);
        for count in 0..500_u32 {
            let sent = later + Duration::from_millis(20) * count;
            // 30 to 60 ms on the way.
            let way = Duration::from_millis(30 + u64::from((count * 7 + index as u32 * 11) % 30));
            let at = begun + sent + way;
            let ticks = |clock: f64| (f64::from(count) * 0.020 * clock * rate) as u32;
            if count % 100 == 20 {
                let passed = f64::from(count) * 0.020 * rate;
                let ntp = ntp + (passed * 4_294_967_296.0) as u64;
                for (tap, timestamp) in [
                    (&sender.sound, ticks(48_000.0)),
                    (&sender.picture, ticks(90_000.0)),
                ] {
                    assert!(tap.pretend_report(TappedReport {
                        arrival: at,
                        stream: 0,
                        ntp,
                        timestamp,
                        round_trip: None,
                    }));
                }
            }
            let sound = rtp(count as u16, ticks(48_000.0), &[0xfc, 1, 2]);
            sender.sound.pretend_packet(&sound, Codec::Opus, at);
            let frame = vp8(count as u16, ticks(90_000.0), count % 100 == 0);
            sender.picture.pretend_packet(&frame, Codec::Vp8, at);
        }
        recordings.push(recording);
    }
    drop((session, recordings));
    rig.recorder.finished().await;
    let manifest = rig.manifest("demo.json");
    // Where each file ends, which is when the last packet of its sound does: 10 s of its own after it began.
    for (index, name) in names.into_iter().enumerate() {
        let of = manifest.participants.iter().find(|of| of.id == name);
        let file = &of.unwrap().files[0];
        assert!(
            file.tracks.iter().all(|it| it.clock == Clock::Reports),
            "{file:?}"
        );
        // The least that is on the way is 30 ms for all.
        let expected = 30.0 + 700.0 * index as f64 + 10_000.0;
        let end = file.offset_ms.unwrap() + file.duration_ms;
        assert!((end - expected).abs() < 20.0, "{end} {expected}");
    }
}
