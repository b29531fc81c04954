//! What can be played packet by packet.

use std::fmt::Debug;
use std::time::Duration;

use crate::{FileError, MediaFile, Sent, TimedPacket};

/// What can be played packet by packet: a file, or several on one time line. All of it is blocking.
pub trait Play: Debug + Send {
    /// The units of RTP timestamps a second, of each track; none: its packets are messages, not RTP.
    fn clock_rates(&self) -> Vec<Option<u32>>;

    /// How long it lasts, if that is known.
    fn duration(&self) -> Option<Duration>;

    /// Whether it begins again at its end.
    fn is_looping(&self) -> bool;

    /// The next packet; nothing at the end. After an error nothing comes until it is sought in.
    fn next(&mut self) -> Option<Result<TimedPacket<'_>, FileError>>;

    /// Goes on at another place, where decoding can begin. Times and timestamps of packets go on rising.
    fn seek(&mut self, to: Duration) -> Result<(), FileError>;

    /// The same for who has read ahead of what it sends, see [`MediaFile::seek_behind`].
    fn seek_behind(&mut self, sent: &Sent, to: Duration) -> Result<(), FileError>;

    /// What is sent so far by who has sent nothing yet, and begins where this is.
    fn nothing_sent(&self) -> Sent;

    /// How much was played since the start, the last loop or the last seek.
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
