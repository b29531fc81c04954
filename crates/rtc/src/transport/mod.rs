//! The transport of one PeerConnection.

mod event;
mod figures;
mod link;
mod observer;

use std::collections::VecDeque;
use std::mem;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use portunus_rtp::{Header, SeqNo};
use portunus_sdp::negotiated::{DtlsRole, Fingerprint, IceCredentials, RemoteTransport};
use portunus_srtp::{Opener, Profile, SealError, Sealer};

use crate::data::{Data, DataConfig, DataError, DataOptions, DataPayload};
use crate::dtls::{Established, Handshakes, MTU};
use crate::ice::{Datagram, Ice, IceEvent, StunOutcome};
use crate::{CandidateError, IceAttempt, Identity, LocalCandidate, Path, Protocol, SelectedPair};

pub use event::{Counters, DropReason, DtlsState, FailReason, Received, Transmit, TransportEvent};
pub use figures::DtlsFigures;
use observer::Observed;
pub use observer::{Direction, PacketObserver};

/// The most DTLS datagrams kept that overtook the check which verifies their sender.
const MAX_EARLY: usize = 4;

/// The longest datagram sent, in bytes. SCTP fills packets up to [`MTU`] without counting the
/// padding of chunks, so a packet of many tiny messages is up to a sixth longer. It still fits all
/// paths.
const MAX_DATAGRAM: usize = MTU * 6 / 5;

/// The configuration of a transport.
#[derive(Debug, Clone)]
pub struct TransportConfig {
    /// This side's ICE credentials.
    pub local_ice: IceCredentials,
    /// This side's certificate.
    pub identity: Arc<Identity>,
    /// Whether this side's ICE agent is the controlling one, as that of the offerer is.
    pub controlling: bool,
    /// Whether to only answer connectivity checks (RFC 8445 section 2.5).
    pub ice_lite: bool,
    /// This side's host candidates, the most preferred first.
    pub candidates: Vec<LocalCandidate>,
    /// A random number that resolves a conflict of ICE roles (RFC 8445 section 7.3.1.1).
    pub tie_breaker: u64,
}

/// An error of a call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TransportError {
    /// A candidate of the remote side is malformed. The others were used.
    #[error(transparent)]
    Candidate(#[from] CandidateError),
    /// The transport has failed or is closed.
    #[error("the transport is closed")]
    Closed,
    /// The handshake is not complete, or the peer does not speak SRTP.
    #[error("there are no SRTP keys")]
    NoKeys,
    /// The packet cannot be sealed.
    #[error(transparent)]
    Seal(#[from] SealError),
    /// The message cannot be sent, or the channel cannot be opened.
    #[error(transparent)]
    Data(#[from] DataError),
}

/// ICE, DTLS, SRTP and data channels of one PeerConnection. Fields that each packet needs come
/// first.
#[derive(Debug)]
#[repr(C)]
pub struct Transport {
    srtp: Option<Box<Srtp>>,
    dtls: Dtls,
    ice: Ice,
    identity: Arc<Identity>,
    /// The DTLS parameters of the remote side.
    remote: Option<RemoteDtls>,
    data_config: Option<DataConfig>,
    data: Option<Box<Data>>,
    /// The last path of received DTLS, which is used until a pair is selected.
    dtls_path: Option<Path>,
    early: Vec<(Path, Vec<u8>)>,
    out: VecDeque<Datagram>,
    events: VecDeque<TransportEvent>,
    counters: Counters,
    handshake: DtlsFigures,
    /// The observer of the packets, with the SRTP keys: without `srtp`, packets take the path
    /// through `observed`.
    observed: Option<Box<Observed>>,
}

#[derive(Debug)]
struct RemoteDtls {
    fingerprints: Vec<Fingerprint>,
    role: DtlsRole,
}

#[derive(Debug)]
enum Dtls {
    /// There is no verified pair, or the remote side is not known.
    Waiting,
    Handshaking(Box<Handshakes>),
    Established(Box<Established>),
    /// The transport has failed or is closed.
    Ended,
}

#[derive(Debug)]
struct Srtp {
    sealer: Sealer,
    opener: Opener,
}

impl Srtp {
    #[inline]
    fn open_rtp(&mut self, datagram: &mut [u8]) -> Received {
        let Ok(header) = Header::parse_encrypted(datagram) else {
            return Received::Dropped(DropReason::MalformedRtp);
        };
        let opened =
            self.opener
                .open_rtp(header.header_len(), header.ssrc, header.sequence, datagram);
        match opened {
            // The length of the padding was encrypted.
            Ok(opened) => match datagram
                .get(..opened.len)
                .map(|plain| header.decrypted(plain))
            {
                Some(Ok(header)) => Received::Rtp {
                    len: opened.len,
                    header,
                    index: opened.index,
                },
                _ => Received::Dropped(DropReason::MalformedRtp),
            },
            Err(error) => Received::Dropped(DropReason::Srtp(error)),
        }
    }

    fn open_rtcp(&mut self, datagram: &mut [u8]) -> Received {
        match self.opener.open_rtcp(datagram) {
            Ok(len) => Received::Rtcp { len },
            Err(error) => Received::Dropped(DropReason::Srtp(error)),
        }
    }
}

impl Transport {
    /// The leading bytes that each packet needs.
    pub(crate) const HEAD: usize = mem::offset_of!(Self, ice) + Ice::HEAD;

    /// Makes a transport that waits for [`Self::set_remote`].
    pub fn new(config: TransportConfig) -> Self {
        let TransportConfig {
            local_ice,
            identity,
            controlling,
            ice_lite,
            candidates,
            tie_breaker,
        } = config;
        Self {
            identity,
            ice: Ice::new(local_ice, &candidates, controlling, ice_lite, tie_breaker),
            remote: None,
            dtls: Dtls::Waiting,
            srtp: None,
            data_config: None,
            data: None,
            dtls_path: None,
            early: Vec::new(),
            out: VecDeque::new(),
            events: VecDeque::new(),
            counters: Counters::default(),
            handshake: DtlsFigures::default(),
            observed: None,
        }
    }

    /// Sets the remote side's parameters. Starts ICE the first time, and later restarts it if the
    /// credentials are new. A malformed candidate is an error, but the rest has been used.
    pub fn set_remote(
        &mut self,
        remote: &RemoteTransport,
        now: Instant,
    ) -> Result<(), TransportError> {
        self.check_open()?;
        if self.remote.is_none() {
            self.remote = Some(RemoteDtls {
                fingerprints: remote.fingerprints.clone(),
                role: remote.dtls_role,
            });
        }
        let result = self.ice.set_remote(remote, now);
        self.take_ice_events(now);
        Ok(result?)
    }

    /// Restarts ICE with new credentials of this side, until [`Self::set_remote`] continues. DTLS,
    /// SRTP and the selected pair stay meanwhile.
    pub fn restart_ice(&mut self, local: IceCredentials, controlling: bool, now: Instant) {
        self.ice.set_controlling(controlling);
        self.ice.restart(Some(local), now);
    }

    /// Takes a remote candidate (`candidate:…`, with or without `a=`). Unusable ones (mDNS names,
    /// TCP without a connecting side) are counted without an error.
    pub fn add_remote_candidate(&mut self, text: &str, now: Instant) -> Result<(), TransportError> {
        self.check_open()?;
        if self.ice.add_remote_candidate(text)?.is_some() {
            self.counters.ignored_candidates += 1;
        }
        self.ice.handle_timeout(now);
        self.take_ice_events(now);
        Ok(())
    }

    /// Returns the numbers of unused candidates of the peer: with mDNS names, and for TCP without a
    /// connecting side.
    pub fn ignored_candidates(&self) -> (u32, u32) {
        self.ice.ignored()
    }

    /// Returns the state of the current ICE attempt. Returns `None` while a pair works, before the
    /// remote side is known, and after failure.
    pub fn ice_attempt(&self, now: Instant) -> Option<IceAttempt> {
        self.ice.attempt(now)
    }

    /// Sets whether this side sends no media and no data. The peer's media then is a sign of life
    /// as good as its responses to checks.
    pub(crate) fn set_receive_only(&mut self, receive_only: bool) {
        self.ice.set_receive_only(receive_only);
    }

    /// Enables data channels, which start once DTLS is connected. Later calls have no effect.
    pub fn negotiate_data(&mut self, config: DataConfig, now: Instant) {
        if self.data_config.is_none() {
            self.data_config = Some(config);
            self.start_data(now);
        }
    }

    /// Opens a data channel. Does nothing if there is one with this label.
    pub fn open_data(
        &mut self,
        label: &str,
        protocol: &str,
        options: DataOptions,
        now: Instant,
    ) -> Result<(), TransportError> {
        self.data()?.open(label, protocol, options)?;
        self.flush_data(now);
        Ok(())
    }

    /// Sends a message on the data channel with this label. Opens it with `protocol` and `options`
    /// if there is none.
    pub fn send_data(
        &mut self,
        label: &str,
        protocol: &str,
        payload: DataPayload<'_>,
        options: DataOptions,
        now: Instant,
    ) -> Result<(), TransportError> {
        let data = self.data()?;
        data.open(label, protocol, options)?;
        data.send(label, payload)?;
        self.flush_data(now);
        Ok(())
    }

    /// Closes the data channel with this label.
    pub fn close_data(&mut self, label: &str, now: Instant) -> Result<(), TransportError> {
        self.data()?.close(label)?;
        self.flush_data(now);
        Ok(())
    }

    /// Takes a datagram that arrived by UDP from `remote` at the bound address `local`. RTP and
    /// RTCP are decrypted in place and returned.
    pub fn receive(
        &mut self,
        now: Instant,
        local: SocketAddr,
        remote: SocketAddr,
        datagram: &mut [u8],
    ) -> Received {
        self.receive_by(now, Path::udp(local, remote), datagram)
    }

    /// Takes a datagram received on `path`, like [`Self::receive`].
    pub fn receive_by(&mut self, now: Instant, path: Path, datagram: &mut [u8]) -> Received {
        self.counters.received += 1;
        let received = match Protocol::of(datagram) {
            _ if matches!(self.dtls, Dtls::Ended) => Received::Dropped(DropReason::Closed),
            None => Received::Dropped(DropReason::UnknownProtocol),
            Some(Protocol::Rtp) => self.receive_rtp(now, path, datagram),
            Some(Protocol::Rtcp) => self.receive_rtcp(path, datagram),
            Some(Protocol::Stun) => self.receive_stun(now, path, datagram),
            Some(Protocol::Dtls) => {
                self.handshake.received.add(datagram.len());
                self.receive_dtls(now, path, datagram)
            }
        };
        if let Received::Dropped(reason) = received
            && let Some(count) = self.counters.dropped.get_mut(reason.index())
        {
            *count = count.saturating_add(1);
        }
        received
    }

    /// Returns whether an address of this side is at a TURN server.
    pub fn is_relayed(&self, local: SocketAddr) -> bool {
        self.ice.is_relayed(local)
    }

    /// Writes the next datagram of ICE, DTLS or SCTP to `buf`, which should hold 1,500 bytes.
    pub fn poll_transmit(&mut self, buf: &mut [u8]) -> Option<Transmit> {
        loop {
            let datagram = self.out.pop_front().or_else(|| self.ice.poll_transmit())?;
            let Datagram { path, bytes } = datagram;
            // No datagram of ours is that long. It is lost if the buffer is too short.
            if let Some(place) = buf.get_mut(..bytes.len()) {
                place.copy_from_slice(&bytes);
                return Some(Transmit {
                    len: bytes.len(),
                    source: path.local,
                    destination: path.remote,
                    carrier: path.carrier,
                });
            }
        }
    }

    /// Fails the pairs of a closed TCP connection at once. The peer may make another connection.
    pub fn connection_lost(&mut self, path: Path, now: Instant) {
        if matches!(self.dtls, Dtls::Ended) {
            return;
        }
        self.dtls_path = self.dtls_path.filter(|dtls_path| *dtls_path != path);
        self.ice.lose(path, now);
        self.take_ice_events(now);
    }

    /// Returns the next event.
    pub fn poll_event(&mut self) -> Option<TransportEvent> {
        self.events.pop_front()
    }

    /// Returns when [`Self::handle_timeout`] is due.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let dtls = match &self.dtls {
            Dtls::Handshaking(handshake) => Some(handshake.poll_timeout()),
            Dtls::Waiting | Dtls::Established(_) => None,
            Dtls::Ended => return None,
        };
        let data = self.data.as_ref().and_then(|data| data.poll_timeout());
        [self.ice.poll_timeout(), dtls, data]
            .into_iter()
            .flatten()
            .min()
    }

    /// Handles the timeouts that are due.
    pub fn handle_timeout(&mut self, now: Instant) {
        if matches!(self.dtls, Dtls::Ended) {
            return;
        }
        self.ice.handle_timeout(now);
        self.take_ice_events(now);
        if let Dtls::Handshaking(handshake) = &mut self.dtls {
            let mut out = Vec::new();
            let result = handshake.handle_timeout(now, &mut out);
            self.counters.dtls_retransmissions += u32::from(!out.is_empty());
            self.send_dtls(out);
            if let Err(error) = result {
                self.fail_dtls(error);
            }
        }
        if let Some(data) = &mut self.data {
            data.handle_timeout(now);
            self.flush_data(now);
        }
    }

    /// Seals the RTP packet `buf[..len]` in place; see [`Sealer::seal_rtp`].
    pub fn seal_rtp(
        &self,
        index: SeqNo,
        header_len: usize,
        len: usize,
        buf: &mut [u8],
    ) -> Result<usize, TransportError> {
        self.seal_rtp_with_tail(index, header_len, len, &[], buf)
    }

    /// [`fetch`]es the pointer to the peer's key, once the transport is in the cache.
    #[inline]
    pub fn fetch_opener(&self) {
        if let Some(srtp) = &self.srtp {
            srtp.opener.fetch();
        }
    }

    /// [`fetch`]es the peer's key, once the pointer to it is in the cache.
    #[inline]
    pub fn fetch_peer_key(&self) {
        if let Some(srtp) = &self.srtp {
            srtp.opener.fetch_key();
        }
    }

    /// [`fetch`]es the pointer to the key for sending, once the transport is in the cache.
    #[inline]
    pub fn fetch_sealer(&self) {
        if let Some(srtp) = &self.srtp {
            srtp.sealer.fetch();
        }
    }

    /// [`fetch`]es the key for sending, once the pointer to it is in the cache.
    #[inline]
    pub fn fetch_key(&self) {
        if let Some(srtp) = &self.srtp {
            srtp.sealer.fetch_key();
        }
    }

    /// Seals an RTP packet whose payload ends elsewhere; see [`Sealer::seal_rtp_with_tail`].
    pub fn seal_rtp_with_tail(
        &self,
        index: SeqNo,
        header_len: usize,
        len: usize,
        tail: &[u8],
        buf: &mut [u8],
    ) -> Result<usize, TransportError> {
        let Some(srtp) = &self.srtp else {
            return self.seal_observed_rtp(index, (header_len, len), tail, buf);
        };
        let sealer = &srtp.sealer;
        Ok(sealer.seal_rtp_with_tail(index, header_len, len, tail, buf)?)
    }

    /// Seals the compound RTCP packet `buf[..len]` in place; see [`Sealer::seal_rtcp`].
    pub fn seal_rtcp(&mut self, len: usize, buf: &mut [u8]) -> Result<usize, TransportError> {
        let Some(srtp) = &mut self.srtp else {
            return self.seal_observed_rtcp(len, buf);
        };
        Ok(srtp.sealer.seal_rtcp(len, buf)?)
    }

    /// Closes the transport with a DTLS `close_notify`. Transmit what is left, then drop it.
    pub fn close(&mut self) {
        if let Dtls::Established(established) = &mut self.dtls {
            let goodbye = established.close();
            self.send_dtls(goodbye.into_iter().collect());
        }
        self.end();
    }

    /// Returns the selected pair of addresses.
    pub fn selected_pair(&self) -> Option<&SelectedPair> {
        self.ice.selected()
    }

    /// Returns whether the peer has answered a check on the selected pair within seconds. A lite
    /// agent makes none.
    pub fn is_answered(&self, now: Instant) -> bool {
        self.ice.is_answered(now)
    }

    /// Returns this side's ICE user fragment, which [`crate::stun_username`] finds in the peer's
    /// checks.
    pub fn local_ufrag(&self) -> &str {
        self.ice.local_ufrag()
    }

    /// Returns the round trip of the last answered check on the selected pair.
    pub fn rtt(&self) -> Option<Duration> {
        self.ice.rtt()
    }

    /// Returns the SRTP profile, once connected.
    pub fn profile(&self) -> Option<Profile> {
        let srtp = self.srtp.as_deref().or_else(|| self.observed_srtp());
        srtp.map(|srtp| srtp.sealer.profile())
    }

    /// Returns whether the DTLS handshake is complete and the transport has not ended.
    pub fn is_connected(&self) -> bool {
        matches!(self.dtls, Dtls::Established(_))
    }

    /// Returns the counters.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    fn receive_rtp(&mut self, now: Instant, path: Path, datagram: &mut [u8]) -> Received {
        let Some(srtp) = &mut self.srtp else {
            return self.receive_observed_rtp(now, path, datagram);
        };
        let received = srtp.open_rtp(datagram);
        if let Received::Rtp { .. } = received {
            self.ice.hear_media(now, path);
        }
        received
    }

    fn receive_rtcp(&mut self, path: Path, datagram: &mut [u8]) -> Received {
        match &mut self.srtp {
            Some(srtp) => srtp.open_rtcp(datagram),
            None => self.receive_observed_rtcp(path, datagram),
        }
    }

    fn receive_stun(&mut self, now: Instant, path: Path, datagram: &[u8]) -> Received {
        let outcome = self.ice.receive(now, path, datagram);
        self.take_ice_events(now);
        match outcome {
            StunOutcome::Accepted => {
                self.take_early(now);
                Received::Consumed
            }
            StunOutcome::Malformed => Received::Dropped(DropReason::MalformedStun),
            StunOutcome::Refused => Received::Dropped(DropReason::RefusedStun),
        }
    }

    fn take_ice_events(&mut self, now: Instant) {
        while let Some(event) = self.ice.poll_event() {
            match event {
                IceEvent::State(state) => self.events.push_back(TransportEvent::Ice(state)),
                IceEvent::Source(address) => {
                    self.events
                        .push_back(TransportEvent::RemoteAddress(address));
                }
                IceEvent::Selected(pair) => {
                    self.events.push_back(TransportEvent::SelectedPair(pair));
                    self.start_dtls(now);
                }
                IceEvent::Failed(attempt) => {
                    tracing::debug!(%attempt, "ICE failed");
                    self.end();
                    self.events
                        .push_back(TransportEvent::Failed(FailReason::Ice(attempt)));
                }
            }
        }
    }

    fn check_open(&self) -> Result<(), TransportError> {
        match self.dtls {
            Dtls::Ended => Err(TransportError::Closed),
            Dtls::Waiting | Dtls::Handshaking(_) | Dtls::Established(_) => Ok(()),
        }
    }
}
