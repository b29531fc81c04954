//! Statistics of a peer.

mod lines;

use std::time::{Duration, Instant};

use portunus_rtc::bandwidth::Estimate;
use portunus_rtc::{Amount, PairFigures, PairProgress, Path};
use portunus_rtp::ExtensionKind;

use super::{Peer, Peers};
use crate::PeerId;
use crate::worker::graph::Graph;
use crate::{
    BandwidthStats, CandidateStats, DtlsStats, IceStats, LineStats, MediaStats, PacerStats,
    PairState, PairStats, PeerStats, Traffic,
};

impl Peers {
    /// Returns the present statistics of a peer.
    pub(in crate::worker) fn figures(
        &mut self,
        peer: PeerId,
        graph: &Graph,
        now: Instant,
    ) -> Option<PeerStats> {
        let ice_lite = self.setup.ice_lite;
        let (_, peer) = self.find_mut(peer)?;
        // What ended a while ago must not count for the last second.
        if peer.record.minute().is_some() {
            peer.sample(graph, now);
        }
        let mut stats = peer.figures(graph, now);
        stats.ice.lite = ice_lite;
        Some(stats)
    }

    /// Returns what the m-lines of these peers carry.
    pub(in crate::worker) fn line_figures(
        &mut self,
        peers: Vec<PeerId>,
        graph: &Graph,
        now: Instant,
    ) -> Vec<(PeerId, LineStats)> {
        let mut all = Vec::with_capacity(peers.len());
        for id in peers {
            if let Some((_, peer)) = self.find_mut(id) {
                if peer.record.minute().is_some() {
                    peer.sample(graph, now);
                }
                let stats = LineStats {
                    media: peer.lines(graph, now),
                    remb: peer.record.remb(),
                };
                all.push((id, stats));
            }
        }
        all
    }
}

impl Peer {
    fn figures(&self, graph: &Graph, now: Instant) -> PeerStats {
        let transport = &self.connection.transport;
        let extensions = self.connection.extensions();
        let estimate = self.connection.bandwidth();
        PeerStats {
            age: now.saturating_duration_since(self.lifecycle.created()),
            ice: self.ice_figures(now),
            dtls: self.dtls_figures(),
            sctp: transport.data_figures().is_some_and(|it| it.established),
            extensions: extensions.iter().collect(),
            transport_cc: extensions.id(ExtensionKind::TransportCc),
            media: self.lines(graph, now),
            bandwidth: estimate
                .filter(|_| self.sending.is_recorded())
                .map(bandwidth),
            pacer: self.sending.pacer().map(|pacer| PacerStats {
                packets: pacer.len(),
                bytes: pacer.bytes(),
                rate: pacer.limit().map(|rate| rate.as_bps()),
            }),
            remb: self.record.remb(),
            bitrate_cap: self.connection.bitrate_cap(),
            received_datagrams: transport.counters().received,
            refused: self.record.refused(),
            too_large: self.record.too_large(),
            series: self
                .record
                .minute()
                .map_or_else(Vec::new, |minute| minute.series(now)),
            capture: self.record.capture().map(|capture| capture.stats()),
        }
    }

    fn lines(&self, graph: &Graph, now: Instant) -> Vec<MediaStats> {
        let media = self.connection.media().iter().enumerate();
        media
            .map(|(index, media)| self.line_figures(index, media, graph, now))
            .collect()
    }

    fn ice_figures(&self, now: Instant) -> IceStats {
        let transport = &self.connection.transport;
        let (ignored_mdns, ignored_tcp) = transport.ignored_candidates();
        IceStats {
            state: Some(self.lifecycle.ice()),
            controlling: transport.is_controlling(),
            // Set later: the setup knows the first, and the plane the candidates.
            lite: false,
            local: Vec::new(),
            gathered: Some(Duration::ZERO),
            connected: self.lifecycle.connected().map(|at| self.since_created(at)),
            disconnected: self
                .lifecycle
                .disconnected()
                .map(|at| self.since_created(at)),
            remote: transport.remote_candidates(),
            ignored_mdns,
            ignored_tcp,
            attempt: transport.ice_attempt(now),
            selected: transport.selected_pair().map(Path::from),
            pairs: transport.pairs().into_iter().map(pair).collect(),
            round_trip: transport.rtt(),
        }
    }

    fn dtls_figures(&self) -> DtlsStats {
        let transport = &self.connection.transport;
        let figures = transport.dtls_figures();
        DtlsStats {
            state: self.lifecycle.dtls(),
            role: transport.dtls_role(),
            retransmissions: transport.counters().dtls_retransmissions,
            started: figures.started.map(|at| self.since_created(at)),
            connected: figures.connected.map(|at| self.since_created(at)),
            remote_fingerprints: transport.remote_fingerprints().to_vec(),
            srtp_profile: transport.profile().map(|profile| profile.name()),
            received: traffic(figures.received),
            sent: traffic(figures.sent),
        }
    }

    fn since_created(&self, at: Instant) -> Duration {
        at.saturating_duration_since(self.lifecycle.created())
    }
}

fn traffic(amount: Amount) -> Traffic {
    Traffic {
        packets: amount.count.into(),
        bytes: amount.bytes,
    }
}

fn pair(figures: PairFigures) -> PairStats {
    let carrier = figures.carrier;
    PairStats {
        local: CandidateStats {
            address: figures.local,
            kind: figures.local_kind,
            carrier,
        },
        remote: CandidateStats {
            address: figures.remote,
            kind: figures.remote_kind,
            carrier,
        },
        state: match figures.progress {
            PairProgress::Waiting => PairState::Waiting,
            PairProgress::InProgress => PairState::InProgress,
            PairProgress::Succeeded => PairState::Succeeded,
            PairProgress::Failed => PairState::Failed,
        },
        nominated: figures.is_selected,
        round_trip: figures.round_trip,
        checks_sent: figures.checks_sent,
        checks_answered: figures.checks_answered,
        checks_received: figures.checks_received,
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
