//! Conversion of recordings to a container: one file, or several if it cannot go on.

use std::time::Duration;

use super::frames::codec_of;
use super::{ConvertError, Converted, Recordings, Sink, assemble};
use crate::assembly::Step;
use crate::container::{Container, ContainerWriter, Edits, FileInfo, TrackSetup, writer};
use crate::mjr::UnixMicros;

/// The bytes that are written at once.
const PIECE: usize = 256 << 10;

/// Writes audio and video of `recordings` to `sink`. `progress` gets the done part, 0 to 1. Data is
/// left out.
pub fn to_container(
    recordings: &mut Recordings,
    container: Container,
    sink: &mut dyn Sink,
    progress: &mut dyn FnMut(f32),
) -> Result<Converted, ConvertError> {
    for codec in recordings.infos().filter_map(codec_of) {
        if !container.takes(codec) {
            return Err(ConvertError::Codec { container, codec });
        }
    }
    let mut part = Parts {
        container,
        tracks: recordings.infos().filter_map(codec_of).count(),
        title: recordings.infos().find_map(|info| info.description.clone()),
        epoch: recordings.started(),
        setups: Vec::new(),
        writer: None,
        edits: Edits::default(),
        sink,
        converted: Converted::default(),
        end: Duration::ZERO,
    };
    let assembled = assemble(
        recordings,
        Some(container),
        progress,
        &mut |started, step| part.step(started, step),
    )?;
    part.finish()?;
    if part.converted.frames == 0 {
        return Err(ConvertError::Nothing("frame that could be decoded"));
    }
    Ok(Converted {
        lost: assembled.lost,
        gaps: assembled.gaps,
        ..part.converted
    })
}

/// The file that is being written, and the state for the next one.
struct Parts<'a> {
    container: Container,
    tracks: usize,
    title: Option<String>,
    epoch: UnixMicros,
    /// The setups of the tracks, until the file starts.
    setups: Vec<(usize, TrackSetup)>,
    writer: Option<Box<dyn ContainerWriter>>,
    edits: Edits,
    sink: &'a mut dyn Sink,
    converted: Converted,
    /// The end of the file so far.
    end: Duration,
}

impl Parts<'_> {
    fn step(&mut self, started: Duration, step: Step<'_>) -> Result<(), ConvertError> {
        match step {
            Step::Setup { track, setup } => match &mut self.writer {
                Some(writer) => writer.set_track(track, setup, &mut self.edits)?,
                None => self.setups.push((track, setup)),
            },
            Step::Frame(frame) => {
                if self.writer.is_none() {
                    self.begin(started)?;
                }
                let Some(writer) = &mut self.writer else {
                    return Ok(());
                };
                writer.frame(&frame, &mut self.edits)?;
                writer.flush(&mut self.edits);
                self.converted.frames += 1;
                self.end = self.end.max(frame.at.saturating_add(frame.duration));
                if self.edits.append.len() > PIECE {
                    self.sink.apply(&mut self.edits)?;
                }
            }
            Step::NewPart { .. } => self.finish()?,
            Step::WantKeyframe { .. } | Step::Note { .. } => {}
        }
        Ok(())
    }

    fn begin(&mut self, started: Duration) -> Result<(), ConvertError> {
        let since = u64::try_from(started.as_micros()).unwrap_or(0);
        let started = UnixMicros(self.epoch.0.saturating_add(since));
        let info = FileInfo {
            title: self.title.clone(),
            started_us: started.0,
            tracks: self.tracks,
        };
        let mut writer = writer(self.container, info);
        self.converted.parts += 1;
        self.sink.begin(self.converted.parts, started)?;
        for (track, setup) in self.setups.drain(..) {
            writer.set_track(track, setup, &mut self.edits)?;
        }
        self.writer = Some(writer);
        Ok(())
    }

    fn finish(&mut self) -> Result<(), ConvertError> {
        if let Some(writer) = self.writer.take() {
            writer.finish(&mut self.edits);
            self.sink.apply(&mut self.edits)?;
        }
        self.converted.duration = self.converted.duration.saturating_add(self.end);
        self.end = Duration::ZERO;
        Ok(())
    }
}
