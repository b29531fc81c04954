//! The RTP packets of one source.

use std::time::Duration;

use portunus_rtp::header::{Fields, write_header};
use portunus_rtp::{Pt, Ssrc};

use super::payload::{self, Place};
use super::{AUDIO, Stamp, VIDEO, VideoCodec, wall_clock};
use crate::traffic::{AUDIO_PERIOD, Traffic};

/// The payload type of audio; a mountpoint writes its own.
pub const AUDIO_PT: Pt = Pt(111);
/// The payload type of video; a mountpoint writes its own.
pub const VIDEO_PT: Pt = Pt(96);

/// Makes the packets of a video stream and an audio stream.
#[derive(Debug)]
pub struct Packets {
    traffic: Traffic,
    codec: VideoCodec,
    /// Frames between two keyframes.
    keyframe_period: u64,
    frame: u64,
    video: Stream,
    audio: Stream,
    buffer: Vec<u8>,
}

#[derive(Debug)]
struct Stream {
    index: usize,
    pt: Pt,
    ssrc: Ssrc,
    timestamp: u32,
    /// Packets made so far.
    number: u64,
}

impl Packets {
    /// A source's packets, with a keyframe every `keyframes`.
    pub fn new(traffic: Traffic, codec: VideoCodec, keyframes: Duration) -> Self {
        let frames = keyframes.as_secs_f64() * f64::from(traffic.fps);
        Self {
            codec,
            keyframe_period: (frames.round() as u64).max(1),
            frame: 0,
            video: Stream::new(VIDEO, VIDEO_PT),
            audio: Stream::new(AUDIO, AUDIO_PT),
            buffer: vec![0x5A; 1 << 11],
            traffic,
        }
    }

    /// Sends a stream with this payload type and SSRC.
    pub fn set_stream(&mut self, stream: usize, pt: Pt, ssrc: Ssrc) {
        for made in [&mut self.video, &mut self.audio] {
            if made.index == stream {
                (made.pt, made.ssrc) = (pt, ssrc);
            }
        }
    }

    /// Gives the packets of the next video frame to `send`, each stamped just before, with the length
    /// of its header and the number of the packet in its stream.
    pub fn frame(&mut self, mut send: impl FnMut(usize, u64, &mut [u8])) {
        let sizes = self.traffic.frame(self.frame);
        let keyframe = self.frame.is_multiple_of(self.keyframe_period);
        for (n, size) in sizes.iter().enumerate() {
            let place = Place {
                frame: self.frame,
                keyframe,
                first: n == 0,
                last: n + 1 == sizes.len(),
            };
            let codec = self.codec;
            let write = |payload: &mut [u8]| payload::write_video(codec, place, payload);
            let stream = &mut self.video;
            stream.packet(&mut self.buffer, *size, place.last, write, &mut send);
        }
        self.frame += 1;
        let ticks = 90_000 / self.traffic.fps;
        self.video.timestamp = self.video.timestamp.wrapping_add(ticks);
    }

    /// Gives the next audio packet to `send`, as [`Packets::frame`] does.
    pub fn audio(&mut self, mut send: impl FnMut(usize, u64, &mut [u8])) {
        let size = self.traffic.audio_packet_bytes();
        let stream = &mut self.audio;
        stream.packet(
            &mut self.buffer,
            size,
            false,
            payload::write_opus,
            &mut send,
        );
        let ticks = (AUDIO_PERIOD.as_millis() as u32) * 48;
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
        }
    }

    fn packet(
        &mut self,
        buffer: &mut [u8],
        size: usize,
        marker: bool,
        write: impl FnOnce(&mut [u8]),
        send: &mut impl FnMut(usize, u64, &mut [u8]),
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
        let Ok(header) = write_header(packet, &fields, []) else {
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
        send(header, self.number, packet);
        self.number += 1;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::traffic::Sizes;
    use portunus_rtp::Header;

    #[test]
    fn packets_have_the_asked_sizes_stamps_and_marks() {
        let traffic = Traffic {
            video_bps: 2_000_000,
            fps: 30,
            packets_per_frame: Some(7),
            sizes: Sizes::AlmostEqual,
            audio_bps: 32_000,
        };
        let mut packets = Packets::new(traffic.clone(), VideoCodec::Vp8, Duration::from_secs(1));
        let mut seen = 0;
        for frame in 0..3 {
            let mut sizes = Vec::new();
            packets.frame(|header, number, packet| {
                let parsed = Header::parse(packet).unwrap();
                assert_eq!(parsed.header_len(), header);
                assert_eq!(u64::from(parsed.sequence), number);
                assert_eq!(parsed.marker, sizes.len() == 6);
                let stamp = Stamp::read(parsed.payload(packet)).unwrap();
                assert_eq!((stamp.number, stamp.stream), (seen, 0));
                seen += 1;
                sizes.push(packet.len());
            });
            assert_eq!(sizes, traffic.frame(frame));
        }
        packets.audio(|_, number, packet| {
            assert_eq!((number, packet.len()), (0, 80));
        });
    }
}
