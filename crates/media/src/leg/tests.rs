//! A leg in virtual time: long calls, new keys, deadlines.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::expect_used,
    clippy::panic,
    reason = "a failed test panics"
)]

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use portunus_graph::{Packet, SourceFormat, SourceKey};
use portunus_rtc::streams::NtpClock;
use portunus_rtp::rtcp::{Compound, Packet as Rtcp};
use portunus_rtp::{Fields, Header, Pt, SeqNo, Ssrc, write_header};
use portunus_sdp::negotiated::Codec;
use portunus_srtp::{Opener, Profile, Sealer};
use tokio::sync::mpsc;

use super::state::Datagram;
use super::*;
use crate::IngestStatus;

const PCMU: LegPayload = LegPayload {
    pt: Pt(0),
    codec: Codec::Pcmu,
    clock_rate: 8_000,
};
const SOURCE: SourceKey = SourceKey(3);

struct Rig {
    state: LegState,
    news: mpsc::Receiver<LegNews>,
    now: Instant,
    clock: NtpClock,
    number: u64,
}

fn at() -> SocketAddr {
    ([192, 0, 2, 1], 4_000).into()
}

fn key(fill: u8) -> SrtpKey {
    SrtpKey::new(Profile::Aes128CmSha1_80, &[fill; 30]).unwrap()
}

fn remote(incoming: u8, outgoing: u8) -> LegRemote {
    LegRemote {
        srtp: Some(LegSrtp {
            incoming: key(incoming),
            outgoing: key(outgoing),
        }),
        ..LegRemote::new(Some(at()), vec![PCMU])
    }
}

fn opener(fill: u8) -> Opener {
    Opener::new(Profile::Aes128CmSha1_80, &[fill; 16], &[fill; 14]).unwrap()
}

impl Rig {
    fn new() -> Self {
        let (tell, news) = mpsc::channel(16);
        let now = Instant::now();
        let id = LegId {
            worker: 0,
            serial: 1,
        };
        let incoming = Arc::new(IngestStatus::new(now));
        let status = Arc::new(LegStatus::new(incoming, Ssrc(9)));
        let options = LegOptions {
            silence: Some(Duration::from_secs(30)),
            hears_source: false,
            hears_unknown: false,
        };
        let state = LegState::new(id, options, tell, status);
        let clock = NtpClock::new(now, Duration::ZERO);
        Self {
            state,
            news,
            now,
            clock,
            number: 0,
        }
    }

    /// The datagram of the source's next packet.
    fn sent(&mut self) -> Vec<u8> {
        self.number += 1;
        self.now += Duration::from_millis(20);
        let fields = Fields {
            marker: false,
            padding: false,
            pt: Pt(0),
            sequence: self.number as u16,
            timestamp: self.number as u32 * 160,
            ssrc: Ssrc(5),
        };
        let mut packet = Packet::empty(self.now);
        packet.data = vec![0; 12];
        write_header(&mut packet.data, &fields, []).unwrap();
        packet.data.extend_from_slice(&self.number.to_be_bytes());
        packet.header = Header::parse(&packet.data).unwrap();
        (packet.seq, packet.codec) = (SeqNo(self.number), Codec::Pcmu);
        let format = SourceFormat {
            is_video: false,
            clock_rate: 8_000,
            encodings: 1,
            messages: None,
            keep: None,
            on_demand: false,
        };
        let mut out = [0; 256];
        let Written::Datagram(len) = self.state.write(SOURCE, &packet, &format, &mut out) else {
            panic!("it is for the far end");
        };
        out[..len].to_vec()
    }

    fn told(&mut self) -> Vec<LegEvent> {
        std::iter::from_fn(|| self.news.try_recv().ok())
            .map(|news| news.event)
            .collect()
    }

    fn report(&mut self) -> Option<Vec<u8>> {
        let mut out = [0; 400];
        let clock = (&self.clock, self.now);
        let (len, _) = self.state.report(
            ReportContents::default(),
            ReportSource::default(),
            clock,
            &mut out,
        )?;
        Some(out[..len].to_vec())
    }
}

fn open(opener: &mut Opener, mut packet: Vec<u8>) -> (Ssrc, u64) {
    let header = Header::parse_encrypted(&packet).unwrap();
    let opened = opener.open_rtp(
        header.header_len(),
        header.ssrc,
        header.sequence,
        &mut packet,
    );
    let len = opened.expect("authentic").len;
    let number = u64::from_be_bytes(packet[12..len].try_into().unwrap());
    (header.ssrc, number)
}

#[test]
fn calls_of_hours_go_on_over_the_roll_over_counter() {
    let mut rig = Rig::new();
    rig.state.set_remote(&remote(1, 2), rig.now);
    let sealer = Sealer::new(Profile::Aes128CmSha1_80, &[1; 16], &[1; 14]).unwrap();
    let mut far = opener(2);
    // An hour and six minutes each way: the counter rolls over three times.
    for n in 0..200_000_u64 {
        let sent = rig.sent();
        assert_eq!(open(&mut far, sent).1, n + 1);
        let mut packet = vec![0; 64];
        let fields = Fields {
            marker: false,
            padding: false,
            pt: Pt(0),
            sequence: (n + 60_000) as u16,
            timestamp: n as u32 * 160,
            ssrc: Ssrc(7),
        };
        let head = write_header(&mut packet, &fields, []).unwrap();
        // Numbers start below the first roll-over.
        let len = sealer
            .seal_rtp(SeqNo(n + 60_000), head, head + 20, &mut packet)
            .unwrap();
        packet.truncate(len);
        let taken = rig.state.take_rtp(at(), &mut packet, rig.now);
        assert_eq!(taken, Ok(Datagram::Packet(head + 20)));
        // The same description again, as in re-INVITEs, changes nothing.
        if n % 50_000 == 0 {
            rig.state.set_remote(&remote(1, 2), rig.now);
        }
    }
    assert_eq!(rig.told(), [LegEvent::Heard]);
}

#[test]
fn a_new_key_late_in_a_call_takes_a_new_stream() {
    let mut rig = Rig::new();
    rig.state.set_remote(&remote(1, 2), rig.now);
    let (first, _) = open(&mut opener(2), rig.sent());
    assert_eq!(first, rig.state.status.ssrc());
    // Before the first roll-over the stream stays.
    rig.state.set_remote(&remote(1, 3), rig.now);
    assert_eq!(open(&mut opener(3), rig.sent()).0, first);
    for _ in 0..70_000 {
        rig.sent();
    }
    // A receiver that assumes a counter of 0 can decrypt it, as one that knows the counter can.
    rig.state.set_remote(&remote(1, 4), rig.now);
    let (second, number) = open(&mut opener(4), rig.sent());
    assert_ne!(second, first);
    assert_eq!(second, rig.state.status.ssrc());
    assert_eq!(number, 70_003);
    // RTCP, too.
    let mut report = rig.report().unwrap();
    let len = opener(4).open_rtcp(&mut report).unwrap();
    assert!(Compound::new(&report[..len]).all(|packet| packet.is_ok()));
    // To plain RTP, and back.
    rig.state
        .set_remote(&LegRemote::new(Some(at()), vec![PCMU]), rig.now);
    let plain = rig.sent();
    assert_eq!(plain.len(), 20);
    rig.state.set_remote(&remote(1, 4), rig.now);
    open(&mut opener(4), rig.sent());
}

#[test]
fn reports_leave_by_the_clock_and_silence_is_told_once() {
    let mut rig = Rig::new();
    assert_eq!(rig.state.deadline(), None, "nobody is there");
    rig.state
        .set_remote(&LegRemote::new(Some(at()), vec![PCMU]), rig.now);
    let start = rig.now;
    rig.sent();
    let (mut reports, mut told) = (Vec::new(), Vec::new());
    while rig.now < start + Duration::from_secs(100) {
        rig.now = rig.state.deadline().unwrap();
        for due in rig.state.timeout(rig.now) {
            assert_eq!(due, Due::Report);
            reports.push(rig.report().unwrap());
        }
        told.extend(rig.told().into_iter().map(|event| (event, rig.now - start)));
    }
    assert_eq!(told, [(LegEvent::Silent, Duration::from_secs(30))]);
    assert!((14..40).contains(&reports.len()), "{}", reports.len());
    let begins = |report: &[u8]| match Compound::new(report).next().unwrap().unwrap() {
        Rtcp::SenderReport(_) => "sent",
        Rtcp::ReceiverReport(_) => "received",
        _ => "other",
    };
    assert_eq!(begins(&reports[0]), "sent");
    assert!(
        reports[1..]
            .iter()
            .all(|report| begins(report) == "received")
    );
    // Nothing is due on hold.
    rig.state
        .set_remote(&LegRemote::new(None, vec![PCMU]), rig.now);
    assert_eq!(rig.state.deadline(), None);
    assert_eq!(rig.report(), None);
}
