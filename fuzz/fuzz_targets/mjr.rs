#![no_main]
//! Recordings: the first byte is the size of the pieces in which they arrive. A recording that is
//! read and written again stays the same.

use libfuzzer_sys::fuzz_target;
use portunus_files::mjr::{FrameReader, FrameWriter, Info, UnixMicros};

type Frame = (u128, Option<UnixMicros>, Vec<u8>);

/// Reads until more bytes would be needed or an error occurs.
fn read(bytes: &[u8], piece: usize) -> (Option<Info>, Vec<Frame>) {
    let mut reader = FrameReader::new();
    let mut frames = Vec::new();
    for piece in bytes.chunks(piece.max(1)) {
        reader.push(piece);
        loop {
            match reader.next() {
                Ok(Some(frame)) => {
                    frames.push((frame.at.as_millis(), frame.clock, frame.bytes.to_vec()));
                }
                Ok(None) => break,
                Err(_) => return (reader.info().cloned(), frames),
            }
        }
    }
    (reader.info().cloned(), frames)
}

fuzz_target!(|data: &[u8]| {
    let Some((piece, bytes)) = data.split_first() else {
        return;
    };
    let (info, frames) = read(bytes, usize::from(*piece));
    let Some(info) = info else {
        return assert!(frames.is_empty());
    };
    let mut written = Vec::new();
    let mut writer = FrameWriter::new(info.clone(), &mut written);
    for (at, clock, bytes) in &frames {
        let put = match clock {
            Some(clock) => writer.message(*clock, bytes, &mut written),
            None => writer.packet(UnixMicros((at * 1_000) as u64), bytes, &mut written),
        };
        assert!(put.is_ok());
    }
    let (info_again, frames_again) = read(&written, usize::MAX);
    assert_eq!(frames_again.len(), frames.len());
    for (frame, again) in frames.iter().zip(&frames_again) {
        assert_eq!((frame.1, &frame.2), (again.1, &again.2));
    }
    assert_eq!(
        info_again.map(|it| it.medium),
        (!frames.is_empty()).then_some(info.medium)
    );
});
