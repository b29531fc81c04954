//! The PeerConnection of a handle: its negotiation, and the peer that the media plane runs for it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{SystemTime, UNIX_EPOCH};

use portunus_media::{IceCause, IceState, PeerId, PeerOptions};
use portunus_rtp::Mid;
use portunus_sdp::{
    Description, Fingerprint, IceCredentials, Jsep, LocalCandidates, LocalJsep, LocalTransport,
    Negotiated, RemoteDescription, SdpError, SdpType as JsepKind, Session, Signaling,
};
use rand::Rng;
use tokio::time::Instant;

use super::Handle;
use super::closed::{Closed, Untold};
use super::facts::{ConnectionFacts, PeerFacts};
use super::jsep::RawJsep;
use super::local::{JsepError, LocalIce, new_credentials};
use super::trickle::{Candidate, EarlyCandidates};
use crate::context::Context;
use crate::counters::{BadRequest, add, subtract};
use crate::events::EventKind;
use crate::{ApiError, OverBudget, RidOrder, Share, prices};

/// A handle's PeerConnection, if there is one, and the candidates that came before it.
pub(super) struct Connections {
    context: Arc<Context>,
    /// Our candidates go to the client one by one.
    full_trickle: bool,
    current: Option<Connection>,
    early: EarlyCandidates,
    /// The last connection is gone, but not everybody has been told.
    closing: bool,
    /// Connections of which those who watch have not been told that they are closed.
    untold: Vec<Untold>,
    /// There was a connection at some time.
    had_one: bool,
    /// Why ICE failed for the last connection, if it did.
    last_cause: Option<IceCause>,
    /// The number of offers of the client so far.
    offers: u64,
}

struct Connection {
    peer: PeerId,
    /// Of the certificate that we present.
    fingerprint: Fingerprint,
    /// What its client pays for it, and for the descriptions.
    paid: Share,
    session: Session,
    negotiated: Option<Negotiated>,
    /// Credentials of ours that count once the exchange that has them is complete.
    restart: Option<IceCredentials>,
    up: bool,
    /// When ICE was connected first.
    ice_up: Option<Instant>,
    /// When media could flow first. Taken when the first medium came.
    flows: Option<Instant>,
    e2ee: bool,
    /// The media, and their encodings, that have come at some time.
    came: Vec<(Mid, Option<u8>)>,
    created: Instant,
    /// When the first offer and answer were exchanged.
    started: Option<Instant>,
    /// The client has said that it has no more candidates.
    all_trickled: bool,
    rid_order: RidOrder,
    /// Our last description, for administrators.
    local: Option<Arc<str>>,
    /// The client's, the same.
    remote: Option<Arc<str>>,
}

impl Connections {
    pub(super) fn new(context: Arc<Context>, full_trickle: bool) -> Self {
        Connections {
            context,
            full_trickle,
            current: None,
            early: EarlyCandidates::default(),
            closing: false,
            untold: Vec::new(),
            had_one: false,
            last_cause: None,
            offers: 0,
        }
    }

    pub(super) fn full_trickle(&self) -> bool {
        self.full_trickle
    }

    /// How many candidates wait until they can be used.
    pub(super) fn early(&self) -> usize {
        self.early.count()
    }

    pub(super) fn is_closing(&self) -> bool {
        self.closing
    }

    pub(super) fn had_one(&self) -> bool {
        self.had_one
    }

    /// Returns why ICE failed for the last connection. Returns `None` if it did not, or if there is a connection again.
    pub(super) fn last_cause(&self) -> Option<&IceCause> {
        self.last_cause.as_ref().filter(|_| self.current.is_none())
    }

    /// Remembers why ICE failed for the connection that is closed now. `None` if it did not.
    pub(super) fn set_last_cause(&mut self, cause: Option<IceCause>) {
        self.last_cause = cause;
    }

    pub(super) fn facts(&self) -> Option<ConnectionFacts> {
        let connection = self.current.as_ref()?;
        Some(ConnectionFacts {
            peer: connection.peer,
            fingerprint: connection.fingerprint.clone(),
            created: connection.created,
            started: connection.started,
            negotiated: connection.negotiated.clone(),
            signaling: connection.session.signaling(),
            restarting: connection.restart.is_some(),
            up: connection.up,
            e2ee: connection.e2ee,
            all_trickled: connection.all_trickled,
            rid_order: connection.rid_order,
            local: connection.local.clone(),
            remote: connection.remote.clone(),
        })
    }

    pub(super) fn peer_facts(&self) -> Option<PeerFacts> {
        let connection = self.current.as_ref()?;
        Some(PeerFacts {
            peer: connection.peer,
            negotiated: connection.negotiated.is_some(),
            up: connection.up,
        })
    }

    /// The client has no more candidates.
    pub(super) fn all_trickled(&mut self) {
        if let Some(connection) = &mut self.current {
            connection.all_trickled = true;
        }
    }

    pub(super) fn peer(&self) -> Option<PeerId> {
        self.current.as_ref().map(|connection| connection.peer)
    }

    pub(super) fn negotiated(&self) -> Option<&Negotiated> {
        self.current.as_ref()?.negotiated.as_ref()
    }

    /// Takes an offer or answer of the client.
    pub(super) fn remote(&mut self, handle: &Handle, raw: &RawJsep<'_>) -> Result<Jsep, ApiError> {
        let kind = raw.kind;
        let parsed = match &self.current {
            Some(connection) => connection.session.parse(raw.sdp, kind),
            None => RemoteDescription::parse(raw.sdp, kind, &[]),
        };
        let mut remote = parsed.map_err(refused)?;
        // What was offered but never answered leaves nothing behind, once there is an offer in its place.
        let stale = |connection: &Connection| {
            connection.negotiated.is_none()
                && connection.session.signaling() == Signaling::HaveRemoteOffer
        };
        if raw.kind == JsepKind::Offer && self.current.as_ref().is_some_and(stale) {
            self.drop_connection();
        }
        let rid_order = raw.rid_order.unwrap_or(self.context.config().rid_order);
        remote.rid_order = rid_order.into();

        let update = self.negotiated().is_some();
        let mids: Vec<_> = remote
            .description
            .media
            .iter()
            .map(|media| media.mid)
            .collect();
        let (simulcast, description) = (remote.simulcast(), remote.description.clone());
        if let Some(connection) = &mut self.current {
            connection.paid.resize(prices::peer_connection(raw.sdp))?;
        }
        let restart = match raw.kind {
            JsepKind::Offer => {
                let restart = self.remote_offer(handle, raw, remote)?;
                self.offers = self.offers.wrapping_add(1);
                restart
            }
            JsepKind::Answer => self.remote_answer(handle, raw, remote)?,
        };
        let mut e2ee = false;
        if let Some(connection) = &mut self.current {
            if raw.e2ee && !connection.e2ee {
                self.context.media.set_opaque(connection.peer);
            }
            connection.e2ee |= raw.e2ee;
            e2ee = connection.e2ee;
            connection.rid_order = rid_order;
            connection.all_trickled |= raw.sdp.contains("a=end-of-candidates");
            connection.remote = Some(raw.sdp.into());
        }
        let svc = raw.svc(&mids);
        Ok(Jsep {
            kind,
            description,
            simulcast,
            svc,
            e2ee,
            update,
            restart,
        })
    }

    /// Whether the offer restarts ICE.
    fn remote_offer(
        &mut self,
        handle: &Handle,
        raw: &RawJsep<'_>,
        remote: RemoteDescription,
    ) -> Result<bool, ApiError> {
        let is_new = self.current.is_none();
        if is_new {
            self.current = Some(self.connect(handle, false, raw.sdp)?);
        }
        let Some(connection) = &mut self.current else {
            return Ok(false);
        };
        let candidates = candidates_to_tell(handle, &remote);
        let restart = connection
            .session
            .set_remote_offer(remote)
            .map_err(refused)?;
        if restart {
            self.context.renew_ice(connection);
        }
        handle.tell_remote_jsep(raw);
        if is_new {
            handle.tell_ice(IceState::Gathering);
        }
        if is_new || restart {
            for candidate in &candidates {
                handle.tell_remote_candidate(candidate);
            }
        }
        Ok(restart)
    }

    /// Whether the answer completes a restart of ICE.
    fn remote_answer(
        &mut self,
        handle: &Handle,
        raw: &RawJsep<'_>,
        remote: RemoteDescription,
    ) -> Result<bool, ApiError> {
        let connection = self.current.as_mut().ok_or(ApiError::UnexpectedAnswer)?;
        let restart = connection.restart.is_some();
        let fresh = connection.negotiated.is_none() || restart;
        let candidates = candidates_to_tell(handle, &remote);
        let negotiated = connection.session.accept_answer(remote).map_err(refused)?;
        handle.tell_remote_jsep(raw);
        if fresh {
            for candidate in &candidates {
                handle.tell_remote_candidate(candidate);
            }
        }
        self.agreed(handle, negotiated);
        Ok(restart)
    }

    /// Makes our answer to the offer that waits for it.
    pub(super) fn answer(
        &mut self,
        handle: &Handle,
        description: Description,
    ) -> Result<LocalJsep, JsepError> {
        let connection = self.current.as_mut().ok_or(JsepError::NoOffer)?;
        let fresh = connection.negotiated.is_none() || connection.restart.is_some();
        let first = description.media.first().map(|media| media.mid);
        let (sdp, negotiated) = connection.session.local_answer(description)?;
        let peer = connection.peer;
        // Before ICE begins, which it does once all is agreed on.
        self.tell_local(handle, peer, (JsepKind::Answer, &sdp), fresh);
        self.agreed(handle, negotiated);
        Ok(self.local(JsepKind::Answer, sdp, first, fresh))
    }

    /// Makes an offer of ours, and the PeerConnection if there is none.
    pub(super) fn offer(
        &mut self,
        handle: &Handle,
        description: Description,
        restart: bool,
    ) -> Result<LocalJsep, JsepError> {
        if handle.shared.stopped.load(Ordering::Acquire) {
            return Err(JsepError::Detached);
        }
        if self.closing {
            return Err(JsepError::Closing);
        }
        let mut connection = match self.current.take() {
            Some(connection) => connection,
            None => {
                let connection = self.connect(handle, true, "")?;
                handle.tell_ice(IceState::Gathering);
                connection
            }
        };
        if restart && connection.negotiated.is_some() {
            self.context.renew_ice(&mut connection);
        }
        let fresh = connection.negotiated.is_none() || connection.restart.is_some();
        let first = description.media.first().map(|media| media.mid);
        let peer = connection.peer;
        let offered = connection.session.local_offer(description);
        self.current = Some(connection);
        let sdp = offered?;
        self.tell_local(handle, peer, (JsepKind::Offer, &sdp), fresh);
        Ok(self.local(JsepKind::Offer, sdp, first, fresh))
    }

    /// Restarts ICE with new credentials of both sides; all else that was agreed on stays. None if nothing is
    /// agreed on, or if a negotiation is under way.
    pub(super) fn restart_ice(
        &mut self,
        handle: &Handle,
        remote: IceCredentials,
    ) -> Option<LocalIce> {
        let connection = self.current.as_mut()?;
        if connection.session.signaling() != Signaling::Stable {
            return None;
        }
        let mut negotiated = connection.negotiated.clone()?;
        let mid = negotiated.media.iter().find(|media| !media.disabled)?.mid;
        connection.session.set_remote_ice(remote.clone());
        self.context.renew_ice(connection);
        let local = connection.session.local_transport();
        let restarted = LocalIce {
            ice: local.ice.clone(),
            candidates: local.candidates.clone(),
            mid,
        };
        negotiated.transport.ice = remote;
        negotiated.transport.candidates.clear();
        self.agreed(handle, negotiated);
        Some(restarted)
    }

    /// The number of the client's last offer.
    pub(super) const fn last_offer(&self) -> u64 {
        self.offers
    }

    /// Forgets the client's offer with this number, and the peer that it was to be the first of, unless it has been answered or
    /// another has taken its place.
    pub(super) fn discard_offer(&mut self, number: u64) {
        let Some(connection) = self.current.as_mut().filter(|_| self.offers == number) else {
            return;
        };
        if connection.session.signaling() != Signaling::HaveRemoteOffer {
            return;
        }
        if connection.negotiated.is_none() {
            // Nobody has seen it.
            self.close();
        } else {
            connection.session.discard_remote_offer();
        }
    }

    /// Takes candidates of the client, or keeps them until they can be used.
    pub(super) fn trickle(&mut self, handle: &Handle, candidates: Vec<Candidate>) {
        let settled = self.current.as_ref().is_some_and(|connection| {
            connection.negotiated.is_some() && connection.session.signaling() == Signaling::Stable
        });
        if settled {
            self.add_candidates(handle, candidates);
        } else {
            self.early.keep(candidates, handle.shared.session.purse());
        }
    }

    /// The peer's transport is up.
    pub(super) fn up(&mut self) {
        if let Some(connection) = self.current.as_mut().filter(|connection| !connection.up) {
            connection.up = true;
            let now = Instant::now();
            if let Some(ice_up) = connection.ice_up {
                self.context.counters.times.dtls.add(now - ice_up);
            }
            connection.flows = Some(now);
            add(&self.context.counters.peer_connections);
        }
    }

    /// ICE is connected.
    pub(super) fn ice_connected(&mut self) {
        let Some(connection) = self.current.as_mut() else {
            return;
        };
        if let (Some(started), None) = (connection.started, connection.ice_up) {
            self.context.counters.times.ice.add(started.elapsed());
            connection.ice_up = Some(Instant::now());
        }
    }

    /// A packet of a medium came.
    pub(super) fn media_came(&mut self) {
        let flows = self.current.as_mut().and_then(|it| it.flows.take());
        if let Some(flows) = flows {
            self.context.counters.times.first_media.add(flows.elapsed());
        }
    }

    /// Notes that a medium comes; true if it never did before.
    pub(super) fn comes_first(&mut self, mid: Mid, substream: Option<u8>) -> bool {
        let Some(connection) = &mut self.current else {
            return false;
        };
        let is_new = !connection.came.contains(&(mid, substream));
        if is_new {
            connection.came.push((mid, substream));
        }
        is_new
    }

    /// Ends the PeerConnection; none if there is none.
    pub(super) fn close(&mut self) -> Option<Closed> {
        self.early = EarlyCandidates::default();
        self.drop_connection()
    }

    /// As [`Connections::close`], and makes no other until [`Connections::closed`].
    pub(super) fn start_closing(&mut self) -> Option<Closed> {
        let closed = self.close();
        self.closing = closed.is_some();
        closed
    }

    /// Everybody knows that the PeerConnection is gone.
    pub(super) fn closed(&mut self) {
        self.closing = false;
    }

    pub(super) fn leave_untold(&mut self, untold: Untold) {
        self.untold.push(untold);
    }

    /// What was left untold, oldest first.
    pub(super) fn take_untold(&mut self) -> Vec<Untold> {
        std::mem::take(&mut self.untold)
    }

    /// Whether `peer` is the one that there is, and media can flow.
    pub(super) fn is_up(&self, peer: PeerId) -> bool {
        let current = self.current.as_ref();
        current.is_some_and(|connection| connection.peer == peer && connection.up)
    }

    fn drop_connection(&mut self) -> Option<Closed> {
        let connection = self.current.take()?;
        self.had_one = true;
        self.last_cause = None;
        let Context { media, peers, .. } = &*self.context;
        peers.remove(connection.peer);
        let closed = Closed::new(&self.context, connection.peer, connection.up);
        media.close_peer(connection.peer);
        if connection.up {
            subtract(&self.context.counters.peer_connections);
        }
        Some(closed)
    }

    fn connect(
        &self,
        handle: &Handle,
        controlling: bool,
        remote: &str,
    ) -> Result<Connection, OverBudget> {
        let purse = handle.shared.session.purse();
        let paid = purse.take(prices::peer_connection(remote))?;
        let Context {
            facts,
            media,
            peers,
            ..
        } = &*self.context;
        let ice = new_credentials();
        let options = PeerOptions {
            ice: ice.clone(),
            controlling,
            worker: None,
        };
        let (peer, fingerprint) = media.create_peer_with_fingerprint(options);
        let ice = media.local_ice(peer, ice);
        peers.insert(peer, handle.shared.inbox.clone(), handle.downgrade());
        let local = LocalTransport {
            ice,
            fingerprint: fingerprint.clone(),
            candidates: media.candidates(peer).to_vec(),
            full_trickle: self.full_trickle,
            ice_lite: facts.ice_lite,
            address: media.address(),
            session_id: microseconds_since_1970(),
        };
        let session = Session::new(local, rand::rng().random());
        Ok(Connection {
            peer,
            fingerprint,
            paid,
            session,
            negotiated: None,
            restart: None,
            up: false,
            ice_up: None,
            flows: None,
            e2ee: false,
            came: Vec::new(),
            created: Instant::now(),
            started: None,
            all_trickled: false,
            rid_order: self.context.config().rid_order,
            local: None,
            remote: None,
        })
    }

    /// Gives the media plane what was agreed on, and the candidates that waited for it.
    fn agreed(&mut self, handle: &Handle, negotiated: Negotiated) {
        let Some(connection) = &mut self.current else {
            return;
        };
        if let Some(ice) = connection.restart.take() {
            self.context.media.restart_ice(connection.peer, ice);
        }
        self.context.negotiate(connection.peer, negotiated.clone());
        connection.negotiated = Some(negotiated);
        connection.started.get_or_insert_with(Instant::now);
        let early = self.early.take(self.context.config().candidates_timeout());
        self.add_candidates(handle, early);
    }

    fn add_candidates(&self, handle: &Handle, candidates: Vec<Candidate>) {
        let Some(connection) = &self.current else {
            return;
        };
        let negotiated = connection.negotiated.iter().flat_map(|it| &it.media);
        let lines: Vec<_> = negotiated
            .map(|media| (media.mid.as_str(), !media.disabled))
            .collect();
        for candidate in candidates {
            // An empty line says that there are no more.
            if candidate.text.is_empty() || !candidate.is_for_bundle(&lines) {
                continue;
            }
            if candidate.text.starts_with("candidate:") {
                handle.tell_remote_candidate(&candidate.text);
                self.context.add_candidate(connection.peer, candidate.text);
            } else {
                self.context
                    .counters
                    .bad(BadRequest::Candidate, &"not a candidate line");
            }
        }
    }

    /// Tells whoever watches of our description, and of the candidates that are new with it.
    fn tell_local(
        &self,
        handle: &Handle,
        peer: PeerId,
        (kind, sdp): (JsepKind, &str),
        fresh: bool,
    ) {
        if fresh {
            handle.tell_local_candidates(&self.context.media.candidates(peer));
        }
        handle.tell_local_jsep(kind, sdp);
    }

    fn local(&mut self, kind: JsepKind, sdp: String, first: Option<Mid>, fresh: bool) -> LocalJsep {
        if let Some(connection) = &mut self.current {
            connection.local = Some(sdp.as_str().into());
        }
        let trickles = fresh && self.full_trickle;
        let current = self.current.as_ref().filter(|_| trickles);
        let trickled = current.map(|connection| LocalCandidates {
            mid: first,
            candidates: self.context.media.candidates(connection.peer).to_vec(),
        });
        let e2ee = self
            .current
            .as_ref()
            .is_some_and(|connection| connection.e2ee);
        LocalJsep {
            kind,
            sdp,
            e2ee,
            trickled,
        }
    }
}

impl Context {
    /// Puts new ICE credentials into the next description of ours.
    fn renew_ice(&self, connection: &mut Connection) {
        let ice = self.media.local_ice(connection.peer, new_credentials());
        let candidates = self.media.candidates(connection.peer).to_vec();
        connection.session.set_local_ice(ice.clone(), candidates);
        connection.restart = Some(ice);
    }
}

/// The candidates of a description, if somebody is to be told of them.
fn candidates_to_tell(handle: &Handle, remote: &RemoteDescription) -> Vec<String> {
    match handle.events().wants(EventKind::WebRtc) {
        true => remote.transport.candidates.clone(),
        false => Vec::new(),
    }
}

fn refused(error: SdpError) -> ApiError {
    match error {
        SdpError::UnexpectedAnswer => ApiError::UnexpectedAnswer,
        error => {
            // Several causes have one text, the one that clients know.
            tracing::debug!(?error, "refused a description");
            ApiError::InvalidSdp(error.to_string())
        }
    }
}

fn microseconds_since_1970() -> u64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or_default()
}
