//! Passes datagrams of other nodes to ingests, and their RTCP to outlets and sources.

use std::net::SocketAddr;
use std::time::Instant;

use portunus_rtp::Ssrc;
use portunus_rtp::rtcp::{Compound, Packet as Rtcp, ReportBlock};

use super::Worker;
use super::node_links::{Answered, Opened, Origin, Reading};
use super::outlets::Asked;
use crate::SourceRef;
use crate::node_link::Received;
use crate::sys::ReceiveBatch;

impl Worker {
    /// Takes what has arrived from other nodes. Returns whether there is more.
    pub(super) fn receive_node_links(&mut self, batch: &mut ReceiveBatch, now: Instant) -> bool {
        if !self.node_links.take_ready() {
            return false;
        }
        let mut datagrams = 0;
        loop {
            let received = self.node_links.receive(batch);
            for message in batch.iter(received) {
                for datagram in message.data.chunks_mut(message.stride) {
                    datagrams += 1;
                    self.take_node_link_datagram(message.remote, datagram, now);
                }
            }
            match self.node_links.goes_on(received, datagrams) {
                Reading::More => {}
                Reading::Later => return true,
                Reading::Empty => return false,
            }
        }
    }

    /// Takes a datagram of another node.
    pub(crate) fn take_node_link_datagram(
        &mut self,
        from: SocketAddr,
        datagram: &mut [u8],
        now: Instant,
    ) {
        match self.node_links.open_datagram(from, datagram, now) {
            Ok(Opened::Packet(received)) => self.take_crossed(received, datagram, now),
            Ok(Opened::Rtcp(origin, len)) => {
                let compound = datagram.get(..len).unwrap_or_default();
                self.take_node_link_rtcp(origin, compound, now);
            }
            Ok(Opened::Repeated) => {}
            Err(why) => self.counters.node_link_refused(why),
        }
    }

    fn take_crossed(&mut self, received: Received, datagram: &mut [u8], now: Instant) {
        let Received {
            slot,
            encoding,
            len,
            after_long_gap,
            replaces: _,
        } = received;
        let (ingests, mut into) = self.intake();
        let packet = datagram.get_mut(..len).unwrap_or_default();
        ingests.take(slot, encoding, (None, packet), &mut into, now);
        if after_long_gap {
            ingests.want_keyframe_of(slot, encoding);
        }
    }

    fn take_node_link_rtcp(&mut self, origin: Origin, compound: &[u8], now: Instant) {
        // The fault of one packet is none of the others.
        for packet in Compound::new(compound).flatten() {
            match packet {
                Rtcp::SenderReport(report) => {
                    let (ntp, rtp) = (report.info.ntp, report.info.rtp);
                    let of = (report.ssrc, ntp);
                    if let Some(stream) = self.node_links.take_sender_report(origin, of, now) {
                        let (ingests, mut into) = self.intake();
                        ingests.take_report(stream, (ntp, rtp), &mut into, now);
                    }
                    self.take_report_blocks(origin, report.blocks(), now);
                }
                Rtcp::ReceiverReport(report) => {
                    self.take_report_blocks(origin, report.blocks(), now)
                }
                Rtcp::Nack(nack) => {
                    if let Some((slot, round_trip)) = self.node_links.outlet(origin, nack.media) {
                        let asked = Asked { slot, round_trip };
                        let links = &mut self.node_links;
                        self.outlets
                            .send_again(asked, nack.lost(), (&self.graph, links), now);
                    }
                }
                Rtcp::Pli(pli) => {
                    if let Some((slot, _)) = self.node_links.outlet(origin, pli.media) {
                        self.outlets.want_keyframe(slot, &mut self.graph);
                    }
                }
                Rtcp::Remb(remb) => {
                    for ssrc in remb.ssrcs() {
                        self.take_far_bitrate(origin, ssrc, remb.bitrate, now);
                    }
                }
                _ => {}
            }
        }
    }

    fn take_report_blocks(
        &mut self,
        origin: Origin,
        blocks: impl Iterator<Item = ReportBlock>,
        now: Instant,
    ) {
        let mut worst = None;
        for block in blocks {
            if let Answered::Outlet(slot) = self.node_links.take_block(origin, &block, now) {
                self.outlets.reported(slot, &block, now);
                worst = worst.max(Some(block.fraction_lost));
            }
        }
        if let Some(worst) = worst {
            self.node_links.note_loss(origin, worst);
        }
    }

    /// Notes the bitrate that the viewers of a stream on another node can take. The sender of an
    /// ingest is told; a peer is not, as one slow viewer elsewhere must not limit it for all.
    fn take_far_bitrate(&mut self, origin: Origin, ssrc: Ssrc, bitrate: u64, now: Instant) {
        let outlet = self.node_links.outlet(origin, ssrc);
        let Some(key) = outlet.and_then(|(slot, _)| self.outlets.source_at(slot)) else {
            return;
        };
        let source = self.graph.source(key).map(|source| source.is);
        if matches!(source, Some(SourceRef::Ingest(_))) {
            self.viewer_takes(key, bitrate, now);
        }
    }

    /// Requests missing packets of other nodes, and sends what is due.
    pub(crate) fn run_node_links(&mut self, now: Instant) {
        for (ingest, encoding) in self.node_links.request_missing(now) {
            self.ingests.want_keyframe(ingest, encoding);
        }
        let (outlets, graph) = (&mut self.outlets, &self.graph);
        self.node_links.report(now, |slot, clock| {
            outlets.stream_report(slot, graph, (clock, now))
        });
    }

    /// Sends the feedback of ingests to other nodes.
    pub(crate) fn send_node_link_feedback(&mut self) {
        while let Some(feedback) = self.ingests.next_node_feedback() {
            let link = feedback.link;
            self.node_links.count_keyframes(link, feedback.keyframes);
            let compound = feedback.compound.as_slice();
            self.node_links.send_feedback(link, feedback.far, compound);
        }
    }
}
