//! The JSEP state of one PeerConnection: m-lines and their mids, roles, pending offers.

use std::collections::HashSet;
use std::fmt;

use rand::SeedableRng;
use rand::rngs::SmallRng;

use crate::agreement::{self, Agreement};
use crate::description::{Description, Media, Origin};
use crate::error::SdpError;
use crate::local::{self, LocalTransport, MediaText, Text};
use crate::negotiated::{DtlsRole, IceCredentials, Kind, Negotiated, RemoteTransport};
use crate::offered_parts::fit;
use crate::remote::{MediaSlot, RemoteDescription, SdpType, Setup, TransportFacts};
use crate::rtx::RtxNumbers;
use crate::slot::Slot;

/// The JSEP state of one PeerConnection, kept for its whole life.
///
/// m-lines keep their places, their mids and the server's SSRCs from their first offer on.
pub struct Session {
    local: LocalTransport,
    rng: SmallRng,
    slots: Vec<Slot>,
    state: State,
    /// The transport of the last complete exchange.
    remote: Option<RemoteTransport>,
    /// The ids in the `o=` lines of this side's offers.
    origin: Option<Origin>,
    /// The RTX payload types of this side's offers.
    rtx: RtxNumbers,
}

/// The side that waits for an answer (RFC 8829 section 3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Signaling {
    Stable,
    HaveRemoteOffer,
    HaveLocalOffer,
}

enum State {
    Stable,
    RemoteOffer(Box<RemoteDescription>),
    LocalOffer(Box<LocalOffer>),
}

struct LocalOffer {
    media: Vec<Media>,
    slots: Vec<Slot>,
}

impl Session {
    /// Makes a session without m-lines. `seed` is for the SSRCs.
    pub fn new(local: LocalTransport, seed: u64) -> Self {
        Session {
            local,
            rng: SmallRng::seed_from_u64(seed),
            slots: Vec::new(),
            state: State::Stable,
            remote: None,
            origin: None,
            rtx: RtxNumbers::default(),
        }
    }

    /// Parses a description of the remote side, see [`RemoteDescription::parse`]. Does not change
    /// the state.
    pub fn parse(&self, text: &str, kind: SdpType) -> Result<RemoteDescription, SdpError> {
        RemoteDescription::parse(text, kind, &self.slots(kind))
    }

    /// Takes an offer. It replaces a pending offer of either side.
    ///
    /// Returns whether it restarts ICE, so that [`Session::set_local_ice`] is required before the
    /// answer.
    pub fn set_remote_offer(&mut self, offer: RemoteDescription) -> Result<bool, SdpError> {
        if offer.description.media.len() < self.slots.len() {
            return Err(SdpError::MediaMismatch);
        }
        let restart = match (&self.remote, &offer.transport.ice) {
            (Some(known), Some(ice)) => known.ice != *ice,
            _ => false,
        };
        self.state = State::RemoteOffer(Box::new(offer));
        Ok(restart)
    }

    /// Discards a remote offer that will not be answered. Earlier agreements stay.
    pub fn discard_remote_offer(&mut self) {
        if matches!(self.state, State::RemoteOffer(_)) {
            self.state = State::Stable;
        }
    }

    /// Answers the remote offer with a plugin's description. Returns the SDP text and the result.
    ///
    /// m-lines that the description lacks, or that have no offered codec, are rejected.
    pub fn local_answer(&mut self, answer: Description) -> Result<(String, Negotiated), SdpError> {
        match std::mem::replace(&mut self.state, State::Stable) {
            State::RemoteOffer(offer) => self.answer_to(&offer, answer).inspect_err(|_| {
                self.state = State::RemoteOffer(offer);
            }),
            state @ (State::Stable | State::LocalOffer(_)) => {
                self.state = state;
                Err(SdpError::NothingToAnswer)
            }
        }
    }

    /// Makes an offer from a plugin's description. Returns the SDP text.
    ///
    /// Existing m-lines keep their places. Those that the description lacks are offered as
    /// rejected.
    pub fn local_offer(&mut self, offer: Description) -> Result<String, SdpError> {
        if matches!(self.state, State::RemoteOffer(_)) {
            return Err(SdpError::OfferPending);
        }
        let Description {
            origin,
            name,
            attributes,
            mut media,
        } = offer;
        media.extend(self.slots.iter().skip(media.len()).map(Slot::placeholder));
        let mut slots = self.slots.clone();
        for (index, line) in media.iter().enumerate() {
            let is_others = |slot: &Slot| slot.active && !slot.is_of(line);
            if slots.get(index).is_some_and(is_others) {
                return Err(SdpError::LocalMismatch(index));
            }
            place(&mut slots, index, line, &mut self.rng);
        }
        if let Some(index) = repeated_mid(&media) {
            return Err(SdpError::LocalMismatch(index));
        }
        for line in &mut media {
            if !line.rejected && line.kind != Kind::Data && line.codecs.is_empty() {
                *line = line.refused();
            }
        }
        self.rtx.propose(&media);
        let origin = self.next_origin(origin);
        let lines = media.iter().zip(&slots).map(|(media, slot)| {
            let rtx = self.rtx.of(media);
            let rtx_ssrc = agreement::repair_ssrc(media.kind, media.direction, &rtx, slot);
            let ssrc = slot.ssrc;
            MediaText {
                media,
                rtx,
                ssrc,
                rtx_ssrc,
                rids: &[],
                simulcast_form: None,
            }
        });
        let text = Text {
            origin: &origin,
            name: &name,
            attributes: &attributes,
            setup: "actpass",
            lines: lines.collect(),
        };
        let text = local::write(&text, &self.local);
        self.origin = Some(origin);
        self.state = State::LocalOffer(Box::new(LocalOffer { media, slots }));
        Ok(text)
    }

    /// Takes the answer to this side's offer. Returns the result.
    pub fn accept_answer(&mut self, answer: RemoteDescription) -> Result<Negotiated, SdpError> {
        let State::LocalOffer(offer) = &self.state else {
            return Err(SdpError::UnexpectedAnswer);
        };
        let lines = &answer.description.media;
        let same_kinds = offer
            .media
            .iter()
            .map(|m| m.kind)
            .eq(lines.iter().map(|m| m.kind));
        if !same_kinds || answer.media.len() != lines.len() {
            return Err(SdpError::MediaMismatch);
        }
        let mut slots = offer.slots.clone();
        let mut media = Vec::with_capacity(slots.len());
        let pairs = offer
            .media
            .iter()
            .zip(lines)
            .zip(&answer.media)
            .zip(&mut slots);
        for (((local, remote), facts), slot) in pairs {
            slot.active = !local.rejected && !remote.rejected;
            let agreement = Agreement::of_offer(local, remote, facts, slot, &self.rtx);
            media.push(agreement.negotiated(answer.rid_order));
        }
        let role = match answer.transport.setup {
            Some(Setup::Passive) => DtlsRole::Client,
            Some(Setup::Active | Setup::ActPass) | None => DtlsRole::Server,
        };
        let transport = self.agree_on_transport(answer.transport, role)?;
        self.slots = slots;
        self.state = State::Stable;
        self.remote = Some(transport.clone());
        Ok(Negotiated { transport, media })
    }

    /// Replaces this side's ICE credentials and candidates, which restarts ICE with the next
    /// description.
    pub fn set_local_ice(&mut self, ice: IceCredentials, candidates: Vec<String>) {
        self.local.ice = ice;
        self.local.candidates = candidates;
    }

    /// Replaces the remote side's ICE credentials if they come by another way than a description
    /// (RFC 8840), so that a later description with them does not restart ICE again.
    pub fn set_remote_ice(&mut self, ice: IceCredentials) {
        if let Some(remote) = &mut self.remote {
            remote.ice = ice;
            remote.candidates.clear();
        }
    }

    /// Sets this side's candidates, and keeps the credentials.
    pub fn set_local_candidates(&mut self, candidates: Vec<String>) {
        self.local.candidates = candidates;
    }

    /// Returns the m-lines that exist for a remote description of `kind`. For an answer, those of
    /// this side's offer are included.
    pub fn slots(&self, kind: SdpType) -> Vec<MediaSlot> {
        let slots = match (&self.state, kind) {
            (State::LocalOffer(offer), SdpType::Answer) => &offer.slots,
            (State::LocalOffer(_), SdpType::Offer)
            | (State::Stable | State::RemoteOffer(_), SdpType::Offer | SdpType::Answer) => {
                &self.slots
            }
        };
        slots.iter().map(Slot::public).collect()
    }

    /// Returns which side waits for an answer.
    pub fn signaling(&self) -> Signaling {
        match self.state {
            State::Stable => Signaling::Stable,
            State::RemoteOffer(_) => Signaling::HaveRemoteOffer,
            State::LocalOffer(_) => Signaling::HaveLocalOffer,
        }
    }

    /// Returns this side's transport.
    pub fn local_transport(&self) -> &LocalTransport {
        &self.local
    }

    /// Returns the remote side's transport of the last complete exchange.
    pub fn remote_transport(&self) -> Option<&RemoteTransport> {
        self.remote.as_ref()
    }

    fn answer_to(
        &mut self,
        offer: &RemoteDescription,
        answer: Description,
    ) -> Result<(String, Negotiated), SdpError> {
        let role = match (&self.remote, offer.transport.setup) {
            (Some(known), _) => known.dtls_role,
            (None, Some(Setup::Passive)) => DtlsRole::Client,
            (None, Some(Setup::ActPass | Setup::Active) | None) => DtlsRole::Server,
        };
        let offered = &offer.description.media;
        if answer.media.len() > offered.len() {
            return Err(SdpError::LocalMismatch(offered.len()));
        }
        let transport = self.agree_on_transport(offer.transport.clone(), role)?;
        let mut wishes = answer.media.into_iter();
        let mut lines = Vec::with_capacity(offered.len());
        let mut slots = self.slots.clone();
        for (index, remote) in offered.iter().enumerate() {
            let line = match wishes.next() {
                Some(wish) if wish.kind != remote.kind => {
                    return Err(SdpError::LocalMismatch(index));
                }
                Some(wish) => fit(wish, remote),
                None => remote.refused(),
            };
            place(&mut slots, index, &line, &mut self.rng);
            lines.push(line);
        }

        let mut texts = Vec::with_capacity(lines.len());
        let mut media = Vec::with_capacity(lines.len());
        let pairs = lines.iter().zip(offered).zip(&offer.media).zip(&slots);
        for (((local, remote), facts), slot) in pairs {
            let agreement = Agreement::of_answer(local, remote, facts, slot);
            media.push(agreement.negotiated(offer.rid_order));
            texts.push(agreement.text());
        }
        let origin = match answer.origin.session_id.is_empty() {
            true => offer.description.origin.clone(),
            false => answer.origin,
        };
        let text = Text {
            origin: &origin,
            name: &answer.name,
            attributes: &answer.attributes,
            setup: match role {
                DtlsRole::Client => "active",
                DtlsRole::Server => "passive",
            },
            lines: texts,
        };
        let text = local::write(&text, &self.local);
        self.slots = slots;
        self.remote = Some(transport.clone());
        Ok((text, Negotiated { transport, media }))
    }

    fn agree_on_transport(
        &self,
        facts: TransportFacts,
        role: DtlsRole,
    ) -> Result<RemoteTransport, SdpError> {
        let known = self.remote.as_ref();
        let TransportFacts {
            ice,
            ice_lite,
            fingerprints,
            candidates,
            ..
        } = facts;
        let ice = ice.or_else(|| known.map(|known| known.ice.clone()));
        let fingerprints = match known {
            Some(known) if fingerprints.is_empty() => known.fingerprints.clone(),
            _ => fingerprints,
        };
        Ok(RemoteTransport {
            ice: ice.ok_or(SdpError::NoIceCredentials)?,
            ice_lite,
            fingerprints,
            dtls_role: known.map_or(role, |known| known.dtls_role),
            candidates,
        })
    }

    fn next_origin(&self, wished: Origin) -> Origin {
        match &self.origin {
            Some(last) => Origin {
                version: last.version.saturating_add(1),
                ..last.clone()
            },
            None if wished.session_id.is_empty() => Origin {
                session_id: self.local.session_id.to_string(),
                version: 1,
                ..Origin::default()
            },
            None => Origin {
                session_id: wished.session_id,
                version: 1,
                ..Origin::default()
            },
        }
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("signaling", &self.signaling())
            .field("slots", &self.slots)
            .finish_non_exhaustive()
    }
}

/// Puts `line` in the place `index`. If it has that place already, its state stays.
fn place(slots: &mut Vec<Slot>, index: usize, line: &Media, rng: &mut SmallRng) {
    if let Some(slot) = slots.get_mut(index).filter(|slot| slot.is_of(line)) {
        slot.active = !line.rejected;
        return;
    }
    let new = Slot::new(line, slots, rng);
    match slots.get_mut(index) {
        Some(slot) => *slot = new,
        None => slots.push(new),
    }
}

/// Returns the index of an active m-line with the mid of another active one.
fn repeated_mid(media: &[Media]) -> Option<usize> {
    let mut seen = HashSet::new();
    media
        .iter()
        .position(|line| !line.rejected && !seen.insert(line.mid))
}
