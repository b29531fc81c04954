//! Calls of two sides that share no codec: what each sends is decoded, and encoded anew for the other.

use portunus_media::SourceRef;
use tokio::sync::mpsc;

use crate::{
    AudioCodec, AudioError, AudioEvent, AudioRoom, AudioThreads, Channels, Encoding, Format,
    MixSource, Mixture, ParticipantId, ParticipantOptions, RoomOptions, SampleRate,
};

/// The complexity of encoders of Opus.
const QUALITY: u8 = 4;

/// A side of a call that is transcoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TranscodedSide {
    /// What it sends.
    pub source: SourceRef,
    /// What it sends, and is to be sent.
    pub codec: AudioCodec,
    /// The bitrate of Opus that it is sent, in bit/s; none: as libopus chooses.
    pub bitrate: Option<u32>,
    /// The losses that are expected on the way to it, in percent, 0 to 20: with any, packets of Opus hold what was in those before, too.
    pub expected_loss: u8,
    /// The media worker that what it is sent is made for: best that of its PeerConnection or leg.
    pub worker: Option<usize>,
}

impl TranscodedSide {
    /// Somebody who sends and takes this codec.
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

/// The sound of two sides, each as the other's codec has it. It ends when it is dropped: with its sources and all routes from them.
///
/// A thread for audio decodes what has come every 20 ms, and encodes it: for G.711 at 8 kHz, for G.722 and Opus at 16 kHz. Each side is
/// sent a packet of 20 ms all the time. Keys of a telephone (RFC 4733) do not pass: [`portunus_media::MediaPlane::keys_to_leg`]
/// has a leg send them.
#[derive(Debug)]
pub struct Transcoder {
    // Its mixes end before it.
    to_near: MixSource,
    to_far: MixSource,
    _room: AudioRoom,
    /// Nothing is told.
    _events: mpsc::Receiver<AudioEvent>,
}

impl Transcoder {
    /// What the far side sends, as the near side takes it.
    pub fn to_near(&self) -> SourceRef {
        self.to_near.source()
    }

    /// What the near side sends, as the far side takes it.
    pub fn to_far(&self) -> SourceRef {
        self.to_far.source()
    }
}

impl AudioThreads {
    /// Transcodes between two sides, on the thread that has the least to do. What either sends may come into being later.
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
        // Nobody is mixed with anybody: each side is a group by itself.
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
