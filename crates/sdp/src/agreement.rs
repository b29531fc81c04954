//! The agreement of an offer and its answer, per m-line.

use portunus_rtp::{ExtensionKind, ExtensionMap, Pt, Ssrc};

use crate::codecs::CodecSpec;
use crate::description::{Direction, Extmap, Media};
use crate::local::MediaText;
use crate::negotiated::{Feedback, Kind, NegotiatedMedia, Payload};
use crate::offered_parts::{accepted_extensions, was_offered};
use crate::remote::RemoteMedia;
use crate::rtx::RtxNumbers;
use crate::simulcast::RidOrder;
use crate::slot::Slot;

/// An m-line of both sides.
pub(crate) struct Agreement<'a> {
    local: &'a Media,
    remote: &'a Media,
    facts: &'a RemoteMedia,
    /// The answer's codecs that were offered, in the answer's order.
    codecs: Vec<CodecSpec>,
    /// The answer's header extensions that were offered.
    extensions: Vec<Extmap>,
    /// RTX payload types: of the media, of the repair.
    rtx: Vec<(Pt, Pt)>,
    /// The direction from this side's point of view.
    direction: Direction,
    ssrc: Ssrc,
    /// The SSRC of this side's retransmissions, if it is declared.
    rtx_ssrc: Option<Ssrc>,
    /// Whether the rids are accepted.
    layered: bool,
}

impl<'a> Agreement<'a> {
    /// Makes it for an offer of the remote side, answered with `local`, which fits the offer.
    pub(crate) fn of_answer(
        local: &'a Media,
        remote: &'a Media,
        facts: &'a RemoteMedia,
        slot: &Slot,
    ) -> Self {
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
        // Clients expect the group only if they have one themselves, or if they only receive.
        let expected = local.direction == Direction::SendOnly
            || facts.ssrcs.iter().any(|stream| stream.rtx.is_some());
        let rtx_ssrc =
            repair_ssrc(local.kind, local.direction, &rtx, slot).filter(|_| expected && !layered);
        Agreement {
            local,
            remote,
            facts,
            codecs: local.codecs.clone(),
            extensions: local.extensions.clone(),
            rtx,
            direction: local.direction,
            ssrc: slot.ssrc,
            rtx_ssrc,
            layered,
        }
    }

    /// Makes it for this side's offer `local` and the remote side's answer.
    pub(crate) fn of_offer(
        local: &'a Media,
        remote: &'a Media,
        facts: &'a RemoteMedia,
        slot: &Slot,
        proposed: &RtxNumbers,
    ) -> Self {
        let codecs = remote
            .codecs
            .iter()
            .filter(|codec| was_offered(codec, local));
        let mut rtx = proposed.of(local);
        rtx.retain(|pair| facts.nack && facts.rtx.contains(pair));
        let direction = remote.direction.answer(local.direction);
        Agreement {
            local,
            remote,
            facts,
            codecs: codecs.cloned().collect(),
            extensions: accepted_extensions(&remote.extensions, local),
            rtx_ssrc: repair_ssrc(local.kind, direction, &rtx, slot),
            rtx,
            direction,
            ssrc: slot.ssrc,
            layered: false,
        }
    }

    /// Returns the result. `order` is that of the rids.
    pub(crate) fn negotiated(&self, order: RidOrder) -> NegotiatedMedia {
        if self.local.rejected || self.remote.rejected {
            return disabled(self.local, self.ssrc);
        }
        let extensions = extension_map(&self.extensions);
        let transport_cc = extensions.id(ExtensionKind::TransportCc).is_some();
        let payloads = self.codecs.iter().filter_map(|agreed| {
            Some(Payload {
                pt: agreed.pt,
                codec: agreed.codec()?,
                clock_rate: agreed.clock_rate,
                rtx: self
                    .rtx
                    .iter()
                    .find(|(codec, _)| *codec == agreed.pt)
                    .map(|(_, rtx)| *rtx),
                feedback: self.feedback(agreed.pt, transport_cc),
            })
        });
        let data = self.local.kind == Kind::Data;
        NegotiatedMedia {
            mid: self.local.mid,
            kind: self.local.kind,
            disabled: false,
            send: data || self.direction.sends(),
            recv: data || self.direction.receives(),
            payloads: payloads.collect(),
            extensions,
            remote_ssrcs: self.facts.ssrcs.clone(),
            rids: if self.layered {
                self.facts.rids_lowest_first(order)
            } else {
                Vec::new()
            },
            local_ssrc: self.ssrc,
            local_rtx_ssrc: self.rtx_ssrc,
            sctp_port: self.facts.sctp_port,
            max_message_size: self.facts.max_message_size,
        }
    }

    /// Returns this side's m-line for writing.
    pub(crate) fn text(self) -> MediaText<'a> {
        MediaText {
            media: self.local,
            rtx: self.rtx,
            ssrc: self.ssrc,
            rtx_ssrc: self.rtx_ssrc,
            rids: if self.layered { &self.facts.rids } else { &[] },
            simulcast_form: self.facts.simulcast_form,
        }
    }

    /// Returns the feedback that both sides declared for payload type `pt`.
    fn feedback(&self, pt: Pt, transport_cc: bool) -> Feedback {
        let (local, remote) = (self.local.codec(pt), self.remote.codec(pt));
        let here = |name| local.is_some_and(|codec| codec.has_feedback(name));
        let there = |name| remote.is_some_and(|codec| codec.has_feedback(name));
        Feedback {
            nack: here("nack") && self.facts.nack,
            // A side that declares neither PLI nor FIR supports some keyframe request, and PLI is
            // the usual one.
            pli: here("nack pli") && (there("nack pli") || !there("ccm fir")),
            fir: here("ccm fir") && there("ccm fir"),
            remb: here("goog-remb") && there("goog-remb"),
            transport_cc: transport_cc && here("transport-cc") && there("transport-cc"),
        }
    }
}

/// Returns the SSRC of this side's retransmissions, if it sends any.
pub(crate) fn repair_ssrc(
    kind: Kind,
    direction: Direction,
    rtx: &[(Pt, Pt)],
    slot: &Slot,
) -> Option<Ssrc> {
    (kind == Kind::Video && direction.sends() && !rtx.is_empty()).then_some(slot.rtx_ssrc)
}

/// Returns an m-line on which nothing is sent.
fn disabled(media: &Media, ssrc: Ssrc) -> NegotiatedMedia {
    NegotiatedMedia {
        mid: media.mid,
        kind: media.kind,
        disabled: true,
        send: false,
        recv: false,
        payloads: Vec::new(),
        extensions: ExtensionMap::default(),
        remote_ssrcs: Vec::new(),
        rids: Vec::new(),
        local_ssrc: ssrc,
        local_rtx_ssrc: None,
        sctp_port: 0,
        max_message_size: 0,
    }
}

fn extension_map(extensions: &[Extmap]) -> ExtensionMap {
    let mut map = ExtensionMap::default();
    for extmap in extensions {
        // An extension that neither side may send counts as not negotiated.
        if let Some(kind) = extmap.kind()
            && extmap.direction != Some(Direction::Inactive)
        {
            map.set(kind, extmap.id);
        }
    }
    map
}
