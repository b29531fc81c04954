//! Offers of plugins.

use portunus_rtp::{ExtensionKind, Mid, Pt};

use crate::answer::server_feedback;
use crate::codecs::{CodecName, CodecSpec};
use crate::description::{Description, Direction, Extmap, Media, Msid, Origin};
use crate::negotiated::Kind;

/// The m-lines that a plugin offers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OfferOptions {
    /// The `s=` line. If empty, the server's own name is written.
    pub name: String,
    /// The id in the `o=` line. If empty, that of the session is written.
    pub session_id: String,
    /// The m-lines in order. Those of earlier exchanges keep their places.
    pub media: Vec<MediaOffer>,
}

/// An m-line that a plugin offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MediaOffer {
    /// The kind of media.
    pub kind: Kind,
    /// The mid. `None` means the index in the offer.
    pub mid: Option<Mid>,
    /// Whether to withdraw it: the m-line only keeps its place.
    pub rejected: bool,
    /// The direction.
    pub direction: Direction,
    /// Codecs in order of preference, see [`MediaOffer::add_codec`].
    pub codecs: Vec<CodecSpec>,
    /// Header extensions with their ids.
    pub extensions: Vec<(ExtensionKind, u8)>,
    /// The stream and track. `None` means those of the server.
    pub msid: Option<Msid>,
}

impl MediaOffer {
    /// Makes an m-line without codecs and header extensions.
    pub fn new(kind: Kind, direction: Direction) -> Self {
        MediaOffer {
            kind,
            mid: None,
            rejected: false,
            direction,
            codecs: Vec::new(),
            extensions: Vec::new(),
            msid: None,
        }
    }

    /// Adds a codec with payload type `pt` or its usual one, and with the feedback that the server
    /// uses.
    pub fn add_codec(&mut self, name: CodecName, pt: Option<Pt>, fmtp: Option<String>) {
        let pt = pt.unwrap_or_else(|| name.default_pt());
        self.codecs.push(CodecSpec {
            fmtp,
            ..CodecSpec::new(name, pt)
        });
    }

    /// Adds redundant audio (RFC 2198) of `codec` as the most preferred codec so far.
    pub fn add_red(&mut self, pt: Pt, codec: Pt) {
        let red = CodecSpec {
            pt,
            name: "red".to_owned(),
            clock_rate: 48_000,
            channels: 2,
            fmtp: Some(format!("{0}/{0}", codec.0)),
            feedback: Vec::new(),
        };
        self.codecs.insert(0, red);
    }

    /// Adds telephone events with this clock rate, usually 8000 Hz with payload type 126.
    pub fn add_dtmf(&mut self, pt: Pt, clock_rate: u32) {
        self.codecs.push(CodecSpec {
            pt,
            name: "telephone-event".to_owned(),
            clock_rate,
            channels: 0,
            fmtp: None,
            feedback: Vec::new(),
        });
    }
}

impl Description {
    /// Makes an offer.
    pub fn offer(options: OfferOptions) -> Description {
        let media = options
            .media
            .into_iter()
            .enumerate()
            .filter_map(|(index, offer)| {
                let mid = offer.mid.or_else(|| Mid::new(&index.to_string()))?;
                Some(media(offer, mid))
            });
        Description {
            origin: Origin {
                session_id: options.session_id,
                ..Origin::default()
            },
            name: options.name,
            attributes: Vec::new(),
            media: media.collect(),
        }
    }
}

fn media(offer: MediaOffer, mid: Mid) -> Media {
    let MediaOffer {
        kind,
        rejected,
        direction,
        mut codecs,
        extensions,
        msid,
        ..
    } = offer;
    let transport_cc = extensions
        .iter()
        .any(|(kind, _)| *kind == ExtensionKind::TransportCc);
    for codec in codecs
        .iter_mut()
        .filter(|c| !c.name.eq_ignore_ascii_case("telephone-event"))
    {
        codec.feedback = server_feedback(kind, transport_cc);
    }
    let (proto, format) = match kind {
        Kind::Data => ("UDP/DTLS/SCTP", "webrtc-datachannel"),
        Kind::Audio | Kind::Video => ("UDP/TLS/RTP/SAVPF", "0"),
    };
    Media {
        kind,
        mid,
        rejected,
        direction,
        proto: proto.to_owned(),
        format: format.to_owned(),
        codecs,
        extensions: extensions
            .into_iter()
            .map(|(kind, id)| Extmap::new(kind, id))
            .collect(),
        msid,
        bandwidth: None,
        attributes: Vec::new(),
    }
}
