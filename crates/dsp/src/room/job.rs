//! The encoding of a mix.

use super::MixId;
use crate::mix::{Encoder, LARGEST_PACKET, Limiter};
use crate::{CodecError, Encoding, Format};

/// A frame of a mix, to be limited and encoded. The jobs of a tick are independent: any thread may
/// run them. Any may be returned to the room ([`Room::put_back`](crate::Room::put_back)) at any
/// time before the packets are sent.
#[derive(Debug)]
pub struct EncodeJob(pub(super) Box<Work>);

impl EncodeJob {
    /// Returns the number of frames to encode: more than one if a new encoder needs preparation.
    pub fn frames(&self) -> usize {
        self.0.frames()
    }

    /// Limits and encodes. A second call does nothing.
    pub fn run(&mut self) {
        self.0.run();
    }
}

/// An encoder and its limiter, with their next input.
#[derive(Debug)]
pub(super) struct Work {
    /// The mix, and its index in the room.
    pub(super) mix: MixId,
    pub(super) key: usize,
    encoding: Encoding,
    format: Format,
    limiter: Limiter,
    encoder: Option<Encoder>,
    /// The frames to encode. Only the last packet is kept.
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

    /// Changes the encoding from the next frame on.
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
