//! The RTP packets of one source.

use portunus_dsp::AudioCodec;
use portunus_rtp::header::{Fields, write_header};
use portunus_rtp::{Pt, Ssrc};

use super::payload::{self, Place};
use super::{AUDIO, LOWER, SourceConfig, Stamp, VIDEO, VideoCodec};
use crate::machine::wall_clock;
use crate::traffic::{AUDIO_PERIOD, Traffic};

/// The payload type of audio. A mountpoint replaces it.
pub const AUDIO_PT: Pt = Pt(111);
/// The payload type of video. A mountpoint replaces it.
pub const VIDEO_PT: Pt = Pt(96);

/// The highest layer's bit rate divided by that of lower ones: about that of browsers for half and
/// a quarter of the size.
const LOWER_SHARES: [u64; LOWER.len()] = [4, 12];

/// Creates the packets of a video stream, which may have simulcast layers, and of an audio stream.
#[derive(Debug)]
pub struct Packets {
    traffic: Traffic,
    codec: VideoCodec,
    audio_codec: AudioCodec,
    temporal_layers: u8,
    /// Frames between two keyframes.
    keyframe_period: u64,
    keyframe_wanted: bool,
    frame: u64,
    /// The highest layer first.
    video: Vec<(Traffic, Stream)>,
    audio: Stream,
    buffer: Vec<u8>,
}

/// A created packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Made {
    /// The index of its stream.
    pub stream: usize,
    /// The length of its header.
    pub header: usize,
    /// The number in the stream, from 0.
    pub number: u64,
}

#[derive(Debug)]
struct Stream {
    index: usize,
    pt: Pt,
    ssrc: Ssrc,
    timestamp: u32,
    /// Packets created so far.
    number: u64,
    /// The ids and values of header extensions.
    extensions: Vec<(u8, String)>,
}

impl Packets {
    /// Creates the streams of `config`. Simulcast layers are not created before
    /// [`Packets::set_layers`].
    pub fn new(config: &SourceConfig) -> Self {
        let traffic = config.traffic.clone();
        let frames = config.keyframes.as_secs_f64() * f64::from(traffic.fps);
        Self {
            codec: config.codec,
            audio_codec: config.audio_codec,
            temporal_layers: config.temporal_layers,
            keyframe_period: (frames.round() as u64).max(1),
            keyframe_wanted: false,
            frame: 0,
            video: vec![(traffic.clone(), Stream::new(VIDEO, VIDEO_PT))],
            audio: Stream::new(AUDIO, AUDIO_PT),
            buffer: vec![0x5A; 1 << 11],
            traffic,
        }
    }

    /// Sets the payload type and SSRC of video or audio.
    pub fn set_stream(&mut self, stream: usize, pt: Pt, ssrc: Ssrc) {
        let video = self.video.iter_mut().map(|(_, stream)| stream);
        for made in video.chain([&mut self.audio]) {
            if made.index == stream {
                (made.pt, made.ssrc) = (pt, ssrc);
            }
        }
    }

    /// Creates lower layers of the video, too. `extensions` are those of the highest and of the
    /// lower ones.
    pub fn set_layers(&mut self, extensions: [Vec<(u8, String)>; 1 + LOWER.len()]) {
        let [highest, lower @ ..] = extensions;
        let Some((_, video)) = self.video.first_mut() else {
            return;
        };
        video.extensions = highest;
        let (pt, ssrc) = (video.pt, video.ssrc);
        for (n, extensions) in (1u32..).zip(lower) {
            let at = n as usize - 1;
            let (Some(index), Some(share)) = (LOWER.get(at), LOWER_SHARES.get(at)) else {
                return;
            };
            let traffic = Traffic {
                video_bps: self.traffic.video_bps / share,
                packets_per_frame: None,
                ..self.traffic.clone()
            };
            let stream = Stream {
                ssrc: Ssrc(ssrc.0.wrapping_add(n)),
                extensions,
                ..Stream::new(*index, pt)
            };
            self.video.push((traffic, stream));
        }
    }

    /// Makes the next frame a keyframe, for a viewer that lost the picture.
    pub fn want_keyframe(&mut self) {
        self.keyframe_wanted = true;
    }

    /// Passes the packets of the next video frame to `send`, each stamped just before.
    pub fn frame(&mut self, mut send: impl FnMut(&Made, &mut [u8])) {
        let keyframe = self.frame.is_multiple_of(self.keyframe_period)
            || std::mem::take(&mut self.keyframe_wanted);
        let ticks = 90_000 / self.traffic.fps;
        for (traffic, stream) in &mut self.video {
            let sizes = traffic.frame(self.frame);
            for (n, size) in sizes.iter().enumerate() {
                let place = Place {
                    frame: self.frame,
                    keyframe,
                    first: n == 0,
                    last: n + 1 == sizes.len(),
                    temporal_layers: self.temporal_layers,
                };
                let codec = self.codec;
                let write = |payload: &mut [u8]| payload::write_video(codec, place, payload);
                stream.packet(&mut self.buffer, *size, place.last, write, &mut send);
            }
            stream.timestamp = stream.timestamp.wrapping_add(ticks);
        }
        self.frame += 1;
    }

    /// Passes the next audio packet to `send`, like [`Packets::frame`].
    pub fn audio(&mut self, mut send: impl FnMut(&Made, &mut [u8])) {
        let size = self.traffic.audio_packet_bytes();
        let stream = &mut self.audio;
        let codec = self.audio_codec;
        let write = |payload: &mut [u8]| payload::write_audio(codec, payload);
        stream.packet(&mut self.buffer, size, false, write, &mut send);
        let ticks = (AUDIO_PERIOD.as_millis() as u32) * (codec.clock_rate() / 1_000);
        stream.timestamp = stream.timestamp.wrapping_add(ticks);
    }
}

impl Stream {
    fn new(index: usize, pt: Pt) -> Self {
        Self {
            index,
            pt,
            ssrc: Ssrc(rand::random()),
            timestamp: rand::random(),
            number: 0,
            extensions: Vec::new(),
        }
    }

    fn packet(
        &mut self,
        buffer: &mut [u8],
        size: usize,
        marker: bool,
        write: impl FnOnce(&mut [u8]),
        send: &mut impl FnMut(&Made, &mut [u8]),
    ) {
        let fields = Fields {
            marker,
            padding: false,
            pt: self.pt,
            sequence: self.number as u16,
            timestamp: self.timestamp,
            ssrc: self.ssrc,
        };
        let Some(packet) = buffer.get_mut(..size) else {
            return;
        };
        let extensions = self.extensions.iter();
        let extensions = extensions.map(|(id, value)| (*id, value.as_bytes()));
        let Ok(header) = write_header(packet, &fields, extensions) else {
            return;
        };
        if let Some(payload) = packet.get_mut(header..) {
            write(payload);
            let stamp = Stamp {
                stream: self.index as u8,
                number: self.number,
                sent: wall_clock(),
            };
            stamp.write(payload);
        }
        let made = Made {
            stream: self.index,
            header,
            number: self.number,
        };
        send(&made, packet);
        self.number += 1;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;
    use crate::traffic::Sizes;
    use portunus_rtp::Header;
    use std::time::Duration;

    #[test]
    fn packets_have_the_asked_sizes_stamps_and_marks() {
        let traffic = Traffic {
            video_bps: 2_000_000,
            fps: 30,
            packets_per_frame: Some(7),
            sizes: Sizes::AlmostEqual,
            audio_bps: 32_000,
        };
        let config = SourceConfig {
            keyframes: Duration::from_secs(1),
            ..SourceConfig::of(traffic.clone())
        };
        let mut packets = Packets::new(&config);
        let mut seen = 0;
        for frame in 0..3 {
            let mut sizes = Vec::new();
            packets.frame(|made, packet| {
                let parsed = Header::parse(packet).unwrap();
                assert_eq!(parsed.header_len(), made.header);
                assert_eq!(u64::from(parsed.sequence), made.number);
                assert_eq!(parsed.marker, sizes.len() == 6);
                let stamp = Stamp::read(parsed.payload(packet)).unwrap();
                assert_eq!((stamp.number, stamp.stream), (seen, 0));
                seen += 1;
                sizes.push(packet.len());
            });
            assert_eq!(sizes, traffic.frame(frame));
        }
        packets.audio(|made, packet| {
            assert_eq!((made.number, packet.len()), (0, 80));
        });
    }

    #[test]
    fn layers_have_their_rids_and_bit_rates() {
        let traffic = Traffic {
            video_bps: 1_200_000,
            fps: 30,
            packets_per_frame: None,
            sizes: Sizes::Equal,
            audio_bps: 0,
        };
        let mut packets = Packets::new(&SourceConfig::of(traffic));
        let rid = |rid: &str| vec![(2u8, rid.to_owned())];
        packets.set_layers([rid("h"), rid("m"), rid("l")]);
        let mut bytes = [0; 4];
        let mut ssrcs = std::collections::BTreeSet::new();
        for _ in 0..30 {
            packets.frame(|made, packet| {
                let header = Header::parse(packet).unwrap();
                assert_eq!(header.extensions(packet).count(), 1);
                ssrcs.insert(header.ssrc.0);
                *bytes.get_mut(made.stream).unwrap() += packet.len() * 8;
            });
        }
        assert_eq!(ssrcs.len(), 3);
        assert!(
            bytes
                .iter()
                .zip([1_200_000, 0, 300_000, 100_000])
                .all(|(bits, wanted)| bits.abs_diff(wanted) < 20_000)
        );
    }
}
