//! Failures, limits, and the clocks of a room.

use portunus_files::manifest::Clock;
use portunus_media::TappedReport;
use portunus_record::{FileEnd, RecordError};

use super::*;
use crate::rig::participant;

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
        // Each starts at another time. Its clock is off by hours, and drifts by 100 ppm.
        let later = Duration::from_millis(700) * index as u32;
        let rate = 1.0 + (index as f64 - 1.0) * 100e-6;
        let ntp = (3_900_000_000 + 5_000 * index as u64) << 32;
        let sender = Sender::new(&rig);
        for count in 0..500_u32 {
            let sent = later + Duration::from_millis(20) * count;
            // 30 to 60 ms of delay.
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
    // The end of a file is the end of its last audio packet: 10 s after its start.
    for (index, name) in names.into_iter().enumerate() {
        let of = manifest.participants.iter().find(|of| of.id == name);
        let file = &of.unwrap().files[0];
        assert!(
            file.tracks.iter().all(|it| it.clock == Clock::Reports),
            "{file:?}"
        );
        // The shortest delay is 30 ms for all.
        let expected = 30.0 + 700.0 * index as f64 + 10_000.0;
        let end = file.offset_ms.unwrap() + file.duration_ms;
        assert!((end - expected).abs() < 20.0, "{end} {expected}");
    }
}
