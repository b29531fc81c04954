//! RTCP to a source: keyframe requests, and the bitrate that its viewers can take.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use portunus_graph::{ENCODINGS, Lowest};
use portunus_rtp::Ssrc;
use portunus_rtp::rtcp::{CompoundWriter, Pli, ReceiverReportWriter, RembWriter};
use smallvec::SmallVec;

use crate::node_link::NodeLinkId;

/// The minimum time between two keyframe requests for an encoding.
const SPACING: Duration = Duration::from_secs(1);
/// The same if another node is asked, which asks a peer as often at most.
const SPACING_OF_NODES: Duration = Duration::from_millis(300);

/// The destination of RTCP to a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Remote {
    /// The address that its RTCP comes from.
    Address(SocketAddr),
    /// The feed, which passes it on.
    Feed,
    /// The leg, which sends keyframe requests in its own reports.
    Leg,
    /// A worker of another node, by a link.
    Node(NodeLinkId, u16),
}

/// RTCP for a sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Feedback {
    /// Its length.
    pub(crate) len: usize,
    /// Where it goes.
    pub(crate) to: Remote,
    /// The number of keyframe requests in it.
    pub(crate) keyframes: u64,
}

/// RTCP to a source.
#[derive(Debug)]
pub(crate) struct Upstream {
    /// Our SSRC in RTCP.
    own: Ssrc,
    remote: Option<Remote>,
    spacing: Duration,
    encodings: [Encoding; ENCODINGS],
    lowest: Lowest,
}

#[derive(Debug, Clone, Copy, Default)]
struct Encoding {
    ssrc: Option<Ssrc>,
    keyframe_wanted: bool,
    asked: Option<Instant>,
}

impl Upstream {
    /// Returns the state before a destination is known.
    pub(crate) fn new(own: Ssrc) -> Self {
        Self {
            own,
            remote: None,
            spacing: SPACING,
            encodings: Default::default(),
            lowest: Lowest::default(),
        }
    }

    /// Sets the destination.
    pub(crate) fn latch(&mut self, remote: Remote) {
        self.remote = Some(remote);
    }

    /// Sets the link to another node, and our SSRC on it.
    pub(crate) fn join_link(&mut self, (link, far): (NodeLinkId, u16), own: Ssrc) {
        self.own = own;
        self.remote = Some(Remote::Node(link, far));
        self.spacing = SPACING_OF_NODES;
    }

    /// Sets the SSRC of an encoding.
    pub(crate) fn set_ssrc(&mut self, encoding: u8, ssrc: Ssrc) {
        if let Some(encoding) = self.encodings.get_mut(usize::from(encoding)) {
            encoding.ssrc = Some(ssrc);
        }
    }

    /// Requests a keyframe as soon as possible.
    pub(crate) fn want_keyframe(&mut self, encoding: u8) {
        if let Some(encoding) = self.encodings.get_mut(usize::from(encoding)) {
            encoding.keyframe_wanted = true;
        }
    }

    /// Notes a keyframe, so that none needs to be requested.
    pub(crate) fn keyframe_came(&mut self, encoding: u8) {
        if let Some(encoding) = self.encodings.get_mut(usize::from(encoding)) {
            encoding.keyframe_wanted = false;
        }
    }

    /// Notes the bitrate that a viewer can take, in bit/s.
    pub(crate) fn viewer_takes(&mut self, bitrate: u64, now: Instant) {
        self.lowest.note(bitrate, now);
    }

    /// When RTCP is due.
    pub(crate) fn poll_timeout(&self, now: Instant) -> Option<Instant> {
        self.remote?;
        let requests = self
            .encodings
            .iter()
            .filter_map(|e| e.due(self.spacing, now));
        requests.chain(self.lowest.due()).min()
    }

    /// Writes the RTCP that is due.
    pub(crate) fn poll_transmit(&mut self, now: Instant, out: &mut [u8]) -> Option<Feedback> {
        let to = self.remote?;
        let mut writer = CompoundWriter::new(out);
        let own = self.own;
        let mut keyframes = 0;
        // A compound packet starts with a report (RFC 3550 section 6.1).
        let report = ReceiverReportWriter {
            ssrc: own,
            blocks: &[],
        };
        for encoding in &mut self.encodings {
            if encoding.due(self.spacing, now).is_none_or(|due| due > now) {
                continue;
            }
            let Some(media) = encoding.ssrc else { continue };
            encoding.keyframe_wanted = false;
            encoding.asked = Some(now);
            if writer.is_empty() {
                writer.push(&report).ok()?;
            }
            writer.push(&Pli { sender: own, media }).ok()?;
            keyframes += 1;
        }
        if self.lowest.due().is_some_and(|due| due <= now)
            && let Some(bitrate) = self.lowest.take(now)
        {
            let ssrcs: SmallVec<[Ssrc; ENCODINGS]> =
                self.encodings.iter().filter_map(|e| e.ssrc).collect();
            if writer.is_empty() {
                writer.push(&report).ok()?;
            }
            let remb = RembWriter {
                sender: own,
                bitrate,
                ssrcs: &ssrcs,
            };
            writer.push(&remb).ok()?;
        }
        let len = writer.len();
        (len > 0).then_some(Feedback { len, to, keyframes })
    }
}

impl Encoding {
    fn due(&self, spacing: Duration, now: Instant) -> Option<Instant> {
        self.ssrc.filter(|_| self.keyframe_wanted)?;
        Some(self.asked.map_or(now, |asked| asked + spacing))
    }
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::indexing_slicing,
        reason = "a failed test panics"
    )]
    use portunus_rtp::rtcp::{Compound, Packet};

    use super::*;

    fn told(upstream: &mut Upstream, now: Instant) -> Vec<String> {
        let mut out = [0; 256];
        let Some(told) = upstream.poll_transmit(now, &mut out) else {
            return Vec::new();
        };
        let packets = Compound::new(&out[..told.len]).map(|packet| match packet.unwrap() {
            Packet::ReceiverReport(_) => "report".to_owned(),
            Packet::Pli(pli) => format!("keyframe of {}", pli.media.0),
            Packet::Remb(remb) => format!("{} bit/s for {}", remb.bitrate, remb.ssrcs().len()),
            other => format!("{other:?}"),
        });
        packets.collect()
    }

    fn ready(now: Instant) -> (Upstream, Instant) {
        let mut upstream = Upstream::new(Ssrc(7));
        upstream.latch(Remote::Address("192.0.2.1:5005".parse().unwrap()));
        upstream.set_ssrc(0, Ssrc(1));
        (upstream, now)
    }

    #[test]
    fn keyframes_are_asked_for_once_a_second_and_none_is_forgotten() {
        let (mut upstream, start) = ready(Instant::now());
        let at = |ms| start + Duration::from_millis(ms);
        assert_eq!(upstream.poll_timeout(at(0)), None);
        upstream.want_keyframe(0);
        assert_eq!(upstream.poll_timeout(at(0)), Some(at(0)));
        assert_eq!(told(&mut upstream, at(0)), ["report", "keyframe of 1"]);
        upstream.want_keyframe(0);
        assert!(told(&mut upstream, at(400)).is_empty());
        assert_eq!(upstream.poll_timeout(at(400)), Some(at(1_000)));
        assert_eq!(told(&mut upstream, at(1_000)), ["report", "keyframe of 1"]);
        assert_eq!(upstream.poll_timeout(at(1_000)), None);
        // A keyframe that comes by itself serves as well.
        upstream.want_keyframe(0);
        upstream.keyframe_came(0);
        assert_eq!(upstream.poll_timeout(at(1_100)), None);
    }

    #[test]
    fn a_request_waits_for_the_way_and_the_sender() {
        let start = Instant::now();
        let mut upstream = Upstream::new(Ssrc(7));
        upstream.want_keyframe(1);
        assert_eq!(upstream.poll_timeout(start), None);
        upstream.latch(Remote::Address("192.0.2.1:5005".parse().unwrap()));
        assert_eq!(upstream.poll_timeout(start), None);
        upstream.set_ssrc(1, Ssrc(9));
        assert_eq!(told(&mut upstream, start), ["report", "keyframe of 9"]);
    }

    #[test]
    fn the_lowest_bitrate_is_told_once_a_second() {
        let (mut upstream, start) = ready(Instant::now());
        let at = |ms| start + Duration::from_millis(ms);
        upstream.viewer_takes(3_000_000, at(0));
        upstream.viewer_takes(1_000_000, at(10));
        upstream.viewer_takes(2_000_000, at(20));
        assert!(told(&mut upstream, at(999)).is_empty());
        assert_eq!(
            told(&mut upstream, at(1_000)),
            ["report", "1000000 bit/s for 1"]
        );
        // The lowest of the last second counts still, that of the one before no more.
        upstream.viewer_takes(2_000_000, at(1_100));
        assert_eq!(
            told(&mut upstream, at(2_100)),
            ["report", "1000000 bit/s for 1"]
        );
        upstream.viewer_takes(2_000_000, at(2_200));
        let last = told(&mut upstream, at(3_200));
        assert_eq!(last, ["report", "2000000 bit/s for 1"]);
    }
}
