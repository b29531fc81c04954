//! Requests for missing packets, and reports to other nodes.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use portunus_rtc::streams::{NtpClock, ReportFigures, SenderFigures};
use portunus_rtp::rtcp::{
    CompoundWriter, ReceiverReportWriter, ReportBlock, SenderInfo, SenderReportWriter, WritePacket,
};
use smallvec::SmallVec;

use super::{COMPOUND, Link, LinkSocket, NodeLinks, send_rtcp};
use crate::IngestId;
use crate::node_link::{FarWorker, rtcp_ssrc};

/// The maximum number of blocks in a report (RFC 3550 section 6.4.1).
const BLOCKS: usize = 31;
/// The streams of a link for whose reports nothing is allocated.
const STREAMS: usize = 32;
/// A compound that is fuller leaves, in bytes.
const FULL: usize = 1_100;

impl NodeLinks {
    /// Requests missing packets of other nodes. Returns the ingests and encodings of which packets
    /// are lost for good.
    pub(in crate::worker) fn request_missing(
        &mut self,
        now: Instant,
    ) -> SmallVec<[(IngestId, u8); 2]> {
        let mut lost = SmallVec::new();
        self.update_due();
        let is_due = self.due.is_some_and(|due| due <= now);
        let Some(socket) = self.socket.as_mut().filter(|_| is_due) else {
            return lost;
        };
        for (_, link) in &mut self.slots {
            lost.extend(link.state.request_missing(now, |state, far, compound| {
                send_rtcp(state, socket, far, compound);
            }));
        }
        lost
    }

    /// Sends the reports that are due. `stream` returns what there is to say of an outlet's stream,
    /// by its slot.
    pub(in crate::worker) fn report(
        &mut self,
        now: Instant,
        mut stream: impl FnMut(usize, &NtpClock) -> Option<StreamReport>,
    ) {
        let is_due = self.due.is_some_and(|due| due <= now);
        let Some(socket) = self.socket.as_mut().filter(|_| is_due) else {
            return;
        };
        let ntp = self.clock.ntp(now);
        for (_, link) in &mut self.slots {
            let is_due = |far: &FarWorker| far.report_at().is_some_and(|at| at <= now);
            if !link.state.far.iter().any(is_due) {
                continue;
            }
            let sent = link.outlets.values();
            let sent: SmallVec<[StreamReport; STREAMS]> =
                sent.filter_map(|slot| stream(*slot, &self.clock)).collect();
            for far in 0..link.state.far.len() {
                let known = link.state.far.get_mut(far);
                let Some(known) = known.filter(|far| is_due(far)) else {
                    continue;
                };
                known.reports(ntp, now);
                let far = far as u16;
                let mut report = Report::new(link, socket, far);
                report.begin(ntp, now);
                for of in sent.iter().filter(|of| of.far == far) {
                    report.add(&SenderReportWriter {
                        ssrc: of.figures.ssrc,
                        info: SenderInfo {
                            ntp: of.figures.ntp,
                            rtp: of.figures.timestamp,
                            packets: of.figures.packets,
                            octets: of.figures.bytes,
                        },
                        blocks: &[],
                    });
                }
                report.finish();
            }
        }
        self.has_changed = true;
        self.update_due();
    }
}

/// What a report says of a stream to another node.
#[derive(Debug, Clone, Copy)]
pub(in crate::worker) struct StreamReport {
    /// The worker of the other node that gets it.
    pub(in crate::worker) far: u16,
    pub(in crate::worker) figures: SenderFigures,
}

/// The report to a worker of another node: as many compounds as it takes.
struct Report<'a> {
    link: &'a mut Link,
    socket: &'a mut LinkSocket,
    far: u16,
    buf: [u8; COMPOUND],
    len: usize,
}

impl<'a> Report<'a> {
    fn new(link: &'a mut Link, socket: &'a mut LinkSocket, far: u16) -> Self {
        Self {
            link,
            socket,
            far,
            buf: [0; COMPOUND],
            len: 0,
        }
    }

    /// Writes our own report, and blocks on what comes from there.
    fn begin(&mut self, ntp: u64, now: Instant) {
        let own = self.link.state.own_ssrc();
        let mut blocks = SmallVec::<[ReportBlock; STREAMS]>::new();
        let far = self.link.state.far.get(usize::from(self.far));
        let theirs = rtcp_ssrc(self.far);
        blocks.extend(far.and_then(|far: &FarWorker| far.answer(theirs, now)));
        let mut worst = 0;
        for incoming in self.link.state.incoming_of(self.far) {
            let figures = incoming.stream.report(now);
            worst = worst.max(figures.map_or(0, |figures| figures.fraction_lost));
            blocks.extend(figures.map(block));
        }
        let mut blocks = blocks.chunks(BLOCKS);
        let info = SenderInfo {
            ntp,
            rtp: 0,
            packets: self.link.state.status.sent_packets.load(Relaxed) as u32,
            octets: self.link.state.status.sent_bytes.load(Relaxed) as u32,
        };
        self.add(&SenderReportWriter {
            ssrc: own,
            info,
            blocks: blocks.next().unwrap_or(&[]),
        });
        for blocks in blocks {
            self.add(&ReceiverReportWriter { ssrc: own, blocks });
        }
    }

    /// Adds a packet. A full compound leaves first.
    fn add(&mut self, packet: &impl WritePacket) {
        if self.len > FULL || !self.push(packet) {
            self.finish();
            // Each compound begins with our SSRC.
            let ssrc = self.link.state.own_ssrc();
            self.push(&ReceiverReportWriter { ssrc, blocks: &[] });
            self.push(packet);
        }
    }

    fn push(&mut self, packet: &impl WritePacket) -> bool {
        let Some(room) = self.buf.get_mut(self.len..) else {
            return false;
        };
        let mut writer = CompoundWriter::new(room);
        let fits = writer.push(packet).is_ok();
        self.len += writer.len();
        fits
    }

    /// Sends what was written.
    fn finish(&mut self) {
        let compound = self.buf.get(..self.len).unwrap_or_default();
        if !compound.is_empty() {
            send_rtcp(&mut self.link.state, self.socket, self.far, compound);
        }
        self.len = 0;
    }
}

fn block(figures: ReportFigures) -> ReportBlock {
    ReportBlock {
        ssrc: figures.ssrc,
        fraction_lost: figures.fraction_lost,
        cumulative_lost: figures.cumulative_lost.cast_signed(),
        highest_sequence: figures.highest,
        jitter: figures.jitter,
        last_sr: figures.last_sr,
        delay_since_last_sr: figures.delay_since_last_sr,
    }
}
