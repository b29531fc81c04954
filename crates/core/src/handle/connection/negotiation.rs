//! Negotiation: offers and answers of both sides, and restarts of ICE.

use std::sync::atomic::Ordering;

use portunus_media::{IceState, PeerId};
use portunus_rtp::Mid;
use portunus_sdp::{
    Description, IceCredentials, Jsep, LocalCandidates, LocalJsep, Negotiated, RemoteDescription,
    SdpError, SdpType as JsepKind, Signaling,
};
use tokio::time::Instant;

use super::{Connection, Connections};
use crate::context::Context;
use crate::events::EventKind;
use crate::handle::Handle;
use crate::handle::jsep::RawJsep;
use crate::handle::local::{JsepError, LocalIce, new_credentials};
use crate::{ApiError, prices};

impl Connections {
    /// Takes an offer or answer of the client.
    pub(in crate::handle) fn remote(
        &mut self,
        handle: &Handle,
        raw: &RawJsep<'_>,
    ) -> Result<Jsep, ApiError> {
        let kind = raw.kind;
        let parsed = match &self.current {
            Some(connection) => connection.session.parse(raw.sdp, kind),
            None => RemoteDescription::parse(raw.sdp, kind, &[]),
        };
        let mut remote = parsed.map_err(refused)?;
        // A new offer replaces one that was never answered.
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

    /// Takes an offer. Returns whether it restarts ICE.
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
        let candidates = candidates_to_publish(handle, &remote);
        let restart = connection
            .session
            .set_remote_offer(remote)
            .map_err(refused)?;
        if restart {
            self.context.renew_ice(connection);
        }
        handle.publish_remote_jsep(raw);
        if is_new {
            handle.publish_ice(IceState::Gathering);
        }
        if is_new || restart {
            for candidate in &candidates {
                handle.publish_remote_candidate(candidate);
            }
        }
        Ok(restart)
    }

    /// Takes an answer. Returns whether it completes a restart of ICE.
    fn remote_answer(
        &mut self,
        handle: &Handle,
        raw: &RawJsep<'_>,
        remote: RemoteDescription,
    ) -> Result<bool, ApiError> {
        let connection = self.current.as_mut().ok_or(ApiError::UnexpectedAnswer)?;
        let restart = connection.restart.is_some();
        let fresh = connection.negotiated.is_none() || restart;
        let candidates = candidates_to_publish(handle, &remote);
        let negotiated = connection.session.accept_answer(remote).map_err(refused)?;
        handle.publish_remote_jsep(raw);
        if fresh {
            for candidate in &candidates {
                handle.publish_remote_candidate(candidate);
            }
        }
        self.agreed(handle, negotiated);
        Ok(restart)
    }

    /// Answers the client's offer.
    pub(in crate::handle) fn answer(
        &mut self,
        handle: &Handle,
        description: Description,
    ) -> Result<LocalJsep, JsepError> {
        let connection = self.current.as_mut().ok_or(JsepError::NoOffer)?;
        let fresh = connection.negotiated.is_none() || connection.restart.is_some();
        let first = description.media.first().map(|media| media.mid);
        let (sdp, negotiated) = connection.session.local_answer(description)?;
        let peer = connection.peer;
        // Before `agreed`, which starts ICE.
        self.publish_local(handle, peer, JsepKind::Answer, &sdp, fresh);
        self.agreed(handle, negotiated);
        Ok(self.local(JsepKind::Answer, sdp, first, fresh))
    }

    /// Makes an offer, and the PeerConnection if there is none.
    pub(in crate::handle) fn offer(
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
                handle.publish_ice(IceState::Gathering);
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
        self.publish_local(handle, peer, JsepKind::Offer, &sdp, fresh);
        Ok(self.local(JsepKind::Offer, sdp, first, fresh))
    }

    /// Restarts ICE with new credentials of both sides, and changes nothing else. Returns `None`
    /// before the first negotiation and during another.
    pub(in crate::handle) fn restart_ice(
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

    /// Gives the outcome of a negotiation to the media plane, and then the candidates that waited
    /// for it.
    fn agreed(&mut self, handle: &Handle, negotiated: Negotiated) {
        let Some(connection) = &mut self.current else {
            return;
        };
        if let Some(ice) = connection.restart.take() {
            self.context.media.restart_ice(connection.peer, ice);
        }
        let candidates = &self.context.candidates;
        candidates.negotiate(connection.peer, negotiated.clone());
        connection.negotiated = Some(negotiated);
        connection.started.get_or_insert_with(Instant::now);
        let early = self.early.take(self.context.config().candidates_timeout());
        self.add_candidates(handle, early);
    }

    /// Publishes our description as an event, and our candidates if they are new.
    fn publish_local(&self, handle: &Handle, peer: PeerId, kind: JsepKind, sdp: &str, fresh: bool) {
        if fresh {
            handle.publish_local_candidates(&self.context.media.candidates(peer));
        }
        handle.publish_local_jsep(kind, sdp);
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
    /// Puts new ICE credentials into our next description.
    fn renew_ice(&self, connection: &mut Connection) {
        let ice = self.media.local_ice(connection.peer, new_credentials());
        let candidates = self.media.candidates(connection.peer).to_vec();
        connection.session.set_local_ice(ice.clone(), candidates);
        connection.restart = Some(ice);
    }
}

/// Returns the candidates of a description if anyone subscribed to such events.
fn candidates_to_publish(handle: &Handle, remote: &RemoteDescription) -> Vec<String> {
    match handle.events().wants(EventKind::WebRtc) {
        true => remote.transport.candidates.clone(),
        false => Vec::new(),
    }
}

fn refused(error: SdpError) -> ApiError {
    match error {
        SdpError::UnexpectedAnswer => ApiError::UnexpectedAnswer,
        error => {
            // Clients know one text for several causes.
            tracing::debug!(?error, "refused a description");
            ApiError::InvalidSdp(error.to_string())
        }
    }
}
