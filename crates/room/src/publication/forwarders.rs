//! RTP forwarders: streams of publishers, sent to UDP ports. They end with their streams.

use std::net::SocketAddr;

use portunus_media::ingest::IngestSrtp;
use portunus_media::{Encodings, ForwardOptions, ForwardRtcp, Framing, RouteId, RouteOptions};
use portunus_rtp::{Mid, Pt, Ssrc};
use portunus_sdp::Kind;

use super::{Publication, Publications, Stream};
use crate::{PersonId, Refusal};

/// The limit of forwarders of a stream. Each multiplies its traffic, to an arbitrary address.
pub(crate) const MAX_FORWARDERS: usize = 64;

/// A forwarder of a stream.
#[derive(Debug)]
pub struct Forwarder {
    /// Its id in the room; never 0.
    pub id: u32,
    /// The id of the remote publication that it belongs to. `None` if a request has made it.
    pub(crate) remote_id: Option<String>,
    pub(super) route: RouteId,
    /// The kind of media.
    pub kind: Kind,
    /// The destination.
    pub to: SocketAddr,
    /// The payload type. `None` means the publisher's.
    pub pt: Option<Pt>,
    /// The SSRC. `None` means the publisher's.
    pub ssrc: Option<Ssrc>,
    /// The simulcast encoding. `None` means the lowest or the best one.
    pub substream: Option<u8>,
    /// Whether it sends SRTP.
    pub is_srtp: bool,
    /// The ports of RTCP.
    pub rtcp: Option<RtcpPorts>,
}

/// The ports of a forwarder's RTCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RtcpPorts {
    /// The port of this server.
    pub local: u16,
    /// The port of the receiver.
    pub remote: u16,
}

/// A request for a forwarder.
#[derive(Debug)]
pub struct ForwardRequest {
    /// The destination.
    pub to: SocketAddr,
    /// The socket for RTCP.
    pub rtcp: Option<ForwardRtcp>,
    /// The payload type. `None` keeps the publisher's.
    pub pt: Option<Pt>,
    /// The SSRC. `None` keeps the publisher's, or for the best encoding means the forwarder's id.
    pub ssrc: Option<Ssrc>,
    /// The encodings of a simulcast stream.
    pub encodings: Encodings,
    /// The key of SRTP. `None` means RTP.
    pub srtp: Option<IngestSrtp>,
    /// The framing of data channel messages.
    pub messages: Framing,
}

impl Publications {
    /// Forwards a stream of a publisher. Returns the forwarder.
    pub(crate) fn forward(
        &mut self,
        id: &PersonId,
        mid: Mid,
        request: ForwardRequest,
        remote_id: Option<String>,
    ) -> Result<&Forwarder, Refusal> {
        let stream_id = self.new_forwarder_id();
        let gone = || Refusal::NoSuchFeed(id.to_string());
        let publication = self.by_feed.get_mut(id).ok_or_else(gone)?;
        let source = publication.origin.source(mid).ok_or_else(gone)?;
        let stream = publication.stream_mut(mid).ok_or_else(gone)?;
        stream.check_forwarders(1)?;
        let is_data = stream.kind == Kind::Data;
        let encodings = match stream.kind {
            Kind::Video => request.encodings,
            Kind::Audio | Kind::Data => Encodings::Only(0),
        };
        let (substream, own) = match encodings {
            Encodings::Best => (None, Some(Ssrc(stream_id))),
            Encodings::Only(n) | Encodings::Layers(n) => (Some(n).filter(|n| *n > 0), None),
        };
        let options = ForwardOptions {
            encodings,
            pt: request.pt.filter(|_| !is_data),
            ssrc: request.ssrc.or(own).filter(|_| !is_data),
            srtp: request.srtp.filter(|_| !is_data),
            messages: request.messages,
            rtcp: request.rtcp.filter(|_| !is_data),
            ..ForwardOptions::new(request.to)
        };
        let rtcp = options.rtcp.as_ref();
        let forwarder = Forwarder {
            id: stream_id,
            remote_id,
            kind: stream.kind,
            to: options.to,
            pt: options.pt,
            ssrc: options.ssrc,
            substream,
            is_srtp: options.srtp.is_some(),
            rtcp: rtcp.map(|rtcp| RtcpPorts {
                local: rtcp.local_port(),
                remote: rtcp.remote().port(),
            }),
            route: self.media.forward(source, gate(stream), options),
        };
        stream.forwarders.push(forwarder);
        stream.forwarders.last().ok_or_else(gone)
    }

    /// Opens or closes the gates of a stream's forwarders, as the stream is open or not.
    pub(crate) fn gate_forwarders(&self, id: &PersonId, index: usize) {
        let publication = self.by_feed.get(id);
        if let Some(stream) = publication.and_then(|known| known.streams.get(index)) {
            for forwarder in &stream.forwarders {
                self.media.set_route(forwarder.route, gate(stream));
            }
        }
    }

    /// Ends the forwarders of a publisher for which `ends` is true. Returns their number.
    pub(crate) fn end_forwarders(
        &mut self,
        id: &PersonId,
        ends: impl Fn(&Forwarder) -> bool,
    ) -> usize {
        let publication = self.by_feed.get_mut(id);
        let mut ended = 0;
        for stream in publication.into_iter().flat_map(|known| &mut known.streams) {
            stream.forwarders.retain(|forwarder| {
                let ends = ends(forwarder);
                if ends {
                    self.media.remove_route(forwarder.route);
                    ended += 1;
                }
                !ends
            });
        }
        ended
    }

    /// Returns a publication that can be forwarded: no dummy's.
    pub(crate) fn forwardable(&self, id: &PersonId) -> Result<&Publication, Refusal> {
        let publication = self.by_feed.get(id).filter(|known| !known.is_dummy());
        publication.ok_or_else(|| Refusal::NoSuchFeed(id.to_string()))
    }

    /// Returns an id that no forwarder has.
    fn new_forwarder_id(&self) -> u32 {
        let streams = || self.by_feed.values().flat_map(|known| &known.streams);
        loop {
            let id = rand::random();
            let mut forwarders = streams().flat_map(|stream| &stream.forwarders);
            if id != 0 && !forwarders.any(|forwarder| forwarder.id == id) {
                return id;
            }
        }
    }
}

impl Publication {
    /// Returns the forwarders that requests have made, of all streams.
    pub fn forwarders(&self) -> impl Iterator<Item = &Forwarder> {
        let forwarders = self.streams.iter().flat_map(|stream| &stream.forwarders);
        forwarders.filter(|forwarder| forwarder.remote_id.is_none())
    }
}

impl Stream {
    /// Returns its forwarder with this id.
    pub fn forwarder(&self, id: u32) -> Option<&Forwarder> {
        self.forwarders.iter().find(|forwarder| forwarder.id == id)
    }

    /// Checks that `more` forwarders fit.
    pub fn check_forwarders(&self, more: usize) -> Result<(), Refusal> {
        match self.forwarders.len().saturating_add(more) > MAX_FORWARDERS {
            true => Err(Refusal::TooManyForwarders),
            false => Ok(()),
        }
    }
}

fn gate(stream: &Stream) -> RouteOptions {
    RouteOptions {
        enabled: stream.is_open(),
        ..RouteOptions::default()
    }
}
