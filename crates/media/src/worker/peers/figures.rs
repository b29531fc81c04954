//! The figures of a peer.

use std::time::Duration;

use portunus_rtc::Path;
use portunus_rtc::bandwidth::Estimate;
use portunus_rtc::connection::Media;
use portunus_rtc::streams::{ReceiveStream, SendStream};
use portunus_rtp::ExtensionKind;
use portunus_sdp::negotiated::Kind;

use super::Peer;
use crate::worker::graph::Graph;
use crate::{BandwidthStats, DtlsStats, IceStats, LayerStats, MediaStats, PeerStats, StreamStats};

impl Peer {
    /// The figures of a peer at present.
    pub(in crate::worker) fn figures(&self, graph: &Graph) -> PeerStats {
        let transport = &self.connection.transport;
        let lines = self.connection.media().iter().enumerate();
        let lines = lines.filter(|(_, media)| media.kind != Kind::Data);
        let estimate = self.connection.bandwidth();
        let extensions = self.connection.extensions();
        PeerStats {
            ice: IceStats {
                state: Some(self.ice),
                controlling: self.controlling,
                selected: transport.selected_pair().map(Path::from),
                round_trip: transport.rtt(),
                ..IceStats::default()
            },
            dtls: DtlsStats {
                state: self.dtls,
                srtp_profile: transport.profile().map(|profile| profile.name()),
                ..DtlsStats::default()
            },
            extensions: extensions.iter().collect(),
            transport_cc: extensions.id(ExtensionKind::TransportCc),
            media: lines
                .map(|(index, media)| MediaStats {
                    mid: media.mid,
                    index,
                    kind: media.kind,
                    send: media.send,
                    receive: media.recv,
                    payloads: Vec::new(),
                    nacks: false,
                    nack_queue: Duration::ZERO,
                    rids: Vec::new(),
                    received: media
                        .received()
                        .map(|stream| stream.map_or_else(StreamStats::default, received))
                        .collect(),
                    sent: media
                        .sent()
                        .map_or_else(StreamStats::default, |stream| sent(stream, media)),
                    layers: self.layers(index, graph),
                    messages: None,
                })
                .collect(),
            bandwidth: estimate.filter(|_| self.is_recorded).map(bandwidth),
            received_datagrams: transport.counters().received,
            refused: self.refused,
            ..PeerStats::default()
        }
    }

    /// What was decided for an outgoing m-line.
    fn layers(&self, index: usize, graph: &Graph) -> Option<LayerStats> {
        let sink = self.tracks.get(index)?.sink.as_ref()?;
        let decision = graph.route(sink.route?)?.decision?;
        let target = decision.target;
        Some(LayerStats {
            substream: target.map(|target| target.encoding),
            spatial: target.map(|target| target.spatial),
            temporal: target.map(|target| target.temporal),
            bitrate: decision.rate.as_bps(),
            reason: decision.reason.name(),
            asked_of_publisher: decision.share.map(|share| share.as_bps()),
        })
    }
}

fn bandwidth(estimate: Estimate) -> BandwidthStats {
    BandwidthStats {
        estimate: estimate.rate.as_bps(),
        budget: estimate.budget.as_bps(),
        set_by: estimate.limit.name(),
        queue: estimate.queue,
        loss: estimate.loss,
        round_trip: estimate.round_trip,
        probing: estimate.is_probing,
    }
}

fn received(stream: &ReceiveStream) -> StreamStats {
    let counters = stream.counters();
    StreamStats {
        ssrc: Some(stream.ssrc()),
        packets: counters.packets,
        bytes: counters.bytes,
        lost: counters.lost,
        jitter: stream.jitter(),
        nacks: counters.nacks,
        retransmissions: counters.retransmissions,
        keyframe_requests: counters.keyframe_requests,
        ..StreamStats::default()
    }
}

fn sent(stream: &SendStream, media: &Media) -> StreamStats {
    let counters = stream.counters();
    let clock_rate = f64::from(media.clock_rate().max(1));
    StreamStats {
        ssrc: Some(stream.ssrc()),
        rtx_ssrc: stream.rtx_ssrc(),
        packets: counters.packets,
        bytes: counters.bytes,
        lost: counters.lost,
        nacks: counters.nacks,
        retransmissions: counters.retransmissions,
        keyframe_requests: counters.keyframe_requests,
        rtt: stream.round_trip(),
        jitter: Duration::from_secs_f64(f64::from(stream.remote_jitter()) / clock_rate),
        ..StreamStats::default()
    }
}
