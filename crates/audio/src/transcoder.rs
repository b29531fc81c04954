//! Calls between two sides without a common codec: each side's audio is decoded, and encoded for
//! the other.

use portunus_media::SourceRef;
use tokio::sync::mpsc;

use crate::{
    AudioCodec, AudioError, AudioEvent, AudioRoom, AudioThreads, Channels, Encoding, Format,
    MixSource, Mixture, ParticipantId, ParticipantOptions, RoomOptions, SampleRate,
};

/// The complexity of Opus encoders, 1 to 10.
const QUALITY: u8 = 4;

/// A side of a transcoded call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TranscodedSide {
    /// Its source.
    pub source: SourceRef,
    /// The codec in both directions.
    pub codec: AudioCodec,
    /// The bitrate of Opus sent to it, in bit/s. `None`: libopus chooses.
    pub bitrate: Option<u32>,
    /// The expected loss on the way to it, in percent, 0 to 20. Above 0, Opus packets carry in-band
    /// FEC.
    pub expected_loss: u8,
    /// The worker that sends to it: best that of its PeerConnection or leg.
    pub worker: Option<usize>,
}

impl TranscodedSide {
    /// Returns a side that sends and accepts this codec.
    pub fn new(source: SourceRef, codec: AudioCodec) -> Self {
        Self {
            source,
            codec,
            bitrate: None,
            expected_loss: 0,
            worker: None,
        }
    }

    fn encoding(&self) -> Encoding {
        Encoding {
            codec: self.codec,
            bitrate: self.bitrate,
            complexity: QUALITY,
            fec: self.expected_loss > 0,
            expected_loss: self.expected_loss,
        }
    }
}

/// The audio of two sides, each in the other's codec. Dropping it ends both sources and all routes
/// from them.
///
/// An audio thread decodes and encodes every 20 ms: G.711 at 8 kHz, G.722 and Opus at 16 kHz. Each
/// side gets a packet every 20 ms all the time. Telephone keys (RFC 4733) do not pass:
/// [`portunus_media::MediaPlane::keys_to_leg`] has a leg send them.
#[derive(Debug)]
pub struct Transcoder {
    // The mixes are dropped before the room.
    to_near: MixSource,
    to_far: MixSource,
    _room: AudioRoom,
    /// Its events are not used.
    _events: mpsc::Receiver<AudioEvent>,
}

impl Transcoder {
    /// Returns the far side's audio for the near side.
    pub fn to_near(&self) -> SourceRef {
        self.to_near.source()
    }

    /// Returns the near side's audio for the far side.
    pub fn to_far(&self) -> SourceRef {
        self.to_far.source()
    }
}

impl AudioThreads {
    /// Transcodes between two sides, on the least busy thread. Both sources may come into being
    /// later.
    pub fn transcode(
        &self,
        near: TranscodedSide,
        far: TranscodedSide,
    ) -> Result<Transcoder, AudioError> {
        let is_narrow = [near, far]
            .iter()
            .any(|side| side.codec.sample_rate() == 8_000);
        let rate = match is_narrow {
            true => SampleRate::Hz8000,
            false => SampleRate::Hz16000,
        };
        let channels = Channels::Mono;
        // The sides are not mixed: each is a group of its own.
        let (room, events) = self.open(RoomOptions {
            format: Format { rate, channels },
            loudest: 0,
            groups: 2,
        })?;
        for (group, side) in [near, far].into_iter().enumerate() {
            let participant = ParticipantId(group as u64);
            let options = ParticipantOptions {
                codec: side.codec,
                muted: false,
                suspended: false,
                immune: false,
                gain: 1.0,
                position: 0.5,
                group: Some(group),
                denoise: false,
                levels: false,
                talk: None,
                encoding: side.encoding(),
            };
            room.join(participant, options, Some(side.source), None);
            room.connect(participant, true);
        }
        let mix = |of, to: TranscodedSide| {
            room.mix_on(to.worker, Mixture::Group(of), to.encoding(), false)
        };
        Ok(Transcoder {
            to_near: mix(1, near),
            to_far: mix(0, far),
            _room: room,
            _events: events,
        })
    }
}
