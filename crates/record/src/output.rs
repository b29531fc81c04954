//! The file of a recording of one source. All functions block.

use std::time::{Duration, Instant};

use portunus_media::Tapped;

use crate::clock::Clock;
use crate::content::{Content, Put};
use crate::place::Places;
use crate::shared::Claim;
use crate::target::Target;
use crate::write_delay::WriteDelay;
use crate::{RecordError, RecordingSpec};

/// A file that is being written, with its content.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) target: Target,
    /// `None` once it is finished.
    content: Option<Content>,
    buffer: Vec<u8>,
    /// The waiting time of the buffer.
    held: WriteDelay,
    clock: Clock,
    written: Written,
}

/// The buffer is written when it has so many bytes.
const MANY: usize = 1 << 20;
/// The time for which bytes wait to be written by one call: a recording writes once a second. After
/// a crash as much is missing at its end.
const HOLD: Duration = Duration::from_millis(700);

/// The counters of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Written {
    pub(crate) frames: u64,
    /// Frames that do not fit the format, or came too late for it.
    pub(crate) left_out: u64,
    /// The arrival of the first and of the last frame.
    came: Option<(Instant, Instant)>,
}

impl Written {
    /// Returns the time from the first frame to the last.
    pub(crate) fn duration(&self) -> Duration {
        let passed = |(first, last): (Instant, Instant)| last.saturating_duration_since(first);
        self.came.map(passed).unwrap_or_default()
    }
}

impl Output {
    /// Makes the file and its folder.
    pub(crate) fn create(
        claim: Claim,
        places: &Places,
        spec: &RecordingSpec,
    ) -> Result<Self, RecordError> {
        let mut buffer = Vec::new();
        let content = Content::begin(spec, &mut buffer)?;
        let held = WriteDelay::new(match content {
            Content::Mjr(_) => HOLD,
            // A page has a second already.
            Content::OggOpus(_) => Duration::ZERO,
        });
        let mut target = Target::create(claim, places, &spec.name)?;
        if let Err(error) = target.append(&buffer) {
            target.discard();
            return Err(error);
        }
        buffer.clear();
        Ok(Self {
            target,
            content: Some(content),
            buffer,
            held,
            clock: Clock::now(),
            written: Written::default(),
        })
    }

    /// Takes waiting packets, and writes them if it is time. Returns true if a packet arrived at
    /// `until` or later; it is not taken.
    pub(crate) fn write(
        &mut self,
        batch: &[Tapped],
        until: Option<Instant>,
        now: Instant,
    ) -> Result<bool, RecordError> {
        for tapped in batch {
            if until.is_some_and(|until| tapped.arrival() >= until) {
                self.flush()?;
                return Ok(true);
            }
            let put = self.put(|content, buffer| content.put(tapped, buffer))?;
            if self.buffer.len() > MANY {
                self.flush()?;
            }
            if put.written > 0 {
                let arrival = tapped.arrival();
                let came = self.written.came.get_or_insert((arrival, arrival));
                came.1 = came.1.max(arrival);
            }
        }
        if self.held.is_due(self.buffer.len(), now) {
            self.flush()?;
        }
        Ok(false)
    }

    /// Returns the counters so far.
    pub(crate) fn written(&self) -> Written {
        self.written
    }

    /// Returns the arrival of the first frame, in µs since 1970.
    pub(crate) fn started_us(&self) -> Option<u64> {
        self.written.came.map(|(first, _)| self.clock.at(first).0)
    }

    /// Writes the end of a complete file.
    pub(crate) fn finish(&mut self) -> Result<(), RecordError> {
        self.put(Content::end)?;
        if let Some(content) = self.content.take() {
            content.finish(&mut self.buffer);
        }
        self.flush()
    }

    /// Has `put` append a frame to the buffer. If the file would become too long, the frame is
    /// removed again, and the recording ends.
    fn put(
        &mut self,
        put: impl FnOnce(&mut Content, &mut Vec<u8>) -> Put,
    ) -> Result<Put, RecordError> {
        let Some(content) = &mut self.content else {
            return Ok(Put::default());
        };
        let before = self.buffer.len();
        let put = put(content, &mut self.buffer);
        self.written.left_out += put.left_out;
        if self.target.is_full_with(self.buffer.len() as u64) {
            self.buffer.truncate(before);
            self.flush()?;
            return Err(self.target.full());
        }
        self.written.frames += put.written;
        Ok(put)
    }

    /// Writes the buffer.
    pub(crate) fn flush(&mut self) -> Result<(), RecordError> {
        let written = self.target.append(&self.buffer);
        self.buffer.clear();
        self.held.clear();
        written
    }
}
