//! RTP forwarders: streams of publishers, sent to UDP ports. They end with what they forward.

mod target;

use std::net::{IpAddr, SocketAddr};

use portunus_core::media::ingest::IngestSrtp;
use portunus_core::media::{
    Encodings, ForwardOptions, ForwardRtcp, Framing, RouteId, RouteOptions,
};
use portunus_core::sdp::Kind;
use portunus_core::{Mid, Object, Pt, Ssrc};
use serde_json::Value;

pub(crate) use target::{Host, PATIENCE, port, required_port, srtp};

use crate::id::Id;
use crate::publication::{Stream, medium};
use crate::refusal::Refusal;
use crate::room::RoomState;
use crate::roster::Participant;

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

    /// The port that it sends to.
    pub(crate) const fn port(&self) -> u16 {
        self.to.port()
    }
}

impl RoomState {
    /// Forwards a stream of a publisher; gives the forwarder.
    pub(crate) fn forward(
        &mut self,
        id: &Id,
        mid: Mid,
        request: ForwardRequest,
    ) -> Result<&Forwarder, Refusal> {
        let stream_id = self.new_forwarder_id();
        let gone = || Refusal::NoSuchFeed(id.to_string());
        let media = self.media.clone();
        let person = self.people.get_mut(id).ok_or_else(gone)?;
        let source = person.origin.source(mid).ok_or_else(gone)?;
        let stream = person
            .media
            .as_mut()
            .and_then(|media| media.stream_mut(mid));
        let stream = stream.ok_or_else(gone)?;
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
            route: media.forward(source, gate(stream), options),
        };
        stream.forwarders.push(forwarder);
        stream.forwarders.last().ok_or_else(gone)
    }

    /// Lets the forwarders of a stream forward or not, as it is open or not.
    pub(crate) fn gate_forwarders(&self, id: &Id, index: usize) {
        let media = self.people.get(id).and_then(|person| person.media.as_ref());
        if let Some(stream) = media.and_then(|media| media.streams.get(index)) {
            for forwarder in &stream.forwarders {
                self.media.set_route(forwarder.route, gate(stream));
            }
        }
    }

    /// Ends the forwarders of a publisher that `ends` says; gives how many.
    pub(crate) fn end_forwarders(&mut self, id: &Id, ends: impl Fn(&Forwarder) -> bool) -> usize {
        let media = self.people.get_mut(id).and_then(|p| p.media.as_mut());
        let mut ended = 0;
        for stream in media.into_iter().flat_map(|media| &mut media.streams) {
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
    pub(crate) fn drop_forwarders(&self, forwarders: &[Forwarder]) {
        for forwarder in forwarders {
            self.media.remove_route(forwarder.route);
        }
    }

    /// What somebody publishes, to be forwarded.
    pub(crate) fn forwardable(&self, id: &Id) -> Result<&Participant, Refusal> {
        let person = self.named(id)?;
        let is_there = person.media.is_some() && !person.origin.is_dummy();
        is_there
            .then_some(person)
            .ok_or_else(|| Refusal::NoSuchFeed(id.to_string()))
    }

    /// An id that no forwarder has.
    fn new_forwarder_id(&self) -> u32 {
        let media = || self.people.values().filter_map(|p| p.media.as_ref());
        let streams = || media().flat_map(|media| &media.streams);
        loop {
            let id = rand::random();
            let mut forwarders = streams().flat_map(|stream| &stream.forwarders);
            if id != 0 && !forwarders.any(|forwarder| forwarder.id == id) {
                return id;
            }
        }
    }
}

impl Stream {
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
