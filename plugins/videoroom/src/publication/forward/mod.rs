//! RTP forwarders: streams of publishers, sent to UDP ports. They end with what they forward.

mod target;

use std::net::{IpAddr, SocketAddr};

use portunus_core::media::ingest::IngestSrtp;
use portunus_core::media::{
    Encodings, ForwardOptions, ForwardRtcp, Framing, RouteId, RouteOptions,
};
use portunus_core::sdp::Kind;
use portunus_core::{Mid, Object, Pt, Ssrc};
use portunus_resources::Id;
use serde_json::Value;

pub(crate) use target::{Host, PATIENCE, port, required_port, srtp};

use super::{Publication, Publications, Stream, medium};
use crate::refusal::Refusal;

/// Forwarders that a stream has at most: each multiplies what its publisher sends, to an address of anybody's choice.
pub(crate) const MAX_FORWARDERS: usize = 64;

/// A forwarder of a stream.
#[derive(Debug)]
pub(crate) struct Forwarder {
    /// Its id among all of the room.
    pub(crate) id: u32,
    /// The remotization that it is of, if it is of one.
    pub(crate) remote_id: Option<String>,
    route: RouteId,
    kind: Kind,
    to: SocketAddr,
    pt: Option<Pt>,
    ssrc: Option<Ssrc>,
    /// The simulcast encoding, where it is not the lowest.
    substream: Option<u8>,
    is_srtp: bool,
    /// The local and the remote port.
    rtcp: Option<(u16, u16)>,
}

/// A forwarder that is asked for.
#[derive(Debug)]
pub(crate) struct ForwardRequest {
    pub(crate) to: SocketAddr,
    pub(crate) rtcp: Option<ForwardRtcp>,
    pub(crate) pt: Option<Pt>,
    pub(crate) ssrc: Option<Ssrc>,
    /// Of a simulcast stream. The best one has the SSRC that was asked for, or else the forwarder's id.
    pub(crate) encodings: Encodings,
    pub(crate) srtp: Option<IngestSrtp>,
    pub(crate) messages: Framing,
    pub(crate) remote_id: Option<String>,
}

impl Forwarder {
    /// As clients are told of it.
    pub(crate) fn to_json(&self) -> Value {
        Object::new()
            .with("stream_id", self.id)
            .with("type", medium(self.kind))
            .with("host", self.to.ip().to_string())
            .with("port", self.to.port())
            .with_some("local_rtcp_port", self.rtcp.map(|(local, _)| local))
            .with_some("remote_rtcp_port", self.rtcp.map(|(_, remote)| remote))
            .with_some("pt", self.pt.map(|pt| pt.0))
            .with_some("ssrc", self.ssrc.map(|ssrc| ssrc.0))
            .with_some("substream", self.substream)
            .with_some("srtp", self.is_srtp.then_some(true))
            .into()
    }

    /// The simulcast encoding, where it is not the lowest.
    pub(crate) const fn substream(&self) -> Option<u8> {
        self.substream
    }

    /// The port that it sends to.
    pub(crate) const fn port(&self) -> u16 {
        self.to.port()
    }
}

impl Publications {
    /// Forwards a stream of a publisher; gives the forwarder.
    pub(crate) fn forward(
        &mut self,
        id: &Id,
        mid: Mid,
        request: ForwardRequest,
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
            Encodings::Only(n) => (Some(n).filter(|n| *n > 0), None),
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
            remote_id: request.remote_id,
            kind: stream.kind,
            to: options.to,
            pt: options.pt,
            ssrc: options.ssrc,
            substream,
            is_srtp: options.srtp.is_some(),
            rtcp: rtcp.map(|rtcp| (rtcp.local_port(), rtcp.remote().port())),
            route: self.media.forward(source, gate(stream), options),
        };
        stream.forwarders.push(forwarder);
        stream.forwarders.last().ok_or_else(gone)
    }

    /// Lets the forwarders of a stream forward or not, as it is open or not.
    pub(crate) fn gate_forwarders(&self, id: &Id, index: usize) {
        let publication = self.by_feed.get(id);
        if let Some(stream) = publication.and_then(|known| known.streams.get(index)) {
            for forwarder in &stream.forwarders {
                self.media.set_route(forwarder.route, gate(stream));
            }
        }
    }

    /// Ends the forwarders of a publisher that `ends` says; gives how many.
    pub(crate) fn end_forwarders(&mut self, id: &Id, ends: impl Fn(&Forwarder) -> bool) -> usize {
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

    /// Ends forwarders whose stream is gone already.
    pub(super) fn drop_forwarders(&self, forwarders: &[Forwarder]) {
        for forwarder in forwarders {
            self.media.remove_route(forwarder.route);
        }
    }

    /// What somebody publishes, to be forwarded.
    pub(crate) fn forwardable(&self, id: &Id) -> Result<&Publication, Refusal> {
        let publication = self.by_feed.get(id).filter(|known| !known.is_dummy());
        publication.ok_or_else(|| Refusal::NoSuchFeed(id.to_string()))
    }

    /// An id that no forwarder has.
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
    /// The forwarders that requests have made, of all streams.
    pub(crate) fn forwarders(&self) -> impl Iterator<Item = &Forwarder> {
        let forwarders = self.streams.iter().flat_map(|stream| &stream.forwarders);
        forwarders.filter(|forwarder| forwarder.remote_id.is_none())
    }
}

impl Stream {
    /// The forwarder of it that has this id.
    pub(crate) fn forwarder(&self, id: u32) -> Option<&Forwarder> {
        self.forwarders.iter().find(|forwarder| forwarder.id == id)
    }

    /// Checks that there is room for so many more.
    pub(crate) fn check_forwarders(&self, more: usize) -> Result<(), Refusal> {
        match self.forwarders.len() + more > MAX_FORWARDERS {
            true => Err(Refusal::value(
                "streams",
                "a stream has 64 forwarders at most",
            )),
            false => Ok(()),
        }
    }
}

/// Where to: one of the addresses that hosts came to.
pub(crate) fn address(addresses: &[IpAddr], host: usize, port: u16) -> Result<SocketAddr, Refusal> {
    let address = addresses.get(host).copied();
    let address = address.ok_or_else(|| Refusal::value("host", "cannot be resolved"))?;
    Ok(SocketAddr::new(address, port))
}

fn gate(stream: &Stream) -> RouteOptions {
    RouteOptions {
        enabled: stream.is_open(),
        ..RouteOptions::default()
    }
}
