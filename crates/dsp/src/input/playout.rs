//! The playout of a participant that is heard: its decoder, and the decoded audio that was not
//! played yet.

use super::buffer::Waiting;
use super::decoder::Decoder;
use super::sound::Sound;
use super::timeline::MS;
use crate::{AudioCodec, CodecError, Format, level};

/// The length of concealed audio until it starts to fade, and until it is silent.
const FADE_BEGINS: i64 = 80 * MS;
const FADE_ENDS: i64 = 200 * MS;
/// The length of the fade-in, in ms.
const BACK_MS: usize = 5;
/// The length of the fade-out if nothing follows, in ms.
const END_MS: usize = 10;
/// The granularity of libopus's concealment.
const STEP: i64 = 120;

/// A decoder, and decoded audio that was not played yet. Lengths are in samples of 48 kHz.
#[derive(Debug)]
pub(super) struct Playout {
    decoder: Decoder,
    sound: Sound,
    format: Format,
    /// The last gain.
    gain: f32,
    /// The length of continuous concealment.
    made_up: i64,
}

impl Playout {
    pub(super) fn new(codec: AudioCodec, format: Format) -> Result<Self, CodecError> {
        Ok(Self {
            decoder: Decoder::new(codec, format)?,
            sound: Sound::new(format),
            format,
            gain: 0.0,
            made_up: 0,
        })
    }

    /// Returns the length of the audio that can be played.
    pub(super) fn len(&self) -> i64 {
        self.sound.len() as i64 * self.scale()
    }

    /// Whether concealed audio is silent by now.
    pub(super) fn faded(&self) -> bool {
        self.made_up >= FADE_ENDS
    }

    /// Forgets all audio, and resets the decoder.
    pub(super) fn reset(&mut self) {
        self.decoder.reset();
        self.silence();
    }

    /// Forgets all audio. The next audio fades in.
    pub(super) fn silence(&mut self) {
        self.sound.clear();
        self.gain = 0.0;
        self.made_up = 0;
    }

    /// Has the next audio start without a fade, because nothing was heard before.
    pub(super) fn begin(&mut self) {
        if self.sound.len() == 0 {
            self.gain = 1.0;
        }
    }

    /// Has the decoder process a packet that is not heard.
    pub(super) fn warm_up(&mut self, packet: &Waiting) {
        // Decoding errors are counted when the packet is heard.
        let _ = self
            .decoder
            .decode(&packet.payload, packet.len, self.sound.end());
        self.silence();
    }

    /// Returns the level of a packet in -dBov, or `None` if it cannot be decoded. The next audio
    /// fades in.
    pub(super) fn measure(&mut self, packet: &Waiting) -> Option<u8> {
        self.silence();
        let sound = self.sound.end();
        let decoded = self.decoder.decode(&packet.payload, packet.len, sound);
        let level = decoded.is_ok().then(|| level::level(sound));
        self.silence();
        level
    }

    /// Decodes a packet, except what is before `from`.
    pub(super) fn decode(&mut self, packet: &Waiting, from: i64) -> Result<(), CodecError> {
        if packet.anew {
            self.decoder.reset();
        }
        let before = self.sound.end().len();
        self.decoder
            .decode(&packet.payload, packet.len, self.sound.end())?;
        self.cut(before, from - packet.media);
        self.come_back(before);
        Ok(())
    }

    /// Decodes audio of length `len` before a packet, from the packet's FEC.
    pub(super) fn recover(&mut self, packet: &Waiting, len: i64) -> Result<(), CodecError> {
        let before = self.sound.end().len();
        self.decoder
            .recover(&packet.payload, packet.fec, self.sound.end())?;
        self.cut(before, packet.fec - len);
        self.come_back(before);
        Ok(())
    }

    /// Conceals about `len` of audio, which fades if concealment lasts. Returns the length.
    pub(super) fn make_up(&mut self, len: i64) -> i64 {
        let len = (len / STEP * STEP).max(STEP);
        let before = self.sound.end().len();
        let wanted = (len / self.scale()) as usize * self.format.channels.count();
        if self.faded() || self.decoder.conceal(len, self.sound.end()).is_err() {
            self.sound.end().resize(before + wanted, 0.0);
        }
        self.made_up += len;
        let gain = if self.made_up <= FADE_BEGINS {
            1.0
        } else {
            ((FADE_ENDS - self.made_up) as f32 / (FADE_ENDS - FADE_BEGINS) as f32).max(0.0)
        };
        self.fade(before, gain, usize::MAX);
        len
    }

    /// Ends the audio within `len`, with a fade over the last 10 ms. Later audio is dropped.
    pub(super) fn end_within(&mut self, len: i64) {
        let missing = len - self.len();
        if missing > 0 {
            self.make_up(missing + STEP - 1);
        }
        self.sound.end_within((len / self.scale()) as usize, END_MS);
        self.gain = 0.0;
        self.made_up = FADE_ENDS;
    }

    /// Moves a frame to `into`. Returns the number of samples.
    pub(super) fn take(&mut self, into: &mut [f32]) -> usize {
        self.sound.take(into)
    }

    /// Removes pitch periods. Returns the number of samples per channel.
    pub(super) fn shorten(&mut self, alike: f32) -> usize {
        self.sound.shorten(alike)
    }

    /// Repeats a pitch period. Returns the number of samples per channel.
    pub(super) fn lengthen(&mut self, alike: f32) -> usize {
        self.sound.lengthen(alike)
    }

    /// Fades received audio in.
    fn come_back(&mut self, before: usize) {
        self.made_up = 0;
        if self.gain < 1.0 {
            self.fade(
                before,
                1.0,
                BACK_MS * self.format.rate.hertz() as usize / 1_000,
            );
        }
    }

    /// Removes `len` from the audio after `before`.
    fn cut(&mut self, before: usize, len: i64) {
        if len > 0 {
            let samples = (len / self.scale()) as usize * self.format.channels.count();
            let end = self.sound.end();
            let to = end.len().min(before + samples);
            end.drain(before..to);
        }
    }

    /// Applies a gain to the audio after `before` that reaches `gain` within `most` samples per
    /// channel.
    fn fade(&mut self, before: usize, gain: f32, most: usize) {
        let from = std::mem::replace(&mut self.gain, gain);
        if from == 1.0 && gain == 1.0 {
            return;
        }
        let channels = self.format.channels.count();
        let new = self.sound.end().get_mut(before..).unwrap_or_default();
        let frames = (new.len() / channels).min(most).max(1) as f32;
        for (index, sample) in new.iter_mut().enumerate() {
            let share = (((index / channels) as f32 + 1.0) / frames).min(1.0);
            *sample *= from + (gain - from) * share;
        }
    }

    /// Returns the samples of 48 kHz per sample of the room's rate.
    fn scale(&self) -> i64 {
        i64::from(48_000 / self.format.rate.hertz())
    }
}
