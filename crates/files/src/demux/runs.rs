//! The frames of a fragment of an MP4 (ISO/IEC 14496-12 section 8.8).

use mp4_atom::{Trex, TrunSamples};

use super::boxes::Traf;
use crate::FileError;

/// The longest head of a fragment, in bytes.
pub(crate) const MAX_HEAD: u64 = 4 << 20;
/// The limit of frames in a fragment.
const MAX_FRAMES: usize = 200_000;
/// The flag of a frame that is not a keyframe.
const NOT_SYNC: u32 = 0x0001_0000;

/// A frame in a fragment. Times are in units of its track.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Told {
    /// Its position in the file.
    pub(crate) offset: u64,
    pub(crate) size: u32,
    pub(crate) duration: u32,
    /// The presentation time relative to the decoding time.
    pub(crate) later: i64,
    pub(crate) is_sync: bool,
}

/// Returns the defaults for the frames of a track.
pub(crate) fn defaults_of(all: &[Trex], track: u32) -> Trex {
    let own = all.iter().find(|it| it.track_id == track);
    own.cloned().unwrap_or_default()
}

/// Iterates over the tracks of a fragment.
#[derive(Debug)]
pub(crate) struct Runs {
    /// The start of the fragment.
    begin: u64,
    /// The end of the last track's bytes.
    end: u64,
    frames: usize,
}

impl Runs {
    /// Returns the iterator of a fragment at this position.
    pub(crate) fn new(begin: u64) -> Self {
        Self {
            begin,
            end: begin,
            frames: 0,
        }
    }

    /// Passes the frames of the next track to `take`. Fails if the track is invalid, has too many
    /// frames, or `take` fails.
    pub(crate) fn track(
        &mut self,
        traf: &Traf,
        defaults: &Trex,
        mut take: impl FnMut(Told) -> Result<(), FileError>,
    ) -> Result<(), FileError> {
        let corrupt = || FileError::corrupt("a fragment");
        let head = &traf.head;
        let duration = head.default_sample_duration;
        let duration = duration.unwrap_or(defaults.default_sample_duration);
        let size = head.default_sample_size;
        let size = size.unwrap_or(defaults.default_sample_size);
        let flags = head.default_sample_flags;
        let flags = flags.unwrap_or(defaults.default_sample_flags);
        let relative = match head.default_base_is_moof {
            true => self.begin,
            false => self.end,
        };
        let base = head.base_data_offset.unwrap_or(relative);
        let mut offset = base;
        for run in &traf.runs {
            if matches!(run.samples, TrunSamples::Inherited { .. }) && size == 0 {
                return Err(corrupt());
            }
            self.frames = self.frames.saturating_add(run.samples.len());
            if self.frames > MAX_FRAMES {
                let text = format!("a fragment of more than {MAX_FRAMES} frames");
                return Err(FileError::corrupt(text));
            }
            if let Some(by) = run.data_offset {
                offset = base.checked_add_signed(i64::from(by)).ok_or_else(corrupt)?;
            }
            for entry in &run.samples {
                let size = entry.size.unwrap_or(size);
                take(Told {
                    offset,
                    size,
                    duration: entry.duration.unwrap_or(duration),
                    later: entry.cts.unwrap_or(0),
                    is_sync: entry.flags.unwrap_or(flags) & NOT_SYNC == 0,
                })?;
                offset = offset.checked_add(size.into()).ok_or_else(corrupt)?;
            }
        }
        self.end = offset;
        Ok(())
    }

    /// Returns the end of the last track's bytes.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }
}
