//! Outgoing RTCP: reports, retransmission and keyframe requests, bitrate caps, feedback.

use std::time::{Duration, Instant};

use portunus_rtp::Ssrc;
use portunus_rtp::rtcp::{
    CnameWriter, CompoundWriter, FirEntry, FirWriter, NackWriter, Pli, ReceiverReportWriter,
    RembWriter, ReportBlock, SenderInfo, SenderReportWriter, TwccWriter,
};
use portunus_sdp::negotiated::Kind;
use smallvec::SmallVec;

use super::keyframes::Asked;
use super::media::Encoding;
use super::{Bitrate, Connection, Feedback, Media, NO_CAP, REPORT_INTERVAL};
use crate::streams::{ArrivalReport, ReportFigures};

/// The CNAME of all streams of the server.
const CNAME: &str = "portunus";
/// The most bytes of a compound packet: below any path's MTU.
const MAX_COMPOUND: usize = 1_100;
/// The most blocks of a report, whose count has 5 bits.
const MAX_BLOCKS: usize = 31;
/// The bytes of a sender report without blocks, and of the CNAME after the last one.
const REPORT_ROOM: usize = 28 + 24;
/// A stream that has been silent for longer needs no reports.
const QUIET: Duration = Duration::from_secs(5);
/// The least time between two keyframe requests because of lost packets.
const GIVE_UP_INTERVAL: Duration = Duration::from_secs(1);

impl Connection {
    /// Writes a compound packet with all that is due. Returns `None` if nothing is.
    pub(super) fn write_rtcp(&mut self, now: Instant, buf: &mut [u8]) -> Option<usize> {
        let due = self.next_report.is_some_and(|at| at <= now);
        if due && self.next_sender == 0 {
            self.watch(now);
        }
        let room = buf.len().min(MAX_COMPOUND);
        let mut out = CompoundWriter::new(buf.get_mut(..room)?);
        let sender = self.sender_ssrc();
        if due {
            self.write_reports(now, sender, &mut out);
        }
        self.write_nacks(now, sender, &mut out);
        self.write_keyframe_requests(now, sender, &mut out);
        self.write_feedback(now, sender, &mut out);
        (!out.is_empty()).then(|| out.len())
    }

    /// Returns the SSRC of this side in reports: the first stream that it sends or could send.
    fn sender_ssrc(&self) -> Ssrc {
        let sending = self.media.iter().find_map(|media| media.sending.as_ref());
        sending.map_or(Ssrc(1), |stream| stream.ssrc())
    }

    /// Writes the reports of this second, or those that did not fit the last datagram.
    fn write_reports(&mut self, now: Instant, sender: Ssrc, out: &mut CompoundWriter<'_>) {
        let begins = self.next_sender == 0;
        let blocks = if begins {
            self.report_blocks(now)
        } else {
            SmallVec::new()
        };
        let (reported, more) = self.write_sender_reports(now, &blocks, out);
        let mut written = reported;
        if !reported && !blocks.is_empty() {
            let report = ReceiverReportWriter {
                ssrc: sender,
                blocks: &blocks,
            };
            written = out.push(&report).is_ok();
        }
        if written {
            // Without room, it goes into the next report.
            let _ = out.push(&CnameWriter {
                ssrc: sender,
                cname: CNAME,
            });
        }
        if more {
            return;
        }
        // Streams that start later start new reports.
        let flowing = self.streams_active(now);
        let capped = self.write_bitrate(now, sender, out);
        self.next_report = (flowing || capped).then(|| now + REPORT_INTERVAL);
    }

    /// Returns the report blocks of incoming streams, as many as one packet holds.
    fn report_blocks(&mut self, now: Instant) -> SmallVec<[ReportBlock; 8]> {
        let encodings = self
            .media
            .iter_mut()
            .flat_map(|media| media.receiving.iter_mut())
            .flatten()
            .filter(|encoding| encoding.active && heard_lately(encoding, now));
        let figures = encodings.filter_map(|encoding| encoding.stream.report(now));
        let block = |figures: ReportFigures| ReportBlock {
            ssrc: figures.ssrc,
            fraction_lost: figures.fraction_lost,
            cumulative_lost: figures.cumulative_lost as i32,
            highest_sequence: figures.highest,
            jitter: figures.jitter,
            last_sr: figures.last_sr,
            delay_since_last_sr: figures.delay_since_last_sr,
        };
        figures.take(MAX_BLOCKS).map(block).collect()
    }

    /// Writes a report for each outgoing stream, with the blocks in the first. Returns whether
    /// there was one, and whether more have to go into another datagram.
    fn write_sender_reports(
        &mut self,
        now: Instant,
        blocks: &[ReportBlock],
        out: &mut CompoundWriter<'_>,
    ) -> (bool, bool) {
        let clock = self.clock;
        let first = std::mem::take(&mut self.next_sender);
        let mut reported = false;
        for (index, media) in self.media.iter_mut().enumerate().skip(first) {
            if reported && out.room() < REPORT_ROOM {
                self.next_sender = index;
                return (reported, true);
            }
            let (clock_rate, source) = (media.clock_rate(), media.source_clock);
            let figures = media
                .sending
                .as_mut()
                .and_then(|s| s.report(source, clock_rate, &clock, now));
            let Some(figures) = figures else { continue };
            let info = SenderInfo {
                ntp: figures.ntp,
                rtp: figures.timestamp,
                packets: figures.packets,
                octets: figures.bytes,
            };
            let report = SenderReportWriter {
                ssrc: figures.ssrc,
                info,
                blocks: if reported { &[] } else { blocks },
            };
            reported |= out.push(&report).is_ok();
        }
        (reported, false)
    }

    /// Writes the bitrate cap. Returns whether it has to be repeated.
    fn write_bitrate(&mut self, now: Instant, sender: Ssrc, out: &mut CompoundWriter<'_>) -> bool {
        let (bitrate, again) = match (self.bitrate_cap(), self.bitrate) {
            (Some(cap), _) => (cap, true),
            (None, Bitrate::Unset) => return false,
            (None, Bitrate::Cap(_) | Bitrate::Lifted) => (NO_CAP, false),
        };
        let streams = self
            .media
            .iter()
            .filter(|m| m.kind == Kind::Video)
            .flat_map(|m| m.receiving.iter())
            .flatten()
            .filter(|encoding| encoding.active && heard_lately(encoding, now));
        let ssrcs: SmallVec<[Ssrc; 8]> = streams.map(|e| e.stream.ssrc()).take(8).collect();
        if ssrcs.is_empty() {
            // It is sent as soon as video arrives.
            return false;
        }
        let written = out
            .push(&RembWriter {
                sender,
                bitrate,
                ssrcs: &ssrcs,
            })
            .is_ok();
        if written && !again {
            self.bitrate = Bitrate::Unset;
        }
        again
    }

    fn write_nacks(&mut self, now: Instant, sender: Ssrc, out: &mut CompoundWriter<'_>) {
        let round_trip = self.assumed_round_trip();
        let scratch = &mut self.scratch;
        let keyframes = &mut self.keyframes;
        let encodings = self
            .media
            .iter_mut()
            .enumerate()
            .flat_map(|(index, media)| {
                let (kind, encodings) = (media.kind, (0..).zip(media.receiving.iter_mut()));
                encodings.filter_map(move |(number, encoding)| {
                    Some((kind, (index, number), encoding.as_mut()?))
                })
            });
        for (kind, key, encoding) in encodings {
            if encoding.stream.next_nack().is_none_or(|due| due > now) {
                continue;
            }
            scratch.clear();
            let given_up = encoding
                .stream
                .take_nacks(now, round_trip, |seq| scratch.push(seq.wire()));
            // A keyframe for each loss would only add losses on a lossy path.
            let lately = encoding
                .gave_up
                .is_some_and(|at| now.saturating_duration_since(at) < GIVE_UP_INTERVAL);
            if given_up > 0 && kind == Kind::Video && !lately {
                encoding.gave_up = Some(now);
                keyframes.want(key, now);
            }
            for lost in scratch.chunks(64) {
                let lost = lost.iter().copied();
                // Without room, the request is repeated after a round trip.
                let _ = out.push(&NackWriter {
                    sender,
                    media: encoding.stream.ssrc(),
                    lost,
                });
            }
        }
    }

    fn write_keyframe_requests(
        &mut self,
        now: Instant,
        sender: Ssrc,
        out: &mut CompoundWriter<'_>,
    ) {
        let media = &mut self.media;
        let fir_sequence = &mut self.fir_sequence;
        self.keyframes.ask(now, |(index, encoding)| {
            let Some(media) = media.get_mut(index) else {
                return Asked::NotThere;
            };
            let feedback = media
                .main_payload()
                .map(|payload| payload.feedback)
                .unwrap_or_default();
            let stream = media
                .receiving
                .get_mut(usize::from(encoding))
                .and_then(Option::as_mut);
            let Some(stream) = stream.map(|encoding| &mut encoding.stream) else {
                return Asked::NotThere;
            };
            let ssrc = stream.ssrc();
            let written = if feedback.fir && !feedback.pli {
                *fir_sequence = fir_sequence.wrapping_add(1);
                let entries = [FirEntry {
                    ssrc,
                    sequence: *fir_sequence,
                }];
                out.push(&FirWriter {
                    sender,
                    entries: &entries,
                })
            } else {
                out.push(&Pli {
                    sender,
                    media: ssrc,
                })
            };
            if written.is_err() {
                return Asked::NoRoom;
            }
            stream.count_keyframe_request();
            Asked::Yes
        });
    }

    fn write_feedback(&mut self, now: Instant, sender: Ssrc, out: &mut CompoundWriter<'_>) {
        if self.next_twcc.is_none_or(|at| at > now) {
            return;
        }
        let streams = self
            .media
            .iter()
            .flat_map(|media| media.receiving.iter())
            .flatten();
        let media = streams
            .map(|encoding| encoding.stream.ssrc())
            .next()
            .unwrap_or(sender);
        let room = out.room();
        let ArrivalReport {
            count,
            base,
            arrivals,
        } = self.arrivals.take();
        let reported = match TwccWriter::new((sender, media), count, base, arrivals, room) {
            Some((writer, rest)) if out.push(&writer).is_ok() => arrivals.len() - rest.len(),
            _ => 0,
        };
        self.arrivals.put_back(reported);
        self.next_twcc = (!self.arrivals.is_empty()).then(|| now + Duration::from_millis(1));
    }

    /// Checks once a second which streams fell silent and which lost many packets.
    fn watch(&mut self, now: Instant) {
        self.second_passed = true;
        let threshold = u64::from(self.config.slow_link_threshold);
        let no_media = self.config.no_media;
        let feedback = &mut self.feedback;
        for (index, media) in self.media.iter_mut().enumerate() {
            for (number, encoding) in media.receiving.iter_mut().enumerate() {
                let Some(state) = encoding else { continue };
                let counters = state.stream.counters();
                let lost = counters.lost.saturating_sub(state.lost_at_report);
                state.lost_at_report = counters.lost;
                if threshold > 0 && lost >= threshold {
                    let lost = u32::try_from(lost).unwrap_or(u32::MAX);
                    feedback.push_back(Feedback::SlowLink {
                        media: index,
                        uplink: true,
                        lost,
                    });
                }
                let silent = state.stream.last_packet().zip(no_media);
                let silent =
                    silent.is_some_and(|(at, limit)| now.saturating_duration_since(at) >= limit);
                if silent && std::mem::replace(&mut state.active, false) {
                    let encoding = number as u8;
                    feedback.push_back(Feedback::Receiving {
                        media: index,
                        encoding,
                        receiving: false,
                    });
                }
            }
        }
    }

    /// Returns whether any stream received packets lately, is monitored, or has to be reported.
    fn streams_active(&self, now: Instant) -> bool {
        let watched = self.config.no_media.is_some();
        let receiving = |media: &Media| {
            let mut encodings = media.receiving.iter().flatten();
            encodings.any(|e| e.active && (watched || heard_lately(e, now)))
        };
        let sending = |media: &Media| media.sending.as_ref().is_some_and(|s| s.report_pending());
        self.media
            .iter()
            .any(|media| receiving(media) || sending(media))
    }
}

fn heard_lately(encoding: &Encoding, now: Instant) -> bool {
    let last = encoding.stream.last_packet();
    last.is_some_and(|at| now.saturating_duration_since(at) < QUIET)
}
