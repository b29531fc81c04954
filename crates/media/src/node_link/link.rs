//! The state of a node link on a worker: its keys, its streams, and the workers at its other end.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use portunus_rtc::streams::Accepted;
use portunus_rtp::rtcp::{CompoundWriter, NackWriter, ReceiverReportWriter};
use portunus_rtp::{Header, SeqNo, Ssrc, header};
use portunus_srtp::{OpenError, Opener, Sealer};
use smallvec::SmallVec;

use super::options::{key_place, rtcp_ssrc, with_key, without_key};
use super::{
    FarWorker, Incoming, KeyChange, KeyUse, LinkRefusal, NodeLinkId, NodeLinkOptions,
    NodeLinkStatus,
};
use crate::IngestId;

/// The numbers of missing packets in one request.
const NUMBERS: usize = 64;
/// Room for a compound packet of RTCP, its tag and its index, in bytes.
const COMPOUND: usize = 1_200;

/// A packet that was received: the ingest that takes it, and its decrypted length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Received {
    /// The slot of the ingest.
    pub(crate) slot: usize,
    pub(crate) encoding: u8,
    pub(crate) len: usize,
    /// So many packets before it are missing that only a keyframe helps.
    pub(crate) after_long_gap: bool,
    /// It is the first packet of a stream that takes the place of this one.
    pub(crate) replaces: Option<(NodeLinkId, Ssrc)>,
}

/// A node link on a worker. It knows no socket and no clock.
pub(crate) struct NodeLinkState {
    /// The present key of what is sent, and its number.
    sealer: Option<Sealer>,
    number: u32,
    /// The keys of what is received, by the parity of their numbers.
    openers: [Option<Opener>; 2],
    /// The SSRC of our RTCP.
    own: Ssrc,
    pub(crate) far: Vec<FarWorker>,
    incoming: HashMap<Ssrc, Incoming>,
    /// The streams with missing packets.
    gaps: SmallVec<[Ssrc; 8]>,
    /// When a missing packet has to be requested.
    nack_at: Option<Instant>,
    pub(crate) status: Arc<NodeLinkStatus>,
}

impl NodeLinkState {
    pub(crate) fn new(
        worker: u16,
        options: &NodeLinkOptions,
        status: Arc<NodeLinkStatus>,
        now: Instant,
    ) -> Self {
        let mut far: Vec<FarWorker> = options.far.iter().copied().map(FarWorker::new).collect();
        // One pair of workers suffices to know whether the link works.
        if let Some(first) = far.first_mut().filter(|_| worker == 0) {
            first.is_probed = true;
            first.report_soon(now);
        }
        Self {
            sealer: options.send.sealer(),
            number: 0,
            openers: [options.receive.opener(), None],
            own: rtcp_ssrc(worker),
            far,
            incoming: HashMap::new(),
            gaps: SmallVec::new(),
            nack_at: None,
            status,
        }
    }

    /// Uses another key from now on. Of those of received packets, the one before stays valid.
    pub(crate) fn set_key(&mut self, change: &KeyChange) {
        match change.usage {
            KeyUse::Send => {
                self.sealer = change.key.sealer();
                self.number = change.number;
            }
            KeyUse::Receive => {
                if let Some(opener) = self.openers.get_mut(change.number as usize & 1) {
                    *opener = change.key.opener();
                }
            }
        }
    }

    /// The SSRC of our RTCP.
    pub(crate) fn own_ssrc(&self) -> Ssrc {
        self.own
    }

    /// The key of what is sent, and its number.
    pub(crate) fn sealer(&self) -> Option<(&Sealer, u32)> {
        Some((self.sealer.as_ref()?, self.number))
    }

    /// Expects a stream, whose numbers were not used before.
    pub(crate) fn expect(&mut self, ssrc: Ssrc, incoming: Incoming, now: Instant) {
        if let Some(far) = self.far.get_mut(usize::from(incoming.far)) {
            far.streams += 1;
            far.report_soon(now);
            if let Some(before) = self.incoming.insert(ssrc, incoming) {
                self.left(before.far);
            } else {
                self.status.received_streams.fetch_add(1, Relaxed);
            }
        }
    }

    /// Forgets a stream. Its packets are refused from now on.
    pub(crate) fn forget(&mut self, ssrc: Ssrc) {
        if let Some(incoming) = self.incoming.remove(&ssrc) {
            self.left(incoming.far);
            self.gaps.retain(|gap| *gap != ssrc);
            self.status.received_streams.fetch_sub(1, Relaxed);
        }
    }

    /// Drops the packets of a stream from now on, as another one has taken its place.
    pub(crate) fn supersede(&mut self, ssrc: Ssrc) {
        if let Some(incoming) = self.incoming.get_mut(&ssrc) {
            incoming.is_superseded = true;
            self.gaps.retain(|gap| *gap != ssrc);
        }
    }

    /// Forgets the streams of an ingest that is gone.
    pub(crate) fn forget_ingest(&mut self, ingest: IngestId) {
        let of =
            |(ssrc, incoming): (&Ssrc, &Incoming)| (incoming.ingest == ingest).then_some(*ssrc);
        let gone: SmallVec<[Ssrc; 3]> = self.incoming.iter().filter_map(of).collect();
        for ssrc in gone {
            self.forget(ssrc);
        }
    }

    fn left(&mut self, far: u16) {
        if let Some(far) = self.far.get_mut(usize::from(far)) {
            far.streams = far.streams.saturating_sub(1);
        }
    }

    /// Notes that a stream to a worker of the other node begins.
    pub(crate) fn stream_begins(&mut self, far: u16, now: Instant) {
        if let Some(far) = self.far.get_mut(usize::from(far)) {
            far.streams += 1;
            far.report_soon(now);
        }
        self.status.sent_streams.fetch_add(1, Relaxed);
    }

    /// Notes that a stream to a worker of the other node has ended.
    pub(crate) fn stream_ended(&mut self, far: u16) {
        self.left(far);
        self.status.sent_streams.fetch_sub(1, Relaxed);
    }

    /// Opens an RTP packet of a worker of the other node in place. Returns `None` if it came
    /// before, as an answer to a request that was made twice.
    pub(crate) fn receive(
        &mut self,
        far: u16,
        datagram: &mut [u8],
        now: Instant,
    ) -> Result<Option<Received>, LinkRefusal> {
        let bytes = datagram.len();
        let head = Header::parse_encrypted(datagram).map_err(|_| LinkRefusal::Malformed)?;
        let ssrc = without_key(head.ssrc);
        let incoming = self.incoming.get_mut(&ssrc).filter(|it| it.far == far);
        let incoming = incoming.ok_or(LinkRefusal::UnknownSsrc)?;
        if incoming.is_superseded {
            return Ok(None);
        }
        let Some(seq) = incoming.number(head.sequence) else {
            return Err(LinkRefusal::Replayed);
        };
        let opener = self.openers.get(key_place(head.ssrc));
        let opener = opener.and_then(Option::as_ref);
        let opener = opener.ok_or(LinkRefusal::Unauthentic)?;
        let len = opener
            .open_rtp_at(seq, head.header_len(), head.ssrc, datagram)
            .map_err(refusal)?;
        let payload = len.saturating_sub(head.header_len());
        self.status.received_packets.fetch_add(1, Relaxed);
        self.status.received_bytes.fetch_add(bytes as u64, Relaxed);
        let accepted = incoming.accept(seq, head.timestamp, payload, now);
        if accepted == Accepted::Repeated {
            self.status.repeated.fetch_add(1, Relaxed);
            return Ok(None);
        }
        // The ingest must not see which key it was.
        header::set_ssrc(datagram, ssrc);
        let received = Received {
            slot: incoming.slot,
            encoding: incoming.encoding,
            len,
            after_long_gap: accepted == Accepted::AfterLongGap,
            replaces: incoming.replaces.take(),
        };
        if let Some(due) = incoming.stream.next_nack() {
            if !self.gaps.contains(&ssrc) {
                self.gaps.push(ssrc);
            }
            self.nack_at = Some(self.nack_at.map_or(due, |at| at.min(due)));
        }
        Ok(Some(received))
    }

    /// Opens a compound of RTCP of a worker of the other node in place. Returns its length.
    pub(crate) fn receive_rtcp(
        &mut self,
        far: u16,
        datagram: &mut [u8],
    ) -> Result<usize, LinkRefusal> {
        let ssrc = datagram.get(4..).and_then(|rest| rest.first_chunk());
        let ssrc = Ssrc(u32::from_be_bytes(*ssrc.ok_or(LinkRefusal::Malformed)?));
        if without_key(ssrc) != rtcp_ssrc(far) {
            return Err(LinkRefusal::UnknownSsrc);
        }
        let opener = self.openers.get_mut(key_place(ssrc));
        let opener = opener.and_then(Option::as_mut);
        let opener = opener.ok_or(LinkRefusal::Unauthentic)?;
        let len = opener.open_rtcp(datagram).map_err(refusal)?;
        self.status.reports.fetch_add(1, Relaxed);
        Ok(len)
    }

    /// Seals a compound of RTCP, which begins with our SSRC, in place. `buf` has room for the tag.
    pub(crate) fn seal_rtcp(&mut self, len: usize, buf: &mut [u8]) -> Option<usize> {
        let own = with_key(self.own, self.number).0.to_be_bytes();
        buf.get_mut(4..8)?.copy_from_slice(&own);
        self.sealer.as_mut()?.seal_rtcp(len, buf).ok()
    }

    /// When missing packets have to be requested.
    pub(crate) fn nack_at(&self) -> Option<Instant> {
        self.nack_at
    }

    /// Writes the requests for missing packets that are due, each as a compound for a worker of the
    /// other node. Returns the ingests and encodings of which packets are lost for good.
    pub(crate) fn request_missing(
        &mut self,
        now: Instant,
        mut send: impl FnMut(&mut Self, u16, &[u8]),
    ) -> SmallVec<[(IngestId, u8); 2]> {
        let mut lost = SmallVec::new();
        if self.nack_at.is_none_or(|at| at > now) {
            return lost;
        }
        self.nack_at = None;
        let gaps = std::mem::take(&mut self.gaps);
        for ssrc in gaps {
            let Some(incoming) = self.incoming.get_mut(&ssrc) else {
                continue;
            };
            let far = self.far.get(usize::from(incoming.far));
            let round_trip = far.map_or_else(Default::default, FarWorker::round_trip);
            let mut missing = SmallVec::<[u16; NUMBERS]>::new();
            let gone = incoming
                .stream
                .take_nacks(now, round_trip, |seq: SeqNo| missing.push(seq.wire()));
            if gone > 0 {
                self.status.lost.fetch_add(gone as u64, Relaxed);
                lost.push((incoming.ingest, incoming.encoding));
            }
            if let Some(due) = incoming.stream.next_nack() {
                self.gaps.push(ssrc);
                self.nack_at = Some(self.nack_at.map_or(due, |at| at.min(due)));
            }
            let far = incoming.far;
            let requested = missing.len() as u64;
            self.status.requested.fetch_add(requested, Relaxed);
            for numbers in missing.chunks(NUMBERS) {
                let mut buf = [0; COMPOUND];
                let mut writer = CompoundWriter::new(&mut buf);
                let report = ReceiverReportWriter {
                    ssrc: self.own,
                    blocks: &[],
                };
                let nack = NackWriter {
                    sender: self.own,
                    media: ssrc,
                    lost: numbers.iter().copied(),
                };
                if writer.push(&report).is_ok() && writer.push(&nack).is_ok() {
                    let len = writer.len();
                    send(self, far, buf.get(..len).unwrap_or_default());
                }
            }
        }
        lost
    }

    /// The streams that come from a worker of the other node.
    pub(crate) fn incoming_of(&mut self, far: u16) -> impl Iterator<Item = &mut Incoming> {
        let incoming = self.incoming.values_mut();
        incoming.filter(move |incoming| incoming.far == far)
    }

    /// Returns a stream that comes from a worker of the other node.
    pub(crate) fn stream_of(&mut self, far: u16, ssrc: Ssrc) -> Option<&mut Incoming> {
        let incoming = self.incoming.get_mut(&ssrc);
        incoming.filter(|incoming| incoming.far == far)
    }
}

fn refusal(error: OpenError) -> LinkRefusal {
    match error {
        OpenError::Truncated => LinkRefusal::Malformed,
        OpenError::Replayed => LinkRefusal::Replayed,
        _ => LinkRefusal::Unauthentic,
    }
}
