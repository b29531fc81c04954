//! The JSEP state of one PeerConnection: m-lines and their identities, roles, pending offers.

use std::fmt;

use portunus_rtp::{ExtensionKind, Mid, Pt, Ssrc};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use crate::agreement::{self, Pair};
use crate::codecs::CodecSpec;
use crate::description::{Description, Direction, Media, Origin};
use crate::error::SdpError;
use crate::fit::{accepted_extensions, fit, was_offered};
use crate::local::{self, LocalTransport, MediaText, Text};
use crate::negotiated::{
    DtlsRole, IceCredentials, Kind, Negotiated, NegotiatedMedia, RemoteTransport,
};
use crate::remote::{MediaSlot, RemoteDescription, RemoteMedia, SdpType, Setup, TransportFacts};
use crate::rtx::RtxNumbers;

/// The JSEP state of one PeerConnection, kept for its whole life.
///
/// m-lines keep their places and identifications, and the server's SSRCs, from their first offer on.
pub struct Session {
    local: LocalTransport,
    rng: SmallRng,
    slots: Vec<Slot>,
    state: State,
    /// The transport that the last completed exchange agreed on.
    remote: Option<RemoteTransport>,
    /// The ids in the `o=` lines of this side's offers.
    origin: Option<Origin>,
    /// The RTX payload types of this side's offers.
    rtx: RtxNumbers,
}

/// Which side waits for an answer (RFC 8829 section 3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
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

/// An m-line's place and what stays with it.
#[derive(Debug, Clone, Copy)]
struct Slot {
    mid: Mid,
    kind: Kind,
    active: bool,
    ssrc: Ssrc,
    rtx_ssrc: Ssrc,
}

impl Session {
    /// A session without m-lines; `seed` is for the SSRCs.
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

    /// Parses what the remote side sent, see [`RemoteDescription::parse`]. It changes nothing yet.
    pub fn parse(&self, text: &str, kind: SdpType) -> Result<RemoteDescription, SdpError> {
        RemoteDescription::parse(text, kind, &self.slots(kind))
    }

    /// Takes an offer. It replaces an offer that waits for its answer, of either side.
    ///
    /// Says whether it restarts ICE: then [`Session::set_local_ice`] is due before the answer.
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

    /// Answers the remote offer with a plugin's description; gives the SDP text and what was agreed on.
    ///
    /// m-lines that the description lacks are rejected, and so are those without a codec that was offered.
    pub fn local_answer(&mut self, answer: Description) -> Result<(String, Negotiated), SdpError> {
        let State::RemoteOffer(offer) = std::mem::replace(&mut self.state, State::Stable) else {
            return Err(SdpError::NothingToAnswer);
        };
        match self.answer_to(&offer, answer) {
            Ok(done) => Ok(done),
            Err(error) => {
                self.state = State::RemoteOffer(offer);
                Err(error)
            }
        }
    }

    /// Makes a plugin's description an offer of this side; gives the SDP text.
    ///
    /// m-lines that exist keep their places; those that the description lacks are offered as rejected.
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
        let mut slots = self.slots.clone();
        for slot in slots.iter().skip(media.len()) {
            media.push(placeholder(*slot));
        }
        for (index, line) in media.iter().enumerate() {
            match slots.get_mut(index) {
                Some(slot) if slot.mid == line.mid && slot.kind == line.kind => {}
                Some(slot) if !slot.active => *slot = self.new_slot(line),
                Some(_) => return Err(SdpError::LocalMismatch(index)),
                None => slots.push(self.new_slot(line)),
            }
            if let Some(slot) = slots.get_mut(index) {
                slot.active = !line.rejected;
            }
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
            let declares = media.kind == Kind::Video && media.direction.sends() && !rtx.is_empty();
            MediaText {
                media,
                rtx,
                ssrc: slot.ssrc,
                rtx_ssrc: declares.then_some(slot.rtx_ssrc),
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

    /// Takes the answer to this side's offer; gives what was agreed on.
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
            let agreed = slot
                .active
                .then(|| self.agree_to_answer(local, remote, facts, *slot));
            media.push(agreed.unwrap_or_else(|| agreement::disabled(local, slot.ssrc)));
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

    /// Replaces this side's ICE credentials and candidates: an ICE restart, once they are in a description.
    pub fn set_local_ice(&mut self, ice: IceCredentials, candidates: Vec<String>) {
        self.local.ice = ice;
        self.local.candidates = candidates;
    }

    /// Sets the candidates that are known, keeping the credentials.
    pub fn set_local_candidates(&mut self, candidates: Vec<String>) {
        self.local.candidates = candidates;
    }

    /// The m-lines that a remote description of `kind` finds: an answer finds those of this side's offer too.
    pub fn slots(&self, kind: SdpType) -> Vec<MediaSlot> {
        let slots = match (&self.state, kind) {
            (State::LocalOffer(offer), SdpType::Answer) => &offer.slots,
            _ => &self.slots,
        };
        slots
            .iter()
            .map(|slot| MediaSlot {
                mid: slot.mid,
                active: slot.active,
            })
            .collect()
    }

    /// Which side waits for an answer.
    pub fn signaling(&self) -> Signaling {
        match self.state {
            State::Stable => Signaling::Stable,
            State::RemoteOffer(_) => Signaling::HaveRemoteOffer,
            State::LocalOffer(_) => Signaling::HaveLocalOffer,
        }
    }

    /// This side's transport.
    pub fn local_transport(&self) -> &LocalTransport {
        &self.local
    }

    /// The remote side's transport, as the last completed exchange agreed on it.
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
        let mut slots = Vec::with_capacity(offered.len());
        for (index, remote) in offered.iter().enumerate() {
            let line = match wishes.next() {
                Some(wish) if wish.kind != remote.kind => {
                    return Err(SdpError::LocalMismatch(index));
                }
                Some(wish) => fit(wish, remote),
                None => remote.refused(),
            };
            let mut slot = match self.slots.get(index) {
                Some(slot) if slot.mid == line.mid && slot.kind == line.kind => *slot,
                _ => self.new_slot(&line),
            };
            slot.active = !line.rejected;
            lines.push(line);
            slots.push(slot);
        }

        let mut texts = Vec::with_capacity(lines.len());
        let mut media: Vec<NegotiatedMedia> = Vec::with_capacity(lines.len());
        let pairs = lines.iter().zip(offered).zip(&offer.media).zip(&slots);
        for (((local, remote), facts), slot) in pairs {
            let rtx: Vec<(Pt, Pt)> = local
                .codecs
                .iter()
                .filter(|codec| codec.has_feedback("nack") && facts.nack)
                .filter_map(|codec| facts.rtx.iter().find(|(pt, _)| *pt == codec.pt).copied())
                .collect();
            let layered = local.kind == Kind::Video
                && local.direction.receives()
                && local.has_extension(ExtensionKind::Rid)
                && !facts.rids.is_empty();
            let expected = local.direction == Direction::SendOnly
                || facts.ssrcs.iter().any(|stream| stream.rtx.is_some());
            let declares = local.kind == Kind::Video
                && local.direction.sends()
                && !rtx.is_empty()
                && expected
                && !layered;
            let rtx_ssrc = declares.then_some(slot.rtx_ssrc);
            media.push(if local.rejected {
                agreement::disabled(local, slot.ssrc)
            } else {
                let pair = Pair {
                    local,
                    remote,
                    facts,
                    codecs: &local.codecs,
                    extensions: &local.extensions,
                    rtx: &rtx,
                    direction: local.direction,
                    ssrc: slot.ssrc,
                    rtx_ssrc,
                    layered,
                    rid_order: offer.rid_order,
                };
                pair.negotiated()
            });
            texts.push(MediaText {
                media: local,
                rtx,
                ssrc: slot.ssrc,
                rtx_ssrc,
                rids: if layered { &facts.rids } else { &[] },
                simulcast_form: facts.simulcast_form,
            });
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

    fn agree_to_answer(
        &self,
        local: &Media,
        remote: &Media,
        facts: &RemoteMedia,
        slot: Slot,
    ) -> NegotiatedMedia {
        let codecs: Vec<CodecSpec> = remote
            .codecs
            .iter()
            .filter(|codec| was_offered(codec, local))
            .cloned()
            .collect();
        let extensions = accepted_extensions(&remote.extensions, local);
        let rtx: Vec<(Pt, Pt)> = self
            .rtx
            .of(local)
            .into_iter()
            .filter(|pair| facts.rtx.contains(pair) && facts.nack)
            .collect();
        let direction = remote.direction.answer(local.direction);
        let declares = local.kind == Kind::Video && direction.sends() && !rtx.is_empty();
        let pair = Pair {
            local,
            remote,
            facts,
            codecs: &codecs,
            extensions: &extensions,
            rtx: &rtx,
            direction,
            ssrc: slot.ssrc,
            rtx_ssrc: declares.then_some(slot.rtx_ssrc),
            layered: false,
            rid_order: Default::default(),
        };
        pair.negotiated()
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

    fn new_slot(&mut self, media: &Media) -> Slot {
        let ssrc = self.new_ssrc(None);
        let rtx_ssrc = self.new_ssrc(Some(ssrc));
        Slot {
            mid: media.mid,
            kind: media.kind,
            active: !media.rejected,
            ssrc,
            rtx_ssrc,
        }
    }

    fn new_ssrc(&mut self, besides: Option<Ssrc>) -> Ssrc {
        loop {
            let ssrc = Ssrc(self.rng.random_range(1..=u32::MAX));
            let taken = |slot: &Slot| slot.ssrc == ssrc || slot.rtx_ssrc == ssrc;
            if besides != Some(ssrc) && !self.slots.iter().any(taken) {
                return ssrc;
            }
        }
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

/// What keeps the place of an m-line that is offered no longer.
fn placeholder(slot: Slot) -> Media {
    let (proto, format) = match slot.kind {
        Kind::Data => ("UDP/DTLS/SCTP", "webrtc-datachannel"),
        Kind::Audio | Kind::Video => ("UDP/TLS/RTP/SAVPF", "0"),
    };
    Media {
        kind: slot.kind,
        mid: slot.mid,
        rejected: true,
        direction: Direction::Inactive,
        proto: proto.to_owned(),
        format: format.to_owned(),
        codecs: Vec::new(),
        extensions: Vec::new(),
        msid: None,
        bandwidth: None,
        attributes: Vec::new(),
    }
}

/// The index of an m-line in use whose identification another one in use has.
fn repeated_mid(media: &[Media]) -> Option<usize> {
    let active = |line: &&Media| !line.rejected;
    media
        .iter()
        .enumerate()
        .filter(|(_, line)| !line.rejected)
        .find_map(|(index, line)| {
            media
                .iter()
                .take(index)
                .filter(active)
                .any(|other| other.mid == line.mid)
                .then_some(index)
        })
}
