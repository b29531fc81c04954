//! The duration of a recording, from its end, because the header does not have it.

use std::time::Duration;

use crate::FileError;
use crate::demux::Input;

/// The bytes of the end that are searched: two frames of the greatest length.
const TAIL: u64 = 2 * (u16::MAX as u64 + 10);

/// The start of a frame, before its time (4 bytes) and its length (2 bytes).
const MAGIC: &[u8; 4] = b"MEET";
const HEADER: usize = 10;

/// The limit of positions that are tried for the first frame.
const TRIES: usize = 64;

/// Returns the arrival of the file's last frame. The first one is at byte `start`. It moves the
/// input.
pub(super) fn last_frame(input: &mut Input, start: u64) -> Result<Option<Duration>, FileError> {
    let from = start.max(input.len().saturating_sub(TAIL));
    if from > input.len() {
        return Ok(None);
    }
    input.seek(from)?;
    let len = input.len().saturating_sub(from);
    let mut tail = Vec::new();
    input.read_into(&mut tail, len, TAIL, "the end of the recording")?;
    Ok(last_time(&tail))
}

/// Returns the time of the last frame in a row of frames that reaches the end, or is torn there.
fn last_time(tail: &[u8]) -> Option<Duration> {
    let starts = (0..tail.len()).filter(|at| tail.get(*at..).is_some_and(begins_frame));
    starts
        .take(TRIES)
        .find_map(|start| follow(tail.get(start..)?))
}

fn begins_frame(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
}

fn follow(mut frames: &[u8]) -> Option<Duration> {
    let mut last = None;
    while let Some(&[m, e, t, c, ms0, ms1, ms2, ms3, len0, len1]) = frames.first_chunk::<HEADER>() {
        if [m, e, t, c] != *MAGIC {
            return None;
        }
        let len = usize::from(u16::from_be_bytes([len0, len1]));
        let Some(rest) = frames.get(HEADER + len..) else {
            return last;
        };
        let millis = u32::from_be_bytes([ms0, ms1, ms2, ms3]);
        last = Some(Duration::from_millis(millis.into()));
        frames = rest;
    }
    last
}

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing, reason = "a test fails by a panic")]

    use super::*;

    fn frame(millis: u32, payload: &[u8]) -> Vec<u8> {
        let mut frame = MAGIC.to_vec();
        frame.extend_from_slice(&millis.to_be_bytes());
        frame.extend_from_slice(&(payload.len() as u16).to_be_bytes());
        frame.extend_from_slice(payload);
        frame
    }

    #[test]
    fn the_last_whole_frame_counts() {
        let mut tail = b"half a payload with MEET in it".to_vec();
        tail.extend(frame(1_000, b"one"));
        tail.extend(frame(1_020, b"MEET in a payload, which is not a frame"));
        assert_eq!(last_time(&tail), Some(Duration::from_millis(1_020)));
        tail.extend(&frame(1_040, b"cut off")[..12]);
        assert_eq!(last_time(&tail), Some(Duration::from_millis(1_020)));
        assert_eq!(last_time(b"nothing of the kind"), None);
        assert_eq!(last_time(b""), None);
    }
}
