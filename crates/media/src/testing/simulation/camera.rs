//! A publisher: a camera whose encoders produce layers, and their packets.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a simulation that cannot be set up has failed"
)]

use std::time::{Duration, Instant};

use portunus_rtc::Received;
use portunus_rtc::bandwidth::Layering;
use portunus_rtc::testing::{AUDIO_PT, Frame, Publisher, Side, VIDEO_PT};
use portunus_rtp::rtcp::{Compound, Packet};
use portunus_rtp::{Fields, Mid, SeqNo, Ssrc, write_header};
use portunus_sdp::negotiated::Codec;

use super::picture::Picture;

/// The payload size of a packet.
const PACKET: usize = 1_150;
const AUDIO_INTERVAL: Duration = Duration::from_millis(20);
const AUDIO_BYTES: usize = 100;
/// How fast an encoder follows a higher bitrate, as a factor per second.
const RISE: f64 = 1.2;

/// A publisher of video in layers, and audio.
#[derive(Debug)]
pub struct Camera {
    /// The film and its encoding.
    pub publisher: Publisher,
    /// The last bitrate cap of the server, in bit/s.
    pub asked: Option<u64>,
    /// It follows the cap, up to this bitrate in kbit/s.
    pub obeys: Option<u64>,
    /// Keyframe requests that arrived.
    pub keyframe_requests: usize,
    /// Keyframe requests get lost.
    pub is_deaf: bool,
    /// Payloads are encrypted end to end: bytes behind the codec's descriptor are random, except
    /// for this number.
    pub encrypted_after: Option<usize>,
    pub(super) side: Side,
    pub(super) codec: Codec,
    ssrc: u32,
    next: [SeqNo; 3],
    next_audio: (Instant, SeqNo),
    adjusted: Instant,
}

impl Camera {
    pub(super) fn new(
        side: Side,
        codec: Codec,
        publisher: Publisher,
        ssrc: u32,
        now: Instant,
    ) -> Self {
        Self {
            publisher,
            asked: None,
            obeys: None,
            keyframe_requests: 0,
            is_deaf: false,
            encrypted_after: None,
            side,
            codec,
            ssrc,
            next: [SeqNo(1); 3],
            next_audio: (now, SeqNo(1)),
            adjusted: now,
        }
    }

    /// The SSRC of an encoding.
    pub(super) fn ssrc(first: u32, encoding: usize) -> Ssrc {
        Ssrc(first + encoding as u32)
    }

    /// The SSRC of the audio.
    pub(super) fn audio_ssrc(first: u32) -> Ssrc {
        Ssrc(first + 9)
    }

    /// Takes a datagram of the server.
    pub(super) fn receive(
        &mut self,
        now: Instant,
        server: std::net::SocketAddr,
        datagram: &mut [u8],
    ) {
        let own = self.side.config.candidates[0].base;
        let received = self.side.transport.receive(now, own, server, datagram);
        let Received::Rtcp { len } = received else {
            return;
        };
        for packet in Compound::new(&datagram[..len]).flatten() {
            match packet {
                Packet::Pli(pli) => {
                    self.keyframe_requests += 1;
                    let layer = pli.media.0.saturating_sub(self.ssrc) as u8;
                    if !self.is_deaf {
                        self.publisher.request_keyframe(layer, now);
                    }
                }
                Packet::Remb(remb) => self.asked = Some(remb.bitrate),
                _ => {}
            }
        }
    }

    /// Returns the datagrams to send at `now`.
    pub(super) fn film(&mut self, now: Instant) -> Vec<Vec<u8>> {
        self.obey(now);
        let mut datagrams = Vec::new();
        let frames = self.publisher.poll(now);
        let top = frames.last().map(|frame| frame.layer);
        for frame in &frames {
            let packets = frame.bytes.div_ceil(PACKET).max(1);
            let lost = self.publisher.loses();
            for n in 0..packets {
                let last = n + 1 == packets;
                let bytes = (frame.bytes - n * PACKET).min(PACKET);
                let marker = match self.publisher.layering {
                    Layering::Encodings => last,
                    Layering::Spatial => last && Some(frame.layer) == top,
                };
                let datagram = self.video(frame, (n, packets), bytes, marker);
                if !lost {
                    datagrams.push(datagram);
                }
            }
        }
        if !self.publisher.paused && self.next_audio.0 <= now {
            self.next_audio.0 += AUDIO_INTERVAL;
            datagrams.push(self.audio());
        }
        datagrams
    }

    /// Follows the cap: down immediately, up slowly.
    fn obey(&mut self, now: Instant) {
        let (Some(most), Some(asked)) = (self.obeys, self.asked) else {
            return;
        };
        let since = now.saturating_duration_since(self.adjusted).as_secs_f64();
        if since < 0.1 {
            return;
        }
        self.adjusted = now;
        let present = self.publisher.kbps[0] as f64;
        let most = (asked / 1_000).min(most) as f64;
        self.publisher.kbps[0] = most.min(present * RISE.powf(since) + 1.0) as u64;
    }

    fn video(
        &mut self,
        frame: &Frame,
        (n, packets): (usize, usize),
        bytes: usize,
        marker: bool,
    ) -> Vec<u8> {
        let layering = self.publisher.layering;
        let encoding = match layering {
            Layering::Encodings => usize::from(frame.layer),
            Layering::Spatial => 0,
        };
        let picture = Picture {
            number: frame.number as u32,
            layer: frame.layer,
            packets: packets as u16,
        };
        let mut payload = picture.write(self.codec, layering, frame, (n, packets), bytes);
        if let Some(clear) = self.encrypted_after {
            picture.scramble(self.codec, clear, &mut payload);
        }
        let fields = Fields {
            marker,
            padding: false,
            pt: VIDEO_PT,
            sequence: self.next[encoding].wire(),
            timestamp: (frame.number as u32).wrapping_mul(3_000),
            ssrc: Self::ssrc(self.ssrc, encoding),
        };
        let seq = self.next[encoding];
        self.next[encoding] = SeqNo(seq.0 + 1);
        self.seal(&fields, "0", seq, &payload)
    }

    fn audio(&mut self) -> Vec<u8> {
        let seq = self.next_audio.1;
        self.next_audio.1 = SeqNo(seq.0 + 1);
        let fields = Fields {
            marker: false,
            padding: false,
            pt: AUDIO_PT,
            sequence: seq.wire(),
            timestamp: (seq.0 as u32).wrapping_mul(960),
            ssrc: Self::audio_ssrc(self.ssrc),
        };
        self.seal(&fields, "1", seq, &[7; AUDIO_BYTES])
    }

    fn seal(&self, fields: &Fields, mid: &str, seq: SeqNo, payload: &[u8]) -> Vec<u8> {
        let mut datagram = vec![0; 2_048];
        let mid = Mid::new(mid).expect("a valid mid");
        let extensions = [(1, mid.as_bytes())];
        let header = write_header(&mut datagram, fields, extensions).expect("room");
        let end = header + payload.len();
        datagram[header..end].copy_from_slice(payload);
        let transport = &self.side.transport;
        let len = transport.seal_rtp(seq, header, end, &mut datagram);
        datagram.truncate(len.unwrap_or(0));
        datagram
    }
}
