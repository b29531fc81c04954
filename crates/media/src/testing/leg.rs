//! A leg without a worker.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use portunus_rtc::streams::NtpClock;
use portunus_rtp::{Pt, Ssrc};
use portunus_sdp::negotiated::Codec;
use tokio::sync::mpsc;

use crate::IngestStatus;
use crate::leg::{
    Due, LegId, LegNews, LegOptions, LegPayload, LegRemote, LegRtcp, LegSide, LegSrtp, LegState,
    LegStatus, LegTones, Profile, ReportContents, ReportSource, SrtpKey,
};

/// A leg that takes datagrams and sends nothing, with a far end at 192.0.2.1:4000. Its events are
/// not read.
#[derive(Debug)]
pub struct BareLeg {
    state: LegState,
    clock: NtpClock,
    room: Vec<u8>,
    _news: mpsc::Receiver<LegNews>,
}

impl BareLeg {
    /// Returns a leg, with SRTP if `secure`, and with RTCP on the port of RTP if `shared`.
    pub fn new(secure: bool, shared: bool, now: Instant) -> Self {
        let (tell, news) = mpsc::channel(16);
        let id = LegId {
            worker: 0,
            serial: 1,
        };
        let incoming = Arc::new(IngestStatus::new(now));
        let status = Arc::new(LegStatus::new(incoming, Ssrc(9)));
        let options = LegOptions {
            silence: Some(Duration::from_secs(1)),
            hears_source: true,
            hears_unknown: false,
        };
        let mut state = LegState::new(id, options, tell, status);
        let payload = |pt, codec| LegPayload {
            pt: Pt(pt),
            codec,
            clock_rate: 8_000,
        };
        let payloads = vec![payload(0, Codec::Pcmu), payload(101, Codec::TelephoneEvent)];
        let key = |fill| SrtpKey::new(Profile::Aes128CmSha1_80, &[fill; 30]).ok();
        let srtp = key(1).zip(key(2)).filter(|_| secure);
        let at = SocketAddr::from(([192, 0, 2, 1], 4_000));
        let mut remote = LegRemote::new(Some(at), payloads);
        remote.srtp = srtp.map(|(incoming, outgoing)| LegSrtp { incoming, outgoing });
        if shared {
            remote.rtcp = LegRtcp::Mux;
        }
        state.set_remote(&remote, now);
        state.add_tones(&LegTones::new(&[1], LegSide::FarEnd), now);
        Self {
            state,
            clock: NtpClock::new(now, Duration::ZERO),
            room: vec![0; 2_048],
            _news: news,
        }
    }

    /// Takes a datagram of RTP or RTCP.
    pub fn take(&mut self, from: SocketAddr, rtcp: bool, mut datagram: Vec<u8>, now: Instant) {
        // Refused datagrams are expected.
        let _ = match rtcp {
            true => self
                .state
                .take_rtcp(from, &mut datagram, false, now)
                .map(drop),
            false => self.state.take_rtp(from, &mut datagram, now).map(drop),
        };
    }

    /// Does what is due.
    pub fn turn(&mut self, now: Instant) {
        for due in self.state.timeout(now) {
            match due {
                Due::Report => {
                    let clock = (&self.clock, now);
                    let contents = ReportContents {
                        keyframe: true,
                        bye: false,
                    };
                    let source = ReportSource::default();
                    self.state.report(contents, source, clock, &mut self.room);
                }
                Due::FarTone => drop(self.state.outgoing.write_tone(now, &mut self.room)),
                Due::NearTone(..) => {}
            }
        }
    }
}
