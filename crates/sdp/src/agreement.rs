//! What an offer and its answer agreed on, m-line by m-line.

use portunus_rtp::{ExtensionKind, ExtensionMap, Pt, Ssrc};

use crate::codecs::CodecSpec;
use crate::description::{Direction, Extmap, Media};
use crate::negotiated::{Feedback, Kind, NegotiatedMedia, Payload};
use crate::remote::RemoteMedia;
use crate::simulcast::RidOrder;

/// One m-line seen from both sides.
pub(crate) struct Pair<'a> {
    /// This side's m-line.
    pub local: &'a Media,
    /// The remote side's m-line.
    pub remote: &'a Media,
    /// What else the remote side said of it.
    pub facts: &'a RemoteMedia,
    /// The answer's codecs that were offered, in the answer's order.
    pub codecs: &'a [CodecSpec],
    /// The answer's header extensions that were offered.
    pub extensions: &'a [Extmap],
    /// The agreed RTX payload types: the media's, the repair's.
    pub rtx: &'a [(Pt, Pt)],
    /// The agreed direction, from this side's point of view.
    pub direction: Direction,
    /// The SSRC that this side sends with.
    pub ssrc: Ssrc,
    /// The SSRC of this side's retransmissions, if it was declared.
    pub rtx_ssrc: Option<Ssrc>,
    /// The rids were accepted.
    pub layered: bool,
    /// In which order the rids stand.
    pub rid_order: RidOrder,
}

impl Pair<'_> {
    pub(crate) fn negotiated(&self) -> NegotiatedMedia {
        let extensions = extension_map(self.extensions);
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
        let rids = if self.layered {
            self.facts.rids_lowest_first(self.rid_order)
        } else {
            Vec::new()
        };
        NegotiatedMedia {
            mid: self.local.mid,
            kind: self.local.kind,
            disabled: false,
            send: self.local.kind == Kind::Data || self.direction.sends(),
            recv: self.local.kind == Kind::Data || self.direction.receives(),
            payloads: payloads.collect(),
            extensions,
            remote_ssrcs: self.facts.ssrcs.clone(),
            rids,
            local_ssrc: self.ssrc,
            local_rtx_ssrc: self.rtx_ssrc,
            sctp_port: self.facts.sctp_port,
            max_message_size: self.facts.max_message_size,
        }
    }

    /// Feedback that both sides declared for payload type `pt`.
    fn feedback(&self, pt: Pt, transport_cc: bool) -> Feedback {
        let (local, remote) = (self.local.codec(pt), self.remote.codec(pt));
        let here = |name| local.is_some_and(|codec| codec.has_feedback(name));
        let there = |name| remote.is_some_and(|codec| codec.has_feedback(name));
        Feedback {
            nack: here("nack") && self.facts.nack,
            // Whoever names neither PLI nor FIR has some way to be asked for a picture: PLI is the usual one.
            pli: here("nack pli") && (there("nack pli") || !there("ccm fir")),
            fir: here("ccm fir") && there("ccm fir"),
            remb: here("goog-remb") && there("goog-remb"),
            transport_cc: transport_cc && here("transport-cc") && there("transport-cc"),
        }
    }
}

/// An m-line on which nothing is sent.
pub(crate) fn disabled(media: &Media, ssrc: Ssrc) -> NegotiatedMedia {
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
        // An extension that nobody may send is as good as not negotiated.
        if let Some(kind) = extmap.kind()
            && extmap.direction != Some(Direction::Inactive)
        {
            map.set(kind, extmap.id);
        }
    }
    map
}
