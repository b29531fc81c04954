//! A file that is being played: packets with their times.

use std::io::{Read, Seek};
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use portunus_rtp::header::FIXED_HEADER_LEN;
use portunus_rtp::packetize::Packetizer;
use portunus_rtp::{Fields, Pt, Ssrc, write_header};

use crate::demux::{self, ClockPlace, Demux, Frame, Input, Nanos};
use crate::schedule::{Schedule, rtp_ticks};
use crate::track::{Kind, Track};
use crate::{FileError, OpenOptions};

/// The first payload type for tracks, unless they have a static one or [`MediaFile::set_identity`]
/// sets one.
const FIRST_PT: u8 = 96;

/// A packet and its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimedPacket<'a> {
    /// The index of its track.
    pub track: usize,
    /// When it is due, since the start of playing. It keeps rising over loops and seeks. Packets of
    /// different tracks may come slightly out of order, as in the file.
    pub at: Duration,
    /// The time that its RTP timestamp stands for, on the same timeline. It differs from `at` if
    /// pictures are decoded in another order than they are shown.
    pub presented: Duration,
    /// The RTP packet.
    pub bytes: &'a [u8],
}

/// A file that is being read packet by packet. All functions block.
#[derive(Debug)]
pub struct MediaFile {
    demux: Box<dyn Demux>,
    looping: bool,
    tracks: Vec<Track>,
    streams: Vec<Stream>,
    schedule: Schedule,
    /// The position of the file's first frame, once it was read.
    start: Option<Nanos>,
    /// Whether the current pass started at the file's start.
    from_start: bool,
    /// Whether the current pass has made packets.
    made_packets: bool,
    frame: Frame,
    /// Whether frames are skipped until a keyframe of the video track, after a seek.
    waits_for_keyframe: bool,
    /// Whether nothing more comes.
    ended: bool,
    queue: Queue,
}

/// The packets of a frame, one after the other.
#[derive(Debug, Default)]
struct Queue {
    bytes: Vec<u8>,
    packets: Vec<Range<usize>>,
    next: usize,
    track: usize,
    at: Duration,
    presented: Duration,
}

/// How far a caller that reads ahead has sent.
#[derive(Debug, Clone)]
pub struct Sent {
    /// The next sequence number of each track.
    pub(crate) next: Vec<u16>,
    /// The latest time of all packets, plus the duration of a picture.
    pub(crate) until: Duration,
}

impl Sent {
    /// Notes that a packet with these values was sent.
    pub fn add(&mut self, track: usize, sequence: u16, at: Duration, presented: Duration) {
        /// It makes the timestamps after a seek differ from those before.
        const FRAME: Duration = Duration::from_millis(20);
        if let Some(next) = self.next.get_mut(track) {
            *next = sequence.wrapping_add(1);
        }
        self.until = self.until.max(at.max(presented).saturating_add(FRAME));
    }
}

/// The RTP stream of a track.
#[derive(Debug)]
struct Stream {
    packetizer: Packetizer,
    clock_rate: u32,
    kind: Kind,
    pt: Pt,
    ssrc: Ssrc,
    sequence: u16,
    /// The timestamp at time 0.
    timestamp: u32,
    /// Whether no packet was made yet.
    is_new: bool,
}

impl MediaFile {
    /// Opens a file and reads its headers. The extension identifies raw G.711 (`.alaw`, `.mulaw`);
    /// other types are identified by their first bytes.
    pub fn open(path: &Path, options: &OpenOptions) -> Result<Self, FileError> {
        let demux = demux::open_path(path, options)?;
        Ok(Self::from_demux(demux, options.looping))
    }

    /// Opens anything that can be read and sought in. `extension` is that of the file's name.
    pub fn from_reader(
        reader: impl Read + Seek + Send + 'static,
        extension: &str,
        options: &OpenOptions,
    ) -> Result<Self, FileError> {
        let input = Input::new(Box::new(reader))?;
        let demux = demux::open(input, extension, options)?;
        Ok(Self::from_demux(demux, options.looping))
    }

    pub(crate) fn from_demux(demux: Box<dyn Demux>, looping: bool) -> Self {
        let tracks: Vec<_> = demux.tracks().iter().map(|it| it.track.clone()).collect();
        let streams = demux.tracks().iter().zip(FIRST_PT..).map(|(source, pt)| {
            let codec = source.track.codec;
            Stream {
                packetizer: Packetizer::new(source.format.clone()),
                clock_rate: codec.clock_rate(),
                kind: codec.kind(),
                pt: Pt(codec.static_pt().unwrap_or(pt)),
                ssrc: Ssrc(rand::random()),
                // Below 2^15, so that no SRTP receiver misses the first roll-over.
                sequence: rand::random::<u16>() >> 1,
                timestamp: rand::random(),
                is_new: true,
            }
        });
        Self {
            streams: streams.collect(),
            schedule: Schedule::new(tracks.iter().map(|track| track.codec.kind() == Kind::Audio)),
            start: None,
            from_start: true,
            made_packets: false,
            frame: Frame::default(),
            waits_for_keyframe: false,
            ended: false,
            queue: Queue::default(),
            looping,
            tracks,
            demux,
        }
    }

    /// The tracks that are played: at most one of each kind.
    pub fn tracks(&self) -> &[Track] {
        &self.tracks
    }

    /// Returns the duration of the file, if it is known.
    pub fn duration(&self) -> Option<Duration> {
        let nanos = u64::try_from(self.demux.duration()?).ok()?;
        Some(Duration::from_nanos(nanos))
    }

    /// Whether it starts again at its end.
    pub fn is_looping(&self) -> bool {
        self.looping
    }

    /// Sets the payload type and the SSRC of a track's packets.
    pub fn set_identity(&mut self, track: usize, pt: Pt, ssrc: Ssrc) {
        if let Some(stream) = self.streams.get_mut(track) {
            (stream.pt, stream.ssrc) = (pt, ssrc);
        }
    }

    /// Returns the next packet, or `None` at the end of a file that does not loop. After an error
    /// it returns `None` until [`MediaFile::seek`].
    #[expect(
        clippy::should_implement_trait,
        reason = "the packet borrows from the file"
    )]
    pub fn next(&mut self) -> Option<Result<TimedPacket<'_>, FileError>> {
        match self.peek() {
            Ok(Some(_)) => {}
            Ok(None) => return None,
            Err(error) => return Some(Err(error)),
        }
        let queue = &mut self.queue;
        let range = queue.packets.get(queue.next).cloned().unwrap_or(0..0);
        queue.next += 1;
        Some(Ok(TimedPacket {
            track: queue.track,
            at: queue.at,
            presented: queue.presented,
            bytes: queue.bytes.get(range).unwrap_or_default(),
        }))
    }

    /// Returns when the next packet is due, or `None` at the end.
    pub(crate) fn peek(&mut self) -> Result<Option<Duration>, FileError> {
        while self.queue.next >= self.queue.packets.len() {
            match self.read_frame() {
                Ok(true) => {}
                Ok(false) => return Ok(None),
                Err(error) => {
                    self.ended = true;
                    return Err(error);
                }
            }
        }
        Ok(Some(self.queue.at))
    }

    /// Returns the time of day at positions of the file.
    pub(crate) fn clock(&self) -> Vec<ClockPlace> {
        self.demux.clock()
    }

    /// Returns the difference between the timeline and the file's times since the last seek, once
    /// it is known.
    pub(crate) fn shift(&self) -> Option<Nanos> {
        self.schedule.shift()
    }

    /// Sets the start of a file that was not read yet.
    pub(crate) fn begin_at(&mut self, at: Nanos) {
        self.schedule.end_at(at);
        self.schedule.begin_pass(None);
    }

    /// Sets the earliest time of packets after the next seek.
    pub(crate) fn wait_until(&mut self, at: Nanos) {
        self.schedule.end_at(at);
    }

    /// Returns the end of everything read so far.
    pub(crate) fn read_until(&self) -> Nanos {
        self.schedule.end()
    }

    /// Seeks to the last keyframe at or before `to`, or to the packet there if there is only audio.
    /// Times and timestamps keep rising.
    pub fn seek(&mut self, to: Duration) -> Result<(), FileError> {
        // Packets that were not taken return their sequence numbers.
        let unsent = self.queue.packets.len().saturating_sub(self.queue.next);
        if let Some(stream) = self.streams.get_mut(self.queue.track) {
            stream.sequence = stream.sequence.wrapping_sub(unsent as u16);
        }
        self.go_to(to)
    }

    /// Seeks for a caller that reads ahead. Packets that were read but not sent are forgotten, so
    /// that the next ones follow right after `sent`.
    pub fn seek_behind(&mut self, sent: &Sent, to: Duration) -> Result<(), FileError> {
        for (stream, next) in self.streams.iter_mut().zip(&sent.next) {
            stream.sequence = *next;
        }
        self.schedule.end_at(nanos(sent.until));
        self.go_to(to)
    }

    /// Returns the initial value for a caller that reads ahead, and starts where the file is.
    pub fn nothing_sent(&self) -> Sent {
        Sent {
            next: self.streams.iter().map(|stream| stream.sequence).collect(),
            until: Duration::ZERO,
        }
    }

    fn go_to(&mut self, to: Duration) -> Result<(), FileError> {
        let to = nanos(to);
        self.queue.packets.clear();
        self.queue.next = 0;
        self.demux.seek(to)?;
        self.ended = false;
        self.from_start = to == 0;
        self.made_packets = false;
        let has_video = self.streams.iter().any(|it| it.kind == Kind::Video);
        self.waits_for_keyframe = has_video && to > 0;
        let origin = if has_video || to == 0 { None } else { Some(to) };
        self.schedule.begin_pass(origin);
        Ok(())
    }

    /// Returns the time played since the start, the last loop or the last seek.
    pub fn played(&self) -> Duration {
        Duration::from_nanos(u64::try_from(self.schedule.played()).unwrap_or(0))
    }

    /// Reads frames until one makes packets. Returns false at the end.
    fn read_frame(&mut self) -> Result<bool, FileError> {
        if self.ended {
            return Ok(false);
        }
        let frame = &mut self.frame;
        if !self.demux.read(frame)? {
            if self.schedule.played() == 0 && self.from_start {
                return Err(FileError::Empty);
            }
            // It would be read for ever.
            if !self.made_packets && self.from_start {
                return Err(FileError::NoPackets);
            }
            if !self.looping {
                self.ended = true;
                return Ok(false);
            }
            self.demux.seek(0)?;
            self.from_start = true;
            self.made_packets = false;
            self.waits_for_keyframe = false;
            self.schedule.begin_pass(self.start);
            return Ok(true);
        }
        let stream = self.streams.get_mut(frame.track);
        let stream = stream.ok_or_else(|| FileError::corrupt("a frame of no track"))?;
        if let Some(format) = frame.format.take() {
            stream.packetizer = Packetizer::new(format);
        }
        if self.waits_for_keyframe {
            if stream.kind != Kind::Video || !frame.keyframe {
                return Ok(true);
            }
            self.waits_for_keyframe = false;
        }
        if self.schedule.is_before_origin(frame) {
            return Ok(true);
        }
        let place = self
            .schedule
            .place(frame)
            .map_err(|_| FileError::corrupt("a frame's time"))?;
        if self.from_start {
            self.start.get_or_insert(frame.at);
        }
        self.queue.track = frame.track;
        let time = |nanos| Duration::from_nanos(u64::try_from(nanos).unwrap_or(0));
        self.queue.at = time(place.at);
        self.queue.presented = time(place.presented);
        stream.packetize(frame, place.presented, &mut self.queue)?;
        self.made_packets |= !self.queue.packets.is_empty();
        Ok(true)
    }
}

impl Stream {
    fn packetize(
        &mut self,
        frame: &Frame,
        presented: Nanos,
        queue: &mut Queue,
    ) -> Result<(), FileError> {
        queue.bytes.clear();
        queue.packets.clear();
        queue.next = 0;
        let is_audio = self.kind == Kind::Audio;
        let mut fields = Fields {
            marker: false,
            padding: false,
            pt: self.pt,
            sequence: self.sequence,
            timestamp: self
                .timestamp
                .wrapping_add(rtp_ticks(presented, self.clock_rate)),
            ssrc: self.ssrc,
        };
        let mut written = Ok(());
        self.packetizer
            .packetize(&frame.data, frame.keyframe, |payload, last| {
                // In audio the marker is on the first packet of a talk spurt.
                fields.marker = if is_audio { self.is_new } else { last };
                self.is_new = false;
                let mut header = [0; FIXED_HEADER_LEN];
                let extensions = std::iter::empty::<(u8, &[u8])>();
                if let Err(error) = write_header(&mut header, &fields, extensions) {
                    written = Err(error);
                }
                let from = queue.bytes.len();
                queue.bytes.extend_from_slice(&header);
                queue.bytes.extend_from_slice(payload);
                queue.packets.push(from..queue.bytes.len());
                fields.sequence = fields.sequence.wrapping_add(1);
            })?;
        self.sequence = fields.sequence;
        Ok(written?)
    }
}

fn nanos(time: Duration) -> Nanos {
    Nanos::try_from(time.as_nanos()).unwrap_or(Nanos::MAX)
}
