//! Sources of packets for players.

use std::fmt::Debug;
use std::time::Duration;

use crate::{FileError, MediaFile, Sent, TimedPacket};

/// A source that is played packet by packet: a file, or several on one timeline. All functions
/// block.
pub trait Play: Debug + Send {
    /// Returns the RTP clock rate of each track, or `None` for a track of messages.
    fn clock_rates(&self) -> Vec<Option<u32>>;

    /// Returns the duration, if it is known.
    fn duration(&self) -> Option<Duration>;

    /// Whether it starts again at its end.
    fn is_looping(&self) -> bool;

    /// Returns the next packet, or `None` at the end. After an error it returns `None` until the
    /// next seek.
    fn next(&mut self) -> Option<Result<TimedPacket<'_>, FileError>>;

    /// Seeks to a position at or before `to` where decoding can start. Times and timestamps keep
    /// rising.
    fn seek(&mut self, to: Duration) -> Result<(), FileError>;

    /// Seeks for a caller that reads ahead, see [`MediaFile::seek_behind`].
    fn seek_behind(&mut self, sent: &Sent, to: Duration) -> Result<(), FileError>;

    /// Returns the initial value for a caller that reads ahead.
    fn nothing_sent(&self) -> Sent;

    /// Returns the time played since the start, the last loop or the last seek.
    fn played(&self) -> Duration;
}

impl Play for MediaFile {
    fn clock_rates(&self) -> Vec<Option<u32>> {
        let rates = self.tracks().iter().map(|track| track.codec.clock_rate());
        rates.map(Some).collect()
    }

    fn duration(&self) -> Option<Duration> {
        MediaFile::duration(self)
    }

    fn is_looping(&self) -> bool {
        MediaFile::is_looping(self)
    }

    fn next(&mut self) -> Option<Result<TimedPacket<'_>, FileError>> {
        MediaFile::next(self)
    }

    fn seek(&mut self, to: Duration) -> Result<(), FileError> {
        MediaFile::seek(self, to)
    }

    fn seek_behind(&mut self, sent: &Sent, to: Duration) -> Result<(), FileError> {
        MediaFile::seek_behind(self, sent, to)
    }

    fn nothing_sent(&self) -> Sent {
        MediaFile::nothing_sent(self)
    }

    fn played(&self) -> Duration {
        MediaFile::played(self)
    }
}
