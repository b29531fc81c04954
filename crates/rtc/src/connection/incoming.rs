//! Incoming packets: RTP to relay, and RTCP to act on.

use std::net::SocketAddr;
use std::ops::Range;
use std::time::{Duration, Instant};

use portunus_rtp::extension::TransportCc;
use portunus_rtp::rtcp::{Compound, Nack, Packet, ReportBlock};
use portunus_rtp::{ExtensionKind, Header, SeqNo, Ssrc, header};
use portunus_sdp::negotiated::{Codec, Kind};

use super::media::Encoding;
use super::{Bitrate, Connection, Feedback, REPORT_INTERVAL};
use crate::Path;
use crate::bandwidth::{DataRate, Measure};
use crate::streams::{Accepted, SenderClock, StreamKey};
use crate::transport::{self, DropReason};

/// The most packets that the transport-wide feedback of a datagram may report on: as many as are
/// ever awaited. A few bytes can stand for 65,535.
const MAX_STATUSES: u16 = 8_192;
/// The most retransmissions that a datagram may request: as many packets as are remembered.
const MAX_REQUESTS: usize = 1_024;
/// The assumed round trip before the receiver has reported: less than the time after which
/// receivers repeat a request, since they repeat it only a few times.
const UNREPORTED: Duration = Duration::from_millis(20);

/// The reason why a datagram was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// The transport refused it.
    Transport(DropReason),
    /// The decrypted RTP packet is malformed.
    MalformedRtp,
    /// No m-line has this RTP stream.
    UnknownStream,
}

/// The content of a datagram.
#[derive(Debug)]
pub enum Received {
    /// The datagram has been handled: STUN, DTLS, SCTP, RTCP, padding, or a repeated packet.
    Consumed,
    /// An RTP packet to relay.
    Rtp(Incoming),
    /// The datagram was refused.
    Refused(Refusal),
}

/// A decrypted RTP packet. Retransmissions are restored to their original form.
#[derive(Debug)]
pub struct Incoming {
    /// The index of the m-line.
    pub media: usize,
    /// The simulcast encoding. 0 is the lowest.
    pub encoding: u8,
    /// The extended sequence number. The numbers of an encoding continue when its SSRC changes.
    pub seq: SeqNo,
    /// Changes with the SSRC, when timestamps and picture ids jump.
    pub generation: u8,
    /// The codec.
    pub codec: Codec,
    /// The place of the packet in the datagram.
    pub range: Range<usize>,
    /// The header, with offsets relative to the range.
    pub header: Header,
}

impl Connection {
    /// Takes a datagram received by UDP and decrypts it in place.
    pub fn receive(
        &mut self,
        now: Instant,
        local: SocketAddr,
        remote: SocketAddr,
        datagram: &mut [u8],
    ) -> Received {
        self.receive_by(now, Path::udp(local, remote), datagram)
    }

    /// Takes a datagram received on `path` and decrypts it in place.
    pub fn receive_by(&mut self, now: Instant, path: Path, datagram: &mut [u8]) -> Received {
        let received = self.transport.receive_by(now, path, datagram);
        self.take(now, received, datagram)
    }

    /// Handles the result of the transport.
    pub(crate) fn take(
        &mut self,
        now: Instant,
        received: transport::Received,
        datagram: &mut [u8],
    ) -> Received {
        match received {
            transport::Received::Consumed => Received::Consumed,
            transport::Received::Dropped(refusal) => Received::Refused(Refusal::Transport(refusal)),
            transport::Received::Rtcp { len } => {
                self.receive_rtcp(now, datagram.get(..len).unwrap_or_default());
                Received::Consumed
            }
            transport::Received::Rtp { len, header, index } => {
                let Some(packet) = datagram.get_mut(..len) else {
                    return Received::Refused(Refusal::MalformedRtp);
                };
                match self.receive_rtp(now, index, header, packet) {
                    Ok(Some(incoming)) => Received::Rtp(incoming),
                    Ok(None) => Received::Consumed,
                    Err(refusal) => Received::Refused(refusal),
                }
            }
        }
    }

    fn receive_rtp(
        &mut self,
        now: Instant,
        index: SeqNo,
        header: Header,
        packet: &mut [u8],
    ) -> Result<Option<Incoming>, Refusal> {
        self.log_arrival(&header, packet, now);
        let key = self
            .demux
            .resolve(&header, packet)
            .ok_or(Refusal::UnknownStream)?;
        self.next_report.get_or_insert(now + REPORT_INTERVAL);
        let incoming = if key.repair {
            self.receive_repair(now, key, &header, packet)
        } else {
            self.receive_plain(now, key, index, header, packet.len())
        };
        Ok(incoming)
    }

    fn receive_plain(
        &mut self,
        now: Instant,
        key: StreamKey,
        seq: SeqNo,
        header: Header,
        len: usize,
    ) -> Option<Incoming> {
        let index = usize::from(key.media);
        let media = self.media.get_mut(index)?;
        let codec = media
            .payload(header.pt)
            .filter(|(_, repair)| !repair)?
            .0
            .codec;
        let changed = media
            .succession(key.encoding)?
            .admit(header.ssrc, seq, now)?;
        let encoding = media.encoding(key.encoding, header.ssrc)?;
        let bytes = header.payload_range().len();
        let accepted = encoding.stream.accept(seq, header.timestamp, bytes, now);
        let woke = !std::mem::replace(&mut encoding.active, true);
        let is_video = media.kind == Kind::Video;
        let succession = media.succession(key.encoding)?;
        let (number, generation) = (succession.number(seq), succession.generation());
        if (accepted == Accepted::AfterLongGap || changed) && is_video {
            self.request_keyframe(index, key.encoding, now);
        }
        if woke {
            if is_video && (self.limit.is_some() || !matches!(self.bitrate, Bitrate::Unset)) {
                self.next_report = Some(now);
            }
            self.push_feedback(Feedback::Receiving {
                media: index,
                encoding: key.encoding,
                receiving: true,
            });
        }
        let seq = number.filter(|_| Encoding::is_new(accepted))?;
        Some(Incoming {
            media: index,
            encoding: key.encoding,
            seq,
            generation,
            codec,
            range: 0..len,
            header,
        })
    }

    /// Restores a retransmission to its original form (RFC 4588 section 4): the first two bytes of
    /// the payload are the original sequence number.
    fn receive_repair(
        &mut self,
        now: Instant,
        key: StreamKey,
        header: &Header,
        packet: &mut [u8],
    ) -> Option<Incoming> {
        let payload = header.payload(packet);
        let original = u16::from_be_bytes(*payload.first_chunk::<2>()?);
        let bytes = payload.len() - 2;
        let index = usize::from(key.media);
        let media = self.media.get_mut(index)?;
        let (payload, _) = media.payload(header.pt).filter(|(_, repair)| *repair)?;
        let (pt, codec) = (payload.pt, payload.codec);
        let encoding = media
            .receiving
            .get_mut(usize::from(key.encoding))?
            .as_mut()?;
        let seq = encoding.stream.accept_repair(original, bytes, now)?;
        packet.copy_within(..header.header_len(), 2);
        let restored = packet.get_mut(2..)?;
        header::set_sequence(restored, original);
        header::set_pt(restored, pt);
        header::set_ssrc(restored, encoding.stream.ssrc());
        let header = Header::parse(restored).ok()?;
        let succession = media.succession(key.encoding)?;
        Some(Incoming {
            media: index,
            encoding: key.encoding,
            seq: succession.number(seq)?,
            generation: succession.generation(),
            codec,
            range: 2..packet.len(),
            header,
        })
    }

    fn log_arrival(&mut self, header: &Header, packet: &[u8], now: Instant) {
        let Some(id) = self.demux.extensions().id(ExtensionKind::TransportCc) else {
            return;
        };
        if let Some(TransportCc(seq)) = header.extension(packet, id).and_then(TransportCc::parse) {
            self.arrivals.record(seq, now);
            self.next_twcc.get_or_insert(now + self.config.twcc_period);
        }
    }

    fn receive_rtcp(&mut self, now: Instant, compound: &[u8]) {
        let (mut statuses, mut requests) = (MAX_STATUSES, MAX_REQUESTS);
        for packet in Compound::new(compound) {
            match packet {
                Ok(Packet::SenderReport(report)) => {
                    self.sender_report(report.ssrc, report.info.ntp, report.info.rtp, now);
                    report
                        .blocks()
                        .for_each(|block| self.report_block(&block, now));
                }
                Ok(Packet::ReceiverReport(report)) => {
                    report
                        .blocks()
                        .for_each(|block| self.report_block(&block, now));
                }
                Ok(Packet::Nack(nack)) => self.nacked(&nack, &mut requests, now),
                Ok(Packet::Pli(pli)) => self.keyframe_wanted(pli.media),
                Ok(Packet::Fir(fir)) => fir
                    .entries()
                    .for_each(|entry| self.keyframe_wanted(entry.ssrc)),
                Ok(Packet::Remb(remb)) => {
                    if let Some(bandwidth) = &mut self.bandwidth {
                        bandwidth.receiver_estimate(DataRate::bps(remb.bitrate), now);
                    }
                    self.push_feedback(Feedback::Remb(remb.bitrate));
                }
                Ok(Packet::Twcc(twcc)) => {
                    let Some(left) = statuses.checked_sub(twcc.count) else {
                        self.malformed_rtcp += 1;
                        continue;
                    };
                    statuses = left;
                    if let Some(bandwidth) = &mut self.bandwidth {
                        bandwidth.feedback(&mut self.sent_log, &twcc, now);
                    }
                }
                Ok(_) => {}
                Err(_) => self.malformed_rtcp += 1,
            }
        }
    }

    fn sender_report(&mut self, ssrc: Ssrc, ntp: u64, timestamp: u32, now: Instant) {
        for index in 0..self.media.len() {
            let Some(media) = self.media.get_mut(index) else {
                return;
            };
            let Some(encoding) = media.encoding_of(ssrc) else {
                continue;
            };
            if let Some(Some(state)) = media.receiving.get_mut(usize::from(encoding)) {
                state.stream.sender_report(ntp, now);
            }
            let clock = SenderClock {
                ntp,
                timestamp,
                at: now,
            };
            self.push_feedback(Feedback::SenderReport {
                media: index,
                encoding,
                clock,
            });
            return;
        }
    }

    fn report_block(&mut self, block: &ReportBlock, now: Instant) {
        let threshold = u64::from(self.config.slow_link_threshold);
        for (index, media) in self.media.iter_mut().enumerate() {
            let Some(stream) = media.sending.as_mut().filter(|s| s.ssrc() == block.ssrc) else {
                continue;
            };
            let lost = block.cumulative_lost as u32;
            stream.receiver_report(
                lost,
                block.jitter,
                block.last_sr,
                block.delay_since_last_sr,
                now,
            );
            let total = stream.counters().lost;
            let lost = total.saturating_sub(std::mem::replace(&mut media.reported_lost, total));
            if threshold > 0 && lost >= threshold {
                let lost = u32::try_from(lost).unwrap_or(u32::MAX);
                self.push_feedback(Feedback::SlowLink {
                    media: index,
                    uplink: false,
                    lost,
                });
            }
            return;
        }
    }

    /// Handles at most `left` retransmission requests.
    fn nacked(&mut self, nack: &Nack<'_>, left: &mut usize, now: Instant) {
        let ours = |media: &super::Media| {
            let stream = media.sending.as_ref().filter(|_| media.repairs());
            stream.is_some_and(|stream| stream.ssrc() == nack.media)
        };
        let Some(index) = self.media.iter().position(ours) else {
            return;
        };
        let round_trip = self.round_trip_of(index);
        for wire in nack.lost().take(*left) {
            *left = left.saturating_sub(1);
            let media = self.media.get_mut(index);
            let stream = media.and_then(|media| media.sending.as_mut());
            if let Some(seq) = stream.and_then(|stream| stream.nacked(wire, round_trip, now)) {
                self.push_feedback(Feedback::Nack { media: index, seq });
            }
        }
    }

    fn keyframe_wanted(&mut self, ssrc: Ssrc) {
        let ours = |media: &super::Media| {
            let stream = media.sending.as_ref().filter(|_| media.send);
            stream.is_some_and(|stream| stream.ssrc() == ssrc)
        };
        let Some(index) = self.media.iter().position(ours) else {
            return;
        };
        if let Some(stream) = self
            .media
            .get_mut(index)
            .and_then(|media| media.sending.as_mut())
        {
            stream.count_keyframe_request();
        }
        self.push_feedback(Feedback::Keyframe { media: index });
    }

    /// Returns the round trip of an m-line's outgoing stream, queues included, from reports and
    /// transport-wide feedback. Connectivity checks are rare and mostly find no queue.
    fn round_trip_of(&self, index: usize) -> Duration {
        let bandwidth = self.bandwidth.as_ref();
        let heard = bandwidth.filter(|b| b.measure() == Measure::Transport && b.is_heard());
        let stream = self
            .media
            .get(index)
            .and_then(|media| media.sending.as_ref());
        heard
            .map(|bandwidth| bandwidth.estimate().round_trip)
            .or(stream.and_then(|stream| stream.round_trip()))
            .unwrap_or(UNREPORTED)
    }

    /// Returns the round trip for retransmission requests: the one that STUN measured, or a usual
    /// one.
    pub(super) fn assumed_round_trip(&self) -> Duration {
        self.round_trip().unwrap_or(Duration::from_millis(50))
    }
}
