//! Files of recordings that are complete, as those hear of them who watch the server.

use portunus_core::events::{EventBus, EventFilter};
use portunus_core::publish_recordings;
use portunus_core::record::{
    Format, Participant, RecordedMedia, Recorder, RecorderConfig, RecordingSpec, SessionSpec, Whose,
};
use portunus_core::sdp::{CodecName, Kind};
use portunus_media::{IngestFeed, IngestOptions, MediaPlane, packet_feed};
use portunus_sdp::negotiated::Codec;
use serde_json::json;

#[tokio::test]
async fn whoever_watches_is_told_of_complete_files() {
    let folder = tempfile::tempdir().unwrap();
    let recorder = Recorder::new(RecorderConfig {
        dir: Some(folder.path().to_owned()),
        keep_free_mb: 0,
        ..RecorderConfig::default()
    });
    let bus = EventBus::default();
    let events = bus.subscribe("test", EventFilter::ALL, 10);
    let telling = tokio::spawn(publish_recordings(recorder.clone(), bus));
    let (media, _sender, _events) = MediaPlane::detached();
    let feed = IngestFeed::Packets(packet_feed(1).1);
    let source = media.add_ingest(IngestOptions::rtp(Codec::Opus, 48_000, feed));
    // A file that nothing comes into is none.
    let speak = || {
        let requested = media.requested();
        let tap = requested.outlets.last().unwrap();
        assert!(tap.pretend_first(Kind::Audio));
    };
    let session = recorder.session(SessionSpec {
        plugin: "janus.plugin.videoroom",
        dir: None,
        name: "room".to_owned(),
        room: Some("1234".to_owned()),
        description: None,
    });
    // A recording without an owner has no event.
    for of in [None, Some((session, "42".to_owned()))] {
        let spec = RecordingSpec {
            dir: None,
            name: if of.is_some() { "ann" } else { "other" }.to_owned(),
            media: RecordedMedia::codec(CodecName::Opus),
            format: Format::Mjr,
            of: of.map(|(session, id)| Participant {
                session,
                id,
                display: None,
            }),
        };
        let recording = recorder.start(&media, source.id, true, spec).unwrap();
        speak();
        let outcome = recording.outcome();
        outcome.clone().opened().await.unwrap();
        drop(recording);
        outcome.ended().await.unwrap();
    }
    let event = events.recv().await.unwrap();
    let folder = folder.path().canonicalize().unwrap();
    let path = |name: &str| folder.join(name).to_string_lossy().into_owned();
    let bytes = |name: &str| folder.join(name).metadata().unwrap().len();
    let told = json!({
        "plugin": "janus.plugin.videoroom",
        "data": {
            "event": "recorded", "file": path("ann.mjr"), "manifest": path("room.json"),
            "room": "1234", "id": "42", "duration_ms": 0, "bytes": bytes("ann.mjr"), "end": "stopped",
        },
    });
    assert_eq!(event.body(), told);
    // A recording outside of rooms has an event if its owner is known.
    let recorder = recorder.on_behalf_of(Whose {
        plugin: "janus.plugin.voicemail",
        room: None,
    });
    let spec = RecordingSpec {
        dir: None,
        name: "mail".to_owned(),
        media: RecordedMedia::codec(CodecName::Opus),
        format: Format::Mjr,
        of: None,
    };
    let recording = recorder.start(&media, source.id, true, spec).unwrap();
    speak();
    let outcome = recording.outcome();
    outcome.clone().opened().await.unwrap();
    drop(recording);
    outcome.ended().await.unwrap();
    let told = json!({
        "plugin": "janus.plugin.voicemail",
        "data": {
            "event": "recorded", "file": path("mail.mjr"), "duration_ms": 0, "bytes": bytes("mail.mjr"), "end": "stopped",
        },
    });
    assert_eq!(events.recv().await.unwrap().body(), told);
    telling.abort();
}
