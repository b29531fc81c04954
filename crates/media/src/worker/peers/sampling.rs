//! Samples the last second of a peer.

use std::time::{Duration, Instant};

use portunus_rtc::streams::{ReceiveStream, SendStream};
use portunus_sdp::negotiated::Kind;

use super::Peer;
use super::minute::{Link, Minute, StreamOf, Totals};
use crate::Layer;
use crate::worker::graph::Graph;

const SECOND: Duration = Duration::from_secs(1);

impl Peer {
    /// Takes the sample of the last second, if one has passed.
    pub(in crate::worker) fn sample(&mut self, graph: &Graph, now: Instant) {
        if self.record.minute().is_some_and(|it| !it.is_due(now)) {
            return;
        }
        // The first reports leave a second after the first packets.
        let begin = || Box::new(Minute::new(now.checked_sub(SECOND).unwrap_or(now)));
        let mut minute = self.record.take_minute().unwrap_or_else(begin);
        let link = Link {
            round_trip: self.round_trip(),
            estimate: self
                .connection
                .bandwidth()
                .filter(|_| self.sending.is_recorded())
                .map(|estimate| estimate.rate.as_bps()),
            layers: self.relayed_layers(graph).unwrap_or_default(),
        };
        let lines = self.connection.media().iter();
        let streams = lines.flat_map(|media| {
            let sent = media
                .sent()
                .map(|stream| (sent(stream), sent_totals(stream)));
            let received = media.received().flatten();
            let received = received.map(|stream| (received_of(stream), received_totals(stream)));
            received.chain(sent)
        });
        minute.take(streams, link, now);
        self.record.set_minute(minute);
    }

    /// The round trip by reports on media, or else by checks.
    fn round_trip(&self) -> Option<Duration> {
        let mut sent = self.connection.media().iter().filter_map(|it| it.sent());
        let reported = sent.find_map(SendStream::round_trip);
        reported.or_else(|| self.connection.transport.rtt())
    }

    /// The layers of the first outgoing video.
    fn relayed_layers(&self, graph: &Graph) -> Option<Layer> {
        let lines = self.connection.media().iter().zip(&self.tracks);
        let mut video = lines.filter(|(media, _)| media.kind == Kind::Video && media.send);
        video.find_map(|(_, track)| {
            let route = graph.route(track.sink.as_ref()?.route?)?;
            let source = graph.source(route.source)?;
            Some(route.selector.relayed(source.format.encodings))
        })
    }
}

/// The key of an outgoing stream.
pub(super) fn sent(stream: &SendStream) -> StreamOf {
    StreamOf {
        ssrc: stream.ssrc(),
        is_sent: true,
    }
}

/// The key of an incoming stream.
pub(super) fn received_of(stream: &ReceiveStream) -> StreamOf {
    StreamOf {
        ssrc: stream.ssrc(),
        is_sent: false,
    }
}

fn sent_totals(stream: &SendStream) -> Totals {
    let counters = stream.counters();
    Totals {
        packets: counters.packets as u32,
        bytes: counters.bytes as u32,
        lost: counters.lost as u32,
        repaired: counters.retransmissions as u32,
        keyframes: counters.keyframe_requests as u32,
    }
}

fn received_totals(stream: &ReceiveStream) -> Totals {
    let counters = stream.counters();
    Totals {
        packets: counters.packets as u32,
        bytes: counters.bytes as u32,
        lost: counters.lost as u32,
        repaired: counters.retransmissions as u32,
        keyframes: counters.keyframe_requests as u32,
    }
}
