//! Descriptions of the remote side: media lines for plugins, everything else for the core.

use std::collections::HashSet;

use portunus_rtp::{Mid, Pt, Rid};
use sdp_types::Session as Sdp;

use crate::bundle;
use crate::description::{Attribute, Description, Media, Msid, Origin};
use crate::error::SdpError;
use crate::media_lines::{self, PtSet, find, values};
use crate::negotiated::{Fingerprint, FingerprintHash, IceCredentials, Kind, RemoteSsrc};
use crate::simulcast::{
    OfferedRid, RidCollector, RidOrder, Simulcast, SimulcastForm, SsrcCollector,
};
use crate::wire;

/// Candidates beyond this number are ignored.
const MAX_CANDIDATES: usize = 128;
/// The m-lines that are searched for candidates. Those after the first are bundled with it.
const CANDIDATE_LINES: usize = 2;
/// The default of the largest message that a peer accepts (RFC 8841 section 6.1).
const DEFAULT_MAX_MESSAGE_SIZE: u32 = 65_536;
/// The default SCTP port of a peer.
const DEFAULT_SCTP_PORT: u16 = 5_000;

/// The type of a description.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names say it")]
pub enum SdpType {
    Offer,
    Answer,
}

impl SdpType {
    /// Returns the `type` in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            SdpType::Offer => "offer",
            SdpType::Answer => "answer",
        }
    }
}

/// A parsed description of the remote side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteDescription {
    /// Offer or answer.
    pub kind: SdpType,
    /// The part for plugins.
    pub description: Description,
    /// ICE and DTLS.
    pub transport: TransportFacts,
    /// The part of each m-line for the core, in the order of the description.
    pub media: Vec<RemoteMedia>,
    /// The index of the first active m-line that is in no BUNDLE group with the first active one,
    /// if there is one. An offer with ICE credentials on such a line is refused instead.
    pub unbundled: Option<usize>,
    /// The order of the rids. Parsing assumes the highest layer first.
    pub rid_order: RidOrder,
}

/// The remote side's transport, the same for all m-lines (BUNDLE).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TransportFacts {
    /// `None` only if all m-lines of a renegotiation are rejected.
    pub ice: Option<IceCredentials>,
    /// Whether there is `a=ice-lite`.
    pub ice_lite: bool,
    /// The fingerprints with accepted hash functions.
    pub fingerprints: Vec<Fingerprint>,
    /// The value of `a=setup`.
    pub setup: Option<Setup>,
    /// The candidates of component 1, as the text after `a=`.
    pub candidates: Vec<String>,
}

/// The readiness to start the DTLS handshake (RFC 5763 section 5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Setup {
    ActPass,
    Active,
    Passive,
}

/// The part of an m-line for the core.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteMedia {
    /// The declared streams: simulcast layers, the lowest first, or at most one stream.
    pub ssrcs: Vec<RemoteSsrc>,
    /// The rids that the remote side wants to send, in its order.
    pub rids: Vec<OfferedRid>,
    /// The form of `a=simulcast`, if present.
    pub simulcast_form: Option<SimulcastForm>,
    /// RTX payload types: of the media, of the repair.
    pub rtx: Vec<(Pt, Pt)>,
    /// Whether the remote side declared NACK for some codec of the m-line.
    pub nack: bool,
    /// For data, the SCTP port.
    pub sctp_port: u16,
    /// For data, the largest message that the remote side accepts, in bytes.
    pub max_message_size: u32,
}

impl RemoteMedia {
    /// Returns the rids, the lowest layer (substream 0) first.
    pub fn rids_lowest_first(&self, order: RidOrder) -> Vec<Rid> {
        let rids = self.rids.iter().map(|offered| offered.rid);
        match order {
            RidOrder::HighestFirst => rids.rev().collect(),
            RidOrder::LowestFirst => rids.collect(),
        }
    }

    /// Returns the simulcast stream on this m-line, or `None` if there is only one encoding.
    fn simulcast(&self, mid: Mid, order: RidOrder) -> Option<Simulcast> {
        let rids = self.rids_lowest_first(order);
        let ssrcs = match rids.is_empty() {
            true => self.ssrcs.iter().map(|stream| stream.ssrc).collect(),
            false => Vec::new(),
        };
        let is_simulcast = !rids.is_empty() || ssrcs.len() > 1;
        is_simulcast.then_some(Simulcast { mid, rids, ssrcs })
    }
}

/// An existing m-line with its fixed place and mid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MediaSlot {
    /// The mid.
    pub mid: Mid,
    /// Whether it is active. If not, an offer may put another m-line in its place.
    pub active: bool,
}

impl RemoteDescription {
    /// Parses SDP text. `slots` are the existing m-lines. Empty before the first exchange.
    pub fn parse(text: &str, kind: SdpType, slots: &[MediaSlot]) -> Result<Self, SdpError> {
        let sdp = wire::read(text)?;
        let mut media = Vec::with_capacity(sdp.medias.len());
        let mut facts = Vec::with_capacity(sdp.medias.len());
        let all_rtx: Vec<RtxLine> = sdp.medias.iter().map(rtx_of).collect();
        let all_repairs: PtSet = all_rtx
            .iter()
            .flatten()
            .map(|(_, repair)| *repair)
            .collect();
        let all_codecs = media_lines::payload_types(&sdp);
        let mids = mids_of(&sdp, kind, slots)?;
        let lines = sdp.medias.iter().enumerate().zip(mids);
        for (((index, line), mid), rtx) in lines.zip(&all_rtx) {
            let mut parsed = media_lines::media(line, index, mid, &sdp.attributes)?;
            parsed.msid = msid_of(line, index)?;
            // A number that is a codec on one m-line and a repair on another would be ambiguous on
            // one transport.
            let rtx: Vec<(Pt, Pt)> = rtx
                .iter()
                .filter(|(codec, repair)| {
                    parsed.codec(*codec).is_some() && !all_codecs.contains(*repair)
                })
                .copied()
                .collect();
            parsed
                .codecs
                .retain(|codec| !all_repairs.contains(codec.pt));
            facts.push(facts_of(line, rtx));
            media.push(parsed);
        }
        refuse_same_mids(&media)?;
        let transport = transport_of(&sdp, &media);
        let needed = slots.is_empty() || media.iter().any(|media| !media.rejected);
        if needed && transport.ice.is_none() {
            return Err(SdpError::NoIceCredentials);
        }
        if needed && transport.fingerprints.is_empty() {
            return Err(SdpError::NoFingerprint);
        }
        let unbundled = bundle::outside(&sdp, &media);
        let alone = |index: &&usize| bundle::has_another_transport(&sdp, &media, **index);
        if kind == SdpType::Offer
            && let Some(index) = unbundled.iter().find(alone)
        {
            return Err(SdpError::NotBundled(*index));
        }
        let description = Description {
            origin: Origin {
                username: sdp.origin.username.unwrap_or_default(),
                session_id: sdp.origin.sess_id,
                version: sdp.origin.sess_version,
                address: sdp.origin.unicast_address,
            },
            name: sdp.session_name.trim().to_owned(),
            attributes: media_lines::passed_on(&sdp.attributes).collect::<Vec<Attribute>>(),
            media,
        };
        let rid_order = RidOrder::default();
        Ok(RemoteDescription {
            kind,
            description,
            transport,
            media: facts,
            unbundled: unbundled.first().copied(),
            rid_order,
        })
    }

    /// Returns the simulcast streams for plugins.
    pub fn simulcast(&self) -> Vec<Simulcast> {
        self.description
            .media
            .iter()
            .zip(&self.media)
            .filter_map(|(line, facts)| facts.simulcast(line.mid, self.rid_order))
            .collect()
    }
}

type RtxLine = Vec<(Pt, Pt)>;

/// Returns the RTX payload types of an m-line and those that they repair.
fn rtx_of(line: &sdp_types::Media) -> RtxLine {
    let repairs = media_lines::rtx_payload_types(line);
    let mut pairs = RtxLine::new();
    for value in values(&line.attributes, "fmtp") {
        let Some((pt, parameters)) = media_lines::payload_value(value) else {
            continue;
        };
        let apt = parameters.split(';').find_map(|parameter| {
            let (name, value) = parameter.split_once('=')?;
            name.trim()
                .eq_ignore_ascii_case("apt")
                .then(|| media_lines::payload_type(value.trim()))?
        });
        if let Some(apt) = apt
            && repairs.contains(pt)
            && !pairs
                .iter()
                .any(|(codec, repair)| *codec == apt || *repair == pt)
        {
            pairs.push((apt, pt));
        }
    }
    pairs
}

/// Returns the mids of the m-lines. RFC 8843 requires them for bundled m-lines only, so the others
/// get one here.
fn mids_of(sdp: &Sdp, kind: SdpType, slots: &[MediaSlot]) -> Result<Vec<Mid>, SdpError> {
    let lines = sdp.medias.iter().enumerate();
    let written = lines
        .map(|(index, line)| written_mid(line, index, kind, slots))
        .collect::<Result<Vec<Option<Mid>>, SdpError>>()?;
    let mut taken: HashSet<Mid> = written.iter().copied().flatten().collect();
    let count = written.len();
    let named = written.into_iter().enumerate().map(|(index, mid)| {
        // The index, which clients of Janus expect, unless another m-line has it.
        let mut numbers = std::iter::once(index).chain(count..);
        let free =
            || numbers.find_map(|n| Mid::new(&n.to_string()).filter(|mid| taken.insert(*mid)));
        mid.or_else(free).ok_or(SdpError::MalformedMid(index))
    });
    named.collect()
}

/// Returns the mid of an m-line in this description or in an earlier one.
fn written_mid(
    line: &sdp_types::Media,
    index: usize,
    kind: SdpType,
    slots: &[MediaSlot],
) -> Result<Option<Mid>, SdpError> {
    let text = find(&line.attributes, "mid");
    if let Some(slot) = slots.get(index) {
        // An m-line keeps its mid. Only an offer may put another m-line in a free place.
        let recycled = kind == SdpType::Offer && !slot.active;
        let new = text.flatten().and_then(Mid::new).filter(|_| recycled);
        return Ok(Some(new.unwrap_or(slot.mid)));
    }
    let Some(text) = text else { return Ok(None) };
    let text = text.unwrap_or_default();
    let active = line.port != 0 && line.media != "application";
    match Mid::new(text) {
        Some(mid) => Ok(Some(mid)),
        None if active && text.len() > 16 => Err(SdpError::LongMid),
        None => Err(SdpError::MalformedMid(index)),
    }
}

fn refuse_same_mids(media: &[Media]) -> Result<(), SdpError> {
    let mut mids: Vec<Mid> = media
        .iter()
        .filter(|m| !m.rejected)
        .map(|m| m.mid)
        .collect();
    mids.sort_unstable();
    match mids
        .windows(2)
        .find(|pair| pair.first() == pair.last())
        .and_then(<[Mid]>::first)
    {
        Some(mid) => Err(SdpError::DuplicateMid(*mid)),
        None => Ok(()),
    }
}

fn msid_of(line: &sdp_types::Media, index: usize) -> Result<Option<Msid>, SdpError> {
    let Some(value) = find(&line.attributes, "msid") else {
        return Ok(None);
    };
    let mut tokens = value.unwrap_or_default().split_ascii_whitespace();
    match (tokens.next(), tokens.next()) {
        (Some(stream), Some(track)) => Ok(Some(Msid {
            stream: stream.to_owned(),
            track: track.to_owned(),
        })),
        _ => Err(SdpError::InvalidMsid(index)),
    }
}

fn facts_of(line: &sdp_types::Media, rtx: Vec<(Pt, Pt)>) -> RemoteMedia {
    let mut rids = RidCollector::default();
    let mut ssrcs = SsrcCollector::default();
    let mut nack = false;
    for attribute in &line.attributes {
        let Some(value) = attribute.value.as_deref() else {
            continue;
        };
        match attribute.attribute.to_ascii_lowercase().as_str() {
            "rid" => rids.rid(value),
            "simulcast" => rids.simulcast(value),
            "ssrc" => ssrcs.ssrc(value),
            "ssrc-group" => ssrcs.group(value),
            "rtcp-fb" => nack |= value.split_ascii_whitespace().nth(1) == Some("nack"),
            _ => {}
        }
    }
    let (rids, simulcast_form) = rids.finish();
    let number = |name| {
        values(&line.attributes, name)
            .next()
            .and_then(|v| v.parse::<u64>().ok())
    };
    // The old form has the port in the m-line, and repeats it in `sctpmap`.
    let sctp_port = number("sctp-port").or_else(|| line.fmt.parse().ok());
    let max_message_size = match number("max-message-size") {
        Some(0) => u32::MAX,
        Some(size) => u32::try_from(size).unwrap_or(u32::MAX),
        None => DEFAULT_MAX_MESSAGE_SIZE,
    };
    RemoteMedia {
        ssrcs: if rids.is_empty() {
            ssrcs.finish()
        } else {
            Vec::new()
        },
        rids,
        simulcast_form,
        rtx,
        nack,
        sctp_port: sctp_port
            .and_then(|port| u16::try_from(port).ok())
            .filter(|_| media_lines::kind(line) == Some(Kind::Data))
            .unwrap_or(DEFAULT_SCTP_PORT),
        max_message_size,
    }
}

/// Returns the transport of the first active m-line, with defaults from the session level.
fn transport_of(sdp: &Sdp, media: &[Media]) -> TransportFacts {
    let first = media
        .iter()
        .position(|media| !media.rejected)
        .and_then(|i| sdp.medias.get(i));
    let levels: Vec<&[sdp_types::Attribute]> = first
        .map(|line| line.attributes.as_slice())
        .into_iter()
        .chain([&*sdp.attributes])
        .collect();
    let value = |name: &str| levels.iter().find_map(|level| values(level, name).next());
    let credential = |name: &str| {
        value(name).filter(|text| text.len() <= 256 && text.bytes().all(|c| c.is_ascii_graphic()))
    };
    let ice = credential("ice-ufrag")
        .zip(credential("ice-pwd"))
        .map(|(ufrag, pwd)| IceCredentials {
            ufrag: ufrag.to_owned(),
            pwd: pwd.to_owned(),
        });
    let fingerprints = levels
        .iter()
        .map(|level| {
            values(level, "fingerprint")
                .filter_map(fingerprint)
                .collect::<Vec<_>>()
        })
        .find(|fingerprints| !fingerprints.is_empty())
        .unwrap_or_default();
    let setup = value("setup").and_then(|value| match value.to_ascii_lowercase().as_str() {
        "actpass" => Some(Setup::ActPass),
        "active" => Some(Setup::Active),
        "passive" => Some(Setup::Passive),
        _ => None,
    });
    let mut candidates: Vec<String> = Vec::new();
    for value in sdp
        .medias
        .iter()
        .take(CANDIDATE_LINES)
        .flat_map(|m| values(&m.attributes, "candidate"))
    {
        let text = format!("candidate:{value}");
        let rtp = value.split_ascii_whitespace().nth(1) == Some("1");
        if rtp && candidates.len() < MAX_CANDIDATES && !candidates.contains(&text) {
            candidates.push(text);
        }
    }
    let ice_lite = find(&sdp.attributes, "ice-lite").is_some();
    TransportFacts {
        ice,
        ice_lite,
        fingerprints,
        setup,
        candidates,
    }
}

fn fingerprint(value: &str) -> Option<Fingerprint> {
    let (hash, digest) = value.trim().split_once(' ')?;
    let (hash, length) = match hash.to_ascii_lowercase().as_str() {
        "sha-256" => (FingerprintHash::Sha256, 32),
        "sha-1" => (FingerprintHash::Sha1, 20),
        _ => return None,
    };
    let digest: Option<Vec<u8>> = digest
        .trim()
        .split(':')
        .map(|byte| match byte.len() {
            2 => u8::from_str_radix(byte, 16).ok(),
            _ => None,
        })
        .collect();
    digest
        .filter(|digest| digest.len() == length)
        .map(|digest| Fingerprint { hash, digest })
}
