//! The content of one file, and the reasons for another.

use portunus_files::manifest::{Clock, GapReason};
use portunus_record::FileEnd;
use portunus_sdp::Kind;

use super::*;
use crate::rig::{participant, until};

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
    // Without content there is no such file.
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
    // A second without packets, then a picture with a lost packet.
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
    // A keyframe was requested at once.
    assert!(!rig.media.requested().outlet_keyframes.is_empty());
}

#[tokio::test]
async fn what_was_sent_before_a_mute_is_in_the_file() {
    let rig = Rig::new();
    let mut recording = start(&rig, "ann", None);
    recording.outcome().opened().await.unwrap();
    let mut sender = Sender::new(&rig);
    // It starts 2 s ago, so that everything came before now.
    sender.begun = Instant::now() - Duration::from_secs(2);
    sender.send(20);
    until("the file has begun", || rig.recorder.totals().frames > 0).await;
    // The rest comes between two turns of the disk, and so does the mute.
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
    // The audio goes on as G.711, which WebM does not have.
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
    // An existing file is left alone.
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
