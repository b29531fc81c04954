//! Disks that stall hold up their own recordings, lose nothing for a while, and disturb nobody else.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::rig::{Rig, rtp, until};
use portunus_files::mjr::FrameReader;
use portunus_record::{Format, RecordError, RecordedMedia, Recording, RecordingSpec};
use portunus_sdp::CodecName;
use portunus_sdp::negotiated::Codec;

fn start(rig: &Rig, name: &str) -> Recording {
    let spec = RecordingSpec {
        dir: None,
        name: name.to_owned(),
        media: RecordedMedia::codec(CodecName::Opus),
        format: Format::Mjr,
        of: None,
    };
    let source = rig.source(Codec::Opus);
    rig.recorder.start(&rig.media, source, true, spec).unwrap()
}

fn packets(path: &Path) -> usize {
    let mut reader = FrameReader::new();
    reader.push(&std::fs::read(path).unwrap());
    std::iter::from_fn(|| reader.next().unwrap().map(drop)).count()
}

#[tokio::test]
async fn a_disk_that_stalls_loses_nothing_and_holds_up_no_other_disk() {
    let rig = Rig::new();
    let disk = rig.disk("slow");
    let slow = start(&rig, "slow/a");
    let slow_tap = rig.tap();
    let fast = start(&rig, "fast/b");
    let fast_tap = rig.tap();
    for recording in [&slow, &fast] {
        recording.outcome().opened().await.unwrap();
    }
    disk.stall();
    let begun = Instant::now();
    let mut sequence = 0_u16;
    // A second of it, in less time: 40 packets of 20 ms for each 50 ms.
    while begun.elapsed() < Duration::from_secs(1) {
        for _ in 0..40 {
            sequence += 1;
            let packet = rtp(sequence, u32::from(sequence) * 960, &[7; 100]);
            for tap in [&slow_tap, &fast_tap] {
                assert!(tap.pretend_packet(&packet, Codec::Opus, Instant::now()));
            }
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let sent = usize::from(sequence);
    until("the other disk is written to", || {
        packets(&rig.path("fast/b.mjr")) == sent
    })
    .await;
    assert_eq!(packets(&rig.path("slow/a.mjr")), 0);
    until("the disk is behind", || {
        rig.recorder.totals().disk_lag > Duration::from_millis(400)
    })
    .await;
    assert!(rig.recorder.totals().waiting_bytes > 0);
    // One that begins meanwhile waits for its disk, and another one does not.
    let later = start(&rig, "fast/c");
    later.outcome().opened().await.unwrap();
    disk.go_on();
    for (recording, tap) in [(slow, slow_tap), (fast, fast_tap)] {
        let outcome = recording.outcome();
        drop((recording, tap));
        outcome.ended().await.unwrap();
    }
    drop(later);
    rig.recorder.finished().await;
    assert_eq!(packets(&rig.path("slow/a.mjr")), sent);
    assert_eq!(rig.recorder.totals().dropped, 0);
    assert_eq!(rig.recorder.totals().waiting_bytes, 0);
}

#[tokio::test]
async fn what_waits_for_disks_is_bounded_over_all_recordings() {
    let rig = Rig::with(|config| config.max_waiting_mb = 1);
    let disk = rig.disk("slow");
    let recordings: Vec<_> = (0..4).map(|n| start(&rig, &format!("slow/{n}"))).collect();
    for recording in &recordings {
        recording.outcome().opened().await.unwrap();
    }
    disk.stall();
    let taps = rig.taps();
    for sequence in 0..1_000 {
        for tap in &taps {
            let packet = rtp(sequence, u32::from(sequence) * 960, &[7; 1_000]);
            tap.pretend_packet(&packet, Codec::Opus, Instant::now());
        }
    }
    assert!(rig.recorder.totals().waiting_bytes <= 1 << 20);
    disk.go_on();
    drop((recordings, taps));
    rig.recorder.finished().await;
    let totals = rig.recorder.totals();
    assert_eq!(totals.frames + totals.dropped, 4_000);
    assert!(totals.dropped > 1_000, "{totals:?}");
    assert_eq!(totals.waiting_bytes, 0);
}

#[tokio::test]
async fn a_disk_that_hangs_while_files_are_made_holds_nothing_else() {
    let rig = Rig::new();
    let disk = rig.disk("slow");
    disk.stall();
    // More than there are threads for what blocks.
    let names = (0..600).map(|n| format!("slow/{n}"));
    let slow: Vec<_> = names.map(|name| start(&rig, &name)).collect();
    let folder = tokio::spawn({
        let recorder = rig.recorder.clone();
        async move { recorder.check_folder(Some("slow/new"), "a").await }
    });
    let fast = start(&rig, "fast/b");
    fast.outcome().opened().await.unwrap();
    tokio::task::spawn_blocking(|| ()).await.unwrap();
    assert_eq!(rig.recorder.totals().open, 601);
    // Whoever waits is told in the end.
    tokio::time::pause();
    for recording in &slow {
        let error = recording.outcome().opened().await.unwrap_err();
        assert!(matches!(&*error, RecordError::Stalled(_)), "{error}");
    }
    let error = folder.await.unwrap().unwrap_err();
    assert!(matches!(error, RecordError::Stalled(_)), "{error}");
    disk.go_on();
    drop((slow, fast));
    rig.recorder.finished().await;
    let left = std::fs::read_dir(rig.path("slow")).unwrap().count();
    assert_eq!(left, 0);
    let totals = rig.recorder.totals();
    assert_eq!((totals.failed, totals.open), (600, 0));
}
