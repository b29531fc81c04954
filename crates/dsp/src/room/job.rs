//! The encoding of one mix.

use super::MixId;
use crate::mix::{Encoder, LARGEST_PACKET, Limiter};
use crate::{CodecError, Encoding, Format};

/// A frame of a mix, to be limited and encoded. Those of a tick do not depend on each other: any thread may run them, and
/// any may be given back to the room ([`Room::put_back`](crate::Room::put_back)) at any time before the packets are sent.
#[derive(Debug)]
pub struct EncodeJob(pub(super) Box<Work>);

impl EncodeJob {
    /// How many frames are to be encoded: one, or more if the encoder has to be made ready first.
    pub fn frames(&self) -> usize {
        self.0.frames()
    }

    /// Limits and encodes. To run it again does nothing.
    pub fn run(&mut self) {
        self.0.run();
    }
}

/// An encoder, its limiter, and what they are to do next.
#[derive(Debug)]
pub(super) struct Work {
    /// The mix, and its place in the room.
    pub(super) mix: MixId,
    pub(super) key: usize,
    encoding: Encoding,
    format: Format,
    limiter: Limiter,
    encoder: Option<Encoder>,
    /// Frames that are to be encoded. Only the last one's packet is kept.
    pub(super) sound: Vec<f32>,
    pub(super) packet: Vec<u8>,
    pub(super) result: Option<Result<(), CodecError>>,
}

impl Work {
    pub(super) fn new(mix: MixId, key: usize, encoding: Encoding, format: Format) -> Self {
        Work {
            mix,
            key,
            encoding,
            format,
            limiter: Limiter::new(format),
            encoder: None,
            sound: Vec::with_capacity(format.frame_len()),
            packet: Vec::with_capacity(LARGEST_PACKET),
            result: None,
        }
    }

    /// Encodes otherwise from the next frame on.
    pub(super) fn configure(&mut self, encoding: Encoding) {
        self.encoding = encoding;
        if let Some(encoder) = &mut self.encoder
            && encoder.configure(&encoding).is_err()
        {
            self.encoder = None;
        }
    }

    fn frames(&self) -> usize {
        self.sound.len() / self.format.frame_len()
    }

    pub(super) fn run(&mut self) {
        if !self.sound.is_empty() {
            self.result = Some(self.encode());
            self.sound.clear();
        }
    }

    fn encode(&mut self) -> Result<(), CodecError> {
        let encoder = match &mut self.encoder {
            Some(encoder) => encoder,
            none => none.insert(Encoder::new(&self.encoding, self.format)?),
        };
        let frame = self.format.frame_len();
        for sound in self.sound.chunks_exact_mut(frame) {
            self.limiter.process(sound);
            encoder.encode(sound, &mut self.packet)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_and_rooms_may_go_to_other_threads() {
        fn may_go<T: Send>() {}
        may_go::<EncodeJob>();
        may_go::<crate::Room>();
    }
}
