//! Fragments: frames in a `moof` and an `mdat`.

use mp4_atom::{Encode, Mfhd, Moof, Tfdt, Tfhd, Traf, Trun, TrunEntry};

use super::header::track_id;

/// The flags of a sample that depends on no other, and of one that is not a keyframe (ISO/IEC
/// 14496-12 section 8.8.3.1).
pub(super) const KEYFRAME: u32 = 0x0200_0000;
pub(super) const ANY_SAMPLE: u32 = 0x0101_0000;

/// The length of the head of an `mdat`.
const HEAD_LEN: usize = 8;

/// A frame that waits to be written.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sample {
    /// Its presentation time, in units of its track.
    pub at: u64,
    /// Its duration, as far as it is known.
    pub duration: u32,
    pub size: u32,
    pub keyframe: bool,
}

/// The waiting frames of a track.
#[derive(Debug, Default)]
pub(super) struct Queue {
    pub samples: Vec<Sample>,
    /// Their bytes, one frame after the other.
    pub data: Vec<u8>,
}

impl Queue {
    /// Removes the first `count` frames.
    fn split_off(&mut self, count: usize) -> Queue {
        let count = count.min(self.samples.len());
        let later = self.samples.split_off(count);
        let samples = std::mem::replace(&mut self.samples, later);
        let len: usize = samples.iter().map(|sample| sample.size as usize).sum();
        let later = self.data.split_off(len.min(self.data.len()));
        let data = std::mem::replace(&mut self.data, later);
        Queue { samples, data }
    }
}

/// The frames of a track in a fragment.
#[derive(Debug)]
pub(super) struct Run {
    track: usize,
    is_video: bool,
    frames: Queue,
}

impl Run {
    /// Takes the first `count` waiting frames, or returns `None` if there are none. Their durations
    /// reach to the next frame.
    pub(super) fn take(
        track: usize,
        is_video: bool,
        queue: &mut Queue,
        count: usize,
    ) -> Option<Run> {
        let mut frames = queue.split_off(count);
        let following = queue.samples.first().map(|sample| sample.at);
        let nexts: Vec<_> = frames
            .samples
            .iter()
            .skip(1)
            .map(|sample| sample.at)
            .collect();
        let nexts = nexts.into_iter().map(Some).chain([following]);
        for (sample, next) in frames.samples.iter_mut().zip(nexts) {
            if let Some(next) = next {
                sample.duration = u32::try_from(next.saturating_sub(sample.at)).unwrap_or(u32::MAX);
            }
        }
        (!frames.samples.is_empty()).then_some(Run {
            track,
            is_video,
            frames,
        })
    }

    /// Returns the end, in units of the track.
    pub(super) fn end(&self) -> u64 {
        let last = self.frames.samples.last();
        last.map_or(0, |last| last.at.saturating_add(u64::from(last.duration)))
    }

    pub(super) fn track(&self) -> usize {
        self.track
    }

    /// Returns the first keyframe: its number from 1, and its time.
    pub(super) fn first_keyframe(&self) -> Option<(u32, u64)> {
        let mut samples = self.frames.samples.iter().zip(1..);
        let (sample, number) = samples.find(|(sample, _)| sample.keyframe || !self.is_video)?;
        Some((number, sample.at))
    }

    fn traf(&self, offset: i32) -> Traf {
        let entry = |sample: &Sample| TrunEntry {
            duration: Some(sample.duration),
            size: Some(sample.size),
            flags: self.is_video.then_some(if sample.keyframe {
                KEYFRAME
            } else {
                ANY_SAMPLE
            }),
            cts: None,
        };
        let entries: Vec<_> = self.frames.samples.iter().map(entry).collect();
        Traf {
            tfhd: Tfhd {
                track_id: track_id(self.track),
                default_base_is_moof: true,
                ..Tfhd::default()
            },
            tfdt: Some(Tfdt {
                base_media_decode_time: self.frames.samples.first().map_or(0, |first| first.at),
            }),
            trun: vec![Trun {
                data_offset: Some(offset),
                samples: entries.into(),
            }],
            ..Traf::default()
        }
    }
}

/// Appends a fragment of the runs. Returns `None` without appending anything if that is not
/// possible.
pub(super) fn put(sequence: u32, runs: &[Run], out: &mut Vec<u8>) -> Option<()> {
    let moof = |head: usize| {
        let mut offset = head + HEAD_LEN;
        let mut moof = Moof {
            mfhd: Mfhd {
                sequence_number: sequence,
            },
            traf: Vec::with_capacity(runs.len()),
        };
        for run in runs {
            moof.traf.push(run.traf(i32::try_from(offset).ok()?));
            offset = offset.checked_add(run.frames.data.len())?;
        }
        Some((moof, offset))
    };
    let begin = out.len();
    // The lengths of boxes do not depend on offsets.
    moof(0)?.0.encode(out).ok()?;
    let head = out.len() - begin;
    out.truncate(begin);
    let (moof, end) = moof(head)?;
    moof.encode(out).ok()?;
    out.extend(u32::try_from(end - head).ok()?.to_be_bytes());
    out.extend(b"mdat");
    for run in runs {
        out.extend_from_slice(&run.frames.data);
    }
    Some(())
}
