//! Disks that stall hold up their own recordings, lose nothing for a while, and disturb no others.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::rig::{Rig, participant, rtp, until};
use portunus_files::mjr::FrameReader;
use portunus_files::summary::{Depth, Summary};
use portunus_record::{
    FileEnd, Format, JointSpec, RecordError, RecordedMedia, Recording, RecordingSpec, TrackSpec,
};
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
    // A second of audio in less time: 40 packets of 20 ms every 50 ms.
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
    // A new recording waits for its disk if that stalls.
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
    // More than there are blocking threads.
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
    // All of them fail in the end.
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

/// A mounted disk of so many KiB, until it is dropped. `None` if this process may not mount one.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(at: PathBuf, kib: u32) -> Option<Self> {
        std::fs::create_dir(&at).unwrap();
        let size = format!("size={kib}k");
        let mount = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &size, "tmpfs"])
            .arg(&at)
            .output();
        match mount.is_ok_and(|mount| mount.status.success()) {
            true => Some(Self(at)),
            false => {
                println!("skipped: no disk can be mounted");
                None
            }
        }
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).output();
    }
}

#[tokio::test]
async fn a_full_disk_ends_its_containers_which_play_and_nothing_else() {
    let rig = Rig::with(|config| config.keep_free_mb = 0);
    let Some(_disk) = SmallDisk::mount(rig.path("small"), 256) else {
        return;
    };
    let mut completed = rig.recorder.completed();
    let session = rig.session("demo");
    let formats = [Format::WebM, Format::Mp4];
    let full = formats.map(|format| {
        let spec = JointSpec {
            dir: None,
            name: format!("small/{}", format.extension()),
            format,
            of: Some(participant(&session, "42")),
            tracks: vec![TrackSpec {
                key: "0".to_owned(),
                media: RecordedMedia::codec(CodecName::Opus),
                from: rig.source(Codec::Opus),
                open: true,
            }],
        };
        let recording = rig.recorder.joint(&rig.media, spec).unwrap();
        (recording, rig.tap())
    });
    let other = start(&rig, "other");
    let other_tap = rig.tap();
    for (recording, _) in &full {
        recording.outcome().opened().await.unwrap();
    }
    other.outcome().opened().await.unwrap();
    // 10 s of audio, of which the disk can hold one and a half.
    let begun = Instant::now();
    for sequence in 0..500_u16 {
        let at = begun + Duration::from_millis(20) * sequence.into();
        let packet = rtp(sequence, u32::from(sequence) * 960, &[0xfc; 1_000]);
        for (_, tap) in &full {
            tap.pretend_packet(&packet, Codec::Opus, at);
        }
        assert!(other_tap.pretend_packet(&packet, Codec::Opus, at));
        if sequence % 25 == 0 {
            let frames = rig.recorder.totals().frames;
            let is_full = || full.iter().any(|(recording, _)| recording.is_over());
            until("it is written", || {
                is_full() || rig.recorder.totals().frames > frames
            })
            .await;
        }
    }
    for (recording, _) in &full {
        let error = recording.outcome().ended().await.unwrap_err();
        assert!(matches!(&*error, RecordError::Write { .. }), "{error}");
    }
    until("the other one goes on", || {
        packets(&rig.path("other.mjr")) == 500
    })
    .await;
    assert!(!other.is_over());
    for format in formats {
        let path = rig.path(&format!("small/{}.{0}", format.extension()));
        let summary = Summary::of(&path, Depth::All).unwrap();
        assert!(!summary.complete);
        let duration = summary.duration.unwrap();
        assert!(
            duration > Duration::from_millis(500),
            "{format:?} {duration:?}"
        );
        let told = completed.recv().await.unwrap();
        assert_eq!(told.end, FileEnd::Full);
    }
    drop((full, other, other_tap, session));
    rig.recorder.finished().await;
    let manifest = rig.manifest("demo.json");
    let ends = manifest.participants[0].files.iter();
    let ends: Vec<_> = ends.map(|file| (file.end, file.error.is_some())).collect();
    assert_eq!(ends, [(Some(FileEnd::Full), true); 2]);
    assert_eq!(rig.recorder.totals().failed, 2);
}
