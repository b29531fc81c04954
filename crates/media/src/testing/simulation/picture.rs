//! Payloads that carry the number of their picture, behind the codec's descriptor.
#![allow(
    clippy::indexing_slicing,
    reason = "the payloads are made here, with room for all this"
)]

use portunus_rtc::bandwidth::Layering;
use portunus_rtc::testing::Frame;
use portunus_sdp::negotiated::Codec;
use rand::rngs::SmallRng;
use rand::{RngCore, SeedableRng};

/// The position of the number in a payload.
const AT: usize = 24;
/// The minimum size of a payload.
const LEAST: usize = 40;

/// A frame of an encoding or of a spatial layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Picture {
    pub(super) number: u32,
    pub(super) layer: u8,
    /// The number of its packets.
    pub(super) packets: u16,
}

impl Picture {
    /// Writes the payload of packet `n`.
    pub(super) fn write(
        self,
        codec: Codec,
        layering: Layering,
        frame: &Frame,
        (n, packets): (usize, usize),
        bytes: usize,
    ) -> Vec<u8> {
        let mut payload = vec![0; bytes.max(LEAST)];
        if codec == Codec::Vp9 {
            vp9(frame, layering, (n == 0, n + 1 == packets), &mut payload);
        } else {
            vp8(frame, n == 0, &mut payload);
        }
        payload[AT..AT + 4].copy_from_slice(&self.number.to_be_bytes());
        payload[AT + 4] = self.layer;
        payload[AT + 5..AT + 7].copy_from_slice(&self.packets.to_be_bytes());
        payload
    }

    /// Randomizes the bytes between the codec's descriptor, with `clear` bytes after it, and the
    /// number of the picture.
    pub(super) fn scramble(self, codec: Codec, clear: usize, payload: &mut [u8]) {
        let mut noise = SmallRng::seed_from_u64(self.number.into());
        let descriptor = match codec {
            Codec::Vp9 => AT,
            _ => 6,
        };
        noise.fill_bytes(&mut payload[(descriptor + clear).min(AT)..AT]);
    }

    /// Reads the picture of a payload.
    pub(super) fn read(payload: &[u8]) -> Option<Picture> {
        let number = payload.get(AT..AT + 4)?.try_into().ok()?;
        let packets = payload.get(AT + 5..AT + 7)?.try_into().ok()?;
        Some(Picture {
            number: u32::from_be_bytes(number),
            layer: *payload.get(AT + 4)?,
            packets: u16::from_be_bytes(packets),
        })
    }
}

/// RFC 7741 section 4.2, with picture id, TL0PICIDX and temporal layer.
fn vp8(frame: &Frame, starts: bool, payload: &mut [u8]) {
    let [high, low] = (frame.number as u16 & 0x7fff).to_be_bytes();
    payload[0] = if starts { 0x90 } else { 0x80 };
    payload[1] = 0xe0;
    (payload[2], payload[3]) = (0x80 | high, low);
    payload[4] = (frame.number / 4) as u8;
    payload[5] = frame.temporal << 6 | 0x20;
    if starts && frame.keyframe {
        payload[6..16].copy_from_slice(&[0x10, 0, 0, 0x9d, 0x01, 0x2a, 16, 0, 16, 0]);
    } else if starts {
        payload[6] = 0x11;
    }
}

/// RFC 9628 section 4.2, not flexible. Each encoding has numbers of its own.
fn vp9(frame: &Frame, layering: Layering, (starts, ends): (bool, bool), payload: &mut [u8]) {
    let (encoding, spatial) = match layering {
        Layering::Encodings => (frame.layer, 0),
        Layering::Spatial => (0, frame.layer),
    };
    let inter_picture = if frame.keyframe { 0 } else { 0x40 };
    let bounds = if starts { 0x08 } else { 0 } | if ends { 0x04 } else { 0 };
    payload[0] = 0xa0 | inter_picture | bounds;
    let number = frame.number as u16;
    let [high, low] = number
        .wrapping_add(u16::from(encoding) * 11_111)
        .to_be_bytes();
    (payload[1], payload[2]) = (0x80 | high, low);
    let inter_layer = u8::from(spatial > 0);
    payload[3] = frame.temporal << 5 | 0x10 | spatial << 1 | inter_layer;
    payload[4] = ((frame.number / 4) as u8).wrapping_add(encoding * 99);
}
