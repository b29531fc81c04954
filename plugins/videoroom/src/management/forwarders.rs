//! The requests about RTP forwarders.

use std::net::IpAddr;

use portunus_core::media::ingest::IngestSrtp;
use portunus_core::media::{Encodings, Framing};
use portunus_core::sdp::Kind;
use portunus_core::{Fields, Later, Mid, Object, Pt, Reply, Ssrc};
use portunus_resources::{Asker, RoomContent};
use portunus_room::{ForwardRequest, Forwarder, Participant, PersonId, Room as Conference, Stream};
use serde::Deserialize;
use serde_json::Value;

use super::target::{Host, PATIENCE, address, port, required_port, rtcp, srtp};
use crate::client::Watchers;
use crate::messages::{Show, labelled};
use crate::prepared::Permit;
use crate::refusal::Refusal;
use crate::requests::fields::person_in;
use crate::shared::Shared;

/// A stream to forward, and its destination.
#[derive(Debug)]
struct Entry {
    which: Which,
    /// Its place among the hosts.
    host: usize,
    port: u16,
    rtcp_port: Option<u16>,
    pt: Option<Pt>,
    ssrc: Option<Ssrc>,
    encodings: Encodings,
    /// The request names no encoding, so the best one of a simulcast stream is forwarded.
    is_open: bool,
}

impl Entry {
    fn new(which: &Which, encodings: Encodings, Output { port, host }: Output) -> Self {
        Entry {
            which: which.clone(),
            host,
            port,
            rtcp_port: None,
            pt: None,
            ssrc: None,
            encodings,
            is_open: false,
        }
    }

    /// Returns the encodings of a stream to forward.
    fn encodings_of(&self, stream: &Stream) -> Encodings {
        match self.is_open && stream.format.simulcast {
            true => Encodings::Best,
            false => self.encodings,
        }
    }
}

/// A destination in a request.
#[derive(Debug, Clone, Copy)]
struct Output {
    port: u16,
    /// The index of its host in the request.
    host: usize,
}

/// The stream of the publisher.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Which {
    /// That of this m-line.
    Mid(String),
    /// The first of this kind.
    First(Kind),
}

impl Which {
    fn is(&self, stream: &Stream) -> bool {
        let is = match self {
            Which::Mid(mid) => stream.mid.as_str() == mid,
            Which::First(kind) => stream.kind == *kind,
        };
        is && !stream.disabled
    }
}

/// The members of `stop_rtp_forward` besides the publisher.
#[derive(Deserialize)]
struct StopRequest {
    stream_id: u64,
}

/// The request `rtp_forward`.
struct Request {
    publisher: PersonId,
    hosts: Vec<Host>,
    srtp: Option<IngestSrtp>,
    entries: Vec<Entry>,
    /// In the form without `streams`.
    is_old: bool,
}

impl Request {
    fn read(fields: Fields<'_>, publisher: PersonId) -> Result<Self, Refusal> {
        let mut request = Request {
            publisher,
            hosts: vec![Host::required(fields)?],
            srtp: srtp(fields)?,
            entries: Vec::new(),
            is_old: false,
        };
        let streams = fields.objects("streams")?;
        request.is_old = streams.is_none();
        for stream in streams.into_iter().flatten() {
            request.read_stream(stream)?;
        }
        if request.is_old {
            request.read_old(fields)?;
        }
        Ok(request)
    }

    fn read_stream(&mut self, fields: Fields<'_>) -> Result<(), Refusal> {
        let mid = fields.required_string("mid")?;
        let port = required_port(fields, "port")?;
        let host = match Host::read(fields)? {
            None => 0,
            Some(host) => {
                self.hosts.push(host);
                self.hosts.len().saturating_sub(1)
            }
        };
        // Checked here, and read again for each stream.
        srtp(fields)?;
        let which = Which::Mid(mid.to_owned());
        self.read_outputs(fields, &which, "", Output { port, host })
    }

    /// Reads the first stream of each kind.
    fn read_old(&mut self, fields: Fields<'_>) -> Result<(), Refusal> {
        for kind in [Kind::Audio, Kind::Video, Kind::Data] {
            let prefix = format!("{}_", kind.name());
            let which = Which::First(kind);
            if let Some(port) = port(fields, &format!("{prefix}port"))? {
                self.read_outputs(fields, &which, &prefix, Output { port, host: 0 })?;
            } else if kind == Kind::Video {
                let upper = substreams(fields, &which, &prefix, 0)?;
                self.entries.extend(upper);
            }
        }
        Ok(())
    }

    /// Reads the destinations of a stream: `port` for the stream or its lowest encoding, and own
    /// ports for the upper encodings.
    fn read_outputs(
        &mut self,
        fields: Fields<'_>,
        which: &Which,
        prefix: &str,
        output: Output,
    ) -> Result<(), Refusal> {
        let wants_best: Option<bool> = fields.member("simulcast")?;
        let is_single = matches!(which, Which::First(Kind::Audio | Kind::Data));
        let is_best = wants_best == Some(true) && !is_single;
        let mut entry = Entry {
            rtcp_port: self::port(fields, &format!("{prefix}rtcp_port"))?,
            pt: pt(fields, &format!("{prefix}pt"))?,
            ssrc: ssrc(fields, &format!("{prefix}ssrc"))?,
            ..Entry::new(which, Encodings::Best, output)
        };
        let mut upper = Vec::new();
        if !is_best {
            entry.encodings = Encodings::Only(0);
            upper = substreams(fields, which, prefix, output.host)?;
            entry.is_open = upper.is_empty() && wants_best.is_none();
        }
        self.entries.push(entry);
        self.entries.append(&mut upper);
        Ok(())
    }

    fn start(
        self,
        room: &Conference,
        asker: &Asker,
        watchers: &Watchers,
        addresses: &[IpAddr],
    ) -> Result<Value, Refusal> {
        let mut state = room.lock();
        let streams = state.forwardable(&self.publisher)?.streams();
        let known = |entry: &Entry| {
            let stream = streams.iter().find(|stream| entry.which.is(stream))?;
            Some((stream.mid, entry.encodings_of(stream)))
        };
        let known: Vec<Option<(Mid, Encodings)>> = self.entries.iter().map(known).collect();
        for stream in streams {
            let of_stream = known.iter().flatten().filter(|(mid, _)| *mid == stream.mid);
            stream.check_forwarders(of_stream.count())?;
        }
        // All ports are opened before the first forwarder starts, so that an error leaves none.
        let mut wanted = Vec::new();
        for (entry, known) in self.entries.iter().zip(known) {
            let Some((mid, encodings)) = known else {
                continue;
            };
            let forwarder = ForwardRequest {
                to: address(addresses, entry.host, entry.port)?,
                rtcp: rtcp(addresses, entry.host, entry.rtcp_port)?,
                pt: entry.pt,
                ssrc: entry.ssrc,
                encodings,
                srtp: self.srtp.clone(),
                messages: Framing::Bare,
            };
            wanted.push((entry, mid, forwarder));
        }
        let mut shown = Vec::new();
        let host = addresses.first().map(IpAddr::to_string);
        let mut old = Object::new().with_some("host", host);
        for (entry, mid, wanted) in wanted {
            let started = state.forward(&self.publisher, mid, wanted)?;
            old = with_started(old, entry, started);
            shown.push(forwarder(started));
            let id = started.id;
            if let Some(media) = state.publication(&self.publisher)
                && let Some(stream) = media.stream(mid)
            {
                let show = Show::new(watchers.ids, &state);
                let forwarding = || show.forwarding(&self.publisher, stream, id);
                match &asker.handle {
                    Some(client) => client.notify(forwarding),
                    None => watchers.events.notify(forwarding),
                }
            }
        }
        tracing::info!(room = state.name(), publisher = %self.publisher, "{} forwarders", shown.len());
        let show = Show::new(watchers.ids, &state);
        let reply = head("rtp_forward", show, &self.publisher);
        let reply = match self.is_old {
            true => reply.with("rtp_stream", old.with("warning", "deprecated_api")),
            false => reply.with("forwarders", shown),
        };
        Ok(reply.into())
    }
}

/// Reads where the upper encodings of a stream go, each to a port of its own.
fn substreams(
    fields: Fields<'_>,
    which: &Which,
    prefix: &str,
    host: usize,
) -> Result<Vec<Entry>, Refusal> {
    let mut substreams = Vec::new();
    for substream in [1, 2] {
        let name = |what: &str| format!("{prefix}{what}_{}", substream + 1);
        let (pt, ssrc) = (pt(fields, &name("pt"))?, ssrc(fields, &name("ssrc"))?);
        if let Some(port) = port(fields, &name("port"))? {
            substreams.push(Entry {
                pt,
                ssrc,
                ..Entry::new(which, Encodings::Only(substream), Output { port, host })
            });
        }
    }
    Ok(substreams)
}

/// Adds the members of the old reply about a forwarder.
fn with_started(reply: Object, entry: &Entry, forwarder: &Forwarder) -> Object {
    let Which::First(kind) = entry.which else {
        return reply;
    };
    let medium = kind.name();
    let suffix = match entry.encodings {
        Encodings::Best | Encodings::Only(0) | Encodings::Layers(0) => String::new(),
        Encodings::Only(n) | Encodings::Layers(n) => format!("_{}", n + 1),
    };
    reply
        .with(&format!("{medium}_stream_id{suffix}"), forwarder.id)
        .with(&format!("{medium}{suffix}"), forwarder.to.port())
        .with_some(&format!("{medium}_rtcp"), entry.rtcp_port)
}

impl Shared {
    pub(super) fn rtp_forward(
        &self,
        fields: Fields<'_>,
        asker: &Asker,
        permit: Option<&Permit>,
    ) -> Result<Reply, Refusal> {
        let room = self.permitted_room(fields, permit)?;
        self.check_forwarding(fields)?;
        let publisher = person_in(fields, self.rooms.ids(), "publisher_id")?;
        let request = Request::read(fields, publisher)?;
        room.lock().forwardable(&request.publisher)?;
        let hosts = request.hosts.clone();
        let (asker, watchers) = (asker.clone(), self.watchers());
        self.resolved(hosts, move |addresses| {
            request.start(&room, &asker, &watchers, addresses)
        })
    }

    pub(super) fn stop_rtp_forward(
        &self,
        fields: Fields<'_>,
        asker: &Asker,
        permit: Option<&Permit>,
    ) -> Result<Object, Refusal> {
        self.permitted(fields, permit, |door, room| {
            self.check_forwarding(fields)?;
            let publisher = person_in(fields, self.rooms.ids(), "publisher_id")?;
            let StopRequest { stream_id: number } = fields.read()?;
            room.end_forwarder(&publisher, number)?;
            let show = self.show(room);
            door.notify(asker.handle.as_ref(), || {
                show.event_of("stop_rtp_forward")
                    .with("publisher_id", show.id(&publisher))
                    .with("stream_id", number)
                    .into()
            });
            let reply = head("stop_rtp_forward", show, &publisher);
            Ok(reply.with("stream_id", number))
        })
    }

    pub(super) fn list_forwarders(
        &self,
        fields: Fields<'_>,
        permit: Option<&Permit>,
    ) -> Result<Object, Refusal> {
        self.permitted(fields, permit, |_, room| {
            let show = self.show(room);
            let forwarded = |person: &Participant| {
                let forwarders = room.publication(person.id())?.forwarders();
                let forwarders: Vec<_> = forwarders.map(forwarder).collect();
                let named = Object::new().with("publisher_id", show.id(person.id()));
                let named = labelled(named, &person.profile);
                (!forwarders.is_empty()).then(|| named.with("forwarders", forwarders).into())
            };
            let publishers: Vec<Value> = room.people().filter_map(forwarded).collect();
            Ok(show.head("forwarders").with("publishers", publishers))
        })
    }

    /// Calls `then` once the addresses of all hosts are known and permitted: at once, if no host is
    /// a name.
    pub(super) fn resolved(
        &self,
        hosts: Vec<Host>,
        then: impl FnOnce(&[IpAddr]) -> Result<Value, Refusal> + Send + 'static,
    ) -> Result<Reply, Refusal> {
        let networks = self.outgoing.clone();
        let then = move |addresses: &[IpAddr]| {
            let refused = addresses.iter().find(|to| !networks.allow(**to));
            match refused {
                Some(address) => Err(Refusal::Destination(*address)),
                None => then(addresses),
            }
        };
        let known: Option<Vec<IpAddr>> = hosts.iter().map(Host::numeric).collect();
        if let Some(known) = known {
            return then(&known).map(Reply::Success);
        }
        Ok(Reply::Later(Later::new(async move {
            // The handle waits for it, so one timeout covers all names.
            let resolved = tokio::time::timeout(PATIENCE, resolve(&hosts)).await;
            let resolved = resolved.unwrap_or_else(|_| Err(Host::unknown()));
            let reply = resolved.and_then(|addresses| then(&addresses));
            reply.unwrap_or_else(|refusal| refusal.to_json())
        })))
    }

    /// Checks that a request may forward, where that is locked.
    pub(super) fn check_forwarding(&self, fields: Fields<'_>) -> Result<(), Refusal> {
        match self.lock_rtp_forward {
            true => Ok(self.rooms.check_admin_key(fields)?),
            false => Ok(()),
        }
    }
}

/// Resolves the addresses of all hosts.
async fn resolve(hosts: &[Host]) -> Result<Vec<IpAddr>, Refusal> {
    let mut addresses = Vec::with_capacity(hosts.len());
    for host in hosts {
        addresses.push(host.resolve().await?);
    }
    Ok(addresses)
}

/// Returns a forwarder as clients see it.
pub(crate) fn forwarder(forwarder: &Forwarder) -> Value {
    let rtcp = forwarder.rtcp;
    Object::new()
        .with("stream_id", forwarder.id)
        .with("type", forwarder.kind.name())
        .with("host", forwarder.to.ip().to_string())
        .with("port", forwarder.to.port())
        .with_some("local_rtcp_port", rtcp.map(|rtcp| rtcp.local))
        .with_some("remote_rtcp_port", rtcp.map(|rtcp| rtcp.remote))
        .with_some("pt", forwarder.pt.map(|pt| pt.0))
        .with_some("ssrc", forwarder.ssrc.map(|ssrc| ssrc.0))
        .with_some("substream", forwarder.substream)
        .with_some("srtp", forwarder.is_srtp.then_some(true))
        .into()
}

fn head(what: &str, show: Show<'_>, publisher: &PersonId) -> Object {
    show.head(what).with("publisher_id", show.id(publisher))
}

/// Reads a payload type. 0 keeps the publisher's.
fn pt(fields: Fields<'_>, name: &str) -> Result<Option<Pt>, Refusal> {
    match fields.positive(name)? {
        None | Some(0) => Ok(None),
        Some(pt @ 1..=127) => Ok(Some(Pt(pt as u8))),
        Some(_) => Err(Refusal::value(name, "a payload type is at most 127")),
    }
}

/// Reads an SSRC. 0 keeps the publisher's.
fn ssrc(fields: Fields<'_>, name: &str) -> Result<Option<Ssrc>, Refusal> {
    let ssrc = fields.positive(name)?.map(u32::try_from).transpose();
    let ssrc = ssrc.map_err(|_| Refusal::value(name, "an SSRC has 32 bits"))?;
    Ok(ssrc.filter(|ssrc| *ssrc > 0).map(Ssrc))
}
