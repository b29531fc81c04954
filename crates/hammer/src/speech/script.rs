//! Scripts: what participants send, encoded ahead, so that hammer's own work is the same for any
//! number of them.

use opusic_c::{Application, Bandwidth, Bitrate, Channels, Encoder, InbandFec, SampleRate, Signal};
use portunus_dsp::AudioCodec;
use portunus_dsp::g711::{self, Law};

use super::clips::resampled;
use super::hearing::Hearing;
use super::{EncodeError, HEARD_FRAME, HEARD_RATE, NARROW_RATE, SAID_RATE, Talker, chirp};

/// The samples of a packet of speech.
const SAID_FRAME: usize = SAID_RATE / 50;

/// The longest packet, in bytes.
const MAX_PAYLOAD: usize = 1_000;

/// The level above which sound counts as a voice, in -dBov.
const VOICE_LEVEL: u8 = 50;

/// The range in which a chirp is searched after its original place, in samples. A codec adds some
/// milliseconds.
const CODEC_DELAY: usize = HEARD_RATE / 5;

/// Packets in their order, which repeat.
#[derive(Debug)]
pub(crate) struct Script {
    pub(crate) codec: AudioCodec,
    pub(crate) packets: Vec<Packet>,
}

/// A packet of 20 ms.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Packet {
    /// Empty if nothing is sent (DTX).
    pub(crate) payload: Vec<u8>,
    /// The level, in -dBov (RFC 6464).
    pub(crate) level: u8,
    /// The packet contains speech.
    pub(crate) voice: bool,
    /// The start of a chirp or sentence in this packet, in seconds after the start of its decoded
    /// sound.
    pub(crate) mark: Option<f64>,
}

/// The parameters of the encoder.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Encoding {
    pub(crate) codec: AudioCodec,
    /// The bit rate of Opus.
    pub(crate) bitrate: u32,
    /// Silence is sent only now and then.
    pub(crate) dtx: bool,
    /// The packet loss that the encoder expects, in percent. It then repeats what matters (in-band
    /// FEC).
    pub(crate) expected_loss: u8,
    /// The rate of the room, in Hz. Opus has no wider band, like in browsers by `maxplaybackrate`
    /// (RFC 7587 section 6.1).
    pub(crate) rate: u32,
}

impl Script {
    /// Creates the script of a talker, which repeats without an audible break.
    pub(crate) fn of(talker: Talker, encoding: Encoding) -> Result<Self, EncodeError> {
        let sound = talker.samples();
        let mut encoder = Encoding::start(encoding)?;
        let mut hearing = Hearing::new(encoding.codec)?;
        let mut packets = Vec::new();
        let mut heard = Vec::new();
        // The second time, the codec's state is that of the end of the script.
        for _ in 0..2 {
            packets = encoder.packets(&sound)?;
            heard.clear();
            for packet in &packets {
                hearing.hear(&packet.payload, &mut heard);
            }
        }
        for begin in talker.chirps() {
            let from = (begin * HEARD_RATE as f64) as usize;
            let piece = heard.get(from..from + CODEC_DELAY).unwrap_or_default();
            let Some(at) = chirp::find(piece).map(|at| from + at) else {
                continue;
            };
            if let Some(packet) = packets.get_mut(at / HEARD_FRAME) {
                packet.mark = Some((at % HEARD_FRAME) as f64 / HEARD_RATE as f64);
            }
        }
        let codec = encoding.codec;
        Ok(Self { codec, packets })
    }

    /// Encodes `sound` at [`SAID_RATE`], with marks at these times in seconds.
    pub(crate) fn recorded(
        sound: &[f32],
        marks: &[f64],
        encoding: Encoding,
    ) -> Result<Self, EncodeError> {
        let mut packets = Encoding::start(encoding)?.packets(sound)?;
        for mark in marks {
            if let Some(packet) = packets.get_mut((mark * 50.0) as usize) {
                packet.mark = Some(mark % 0.02);
            }
        }
        let codec = encoding.codec;
        Ok(Self { codec, packets })
    }
}

impl Encoding {
    fn start(self) -> Result<Coder, EncodeError> {
        if let Some(law) = Law::of(self.codec) {
            return Ok(Coder::G711(law));
        }
        let mut encoder = Encoder::new(Channels::Mono, SampleRate::Hz48000, Application::Voip)
            .map_err(EncodeError)?;
        let set = |encoder: &mut Encoder| {
            encoder.set_bitrate(Bitrate::Value(self.bitrate))?;
            // Most of a synthetic voice with a pilot would be taken for music, unlike recorded
            // speech.
            encoder.set_signal(Signal::Voice)?;
            encoder.set_dtx(self.dtx)?;
            encoder.set_inband_fec(InbandFec::Mode1)?;
            encoder.set_packet_loss(self.expected_loss)?;
            encoder.set_max_bandwidth(match self.rate {
                8_000 => Bandwidth::Narrow,
                12_000 => Bandwidth::Medium,
                16_000 => Bandwidth::Wide,
                24_000 => Bandwidth::Superwide,
                _ => Bandwidth::Full,
            })
        };
        set(&mut encoder).map_err(EncodeError)?;
        Ok(Coder::Opus(encoder))
    }
}

enum Coder {
    Opus(Encoder),
    G711(Law),
}

impl Coder {
    /// Encodes `sound` at [`SAID_RATE`].
    fn packets(&mut self, sound: &[f32]) -> Result<Vec<Packet>, EncodeError> {
        let frames = sound.chunks_exact(SAID_FRAME);
        let payloads = match self {
            Coder::Opus(encoder) => {
                let payloads = frames.clone().map(|frame| opus(encoder, frame));
                payloads.collect::<Result<Vec<_>, _>>()?
            }
            Coder::G711(law) => {
                let narrow = resampled(sound, SAID_RATE, NARROW_RATE).unwrap_or_default();
                let frames = narrow.chunks_exact(NARROW_RATE / 50);
                let payload = |frame| {
                    let mut payload = Vec::new();
                    g711::encode(*law, frame, &mut payload);
                    payload
                };
                frames.map(payload).collect()
            }
        };
        let packets = frames.zip(payloads).map(|(frame, payload)| {
            let level = level(frame);
            Packet {
                payload,
                level,
                voice: level < VOICE_LEVEL,
                mark: None,
            }
        });
        Ok(packets.collect())
    }
}

/// Encodes a frame. The packet is empty if it need not be sent.
fn opus(encoder: &mut Encoder, frame: &[f32]) -> Result<Vec<u8>, EncodeError> {
    let mut payload = vec![0; MAX_PAYLOAD];
    let encoded = encoder.encode_float_to_slice(frame, &mut payload);
    let length = encoded.map_err(EncodeError)?;
    // A packet of at most two bytes need not be sent.
    payload.truncate(if length > 2 { length } else { 0 });
    payload.shrink_to_fit();
    Ok(payload)
}

/// Returns the level in -dBov: 0 is the loudest, 127 is silence.
fn level(frame: &[f32]) -> u8 {
    let power: f64 = frame.iter().map(|s| f64::from(*s).powi(2)).sum();
    let power = power / frame.len().max(1) as f64;
    (-10.0 * power.log10()).clamp(0.0, 127.0) as u8
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;
    use crate::speech::pilot;

    const OPUS: Encoding = Encoding {
        codec: AudioCodec::Opus,
        bitrate: 32_000,
        dtx: false,
        expected_loss: 0,
        rate: 16_000,
    };

    fn heard(script: &Script) -> Vec<f32> {
        let mut hearing = Hearing::new(script.codec).unwrap();
        let mut sound = Vec::new();
        for packet in &script.packets {
            hearing.hear(&packet.payload, &mut sound);
        }
        sound
    }

    #[test]
    fn what_is_decoded_has_pilots_and_chirps() {
        let script = Script::of(Talker::Voice(0), OPUS).unwrap();
        assert_eq!(script.packets.len(), 600);
        let marks: Vec<usize> = (0..)
            .zip(&script.packets)
            .filter(|(_, p)| p.mark.is_some())
            .map(|(n, _)| n)
            .collect();
        // One per second, some milliseconds after half of it.
        let due: Vec<usize> = (0..12).map(|n| n * 50 + 25).collect();
        assert_eq!(marks, due);
        let sound = heard(&script);
        let pilots: Vec<usize> = (0..pilot::PILOTS)
            .filter(|n| pilot::is_heard(*n, &sound, HEARD_RATE))
            .collect();
        assert_eq!(pilots, [0]);
    }

    #[test]
    fn a_voice_is_encoded_as_speech_is() {
        /// RFC 6716 section 3.1: from this configuration on, there is no SILK layer.
        const CELT: u8 = 16;
        for talker in [Talker::Voice(0), Talker::Voice(5), Talker::Open] {
            let script = Script::of(talker, OPUS).unwrap();
            let first = script.packets.iter().filter_map(|p| p.payload.first());
            assert_eq!(
                first.filter(|byte| **byte >> 3 >= CELT).count(),
                0,
                "{talker:?}"
            );
        }
    }

    #[test]
    fn telephones_hear_pilots_and_chirps_too() {
        for codec in [AudioCodec::Pcma, AudioCodec::Pcmu] {
            let script = Script::of(Talker::Voice(0), Encoding { codec, ..OPUS }).unwrap();
            assert!(script.packets.iter().all(|p| p.payload.len() == 160));
            let marks = script.packets.iter().filter(|p| p.mark.is_some());
            assert_eq!(marks.count(), 12);
            assert!(pilot::is_heard(0, &heard(&script), HEARD_RATE));
        }
    }

    #[test]
    fn pilots_are_heard_in_a_mix_that_was_encoded_again() {
        let mut mix = vec![0.0; SAID_RATE * 12];
        for n in [1, 4, 5] {
            mix.iter_mut()
                .zip(Talker::Voice(n).samples())
                .for_each(|(mix, s)| *mix += s);
        }
        let script = Script::recorded(
            &mix,
            &[1.5],
            Encoding {
                bitrate: 24_000,
                ..OPUS
            },
        )
        .unwrap();
        let sound = heard(&script);
        let pilots: Vec<usize> = (0..pilot::PILOTS)
            .filter(|n| pilot::is_heard(*n, &sound, HEARD_RATE))
            .collect();
        assert_eq!(pilots, [1, 4, 5]);
        assert!(script.packets.get(75).unwrap().mark.is_some());
    }

    #[test]
    fn silence_is_told_by_its_level_and_sent_seldom_with_dtx() {
        let open = Script::of(Talker::Open, OPUS).unwrap();
        assert!(
            open.packets
                .iter()
                .all(|p| !p.payload.is_empty() && !p.voice)
        );
        assert!(open.packets.iter().all(|p| (55..75).contains(&p.level)));
        let off = Script::of(Talker::Off, Encoding { dtx: true, ..OPUS }).unwrap();
        assert!(off.packets.iter().all(|p| p.level == 127));
        let sent = off.packets.iter().filter(|p| !p.payload.is_empty()).count();
        assert!((1..100).contains(&sent), "{sent}");
    }
}
