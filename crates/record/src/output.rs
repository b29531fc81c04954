//! The file of a recording of one source. All of it is blocking.

use std::time::{Duration, Instant};

use portunus_media::Tapped;

use crate::clock::Clock;
use crate::content::{Content, Put};
use crate::held::Held;
use crate::place::Places;
use crate::shared::Claim;
use crate::target::Target;
use crate::{RecordError, RecordingSpec};

/// A file that is being written, and what comes into it.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) target: Target,
    /// None once it is finished.
    content: Option<Content>,
    buffer: Vec<u8>,
    /// Since when there is something in the buffer.
    held: Held,
    clock: Clock,
    written: Written,
}

/// The buffer is written once there are so many bytes in it while packets are taken.
const MANY: usize = 1 << 20;
/// What has come waits so long for more, and is written by one call: a recording is written once a second. After a crash as much is
/// missing at its end.
const HOLD: Duration = Duration::from_millis(700);

/// What was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Written {
    pub(crate) frames: u64,
    /// Frames that the format has no room for, or that came too late for it.
    pub(crate) left_out: u64,
    /// When the first frame came, and the last one.
    came: Option<(Instant, Instant)>,
}

impl Written {
    /// From the first frame to the last.
    pub(crate) fn duration(&self) -> Duration {
        let passed = |(first, last): (Instant, Instant)| last.saturating_duration_since(first);
        self.came.map(passed).unwrap_or_default()
    }
}

impl Output {
    /// Makes the file, and its folder.
    pub(crate) fn create(
        claim: Claim,
        places: &Places,
        spec: &RecordingSpec,
    ) -> Result<Self, RecordError> {
        let mut buffer = Vec::new();
        let content = Content::begin(spec, &mut buffer)?;
        let held = Held::new(match content {
            Content::Mjr(_) => HOLD,
            // A page is of a second already.
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

    /// Takes what there is, and writes it if it is time to. What came at `until` or later is not taken any more, and the answer is true.
    pub(crate) fn write(
        &mut self,
        batch: &[Tapped],
        (until, now): (Option<Instant>, Instant),
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

    /// What was written so far.
    pub(crate) fn written(&self) -> Written {
        self.written
    }

    /// When the first frame came, in µs since 1970.
    pub(crate) fn started_us(&self) -> Option<u64> {
        self.written.came.map(|(first, _)| self.clock.at(first).0)
    }

    /// Puts what a complete file ends with.
    pub(crate) fn finish(&mut self) -> Result<(), RecordError> {
        self.put(Content::end)?;
        if let Some(content) = self.content.take() {
            content.finish(&mut self.buffer);
        }
        self.flush()
    }

    /// Lets `put` append to the buffer. If the file would be too long by that, it is taken back, and the recording ends:
    /// whole frames only.
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

    /// Writes what was taken.
    pub(crate) fn flush(&mut self) -> Result<(), RecordError> {
        let written = self.target.append(&self.buffer);
        self.buffer.clear();
        self.held.clear();
        written
    }
}
