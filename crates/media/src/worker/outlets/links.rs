//! The outlets whose packets go to other nodes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use portunus_graph::{Packet, SourceFormat, SourceKey};
use portunus_rtc::streams::NtpClock;
use portunus_rtp::rtcp::ReportBlock;

use super::{FeedOutcome, Outlet, Outlets};
use crate::outlet::{Cut, LinkOutlet, OutletEnd, Taken};
use crate::worker::graph::Graph;
use crate::worker::node_links::{NodeLinks, StreamReport};

/// The outlet that another node requests packets of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::worker) struct Asked {
    pub(in crate::worker) slot: usize,
    /// The round trip to the other node.
    pub(in crate::worker) round_trip: Duration,
}

impl Outlets {
    /// Starts the stream of an outlet with what its source keeps. Returns whether it needs no
    /// keyframe of its own.
    pub(super) fn prime(
        &mut self,
        slot: usize,
        graph: &Graph,
        links: &mut NodeLinks,
        now: Instant,
    ) -> bool {
        let Some((linked, cut, key)) = self.linked(slot) else {
            return false;
        };
        let Some(source) = graph.source(key).filter(|source| source.has_picture(now)) else {
            return false;
        };
        let packets: Vec<Arc<Packet>> = source.cached_before_fresh().cloned().collect();
        feed_link(cut, linked, (key, &source.format), &packets, links, now);
        cut.is_open()
    }

    fn linked(&mut self, slot: usize) -> Option<(&mut LinkOutlet, &mut Cut, SourceKey)> {
        let outlet = self.slots.get_mut(slot)?;
        match &mut outlet.end {
            OutletEnd::Link(linked) => Some((linked, &mut outlet.cut, outlet.source)),
            OutletEnd::Tap(_) | OutletEnd::Collect(_) | OutletEnd::Forward(_) => None,
        }
    }

    /// Sends packets again that another node has not got, if their source still stores them.
    pub(in crate::worker) fn send_again(
        &mut self,
        Asked { slot, round_trip }: Asked,
        lost: impl Iterator<Item = u16>,
        (graph, links): (&Graph, &mut NodeLinks),
        now: Instant,
    ) {
        let Some((linked, cut, _)) = self.linked(slot) else {
            return;
        };
        let Some(mut way) = links.way(linked.link(), linked.far()) else {
            return;
        };
        let ssrc = linked.ssrc();
        for wire in lost {
            let sent = linked.requested(wire, round_trip, now);
            let Some(sent) = sent.and_then(|seq| cut.sent(seq)) else {
                continue;
            };
            let source = graph.source(sent.source);
            let packet = source.and_then(|source| source.remembered(sent.encoding, sent.seq));
            if let Some(packet) = packet {
                let taken = Taken { sent, ssrc };
                way.send(|link, room| linked.write_again(packet, &taken, link, room));
            }
        }
    }

    /// Takes another node's report on the stream of an outlet.
    pub(in crate::worker) fn reported(&mut self, slot: usize, block: &ReportBlock, now: Instant) {
        if let Some((linked, ..)) = self.linked(slot) {
            linked.reported(block, now);
        }
    }

    /// Returns what to report on the stream of an outlet.
    pub(in crate::worker) fn stream_report(
        &mut self,
        slot: usize,
        graph: &Graph,
        (clock, now): (&NtpClock, Instant),
    ) -> Option<StreamReport> {
        let (linked, _, key) = self.linked(slot)?;
        let source = graph.source(key)?;
        let figures = linked.report(&source.format, &source.clocks, clock, now)?;
        let far = linked.far();
        Some(StreamReport { far, figures })
    }

    /// The source of the outlet in a slot.
    pub(in crate::worker) fn source_at(&self, slot: usize) -> Option<SourceKey> {
        self.slots.get(slot).map(|outlet| outlet.source)
    }
}

impl Outlet {
    /// Leaves its link, if it has one.
    pub(super) fn leave_link(&self, slot: usize, links: &mut NodeLinks) {
        if let OutletEnd::Link(linked) = &self.end {
            links.leave(linked.link(), (linked.ssrc(), linked.far()), slot);
        }
    }
}

/// Sends packets of a source to another node.
pub(super) fn feed_link(
    cut: &mut Cut,
    linked: &mut LinkOutlet,
    (key, format): (SourceKey, &SourceFormat),
    packets: &[Arc<Packet>],
    links: &mut NodeLinks,
    now: Instant,
) -> FeedOutcome {
    let mut fed = FeedOutcome::default();
    let Some(mut way) = links.way(linked.link(), linked.far()) else {
        return fed;
    };
    for packet in packets {
        if let Some(taken) = cut.take(key, packet, format) {
            way.send(|link, room| linked.write(packet, &taken, link, now, room));
        }
    }
    if std::mem::take(&mut linked.is_new) {
        links.report_soon(linked.link(), linked.far(), now);
    }
    fed.wanted = cut.keyframe_wanted(format.encodings, now);
    fed
}
