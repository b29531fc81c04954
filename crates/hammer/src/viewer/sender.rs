//! The sending of a participant's media.

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use portunus_rtc::Transport;
use portunus_rtp::{Pt, SeqNo, Ssrc};
use portunus_udp::{Destination, SendBatch};

use super::way::Way;
use crate::source::{AUDIO, Due, Lateness, Made, Packets, Sent, SourceConfig, VIDEO};
use crate::traffic::AUDIO_PERIOD;

/// The most that sealing adds to a packet, in bytes.
pub(super) const MAX_TAG: usize = 16;

/// The payload type and SSRC of video and audio that may be sent.
pub(crate) type Streams = [Option<(Pt, Ssrc)>; 2];

/// The header extensions of simulcast layers, the highest first.
pub(crate) type Layers = [Vec<(u8, String)>; 3];

/// Creates and sends a participant's own media, paced by frame.
#[derive(Debug)]
pub(crate) struct Sender {
    packets: Packets,
    /// The streams.
    config: SourceConfig,
    sends: [bool; 2],
    video: Option<Due>,
    audio: Option<Due>,
    /// The count of sent packets for others.
    counted: Option<Arc<Sent>>,
    /// The share of a frame's time after the common start of all.
    phase: f64,
}

impl Sender {
    /// Creates a sender of `config` with these payload types and SSRCs. Sent packets are counted in
    /// `counted`. `phase` (0 to 1) separates its frames from those of others.
    pub(crate) fn new(
        config: &SourceConfig,
        streams: Streams,
        layers: Option<Layers>,
        counted: Option<Arc<Sent>>,
        phase: f64,
    ) -> Self {
        let mut packets = Packets::new(config);
        let mut sends = [false; 2];
        for (stream, sends) in sends.iter_mut().enumerate() {
            let Some((pt, ssrc)) = streams.get(stream).copied().flatten() else {
                continue;
            };
            *sends = match stream {
                VIDEO => config.traffic.video_bps > 0,
                AUDIO => config.traffic.audio_bps > 0,
                _ => false,
            };
            packets.set_stream(stream, pt, ssrc);
        }
        if let Some(layers) = layers {
            packets.set_layers(layers);
        }
        Self {
            packets,
            config: config.clone(),
            sends,
            video: None,
            audio: None,
            counted,
            phase: if config.aligned { 0.0 } else { phase },
        }
    }

    /// Starts to send at `now`.
    pub(super) fn start(&mut self, now: Instant) {
        let [video, audio] = self.sends;
        let due = |period| Due::in_phase(common_start(), self.phase, period, now);
        self.video = video.then(|| due(self.config.traffic.frame_period()));
        self.audio = audio.then(|| due(AUDIO_PERIOD));
    }

    /// Makes the next frame a keyframe.
    pub(super) fn want_keyframe(&mut self) {
        self.packets.want_keyframe();
    }

    /// Returns the next deadline of [`Sender::send`].
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        [self.video, self.audio].iter().flatten().map(Due::at).min()
    }

    /// Sends what is due. Returns the number of packets.
    pub(super) fn send(
        &mut self,
        now: Instant,
        transport: &Transport,
        way: &Way,
        out: &mut SendBatch,
        lateness: &Lateness,
    ) -> u64 {
        let Some(to) = transport.selected_pair().map(|pair| pair.remote) else {
            return 0;
        };
        let to = way.destination(out, to);
        let mut sent = 0;
        let counted = self.counted.as_deref();
        let mut put = |made: &Made, packet: &mut [u8]| {
            if seal(transport, &to, made, packet, way, out) {
                sent += 1;
                if let Some(counted) = counted {
                    counted.count(made.stream, 1);
                }
            }
        };
        if let Some(late) = self.video.as_mut().and_then(|due| due.take(now)) {
            lateness.note(late);
            self.packets.frame(&mut put);
        }
        if let Some(late) = self.audio.as_mut().and_then(|due| due.take(now)) {
            lateness.note(late);
            self.packets.audio(&mut put);
        }
        way.leave(out);
        sent
    }
}

/// Returns the common start of all senders' phases.
pub(super) fn common_start() -> Instant {
    static START: OnceLock<Instant> = OnceLock::new();
    *START.get_or_init(Instant::now)
}

/// Adds a sealed packet to the batch. Returns whether it succeeded.
fn seal(
    transport: &Transport,
    to: &Destination,
    made: &Made,
    packet: &[u8],
    way: &Way,
    out: &mut SendBatch,
) -> bool {
    let Some(buffer) = out.room(way).get_mut(..packet.len() + MAX_TAG) else {
        return false;
    };
    let (plain, _) = buffer.split_at_mut(packet.len());
    plain.copy_from_slice(packet);
    match transport.seal_rtp(SeqNo(made.number), made.header, packet.len(), buffer) {
        Ok(len) => {
            out.commit(len, to);
            true
        }
        Err(_) => false,
    }
}
