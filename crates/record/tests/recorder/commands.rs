//! The command that runs for each complete file.

use std::time::{Duration, Instant};

use crate::rig::{Rig, participant, until};
use portunus_record::{FileEnd, Format, RecordError, RecordedMedia, RecordingSpec, Whose};
use portunus_sdp::CodecName;
use portunus_sdp::negotiated::Codec;

/// Records into files of these names, and waits until all is done.
async fn record(rig: &Rig, names: &[&str]) {
    let session = rig.session("demo");
    for name in names {
        let spec = RecordingSpec {
            dir: None,
            name: (*name).to_owned(),
            media: RecordedMedia::codec(CodecName::Opus),
            format: Format::Mjr,
            of: Some(participant(&session, "42")),
        };
        let source = rig.source(Codec::Opus);
        let recording = rig.recorder.start(&rig.media, source, true, spec).unwrap();
        rig.speak();
        recording.outcome().opened().await.unwrap();
    }
    drop(session);
    rig.recorder.finished().await;
}

fn with_command(words: &[&str], limit: u64) -> Rig {
    Rig::with(|config| {
        config.on_complete = words.iter().map(|&word| word.to_owned()).collect();
        config.on_complete_timeout = limit;
    })
}

#[tokio::test]
async fn it_gets_the_names_and_whose_file_it_is() {
    let script = r#"printf '%s\n' "$1" "$2" "$PORTUNUS_FILE" "$PORTUNUS_MANIFEST" "$PORTUNUS_PLUGIN" "$PORTUNUS_ROOM" "$PORTUNUS_PARTICIPANT" > "$1.told""#;
    let rig = with_command(&["sh", "-c", script, "sh", "{file}", "in {manifest}"], 60);
    // No shell interprets it.
    record(&rig, &["a $(id); b"]).await;
    let told = std::fs::read_to_string(rig.path("a $(id); b.mjr.told")).unwrap();
    let file = rig.path("a $(id); b.mjr");
    let (file, manifest) = (file.to_str().unwrap(), rig.path("demo.json"));
    let manifest = manifest.to_str().unwrap();
    let lines: Vec<_> = told.lines().collect();
    let told_manifest = format!("in {manifest}");
    assert_eq!(
        lines,
        [
            file,
            &told_manifest,
            file,
            manifest,
            "janus.plugin.videoroom",
            "1234",
            "42"
        ]
    );
    let totals = rig.recorder.totals();
    assert_eq!((totals.commands, totals.commands_failed), (1, 0));
    assert_eq!(totals.completed, 1);
}

#[tokio::test]
async fn one_that_fails_or_is_missing_is_counted_and_changes_nothing() {
    for words in [&["false"][..], &["/nowhere/at-all", "{file}"]] {
        let rig = with_command(words, 60);
        record(&rig, &["a", "b"]).await;
        let totals = rig.recorder.totals();
        assert_eq!(
            (totals.commands, totals.commands_failed),
            (2, 2),
            "{words:?}"
        );
        assert_eq!((totals.failed, totals.completed), (0, 2));
        assert!(rig.path("a.mjr").exists());
    }
}

#[tokio::test]
async fn one_that_hangs_is_ended_with_all_that_it_started() {
    let script = r#"sleep 600 & echo $! > "$1.pid"; wait"#;
    let rig = with_command(&["sh", "-c", script, "sh", "{file}"], 1);
    let begun = Instant::now();
    // More than run at a time.
    let names: Vec<_> = (0..6).map(|n| format!("file{n}")).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    record(&rig, &names).await;
    assert!(begun.elapsed() >= Duration::from_secs(2));
    let totals = rig.recorder.totals();
    assert_eq!((totals.commands, totals.commands_failed), (6, 6));
    for name in names {
        let pid = std::fs::read_to_string(rig.path(&format!("{name}.mjr.pid"))).unwrap();
        // Its exit status may not have been collected yet.
        let is_gone = || match std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())) {
            Ok(stat) => stat.contains(") Z"),
            Err(_) => true,
        };
        until("what it started has ended", is_gone).await;
    }
}

#[tokio::test]
async fn it_is_run_for_a_file_that_somebody_else_writes_and_nothing_else_is_recorded() {
    let rig = with_command(&["cp", "{file}", "{file}.copy"], 60);
    let recorder = rig.recorder.clone();
    let create = move || recorder.create_file(None, "mix", "wav");
    let file = rig.recorder.blocking(None, "mix", create).await.unwrap();
    // Like the mix of a room: on a thread of its own.
    let written = std::thread::spawn(move || file.finish(None));
    written.join().unwrap().unwrap();
    let finished = tokio::time::timeout(Duration::from_secs(20), rig.recorder.finished());
    finished.await.expect("the server waits for it at its end");
    assert!(rig.path("mix.wav.copy").exists());
    let totals = rig.recorder.totals();
    assert_eq!((totals.commands, totals.commands_failed), (1, 0));
}

#[tokio::test]
async fn a_file_that_belongs_to_no_recorded_room_says_whose_it_is() {
    let rig = Rig::with(|_| {});
    let mut completed = rig.recorder.completed();
    let recorder = rig.recorder.on_behalf_of(Whose {
        plugin: "janus.plugin.audiobridge",
        room: Some("7".to_owned()),
    });
    // A file that the caller writes, open for longer than its content lasts.
    let of = recorder.clone();
    let create = move || of.create_file(None, "mix", "wav");
    let file = recorder.blocking(None, "mix", create).await.unwrap();
    file.lasts(Duration::from_secs(90));
    file.finish(Some(&file_is_full(1_000))).unwrap();
    let told = completed.recv().await.unwrap();
    assert_eq!(
        (told.plugin, told.room.as_deref(), told.participant),
        (Some("janus.plugin.audiobridge"), Some("7"), None)
    );
    assert_eq!(
        (told.duration, told.end, told.manifest),
        (Duration::from_secs(90), FileEnd::Limit, None)
    );
    // One of a source, and one of a session, which has an owner.
    let session = rig.session("demo");
    for (name, of) in [("a", None), ("b", Some(participant(&session, "42")))] {
        let is_of_room = of.is_some();
        let spec = RecordingSpec {
            dir: None,
            name: name.to_owned(),
            media: RecordedMedia::codec(CodecName::Opus),
            format: Format::Mjr,
            of,
        };
        let source = rig.source(Codec::Opus);
        let recording = recorder.start(&rig.media, source, true, spec).unwrap();
        rig.speak();
        recording.outcome().opened().await.unwrap();
        drop(recording);
        let told = completed.recv().await.unwrap();
        let is_ours = told.plugin == Some("janus.plugin.audiobridge");
        assert_ne!(is_ours, is_of_room, "{told:?}");
        assert_eq!(told.participant.is_some(), is_of_room);
    }
}

fn file_is_full(limit: u64) -> RecordError {
    let name = "mix".to_owned();
    RecordError::Full { name, limit }
}
