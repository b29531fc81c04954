//! RTCP of ingests: learns the sender's address and clock.

use std::net::SocketAddr;
use std::time::Instant;

use portunus_rtc::streams::SenderClock;
use portunus_rtp::rtcp::{Compound, Packet as Rtcp};

use super::intake::Intake;
use super::{Encoding, Ingests};
use crate::ingest::{Refused, Remote};

impl Ingests {
    /// Takes a datagram to an RTCP port, and learns its sender's address.
    pub(in crate::worker) fn take_rtcp(
        &mut self,
        slot: usize,
        (remote, datagram): (SocketAddr, &[u8]),
        into: &mut Intake<'_>,
        now: Instant,
    ) {
        let Some(ingest) = self.slots.get_mut(slot) else {
            return;
        };
        if !ingest.enabled {
            return;
        }
        // The address of RTP is as good as that of RTCP.
        if datagram.len() < 8 || datagram.first().is_none_or(|first| first >> 6 != 2) {
            let port = ingest.rtcp;
            self.refuse(
                (slot, port),
                Some(remote),
                Refused::Malformed,
                into.counters,
                now,
            );
            return;
        }
        ingest.upstream.latch(Remote::Address(remote));
        ingest.status.latch();
        self.changed();
        for packet in Compound::new(datagram) {
            let Ok(Rtcp::SenderReport(report)) = packet else {
                continue;
            };
            let ingest = self.slots.get(slot);
            let of = ingest.and_then(|ingest| {
                let of = |e: &Encoding| e.continuity.ssrc() == Some(report.ssrc);
                ingest.encodings.iter().position(of)
            });
            if let Some(encoding) = of {
                let (ntp, rtp) = (report.info.ntp, report.info.rtp);
                self.take_report((slot, encoding as u8), (ntp, rtp), into, now);
            }
        }
    }

    /// Sets the clock of the source by a sender report.
    pub(in crate::worker) fn take_report(
        &self,
        (slot, encoding): (usize, u8),
        (ntp, timestamp): (u64, u32),
        into: &mut Intake<'_>,
        now: Instant,
    ) {
        let Some(ingest) = self.slots.get(slot) else {
            return;
        };
        let Some(stream) = ingest.encodings.get(usize::from(encoding)) else {
            return;
        };
        let clock = SenderClock {
            ntp,
            timestamp: stream.continuity.timestamp(timestamp),
            at: now,
        };
        into.graph
            .set_clock(ingest.source, encoding, clock, into.others);
    }
}
