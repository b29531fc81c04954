//! The PeerConnection of a handle, and its peer in the media plane.

mod negotiation;

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use portunus_media::{IceCause, PeerId, PeerOptions};
use portunus_rtp::Mid;
use portunus_sdp::{Fingerprint, IceCredentials, LocalTransport, Negotiated, Session, Signaling};
use rand::Rng;
use tokio::time::Instant;

use super::Handle;
use super::closed_connection::{Closed, Untold};
use super::facts::{ConnectionFacts, PeerFacts};
use super::local::new_credentials;
use super::trickle::{Candidate, EarlyCandidates};
use crate::context::Context;
use crate::counters::{BadRequest, add, subtract};
use crate::{OverBudget, RidOrder, Share, prices};

/// A handle's PeerConnection, if there is one, and early candidates.
pub(super) struct Connections {
    context: Arc<Context>,
    /// Whether the server sends its candidates one by one.
    full_trickle: bool,
    current: Option<Connection>,
    early: EarlyCandidates,
    /// Whether the last connection is closing: not everybody is notified yet.
    closing: bool,
    /// Closed connections whose ends are not published yet.
    untold: Vec<Untold>,
    /// Whether there was a connection before.
    had_one: bool,
    /// The reason of a failure of ICE of the last connection.
    last_cause: Option<IceCause>,
    /// The number of the client's offers so far.
    offers: u64,
}

struct Connection {
    peer: PeerId,
    /// The fingerprint of the server's certificate.
    fingerprint: Fingerprint,
    /// The client's payment for it and for the descriptions.
    paid: Share,
    session: Session,
    negotiated: Option<Negotiated>,
    /// New credentials that take effect with the next complete exchange.
    restart: Option<IceCredentials>,
    up: bool,
    /// When ICE was connected first.
    ice_up: Option<Instant>,
    /// When media could flow first. Taken by the first medium.
    flows: Option<Instant>,
    e2ee: bool,
    /// The media and encodings that have arrived before.
    came: Vec<(Mid, Option<u8>)>,
    created: Instant,
    /// When the first offer and answer were exchanged.
    started: Option<Instant>,
    /// Whether the client has sent the end of candidates.
    all_trickled: bool,
    rid_order: RidOrder,
    /// The server's last description, for operators.
    local: Option<Arc<str>>,
    /// The client's last description, for operators.
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

    /// Returns the number of early candidates.
    pub(super) fn early(&self) -> usize {
        self.early.count()
    }

    pub(super) fn is_closing(&self) -> bool {
        self.closing
    }

    pub(super) fn had_one(&self) -> bool {
        self.had_one
    }

    /// Returns why ICE failed for the last connection, or `None` if it did not or there is a
    /// connection now.
    pub(super) fn last_cause(&self) -> Option<&IceCause> {
        self.last_cause.as_ref().filter(|_| self.current.is_none())
    }

    /// Sets why ICE failed for the connection that is being closed.
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

    /// Notes the end of the client's candidates.
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

    /// Returns the number of the client's last offer.
    pub(super) const fn last_offer(&self) -> u64 {
        self.offers
    }

    /// Discards the client's offer with this number, together with a peer that it created, unless
    /// the offer was answered or replaced.
    pub(super) fn discard_offer(&mut self, number: u64) {
        let Some(connection) = self.current.as_mut().filter(|_| self.offers == number) else {
            return;
        };
        if connection.session.signaling() != Signaling::HaveRemoteOffer {
            return;
        }
        if connection.negotiated.is_none() {
            // The peer was never used.
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

    /// Notes that the peer's transport is up.
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

    /// Notes that ICE is connected.
    pub(super) fn ice_connected(&mut self) {
        let Some(connection) = self.current.as_mut() else {
            return;
        };
        if let (Some(started), None) = (connection.started, connection.ice_up) {
            self.context.counters.times.ice.add(started.elapsed());
            connection.ice_up = Some(Instant::now());
        }
    }

    /// Notes that a packet of a medium has arrived.
    pub(super) fn media_came(&mut self) {
        let flows = self.current.as_mut().and_then(|it| it.flows.take());
        if let Some(flows) = flows {
            self.context.counters.times.first_media.add(flows.elapsed());
        }
    }

    /// Notes that a medium arrives. Returns true if it is the first time.
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

    /// Closes the PeerConnection. Returns `None` without one.
    pub(super) fn close(&mut self) -> Option<Closed> {
        self.early = EarlyCandidates::default();
        self.drop_connection()
    }

    /// As [`Connections::close`], and allows no other until [`Connections::closed`].
    pub(super) fn start_closing(&mut self) -> Option<Closed> {
        let closed = self.close();
        self.closing = closed.is_some();
        closed
    }

    /// Notes that everybody is notified of the end of the PeerConnection.
    pub(super) fn closed(&mut self) {
        self.closing = false;
    }

    pub(super) fn leave_untold(&mut self, untold: Untold) {
        self.untold.push(untold);
    }

    /// Takes the connections whose ends are not published, oldest first.
    pub(super) fn take_untold(&mut self) -> Vec<Untold> {
        std::mem::take(&mut self.untold)
    }

    /// Whether `peer` is the present one, and media can flow.
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
        peers.insert(peer, handle.shared.inbox.clone());
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

    fn add_candidates(&self, handle: &Handle, candidates: Vec<Candidate>) {
        let Some(connection) = &self.current else {
            return;
        };
        let negotiated = connection.negotiated.iter().flat_map(|it| &it.media);
        let lines: Vec<_> = negotiated
            .map(|media| (media.mid.as_str(), !media.disabled))
            .collect();
        for candidate in candidates {
            // An empty line is the end of candidates.
            if candidate.text.is_empty() || !candidate.is_for_bundle(&lines) {
                continue;
            }
            if candidate.text.starts_with("candidate:") {
                handle.publish_remote_candidate(&candidate.text);
                self.context.candidates.add(connection.peer, candidate.text);
            } else {
                self.context
                    .counters
                    .bad(BadRequest::Candidate, &"not a candidate line");
            }
        }
    }
}

fn microseconds_since_1970() -> u64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or_default()
}
