//! The starts of payloads that servers recognise: descriptors, starts of frames, keyframes.

use portunus_dsp::AudioCodec;

use super::VideoCodec;

/// A packet's place in its frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    /// The number of the frame, from 0.
    pub(super) frame: u64,
    /// The frame is a keyframe.
    pub(super) keyframe: bool,
    /// The packet is the frame's first.
    pub(super) first: bool,
    /// The packet is the frame's last.
    pub(super) last: bool,
    /// Temporal layers of the video, 1 to 3.
    pub(super) temporal_layers: u8,
}

impl Place {
    /// Returns the temporal layer of the frame, and the frames of the lowest layer so far.
    fn temporal_layer(&self) -> (u8, u64) {
        // In the order of libwebrtc: 0 1 0 1 …, and 0 2 1 2 ….
        match self.temporal_layers {
            2 => ((self.frame % 2) as u8, self.frame / 2),
            3 => (
                [0, 2, 1, 2]
                    .get((self.frame % 4) as usize)
                    .copied()
                    .unwrap_or(0),
                self.frame / 4,
            ),
            _ => (0, self.frame),
        }
    }
}

/// Writes the start of a video payload. The rest is unchanged. Bytes without room are omitted.
pub(super) fn write_video(codec: VideoCodec, place: Place, payload: &mut [u8]) {
    match codec {
        VideoCodec::Vp8 => write_vp8(place, payload),
        VideoCodec::H264 => write_h264(place, payload),
    }
}

/// Writes the start of an audio payload: for Opus, 20 ms of CELT, full band, one frame. Other
/// codecs need none.
pub(super) fn write_audio(codec: AudioCodec, payload: &mut [u8]) {
    if codec == AudioCodec::Opus {
        put(payload, 0, &[0xF8]);
    }
}

/// RFC 7741: a descriptor with a picture id of 15 bits, and the temporal layer if there are
/// several, then the frame's header.
fn write_vp8(place: Place, payload: &mut [u8]) {
    let [.., id_high, id_low] = place.frame.to_be_bytes();
    let start = if place.first { 0x10 } else { 0 };
    let (layer, base) = place.temporal_layer();
    let (layer, base) = if place.keyframe {
        (0, base)
    } else {
        (layer, base)
    };
    let mut at = 4;
    let layered = place.temporal_layers > 1;
    let fields = if layered { 0xE0 } else { 0x80 };
    put(payload, 0, &[0x80 | start, fields, 0x80 | id_high, id_low]);
    if layered {
        // The number of the lowest layer's frame, the layer, and the flag that it needs only lower
        // ones.
        put(payload, at, &[base as u8, layer << 6 | 0x20]);
        at += 2;
    }
    if place.first && place.keyframe {
        // Keyframe, version 0, shown, then the start code, and 1280x720.
        put(
            payload,
            at,
            &[0x10, 0, 0, 0x9D, 0x01, 0x2A, 0x00, 0x05, 0xD0, 0x02],
        );
    } else if place.first {
        put(payload, at, &[0x11, 0, 0]);
    }
}

/// RFC 6184: a keyframe starts with a packet of parameter sets and a slice (STAP-A). Other packets
/// are fragments (FU-A), or one slice if the frame is one packet.
fn write_h264(place: Place, payload: &mut [u8]) {
    const SLICE: u8 = 0x41;
    const IDR: u8 = 0x65;
    const SPS: [u8; 10] = [0x67, 0x42, 0xE0, 0x1F, 0x8C, 0x8D, 0x40, 0x28, 0x02, 0xDC];
    const PPS: [u8; 4] = [0x68, 0xCE, 0x3C, 0x80];
    let unit = if place.keyframe { IDR } else { SLICE };
    if place.first && place.keyframe {
        put(payload, 0, &[0x78, 0, SPS.len() as u8]);
        put(payload, 3, &SPS);
        put(payload, 13, &[0, PPS.len() as u8]);
        put(payload, 15, &PPS);
        let slice = payload.len().saturating_sub(21) as u16;
        let [high, low] = slice.to_be_bytes();
        put(payload, 19, &[high, low, unit]);
    } else if place.first && place.last {
        put(payload, 0, &[unit]);
    } else {
        let start = if place.first { 0x80 } else { 0 };
        let end = if place.last { 0x40 } else { 0 };
        put(
            payload,
            0,
            &[(unit & 0x60) | 28, start | end | (unit & 0x1F)],
        );
    }
}

fn put(payload: &mut [u8], at: usize, bytes: &[u8]) {
    if let Some(place) = payload.get_mut(at..at + bytes.len()) {
        place.copy_from_slice(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use portunus_rtp::codec;

    #[test]
    fn keyframes_are_seen_as_such() {
        for keyframe in [true, false] {
            let place = Place {
                frame: 0x1234,
                keyframe,
                first: true,
                last: false,
                temporal_layers: 2,
            };
            let mut payload = [0; 60];
            write_video(VideoCodec::Vp8, place, &mut payload);
            assert_eq!(
                codec::is_keyframe(codec::VideoCodec::Vp8, &payload),
                keyframe
            );
            let mut payload = [0; 60];
            write_video(VideoCodec::H264, place, &mut payload);
            assert_eq!(
                codec::is_keyframe(codec::VideoCodec::H264, &payload),
                keyframe
            );
        }
    }

    #[test]
    fn short_payloads_are_no_harm() {
        for len in 0..30 {
            let place = Place {
                frame: 1,
                keyframe: true,
                first: true,
                last: true,
                temporal_layers: 3,
            };
            let mut payload = vec![0; len];
            write_video(VideoCodec::Vp8, place, &mut payload);
            write_video(VideoCodec::H264, place, &mut payload);
            write_audio(AudioCodec::Opus, &mut payload);
        }
    }
}
