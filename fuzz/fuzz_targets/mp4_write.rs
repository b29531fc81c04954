#![no_main]
//! MP4: each frame is a byte of track and keyframe, the time since the last one in ms (u16), a
//! length (u8) and its bytes. The written file is repaired, truncated at any place, and repaired as
//! a whole.

use std::io::Cursor;
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use portunus_files::bitstream::{Picture, Setup};
use portunus_files::container::{
    Container, Edits, FileInfo, FrameOut, Rotation, TrackSetup, repair, writer,
};

fuzz_target!(|data: &[u8]| {
    let [tear, rest @ ..] = data else { return };
    let info = FileInfo {
        title: None,
        started_us: 1,
        tracks: 2,
    };
    let mut writer = writer(Container::Mp4, info);
    let (mut edits, mut file) = (Edits::default(), Vec::new());
    let vp9 = Setup::Vp9 {
        profile: 0,
        bit_depth: 8,
        subsampling: 1,
        full_range: false,
    };
    for (track, setup) in [vp9, Setup::Opus { channels: 2 }].into_iter().enumerate() {
        let setup = TrackSetup {
            setup,
            picture: Some(Picture {
                width: 64,
                height: 48,
            }),
            rotation: Rotation::R0,
            name: None,
        };
        writer.set_track(track, setup, &mut edits).expect("a track");
    }
    apply(&mut edits, &mut file);
    let (mut at, mut frames, mut rest) = (Duration::ZERO, 0, rest);
    while let [flags, high, low, len, behind @ ..] = rest {
        let (data, behind) = behind.split_at(usize::from(*len).min(behind.len()));
        rest = behind;
        at += Duration::from_millis(u16::from_be_bytes([*high, *low]).into());
        // Up to a second earlier than the last one.
        let back = Duration::from_millis(u64::from(flags >> 3) * 30);
        let frame = FrameOut {
            track: usize::from(flags & 1),
            at: at.saturating_sub(back),
            duration: Duration::ZERO,
            keyframe: flags & 2 != 0,
            data,
        };
        writer.frame(&frame, &mut edits).expect("a frame");
        if flags & 4 != 0 {
            writer.flush(&mut edits);
        }
        frames += u64::from(!data.is_empty());
        apply(&mut edits, &mut file);
        assert_eq!(writer.len(), file.len() as u64);
    }
    let torn = file.len() * usize::from(*tear) / 255;
    let torn = file.get(..torn).unwrap_or_default().to_vec();
    if let Ok(repaired) = repair(Cursor::new(torn), &mut Vec::new()) {
        assert!(repaired.frames <= frames);
    }
    writer.finish(&mut edits);
    apply(&mut edits, &mut file);
    if frames > 0 {
        let repaired = repair(Cursor::new(file), &mut Vec::new()).expect("a file");
        assert!(repaired.was_whole);
        assert_eq!(repaired.frames, frames);
    }
});

fn apply(edits: &mut Edits, file: &mut Vec<u8>) {
    file.append(&mut edits.append);
    for (at, bytes) in edits.patches.drain(..) {
        let place = file.get_mut(at as usize..at as usize + bytes.len());
        place
            .expect("a patch of what is there")
            .copy_from_slice(&bytes);
    }
}
