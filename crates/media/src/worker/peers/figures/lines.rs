//! Statistics of m-lines and their streams.

use std::time::{Duration, Instant};

use portunus_rtc::connection::Media;
use portunus_rtc::streams::{ReceiveStream, SendStream};
use portunus_sdp::negotiated::Kind;

use super::super::minute::{Second, StreamOf};
use super::super::{Peer, sampling};
use super::traffic;
use crate::worker::graph::{Graph, Route};
use crate::{LayerStats, MediaStats, MessageStats, PayloadStats, ReportTimes, StreamStats};

impl Peer {
    pub(super) fn line_figures(
        &self,
        index: usize,
        media: &Media,
        graph: &Graph,
        now: Instant,
    ) -> MediaStats {
        let payloads = media.payloads().iter();
        let received = media.received().enumerate();
        let sent = media.sent();
        MediaStats {
            mid: media.mid,
            index,
            kind: media.kind,
            send: media.send,
            receive: media.recv,
            payloads: payloads
                .map(|payload| PayloadStats {
                    pt: payload.pt,
                    codec: payload.codec,
                    clock_rate: payload.clock_rate,
                    rtx: payload.rtx,
                })
                .collect(),
            nacks: media.payloads().iter().any(|it| it.feedback.nack),
            nack_queue: graph.nack_queue(media.kind),
            rids: self.connection.rids(index).to_vec(),
            received: received
                .map(|(encoding, stream)| {
                    stream.map_or_else(StreamStats::default, |stream| {
                        self.received((index, encoding), stream, graph, now)
                    })
                })
                .collect(),
            sent: sent.map_or_else(StreamStats::default, |stream| {
                self.sent((index, media), stream, graph, now)
            }),
            layers: self.layers(index, graph, now),
            messages: (media.kind == Kind::Data).then(|| self.messages()),
        }
    }

    fn received(
        &self,
        (index, encoding): (usize, usize),
        stream: &ReceiveStream,
        graph: &Graph,
        now: Instant,
    ) -> StreamStats {
        let counters = stream.counters();
        let encoding = u8::try_from(encoding).unwrap_or(u8::MAX);
        let source = self.tracks.get(index).and_then(|track| track.source);
        let source = source.and_then(|key| graph.source(key));
        let keyframe = source.and_then(|source| source.last_keyframe(encoding));
        let second = self.second(sampling::received_of(stream));
        let (link_quality, media_link_quality) = second.qualities(false);
        StreamStats {
            ssrc: Some(stream.ssrc()),
            rtx_ssrc: self.connection.repair_of(index, encoding),
            packets: counters.packets,
            bytes: counters.bytes,
            bytes_last_second: second.bytes.into(),
            lost: counters.lost,
            lost_last_second: u64::try_from(second.lost).unwrap_or(0),
            jitter: stream.jitter(),
            nacks: counters.nacks,
            retransmissions: counters.retransmissions,
            keyframe_requests: counters.keyframe_requests,
            keyframe_age: keyframe.map(|at| now.saturating_duration_since(at)),
            rtt: None,
            rtt_times: None,
            last_packet_age: stream
                .last_packet()
                .map(|at| now.saturating_duration_since(at)),
            link_quality,
            media_link_quality,
        }
    }

    fn sent(
        &self,
        (index, media): (usize, &Media),
        stream: &SendStream,
        graph: &Graph,
        now: Instant,
    ) -> StreamStats {
        let counters = stream.counters();
        let clock_rate = f64::from(media.clock_rate().max(1));
        let keyframe = self.route(index, graph).and_then(|route| {
            let source = graph.source(route.source)?;
            source.last_keyframe(route.selector.encoding().unwrap_or(0))
        });
        let second = self.second(sampling::sent(stream));
        let (link_quality, media_link_quality) = second.qualities(true);
        StreamStats {
            ssrc: Some(stream.ssrc()),
            rtx_ssrc: stream.rtx_ssrc(),
            packets: counters.packets,
            bytes: counters.bytes,
            bytes_last_second: second.bytes.into(),
            lost: counters.lost,
            lost_last_second: u64::try_from(second.lost).unwrap_or(0),
            jitter: Duration::from_secs_f64(f64::from(stream.remote_jitter()) / clock_rate),
            nacks: counters.nacks,
            retransmissions: counters.retransmissions,
            keyframe_requests: counters.keyframe_requests,
            keyframe_age: keyframe.map(|at| now.saturating_duration_since(at)),
            rtt: stream.round_trip(),
            rtt_times: report_times(stream),
            last_packet_age: stream
                .last_sent()
                .map(|at| now.saturating_duration_since(at)),
            link_quality,
            media_link_quality,
        }
    }

    fn second(&self, of: StreamOf) -> Second {
        let minute = self.record.minute();
        minute.map_or_else(Second::default, |minute| minute.second(of))
    }

    fn messages(&self) -> MessageStats {
        let figures = self.connection.transport.data_figures().unwrap_or_default();
        MessageStats {
            received: traffic(figures.received),
            sent: traffic(figures.sent),
            channels: figures.channels,
        }
    }

    /// The layers chosen for an outgoing m-line, and why they are sent or not yet sent.
    fn layers(&self, index: usize, graph: &Graph, now: Instant) -> Option<LayerStats> {
        let route = self.route(index, graph)?;
        let decision = route.decision?;
        let target = decision.target;
        let reason = match graph.source(route.source) {
            Some(source) if target.is_some() => {
                let bounds = (&route.options, &route.wanted);
                let (encodings, chosen) = (source.format.encodings, Some(decision.reason));
                route.selector.reason(encodings, bounds, chosen, now).name()
            }
            _ => decision.reason.name(),
        };
        Some(LayerStats {
            substream: target.map(|target| target.encoding),
            spatial: target.map(|target| target.spatial),
            temporal: target.map(|target| target.temporal),
            bitrate: decision.rate.as_bps(),
            reason,
            asked_of_publisher: decision.share.map(|share| share.as_bps()),
        })
    }

    fn route<'a>(&self, index: usize, graph: &'a Graph) -> Option<&'a Route> {
        let sink = self.tracks.get(index)?.sink.as_ref()?;
        graph.route(sink.route?)
    }
}

/// The round trip is what the receiver did not hold: the report came that much later.
fn report_times(stream: &SendStream) -> Option<ReportTimes> {
    let (last_sr, delay) = stream.answered()?;
    let round_trip = stream.round_trip()?.as_secs_f64() * 65_536.0;
    Some(ReportTimes {
        ntp: last_sr.wrapping_add(delay).wrapping_add(round_trip as u32),
        last_sr,
        delay,
    })
}
