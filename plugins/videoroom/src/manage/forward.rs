//! The requests about RTP forwarders.

use std::net::IpAddr;
use std::sync::Arc;

use portunus_core::media::ingest::IngestSrtp;
use portunus_core::media::{Encodings, ForwardRtcp, Framing};
use portunus_core::sdp::Kind;
use portunus_core::{FieldError, Fields, Handle, Later, Mid, Networks, Object, Pt, Reply, Ssrc};
use portunus_resources::Id;
use serde_json::Value;

use crate::Shared;
use crate::publication::{
    ForwardRequest, Forwarder, Host, PATIENCE, Stream, address, medium, port, required_port, srtp,
};
use crate::refusal::Refusal;
use crate::room::{Room, RoomState};

/// What is to be forwarded to where.
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
    /// Nothing is said of encodings: of a simulcast stream the best one is forwarded.
    is_open: bool,
}

impl Entry {
    /// Which encodings of a stream are forwarded.
    fn encodings_of(&self, stream: &Stream) -> Encodings {
        match self.is_open && stream.simulcast {
            true => Encodings::Best,
            false => self.encodings,
        }
    }
}

/// Which stream of the publisher.
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

/// The request `rtp_forward`.
struct Request {
    publisher: Id,
    hosts: Vec<Host>,
    srtp: Option<IngestSrtp>,
    entries: Vec<Entry>,
    /// In the form without `streams`.
    is_old: bool,
}

impl Request {
    fn read(fields: Fields<'_>, publisher: Id) -> Result<Self, Refusal> {
        let mut request = Request {
            publisher,
            hosts: vec![Host::required(fields)?],
            srtp: srtp(fields)?,
            entries: Vec::new(),
            is_old: false,
        };
        match fields.objects("streams")? {
            Some(streams) => {
                for stream in streams {
                    request.read_stream(stream)?;
                }
            }
            None => {
                request.is_old = true;
                request.read_old(fields)?;
            }
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
        // Checked, and the same for all streams.
        srtp(fields)?;
        let which = Which::Mid(mid.to_owned());
        self.read_outputs(fields, &which, "", port, host)
    }

    /// The first stream of each kind.
    fn read_old(&mut self, fields: Fields<'_>) -> Result<(), Refusal> {
        for kind in [Kind::Audio, Kind::Video, Kind::Data] {
            let prefix = format!("{}_", medium(kind));
            let which = Which::First(kind);
            if let Some(port) = port(fields, &format!("{prefix}port"))? {
                self.read_outputs(fields, &which, &prefix, port, 0)?;
            } else if kind == Kind::Video {
                self.read_substreams(fields, &which, &prefix, 0)?;
            }
        }
        Ok(())
    }

    fn read_outputs(
        &mut self,
        fields: Fields<'_>,
        which: &Which,
        prefix: &str,
        port: u16,
        host: usize,
    ) -> Result<(), Refusal> {
        let wants_best = fields.boolean("simulcast")?;
        let can_be_best = *which != Which::First(Kind::Audio) && *which != Which::First(Kind::Data);
        let encodings = match wants_best {
            Some(true) if can_be_best => Encodings::Best,
            _ => Encodings::Only(0),
        };
        self.entries.push(Entry {
            which: which.clone(),
            host,
            port,
            rtcp_port: self::port(fields, &format!("{prefix}rtcp_port"))?,
            pt: pt(fields, &format!("{prefix}pt"))?,
            ssrc: ssrc(fields, &format!("{prefix}ssrc"))?,
            encodings,
            is_open: false,
        });
        if encodings == Encodings::Best {
            return Ok(());
        }
        let count = self.entries.len();
        self.read_substreams(fields, which, prefix, host)?;
        let is_alone = self.entries.len() == count;
        if let Some(entry) = self.entries.get_mut(count.saturating_sub(1)) {
            entry.is_open = is_alone && wants_best.is_none();
        }
        Ok(())
    }

    /// The upper encodings, each with a port of its own.
    fn read_substreams(
        &mut self,
        fields: Fields<'_>,
        which: &Which,
        prefix: &str,
        host: usize,
    ) -> Result<(), Refusal> {
        for substream in [1, 2] {
            let name = |what: &str| format!("{prefix}{what}_{}", substream + 1);
            let (pt, ssrc) = (pt(fields, &name("pt"))?, ssrc(fields, &name("ssrc"))?);
            if let Some(port) = port(fields, &name("port"))? {
                self.entries.push(Entry {
                    which: which.clone(),
                    host,
                    port,
                    rtcp_port: None,
                    pt,
                    ssrc,
                    encodings: Encodings::Only(substream),
                    is_open: false,
                });
            }
        }
        Ok(())
    }

    fn start(
        self,
        room: &Room,
        client: Option<&Handle>,
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
        // All or none: ports are opened before anything is forwarded.
        let mut wanted = Vec::new();
        for (entry, known) in self.entries.iter().zip(known) {
            let Some((mid, encodings)) = known else {
                continue;
            };
            let rtcp = entry.rtcp_port.map(|port| {
                let to = address(addresses, entry.host, port)?;
                ForwardRtcp::bind(to).map_err(|error| Refusal::Socket(error.to_string()))
            });
            let forwarder = ForwardRequest {
                to: address(addresses, entry.host, entry.port)?,
                rtcp: rtcp.transpose()?,
                pt: entry.pt,
                ssrc: entry.ssrc,
                encodings,
                srtp: self.srtp.clone(),
                messages: Framing::Bare,
                remote_id: None,
            };
            wanted.push((entry, mid, forwarder));
        }
        let mut shown = Vec::new();
        let host = addresses.first().map(IpAddr::to_string);
        let mut old = Object::new().with_some("host", host);
        for (entry, mid, wanted) in wanted {
            let forwarder = state.forward(&self.publisher, mid, wanted)?;
            old = started(old, entry, forwarder);
            shown.push(forwarder.to_json());
            let forwarder = forwarder.id;
            state.notify_forwarder(client, &self.publisher, mid, forwarder);
        }
        tracing::info!(room = %room.id, publisher = %self.publisher, "{} forwarders", shown.len());
        let reply = told("rtp_forward", &state, &self.publisher);
        let reply = match self.is_old {
            true => reply.with("rtp_stream", old.with("warning", "deprecated_api")),
            false => reply.with("forwarders", shown),
        };
        Ok(reply.into())
    }
}

/// What the reply to the old form says of a forwarder.
fn started(reply: Object, entry: &Entry, forwarder: &Forwarder) -> Object {
    let Which::First(kind) = entry.which else {
        return reply;
    };
    let medium = medium(kind);
    let suffix = match entry.encodings {
        Encodings::Best | Encodings::Only(0) => String::new(),
        Encodings::Only(n) => format!("_{}", n + 1),
    };
    reply
        .with(&format!("{medium}_stream_id{suffix}"), forwarder.id)
        .with(&format!("{medium}{suffix}"), forwarder.port())
        .with_some(&format!("{medium}_rtcp"), entry.rtcp_port)
}

impl Shared {
    pub(super) fn rtp_forward(
        &self,
        fields: Fields<'_>,
        client: Option<&Handle>,
    ) -> Result<Reply, Refusal> {
        let room = self.managed_room(fields)?;
        self.check_forwarding(fields)?;
        let publisher = self.rooms.ids().required(fields, "publisher_id")?;
        let request = Request::read(fields, publisher)?;
        room.lock().forwardable(&request.publisher)?;
        let hosts = request.hosts.clone();
        let client = client.cloned();
        self.resolved(hosts, move |addresses| {
            request.start(&room, client.as_ref(), addresses)
        })
    }

    pub(super) fn stop_rtp_forward(
        &self,
        fields: Fields<'_>,
        client: Option<&Handle>,
    ) -> Result<Value, Refusal> {
        self.managed(fields, |room| {
            self.check_forwarding(fields)?;
            let publisher = self.rooms.ids().required(fields, "publisher_id")?;
            let number = fields.positive("stream_id")?;
            let number = number.ok_or_else(|| FieldError::Missing("stream_id".to_owned()))?;
            room.end_forwarder(&publisher, number)?;
            room.notify(client, || {
                let stopped = room.notice("stop_rtp_forward");
                stopped
                    .with("publisher_id", publisher.to_json())
                    .with("stream_id", number)
                    .into()
            });
            let reply = told("stop_rtp_forward", room, &publisher);
            Ok(reply.with("stream_id", number).into())
        })
    }

    pub(super) fn list_forwarders(&self, fields: Fields<'_>) -> Result<Value, Refusal> {
        self.managed(fields, |room| {
            let reply = Object::new()
                .with("videoroom", "forwarders")
                .with("room", room.id.to_json())
                .with("publishers", room.forwarders());
            Ok(reply.into())
        })
    }

    /// Goes on once the addresses of all hosts are known and media may be sent there: at once, if there are no names
    /// among them.
    pub(super) fn resolved(
        &self,
        hosts: Vec<Host>,
        then: impl FnOnce(&[IpAddr]) -> Result<Value, Refusal> + Send + 'static,
    ) -> Result<Reply, Refusal> {
        let known: Option<Vec<IpAddr>> = hosts.iter().map(Host::numeric).collect();
        if let Some(known) = known {
            check(&known, &self.outgoing)?;
            return then(&known).map(Reply::Success);
        }
        let networks = self.outgoing.clone();
        Ok(Reply::Later(Later::new(async move {
            // The handle does nothing else meanwhile, however many names there are.
            let resolved = tokio::time::timeout(PATIENCE, resolve(&hosts)).await;
            let resolved = resolved.unwrap_or_else(|_| Err(Host::unknown()));
            let reply = resolved.and_then(|addresses| {
                check(&addresses, &networks)?;
                then(&addresses)
            });
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

    /// The room that a request names and may manage.
    pub(super) fn managed_room(&self, fields: Fields<'_>) -> Result<Arc<Room>, Refusal> {
        let room = self.rooms.named(fields)?;
        room.lock().check_secret(fields)?;
        Ok(room)
    }
}

/// The addresses of all hosts.
async fn resolve(hosts: &[Host]) -> Result<Vec<IpAddr>, Refusal> {
    let mut addresses = Vec::with_capacity(hosts.len());
    for host in hosts {
        addresses.push(host.resolve().await?);
    }
    Ok(addresses)
}

/// Checks that media may be sent to all of these.
fn check(addresses: &[IpAddr], networks: &Networks) -> Result<(), Refusal> {
    match addresses.iter().find(|to| !networks.allow(**to)) {
        None => Ok(()),
        Some(address) => Err(Refusal::Destination(*address)),
    }
}

fn told(what: &str, room: &RoomState, publisher: &Id) -> Object {
    Object::new()
        .with("videoroom", what)
        .with("room", room.id.to_json())
        .with("publisher_id", publisher.to_json())
}

/// A payload type; 0 keeps the publisher's.
fn pt(fields: Fields<'_>, name: &str) -> Result<Option<Pt>, Refusal> {
    match fields.positive(name)? {
        None | Some(0) => Ok(None),
        Some(pt @ 1..=127) => Ok(Some(Pt(pt as u8))),
        Some(_) => Err(Refusal::value(name, "a payload type is at most 127")),
    }
}

/// An SSRC; 0 keeps the publisher's.
fn ssrc(fields: Fields<'_>, name: &str) -> Result<Option<Ssrc>, Refusal> {
    let ssrc = fields.positive(name)?.map(u32::try_from).transpose();
    let ssrc = ssrc.map_err(|_| Refusal::value(name, "an SSRC has 32 bits"))?;
    Ok(ssrc.filter(|ssrc| *ssrc > 0).map(Ssrc))
}
