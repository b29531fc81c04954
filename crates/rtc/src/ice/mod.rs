//! ICE (RFC 8445): the agent of the crate `is`, with bound and announced addresses, consent
//! freshness (RFC 7675), a time limit, and a report on failures.

mod attempt;
mod bare_answer;
mod candidate;
mod candidate_text;
mod cause;
mod checks;
mod consent;
mod event;
mod mdns;
mod nominations;
mod pairs;
mod probe;
mod selected_pair;
mod sources;
mod tcp;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::mem;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use is::stun::{StunMessage, StunPacket};
use is::{Candidate, IceAgent, IceAgentEvent, IceCreds};
use portunus_sdp::negotiated::{IceCredentials, RemoteTransport};

use crate::demux::{stun_answer, stun_check};
use crate::path::TransportAddress;
use crate::{Carrier, Path};

use attempt::kind_name;
pub use attempt::{IceAttempt, RemoteCandidate};
pub(crate) use candidate::Ignored;
pub use candidate::{CandidateError, CandidateTransport, LocalCandidate, candidate_lines};
use candidate::{Parsed, address, carrier, parse};
pub use candidate_text::CandidateText;
pub use cause::IceCause;
pub use checks::ANSWERABLE;
use checks::Checks;
pub use event::IceState;
pub(crate) use event::{Datagram, IceEvent, StunOutcome};
pub use mdns::{mdns_name, with_address};
use nominations::Nominations;
use pairs::Pairs;
pub use pairs::{PairFigures, PairProgress};
use probe::Probe;
pub use selected_pair::SelectedPair;
use sources::Sources;

/// The longest time without a response to our checks (consent, RFC 7675 section 5.1). A new
/// negotiation has as long to find a pair.
const PATIENCE: Duration = Duration::from_secs(30);

/// The interval of checks on a working pair. RFC 7675 recommends 5 s.
const CONSENT_INTERVAL: Duration = Duration::from_secs(5);

/// Unanswered checks after which a pair fails. At the intervals above, this takes less than
/// [`PATIENCE`], so that another pair can take over.
const MAX_UNANSWERED: usize = 7;

/// The interval of checks while pairs are tried (Ta, RFC 8445 section 14).
const PACE: Duration = Duration::from_millis(20);

/// The most remote candidates from signalling. More are ignored.
const MAX_REMOTE_CANDIDATES: usize = 32;
/// The most local candidates, above which none is learnt from responses: all addresses of a
/// machine, and those of NATs.
const MAX_LOCAL_CANDIDATES: usize = 64;
/// The most checks that the agent keeps until the remote side is known.
const MAX_EARLY: usize = 100;
/// The most pairs to check.
const MAX_PAIRS: usize = 100;

/// The ICE agent of one transport.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Ice {
    selected: Option<SelectedPair>,
    agent: IceAgent,
    /// Whether only the peer's checks are answered, unless the peer is lite too.
    lite: bool,
    /// Whether a pair was selected whose connection has closed.
    was_connected: bool,
    /// Whether the peer announced that it connects by TCP, and this side listens.
    may_connect: bool,
    /// One candidate for each bound address, carrier and IP version. The agent knows them by their
    /// announced addresses.
    locals: Vec<LocalCandidate>,
    remote: Option<IceCredentials>,
    /// When the attempt started, or when the peer last consented. `None` before the remote side is
    /// known, and after failure.
    alive: Option<Instant>,
    /// The responses on the selected pair at the last check for consent.
    answers: u64,
    /// Whether only reports are sent to the peer, see [`Ice::hear_media`].
    receive_only: bool,
    /// When authentic media last arrived on the selected pair. Set only if `receive_only`.
    media_heard: Option<Instant>,
    sources: Sources,
    /// The addresses of signalled remote candidates.
    signalled: Vec<TransportAddress>,
    checks: Checks,
    pairs: Pairs,
    nominations: Nominations,
    /// The test whether the selected pair works.
    probe: Probe,
    /// See RFC 8445 section 7.3.1.1.
    tie_breaker: u64,
    /// Datagrams to send before those of the agent.
    out: VecDeque<Datagram>,
    /// Checks that arrived before the remote side was known, which the agent keeps.
    early: usize,
    ignored_mdns: u32,
    ignored_tcp: u32,
    deadline: Option<Instant>,
    events: VecDeque<IceEvent>,
}

impl Ice {
    /// The leading bytes that each packet needs.
    pub(crate) const HEAD: usize = mem::offset_of!(SelectedPair, remote_kind);

    pub(crate) fn new(
        local: IceCredentials,
        candidates: &[LocalCandidate],
        controlling: bool,
        lite: bool,
        tie_breaker: u64,
    ) -> Self {
        let mut agent = IceAgent::new(credentials(local));
        agent.set_controlling(controlling && !lite);
        agent.set_ice_lite(lite);
        agent.set_control_tie_breaker(tie_breaker);
        agent.set_max_stun_rto(CONSENT_INTERVAL);
        agent.set_max_stun_retransmits(MAX_UNANSWERED);
        agent.set_timing_advance(PACE);
        agent.set_max_candidate_pairs(MAX_PAIRS);
        let mut locals: Vec<LocalCandidate> = Vec::with_capacity(candidates.len());
        for candidate in candidates {
            let of = |c: &LocalCandidate| (c.base, c.carrier(), c.address.is_ipv4());
            let is_known = locals.iter().any(|other| of(other) == of(candidate));
            if is_known {
                continue;
            }
            if let Some(local) = candidate.to_agent()
                && agent.add_local_candidate(local).is_some()
            {
                locals.push(*candidate);
            }
        }
        Self {
            agent,
            lite,
            was_connected: false,
            locals,
            remote: None,
            selected: None,
            alive: None,
            answers: 0,
            receive_only: false,
            media_heard: None,
            sources: Sources::default(),
            signalled: Vec::new(),
            checks: Checks::default(),
            pairs: Pairs::default(),
            nominations: Nominations::default(),
            probe: Probe::default(),
            tie_breaker,
            out: VecDeque::new(),
            early: 0,
            ignored_mdns: 0,
            ignored_tcp: 0,
            may_connect: false,
            deadline: None,
            events: VecDeque::new(),
        }
    }

    /// Sets the remote side's parameters. New credentials restart ICE.
    pub(crate) fn set_remote(
        &mut self,
        remote: &RemoteTransport,
        now: Instant,
    ) -> Result<(), CandidateError> {
        if self
            .remote
            .as_ref()
            .is_some_and(|known| *known != remote.ice)
        {
            self.restart(None, now);
        }
        // A lite peer makes no checks, so this side has to (RFC 8445 section 6.1.1).
        self.agent.set_ice_lite(self.lite && !remote.ice_lite);
        if remote.ice_lite {
            self.agent.set_controlling(true);
        }
        if self.remote.is_none() {
            self.agent
                .set_remote_credentials(credentials(remote.ice.clone()));
            self.remote = Some(remote.ice.clone());
            self.alive = Some(now);
        }
        let mut result = Ok(());
        for text in &remote.candidates {
            result = self.add_remote_candidate(text).and(result);
        }
        self.handle_timeout(now);
        result
    }

    /// Forgets the remote side and its pairs. The selected pair stays until another is found.
    pub(crate) fn restart(&mut self, local: Option<IceCredentials>, now: Instant) {
        let local = local.map_or_else(|| self.agent.local_credentials().clone(), credentials);
        self.agent.ice_restart(local, true);
        self.remote = None;
        self.signalled.clear();
        self.sources.clear();
        self.checks.clear();
        self.pairs.clear();
        self.out.clear();
        self.nominations = Nominations::default();
        self.probe.end(now);
        self.answers = 0;
        self.alive = self.alive.map(|_| now);
        self.refresh();
    }

    /// Sets whether the peer gets no media and no data, which enables [`Ice::hear_media`].
    pub(crate) fn set_receive_only(&mut self, receive_only: bool) {
        self.receive_only = receive_only;
        if !receive_only {
            self.media_heard = None;
        }
    }

    /// Takes note of authentic media on `path`.
    ///
    /// Consent permits sending (RFC 7675). A publisher that gets only reports shows by its media
    /// that it is there. That of ffmpeg does not answer checks once it sends.
    pub(crate) fn hear_media(&mut self, now: Instant, path: Path) {
        if self.probe.is_on() {
            self.weigh(path.peer(), now);
        }
        if self.receive_only && self.selected.is_some_and(|pair| pair.peer() == path.peer()) {
            self.media_heard = Some(now);
        }
    }

    /// Sets the role for the next negotiation.
    pub(crate) fn set_controlling(&mut self, controlling: bool) {
        self.agent.set_controlling(controlling && !self.lite);
    }

    /// Takes a remote candidate, and counts it if it cannot be used. Each negotiation may repeat
    /// known ones.
    pub(crate) fn add_remote_candidate(
        &mut self,
        text: &str,
    ) -> Result<Option<Ignored>, CandidateError> {
        let ignored = match parse(text)? {
            Parsed::End => return Ok(None),
            Parsed::Ignored(why) => why,
            Parsed::Active if self.has(CandidateTransport::TcpPassive) => {
                self.may_connect = true;
                return Ok(None);
            }
            Parsed::Active => Ignored::Tcp,
            Parsed::Passive(_) if !self.has(CandidateTransport::TcpActive) => Ignored::Tcp,
            Parsed::Passive(candidate) | Parsed::Usable(candidate)
                if self.signalled.contains(&address(&candidate)) =>
            {
                return Ok(None);
            }
            Parsed::Passive(candidate) | Parsed::Usable(candidate)
                if self.is_of_another_session(&candidate)
                    || self.signalled.len() >= MAX_REMOTE_CANDIDATES =>
            {
                Ignored::Address
            }
            Parsed::Passive(candidate) | Parsed::Usable(candidate) => {
                self.signalled.push(address(&candidate));
                self.agent.add_remote_candidate(candidate);
                self.refresh();
                return Ok(None);
            }
        };
        match ignored {
            Ignored::Mdns => self.ignored_mdns += 1,
            Ignored::Tcp => self.ignored_tcp += 1,
            Ignored::Address => {}
        }
        Ok(Some(ignored))
    }

    /// Returns the numbers of ignored candidates: with mDNS names, and for TCP.
    pub(crate) fn ignored(&self) -> (u32, u32) {
        (self.ignored_mdns, self.ignored_tcp)
    }

    fn has(&self, transport: CandidateTransport) -> bool {
        let mut locals = self.locals.iter();
        locals.any(|candidate| candidate.transport == transport)
    }

    /// Returns whether a candidate belongs to the time before a restart, or after one to come (RFC
    /// 8838 section 4.1).
    fn is_of_another_session(&self, candidate: &Candidate) -> bool {
        let of = candidate.ufrag().zip(self.remote.as_ref());
        of.is_some_and(|(ufrag, remote)| ufrag != remote.ufrag)
    }

    /// Returns whether the mapped address of a response is known, or may be learnt. A check can be
    /// answered repeatedly, each time with another address.
    fn has_room_for(&self, message: &StunMessage<'_>) -> bool {
        if !message.is_successful_binding_response() {
            return true;
        }
        let (ours, mapped) = (self.agent.local_candidates(), message.mapped_address());
        ours.clone().nth(MAX_LOCAL_CANDIDATES).is_none()
            || ours
                .clone()
                .any(|candidate| Some(candidate.addr()) == mapped)
    }

    /// Takes a STUN datagram received on `path`.
    pub(crate) fn receive(&mut self, now: Instant, path: Path, datagram: &[u8]) -> StunOutcome {
        self.checks.set_time(now);
        let Some(destination) = self.announced(path) else {
            return StunOutcome::Refused;
        };
        if let Some(transaction) = stun_answer(datagram)
            && !self.checks.is_symmetric(transaction, path)
        {
            return StunOutcome::Refused;
        }
        if self.take_probe_answer(datagram, path, now) {
            return StunOutcome::Accepted;
        }
        let rewritten;
        let message = match StunMessage::parse(datagram) {
            Ok(message) if self.has_room_for(&message) => message,
            parsed => {
                let (rewrite, outcome): (bare_answer::Rewrite, _) = match parsed {
                    Ok(_) => (bare_answer::replace, StunOutcome::Refused),
                    Err(_) => (bare_answer::complete, StunOutcome::Malformed),
                };
                let password = self.remote.as_ref().map(|remote| remote.pwd.as_str());
                rewritten = password.and_then(|password| rewrite(datagram, password, destination));
                match rewritten.as_deref().map(StunMessage::parse) {
                    Some(Ok(message)) => message,
                    Some(Err(_)) | None => return outcome,
                }
            }
        };
        let peer = path.peer();
        let kept = never_forgotten(self.selected, &self.signalled);
        if !self.sources.has_room_for(now, peer, kept) {
            return StunOutcome::Refused;
        }
        let is_request = message.is_binding_request();
        let nominates = is_request && message.use_candidate();
        let is_success = message.is_successful_binding_response();
        let packet = StunPacket {
            proto: path.carrier.into(),
            source: path.remote,
            destination,
            message,
        };
        self.find_again(peer, &packet.message);
        if !self.agent.handle_packet(now, packet) {
            return StunOutcome::Refused;
        }
        let kept = never_forgotten(self.selected, &self.signalled);
        self.sources.hear(now, peer, kept);
        if let Some(local) = self.local_of(path) {
            let check = stun_answer(datagram).filter(|_| is_success);
            let sent = check.and_then(|check| self.checks.sent(check));
            self.pairs.heard((local, peer), is_request, sent, now);
        }
        if nominates {
            self.note_nomination(peer, now);
        }
        self.weigh(peer, now);
        if self.remote.is_none() {
            self.early = MAX_EARLY.min(self.early + 1);
        }
        // The agent makes triggered checks when its timeout is handled.
        self.handle_timeout(now);
        StunOutcome::Accepted
    }

    /// Returns whether ICE has verified the peer's address on `path`. DTLS is accepted from there
    /// only, and sent there only.
    pub(crate) fn is_verified(&self, path: Path) -> bool {
        let peer = path.peer();
        self.selected.is_some_and(|pair| pair.peer() == peer) || self.is_valid(peer)
    }

    /// Returns whether authentic checks arrived from the peer's address on `path`.
    pub(crate) fn is_source(&self, path: Path) -> bool {
        self.sources.contains(path.peer())
    }

    /// Returns whether there is a valid pair to an address from which the peer was heard. The agent
    /// ignores carriers there.
    fn is_valid(&self, peer: TransportAddress) -> bool {
        self.sources.contains(peer) && self.agent.has_viable_remote_candidate(peer.address)
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let consent = self.alive.map(|alive| alive + PATIENCE);
        let all = [self.deadline, consent, self.probe.poll_timeout()];
        all.into_iter().flatten().min()
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        self.checks.set_time(now);
        if self.remote.is_some() {
            // The agent handles one of these per call, without looking at its clock, and would not
            // ask for another call.
            for _ in 0..mem::take(&mut self.early) {
                self.agent.handle_timeout(now);
            }
        }
        if self.remote.is_some() || self.selected.is_some() {
            self.agent.handle_timeout(now);
        }
        self.take_events(now);
        self.check_consent(now);
        self.follow_nomination(now);
        self.run_probe(now);
        self.refresh();
    }

    pub(crate) fn poll_transmit(&mut self) -> Option<Datagram> {
        self.out.pop_front().or_else(|| self.next_of_agent())
    }

    fn next_of_agent(&mut self) -> Option<Datagram> {
        let transmit = self.agent.poll_transmit()?;
        self.refresh();
        let carrier = carrier(transmit.proto);
        let path = Path {
            carrier,
            local: self.base(carrier, transmit.source),
            remote: transmit.destination,
        };
        if let Some(transaction) = stun_check(&transmit.contents) {
            self.checks.note(transaction, path);
            if let Some(local) = self.local_of(path) {
                self.pairs.checked((local, path.peer()));
            }
        }
        Some(Datagram {
            path,
            bytes: transmit.contents.into(),
        })
    }

    pub(crate) fn poll_event(&mut self) -> Option<IceEvent> {
        self.events.pop_front()
    }

    #[inline]
    pub(crate) fn selected(&self) -> Option<&SelectedPair> {
        self.selected.as_ref()
    }

    pub(crate) fn local_ufrag(&self) -> &str {
        &self.agent.local_credentials().ufrag
    }

    pub(crate) fn rtt(&self) -> Option<Duration> {
        self.agent.nominated_pair_rtt()
    }

    fn take_events(&mut self, now: Instant) {
        while let Some(event) = self.agent.poll_event() {
            match event {
                IceAgentEvent::IceRestart(_) => {}
                IceAgentEvent::IceConnectionStateChange(state) => {
                    self.events.push_back(IceEvent::State(state.into()));
                }
                IceAgentEvent::DiscoveredRecv { proto, source } => {
                    if carrier(proto) == Carrier::Udp {
                        self.events.push_back(IceEvent::Source(source));
                    }
                }
                IceAgentEvent::NominatedSend {
                    proto,
                    source,
                    destination,
                } => {
                    let carrier = carrier(proto);
                    let is_there = |c: &Candidate| c.addr() == destination && c.proto() == proto;
                    let remote = self.agent.remote_candidates().find(is_there);
                    let local = self.base(carrier, source);
                    let pair = SelectedPair {
                        local,
                        is_relayed: self.is_relayed(local),
                        remote: destination,
                        carrier,
                        remote_kind: remote.map_or("prflx", |c| kind_name(c.kind())),
                    };
                    if self.selected != Some(pair) {
                        self.selected = Some(pair);
                        self.answers = 0;
                        self.nominations.begin(now);
                        self.probe.end(now);
                        self.events.push_back(IceEvent::Selected(pair));
                    }
                }
            }
        }
    }

    fn refresh(&mut self) {
        self.deadline = self.agent.poll_timeout().filter(|_| self.alive.is_some());
    }

    /// Returns the announced address for the bound address of a path.
    fn announced(&self, path: Path) -> Option<SocketAddr> {
        let local = self.locals.get(usize::from(self.local_of(path)?))?;
        Some(local.address)
    }

    /// Returns the index of the local candidate of a path.
    fn local_of(&self, path: Path) -> Option<u8> {
        let matches = |c: &LocalCandidate| {
            let is_same = c.base == path.local && c.carrier() == path.carrier;
            is_same && c.address.is_ipv4() == path.remote.is_ipv4()
        };
        let index = self.locals.iter().position(matches)?;
        u8::try_from(index).ok()
    }

    /// Returns whether a bound address is at a TURN server.
    pub(crate) fn is_relayed(&self, base: SocketAddr) -> bool {
        let is_it =
            |c: &LocalCandidate| c.base == base && c.transport == CandidateTransport::Relayed;
        self.locals.iter().any(is_it)
    }

    /// Returns the bound address for an announced one.
    fn base(&self, carrier: Carrier, announced: SocketAddr) -> SocketAddr {
        let mut locals = self.locals.iter();
        let found = locals.find(|c| c.address == announced && c.carrier() == carrier);
        found.map_or(announced, |candidate| candidate.base)
    }
}

/// Returns a test for the peer's addresses that are never forgotten.
fn never_forgotten(
    selected: Option<SelectedPair>,
    signalled: &[TransportAddress],
) -> impl Fn(TransportAddress) -> bool {
    move |address| {
        selected.is_some_and(|pair| pair.peer() == address) || signalled.contains(&address)
    }
}

fn credentials(credentials: IceCredentials) -> IceCreds {
    IceCreds {
        ufrag: credentials.ufrag,
        pass: credentials.pwd,
    }
}
