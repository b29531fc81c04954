//! Manifests: written while recordings go on, and complete once they have ended.

use std::time::Instant;

use crate::rig::{Rig, participant, rtp, until};
use portunus_record::{FileEnd, Format, Participant, RecordedMedia, Recording, RecordingSpec};
use portunus_sdp::CodecName;
use portunus_sdp::negotiated::Codec;

fn start(rig: &Rig, name: &str, of: Participant) -> Recording {
    let media = RecordedMedia::codec(CodecName::Opus).with_mid(Some("0".to_owned()));
    let spec = RecordingSpec {
        dir: None,
        name: name.to_owned(),
        media: media.with_description(Some("My voice".to_owned())),
        format: Format::Mjr,
        of: Some(of),
    };
    let source = rig.source(Codec::Opus);
    let recording = rig.recorder.start(&rig.media, source, true, spec).unwrap();
    rig.speak();
    recording
}

#[tokio::test]
async fn a_manifest_names_the_files_of_a_room() {
    let rig = Rig::new();
    let session = rig.session("rooms/demo");
    let recording = start(&rig, "rooms/ann", participant(&session, "42"));
    let tap = rig.tap();
    recording.outcome().opened().await.unwrap();
    until("the manifest is there", || {
        rig.path("rooms/demo.json").exists()
    })
    .await;
    let manifest = rig.manifest("rooms/demo.json");
    assert_eq!(manifest.room.as_deref(), Some("1234"));
    assert_eq!(manifest.plugin, "janus.plugin.videoroom");
    assert_eq!(manifest.ended, None);
    let ann = &manifest.participants[0];
    assert_eq!(
        (ann.id.as_str(), ann.display.as_deref()),
        ("42", Some("Ann"))
    );
    let file = &ann.files[0];
    assert_eq!(
        (file.file.as_str(), file.format.as_str()),
        ("ann.mjr", "mjr")
    );
    assert_eq!((file.end, file.complete), (None, false));
    let track = &file.tracks[0];
    assert_eq!((track.mid.as_str(), track.codec.as_str()), ("0", "opus"));
    assert_eq!(track.description.as_deref(), Some("My voice"));

    for sequence in 1..=5 {
        tap.pretend_packet(&rtp(sequence, 0, b"x"), Codec::Opus, Instant::now());
    }
    let other = start(&rig, "bob", participant(&session, "43"));
    other.outcome().opened().await.unwrap();
    let mut completed = rig.recorder.completed();
    drop((recording, other, tap, session));
    rig.recorder.finished().await;

    let manifest = rig.manifest("rooms/demo.json");
    assert!(manifest.ended.is_some());
    let file = &manifest.participants[0].files[0];
    assert_eq!((file.end, file.complete), (Some(FileEnd::Stopped), true));
    assert_eq!(file.tracks[0].packets, 6);
    assert_eq!(
        file.bytes,
        rig.path("rooms/ann.mjr").metadata().unwrap().len()
    );
    let offset = file.offset_ms.unwrap();
    assert!((0.0..20_000.0).contains(&offset), "{offset}");
    // It is outside the folder of the manifest.
    assert_eq!(manifest.participants[1].files[0].file, "bob.mjr");
    let told: Vec<_> = std::iter::from_fn(|| completed.try_recv().ok()).collect();
    let ann = told
        .iter()
        .find(|it| it.participant.as_deref() == Some("42"));
    let ann = ann.unwrap();
    assert_eq!(ann.file, rig.path("rooms/ann.mjr"));
    assert_eq!(ann.manifest, Some(rig.path("rooms/demo.json")));
    assert_eq!(
        (ann.plugin, ann.room.as_deref()),
        (Some("janus.plugin.videoroom"), Some("1234"))
    );
    assert!(!rig.path("rooms/demo.json.tmp").exists());
}

#[tokio::test]
async fn a_file_that_nothing_came_into_is_in_no_manifest() {
    let rig = Rig::new();
    let session = rig.session("demo");
    let mut completed = rig.recorder.completed();
    let spec = RecordingSpec {
        dir: None,
        name: "silent".to_owned(),
        media: RecordedMedia::data(true),
        format: Format::Mjr,
        of: Some(participant(&session, "42")),
    };
    let source = rig.source(Codec::Opus);
    let silent = rig.recorder.start(&rig.media, source, true, spec).unwrap();
    silent.outcome().opened().await.unwrap();
    let heard = start(&rig, "heard", participant(&session, "42"));
    heard.outcome().opened().await.unwrap();
    drop((silent, heard, session));
    rig.recorder.finished().await;
    assert!(!rig.path("silent.mjr").exists());
    let manifest = rig.manifest("demo.json");
    let files = &manifest.participants[0].files;
    let names: Vec<_> = files.iter().map(|file| file.file.as_str()).collect();
    assert_eq!(names, ["heard.mjr"]);
    let told: Vec<_> = std::iter::from_fn(|| completed.try_recv().ok()).collect();
    assert_eq!(told.len(), 1, "{told:?}");
}

#[tokio::test]
async fn no_manifest_takes_the_place_of_another_file() {
    let rig = Rig::new();
    std::fs::write(rig.path("demo.json"), "mine").unwrap();
    let sessions = [rig.session("demo"), rig.session("demo")];
    for (name, session) in ["a", "b"].into_iter().zip(&sessions) {
        let recording = start(&rig, name, participant(session, "1"));
        recording.outcome().opened().await.unwrap();
    }
    drop(sessions);
    rig.recorder.finished().await;
    assert_eq!(std::fs::read(rig.path("demo.json")).unwrap(), b"mine");
    assert_eq!(
        rig.manifest("demo-2.json").participants[0].files[0].file,
        "a.mjr"
    );
    assert_eq!(
        rig.manifest("demo-3.json").participants[0].files[0].file,
        "b.mjr"
    );
}

#[tokio::test]
async fn there_is_no_manifest_where_nobody_wants_one_or_its_name_leads_out() {
    let rig = Rig::with(|config| config.manifest = false);
    let session = rig.session("demo");
    let mut completed = rig.recorder.completed();
    drop((start(&rig, "a", participant(&session, "1")), session));
    rig.recorder.finished().await;
    assert!(!rig.path("demo.json").exists());
    let told = completed.try_recv().unwrap();
    assert_eq!((told.manifest, told.room.as_deref()), (None, Some("1234")));

    let rig = Rig::new();
    let session = rig.session("../demo");
    drop((start(&rig, "a", participant(&session, "1")), session));
    rig.recorder.finished().await;
    assert!(rig.path("a.mjr").exists());
    assert!(!rig.path("../demo.json").exists());
    assert_eq!(rig.recorder.totals().failed, 0);
}

#[tokio::test]
async fn a_file_that_failed_is_told_as_such() {
    let rig = Rig::with(|config| config.max_file_bytes = 600);
    let session = rig.session("demo");
    let recording = start(&rig, "a", participant(&session, "1"));
    let tap = rig.tap();
    for sequence in 0..100 {
        tap.pretend_packet(&rtp(sequence, 0, &[1; 50]), Codec::Opus, Instant::now());
    }
    recording.outcome().ended().await.unwrap_err();
    drop((recording, session));
    rig.recorder.finished().await;
    let manifest = rig.manifest("demo.json");
    let file = &manifest.participants[0].files[0];
    assert_eq!(file.end, Some(FileEnd::Limit));
    let error = file.error.as_deref().unwrap();
    assert!(error.contains("600 bytes"), "{error}");
}
