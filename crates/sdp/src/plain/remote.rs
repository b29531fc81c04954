//! The description of a far end: its m-lines, with addresses and keys.

use std::net::{IpAddr, SocketAddr};

use portunus_rtp::Mid;

use crate::codecs::{CodecName, CodecSpec};
use crate::description::{Attribute, Bandwidth, Direction, Extmap};
use crate::media_lines::{self, find, values};
use crate::negotiated::{Codec, Kind};

use super::crypto::{self, CryptoLine, CryptoRefusal};
use super::error::PlainError;
use super::parser;

/// The attributes of m-lines that are passed to the other side.
const PASSED_ON: [&str; 4] = ["ptime", "maxptime", "framerate", "content"];

/// A far end's description.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FarSession {
    /// The `s=` line.
    pub name: String,
    /// The m-lines in their order.
    pub media: Vec<FarMedia>,
}

/// An m-line of a far end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FarMedia {
    /// The media type, in lower case: `audio`, `video`, `image`…
    pub name: String,
    /// The port for RTP. 0 means inactive.
    pub port: u16,
    /// The protocol, such as `RTP/AVP`.
    pub proto: String,
    /// The text after the protocol.
    pub formats: String,
    /// The direction from the far end's point of view, as written. But without an address it does
    /// not receive (the old way to hold a call, RFC 3264 section 8.4).
    pub direction: Direction,
    /// The address for RTP. `None` without a usable address or port.
    pub rtp: Option<SocketAddr>,
    /// The address for RTCP: that of `a=rtcp`, or the port after that of RTP. With `rtcp_mux` it
    /// may be the RTP port instead.
    pub rtcp: Option<SocketAddr>,
    /// Whether the far end accepts RTP and RTCP on one port (RFC 5761).
    pub rtcp_mux: bool,
    /// Whether there is a `c=` line for it, even one that holds media.
    pub has_address: bool,
    /// The codecs in order of preference, without RTX and FEC.
    pub codecs: Vec<CodecSpec>,
    /// Header extensions.
    pub extensions: Vec<Extmap>,
    /// The `b=` line.
    pub bandwidth: Option<Bandwidth>,
    /// The attributes that are passed to the other side.
    pub attributes: Vec<Attribute>,
    /// The values of its `a=crypto` lines.
    pub(super) crypto: Vec<String>,
}

impl FarSession {
    /// Reads SDP text.
    pub fn parse(text: &str) -> Result<Self, PlainError> {
        let sdp = parser::read(text)?;
        let mut media = Vec::with_capacity(sdp.medias.len());
        for (index, line) in sdp.medias.iter().enumerate() {
            media.push(FarMedia::read(line, index, &sdp)?);
        }
        Ok(FarSession {
            name: sdp.session_name,
            media,
        })
    }

    /// Returns the index of the first active m-line of this kind.
    pub(super) fn first(&self, kind: Kind) -> Option<usize> {
        self.media
            .iter()
            .position(|media| media.kind() == Some(kind) && media.is_usable())
    }

    /// Returns the address of the first m-line that can be sent to, audio before video. Returns
    /// `None` if there is none.
    pub fn address(&self) -> Option<IpAddr> {
        let chosen = [Kind::Audio, Kind::Video].map(|kind| self.first(kind));
        let mut chosen = chosen.into_iter().flatten();
        chosen.find_map(|index| Some(self.media.get(index)?.rtp?.ip()))
    }

    /// Checks that there is media. `may_end` permits that all media is removed. A change of the
    /// call to something else, such as fax, is refused, so that the call continues unchanged.
    pub(super) fn check(&self, may_end: bool) -> Result<(), PlainError> {
        let is_data = |media: &&FarMedia| media.port != 0 && media.is_data();
        if self.media.iter().any(|media| is_data(&media)) {
            return Err(PlainError::Data);
        }
        let chosen = [Kind::Audio, Kind::Video].map(|kind| self.first(kind));
        let chosen: Vec<&FarMedia> = chosen
            .into_iter()
            .flatten()
            .filter_map(|index| self.media.get(index))
            .collect();
        if chosen.is_empty() {
            return match self.nothing() {
                PlainError::NoMedia if may_end && self.media.iter().all(|it| it.port == 0) => {
                    Ok(())
                }
                error => Err(error),
            };
        }
        match chosen.iter().all(|media| media.has_address) {
            true => Ok(()),
            false => Err(PlainError::NoAddress),
        }
    }

    fn nothing(&self) -> PlainError {
        let foreign = |media: &&FarMedia| media.port != 0 && media.kind().is_some();
        match self.media.iter().find(foreign) {
            Some(media) => PlainError::Protocol(media.proto.clone()),
            None => PlainError::NoMedia,
        }
    }
}

impl FarMedia {
    fn read(
        line: &sdp_types::Media,
        index: usize,
        sdp: &sdp_types::Session,
    ) -> Result<Self, PlainError> {
        let connection = line.connections.first().or(sdp.connection.as_ref());
        let address = connection
            .map(|connection| parser::address(&connection.connection_address))
            .transpose()?;
        let reachable = address.filter(|address| !parser::is_nowhere(*address) && line.port != 0);
        let rtp = reachable.map(|address| SocketAddr::new(address, line.port));
        let mut far = FarMedia {
            name: line.media.clone(),
            port: line.port,
            proto: line.proto.clone(),
            formats: line.fmt.clone(),
            direction: Direction::Inactive,
            rtp,
            rtcp: rtp.and_then(next_port),
            rtcp_mux: find(&line.attributes, "rtcp-mux").is_some(),
            has_address: address.is_some(),
            codecs: Vec::new(),
            extensions: Vec::new(),
            bandwidth: None,
            attributes: Vec::new(),
            crypto: Vec::new(),
        };
        let Some((mid, _)) = Mid::new("0").zip(far.kind()) else {
            return Ok(far);
        };
        let Ok(media) = media_lines::media(line, index, mid, &sdp.attributes) else {
            return Ok(far);
        };
        let stated = media.direction;
        far.direction = Direction::new(stated.sends(), stated.receives() && rtp.is_some());
        far.codecs = media.codecs;
        for codec in &mut far.codecs {
            // Opus always has 2 (RFC 7587 section 7), even if a far end omits it.
            if codec.codec() == Some(Codec::Opus) {
                codec.channels = CodecName::Opus.channels();
            }
        }
        far.extensions = media.extensions;
        far.bandwidth = media.bandwidth;
        far.attributes = media.attributes;
        far.attributes.retain(|attribute| passes(&attribute.name));
        far.crypto = values(&line.attributes, "crypto")
            .map(str::to_owned)
            .collect();
        if let (Some(rtp), Some(value)) = (rtp, values(&line.attributes, "rtcp").next()) {
            far.rtcp = rtcp(value, rtp.ip()).or(far.rtcp);
        }
        Ok(far)
    }

    /// Returns audio or video, or `None` for other media.
    pub fn kind(&self) -> Option<Kind> {
        match self.name.as_str() {
            "audio" => Some(Kind::Audio),
            "video" => Some(Kind::Video),
            _ => None,
        }
    }

    /// Returns whether it is active audio or video with a supported protocol.
    pub fn is_usable(&self) -> bool {
        let known = ["RTP/AVP", "RTP/SAVP", "RTP/AVPF", "RTP/SAVPF"];
        let is_known = known
            .iter()
            .any(|known| known.eq_ignore_ascii_case(&self.proto));
        self.port != 0 && self.kind().is_some() && is_known
    }

    /// Returns whether the protocol is for SRTP.
    pub fn is_secure(&self) -> bool {
        self.proto.to_ascii_uppercase().starts_with("RTP/SAVP")
    }

    /// Returns whether it has any `a=crypto`, usable or not.
    pub fn has_crypto(&self) -> bool {
        !self.crypto.is_empty()
    }

    /// Returns whether the far end accepts picture loss indications.
    pub fn takes_pli(&self) -> bool {
        let pli = |codec: &CodecSpec| codec.has_feedback("nack pli");
        self.codecs.iter().any(pli)
    }

    /// Returns whether it is for data channels.
    fn is_data(&self) -> bool {
        self.name == "application" && self.proto.to_ascii_uppercase().contains("SCTP")
    }

    /// Returns the first usable key for which `fits` is true, and why others cannot be used.
    pub(super) fn key(
        &self,
        fits: impl Fn(&CryptoLine) -> bool,
    ) -> (Option<CryptoLine>, Vec<CryptoRefusal>) {
        crypto::choose(self.crypto.iter().map(String::as_str), fits)
    }
}

/// Returns whether an attribute is passed to the other side.
pub(super) fn passes(name: &str) -> bool {
    PASSED_ON
        .iter()
        .any(|passed| passed.eq_ignore_ascii_case(name))
}

fn next_port(rtp: SocketAddr) -> Option<SocketAddr> {
    Some(SocketAddr::new(rtp.ip(), rtp.port().checked_add(1)?))
}

/// `PORT [IN FAMILY ADDRESS]` (RFC 3605)
fn rtcp(value: &str, rtp: IpAddr) -> Option<SocketAddr> {
    let mut fields = value.split_ascii_whitespace();
    let port = fields
        .next()?
        .parse()
        .ok()
        .filter(|port: &u16| *port != 0)?;
    let address = match fields.nth(2) {
        Some(text) => parser::address(text).ok()?,
        None => rtp,
    };
    (!parser::is_nowhere(address)).then_some(SocketAddr::new(address, port))
}
