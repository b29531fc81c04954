//! Frames from the packets of recordings, as in a live recording.

use std::collections::VecDeque;
use std::time::Duration;

use portunus_rtp::extension::{
    self, AbsCaptureTime, AudioLevel, ExtensionKind, ExtensionMap, VideoOrientation,
};
use portunus_rtp::{Header, Pt, SeqNo};

use super::{ConvertError, Recordings};
use crate::assembly::{Arrived, Assembler, Coded, Note, Plan, PlannedTrack, Step, StreamKey};
use crate::container::{Container, Rotation};
use crate::mjr::{Info, Medium};
use crate::playback::Unwrap;
use crate::track::Codec;

/// The number of the first packet, so that earlier packets have numbers, too.
const FIRST: i64 = 1 << 20;
/// The limit of remembered padding packets.
const MAX_EMPTY: usize = 256;

/// The counts at the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Assembled {
    /// Missing packets.
    pub lost: u64,
    /// Gaps in audio or video.
    pub gaps: u64,
}

/// Assembles frames of all audio and video. `each` gets the steps, with the start of the file
/// relative to [`Recordings::started`]. `progress` gets the read part, 0 to 1. Tracks are numbered
/// in the order of the recordings; data is left out. `container` is the target, if it is a
/// container.
pub fn assemble(
    recordings: &mut Recordings,
    container: Option<Container>,
    progress: &mut dyn FnMut(f32),
    each: &mut dyn FnMut(Duration, Step<'_>) -> Result<(), ConvertError>,
) -> Result<Assembled, ConvertError> {
    let tracks = tracks(recordings)?;
    let planned = tracks.iter().flatten().map(|track| PlannedTrack {
        codec: track.codec,
        fmtp: track.fmtp.clone(),
        open: true,
    });
    let planned: Vec<_> = planned.collect();
    let count = planned.len();
    let mut assembler = Assembler::new(Plan {
        tracks: planned,
        split_on_size: container.is_some_and(Container::has_one_size),
        ..Plan::default()
    });
    let mut assembled = Assembled::default();
    let mut tracks = tracks;
    let mut packets = 0_u64;
    let mut pass = |assembler: &mut Assembler| -> Result<(), ConvertError> {
        loop {
            let started = assembler.started().unwrap_or_default();
            let Some(step) = assembler.step() else {
                return Ok(());
            };
            if matches!(
                step,
                Step::Note {
                    note: Note::Gap { .. },
                    ..
                }
            ) {
                assembled.gaps += 1;
            }
            each(started, step)?;
        }
    };
    while let Some(frame) = recordings.next()? {
        if let Some(Some(track)) = tracks.get_mut(frame.index)
            && let Some((number, arrived)) = track.packet(frame.at, frame.bytes)
        {
            assembler.push(number, &arrived);
            pass(&mut assembler)?;
        }
        packets += 1;
        if packets.is_multiple_of(1_024) {
            progress(recordings.progress());
        }
    }
    assembler.end();
    pass(&mut assembler)?;
    let lost = (0..count).map(|track| assembler.stats(track).lost);
    assembled.lost = lost.sum();
    progress(1.0);
    Ok(assembled)
}

/// A track, and the numbering of its packets.
struct Track {
    number: usize,
    codec: Codec,
    fmtp: Option<String>,
    red: Option<Pt>,
    extensions: ExtensionMap,
    unwrap: Unwrap,
    stretch: u32,
    /// The offset of the present stretch's numbers, and the highest number so far.
    base: i64,
    highest: i64,
    /// The number of padding packets in the stretch, and the last ones.
    empty: i64,
    last_empty: VecDeque<i64>,
}

/// Returns the tracks of the recordings, or `None` for data.
fn tracks(recordings: &Recordings) -> Result<Vec<Option<Track>>, ConvertError> {
    let mut number = 0;
    let mut tracks = Vec::new();
    for (index, info) in recordings.infos().enumerate() {
        if info.medium == Medium::Data {
            tracks.push(None);
            continue;
        }
        if info.encrypted {
            return Err(ConvertError::Encrypted(index));
        }
        let codec = codec_of(info).ok_or_else(|| ConvertError::UnknownCodec {
            index,
            codec: info.codec.clone(),
        })?;
        tracks.push(Some(Track::new(number, codec, info)));
        number += 1;
    }
    match number {
        0 => Err(ConvertError::Nothing("audio or video")),
        _ => Ok(tracks),
    }
}

/// Returns the codec of a recording, if files can have it.
pub(super) fn codec_of(info: &Info) -> Option<Codec> {
    const ALL: [Codec; 8] = [
        Codec::Opus,
        Codec::Pcmu,
        Codec::Pcma,
        Codec::Vp8,
        Codec::Vp9,
        Codec::Av1,
        Codec::H264,
        Codec::H265,
    ];
    let mut all = ALL.into_iter();
    all.find(|codec| codec.name().eq_ignore_ascii_case(&info.codec))
}

impl Track {
    fn new(number: usize, codec: Codec, info: &Info) -> Self {
        let mut extensions = ExtensionMap::default();
        for (id, uri) in &info.extensions {
            if let Some(kind) = ExtensionKind::from_uri(uri) {
                extensions.set(kind, *id);
            }
        }
        Self {
            number,
            codec,
            fmtp: info.fmtp.clone(),
            red: info.red.map(Pt),
            extensions,
            unwrap: Unwrap::new(codec.clock_rate()),
            stretch: 0,
            base: FIRST,
            highest: FIRST,
            empty: 0,
            last_empty: VecDeque::new(),
        }
    }

    /// Returns the number of a packet among those with a payload.
    fn number(&self, sequence: i64) -> i64 {
        let later = self.last_empty.iter().filter(|empty| **empty > sequence);
        let before = self.empty.saturating_sub(later.count() as i64);
        self.base.saturating_add(sequence).saturating_sub(before)
    }

    /// Notes a padding packet, by which senders probe bandwidth, so that it does not count as lost.
    fn leave_out(&mut self, sequence: i64, number: i64) {
        if number > self.highest {
            self.empty = self.empty.saturating_add(1);
            self.last_empty.push_back(sequence);
            if self.last_empty.len() > MAX_EMPTY {
                self.last_empty.pop_front();
            }
        }
    }

    /// Returns a packet with the number of its track, or `None` if it is invalid.
    fn packet<'a>(&mut self, at: Duration, packet: &'a [u8]) -> Option<(usize, Arrived<'a>)> {
        let header = Header::parse(packet).ok()?;
        let payload = header.payload(packet);
        let (key, _) = self.unwrap.packet(&header, at);
        if key.stretch != self.stretch {
            self.stretch = key.stretch;
            self.base = self.highest.saturating_add(1).saturating_sub(key.sequence);
            self.empty = 0;
            self.last_empty.clear();
        }
        let seq = self.number(key.sequence);
        if payload.is_empty() {
            self.leave_out(key.sequence, seq);
            return None;
        }
        self.highest = self.highest.max(seq);
        let extension = |kind| header.extension(packet, self.extensions.id(kind)?);
        let level = extension(ExtensionKind::AudioLevel).and_then(AudioLevel::parse);
        let turned = extension(ExtensionKind::VideoOrientation).and_then(VideoOrientation::parse);
        let captured = extension(ExtensionKind::AbsCaptureTime).and_then(AbsCaptureTime::parse);
        let arrived = Arrived {
            at,
            stream: StreamKey(key.stretch),
            seq: SeqNo(u64::try_from(seq).ok()?),
            timestamp: header.timestamp,
            marker: header.marker,
            encoding: 0,
            codec: match self.red == Some(header.pt) {
                true => Coded::Red,
                false => Coded::Codec(self.codec),
            },
            payload,
            level: level.map(|level| level.level),
            rotation: turned.map(|turned| match turned.rotation {
                extension::Rotation::Deg0 => Rotation::R0,
                extension::Rotation::Deg90 => Rotation::R90,
                extension::Rotation::Deg180 => Rotation::R180,
                extension::Rotation::Deg270 => Rotation::R270,
            }),
            capture: captured.map(|captured| captured.timestamp),
        };
        Some((self.number, arrived))
    }
}
