//! RTP forwarders of a call, which copy the media of the client or of the far end to UDP ports.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use portunus_core::media::ingest::{IngestSrtp, SrtpSuite};
use portunus_core::media::{Encodings, ForwardOptions, RouteId, RouteOptions};
use portunus_core::sdp::Kind;
use portunus_core::{FieldError, Fields, Networks, Object, Pt, Ssrc};
use serde::Deserialize;
use serde_json::Value;

use super::CallMedia;
use super::recordings::{Stream, Who};
use crate::CallError;

/// The maximum number of forwarders of a call, since each multiplies its traffic, to any address.
pub const MAX_FORWARDERS: usize = 64;

/// The time limit of resolving all hosts of a request.
const PATIENCE: Duration = Duration::from_secs(5);

/// The error in a request to forward.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ForwardError {
    /// A member is missing or has the wrong type.
    #[error(transparent)]
    Field(#[from] FieldError),
    /// There is no such stream.
    #[error("Invalid element (type)")]
    Type,
    /// A member has an invalid value.
    #[error("Invalid value ({0}: {1})")]
    Value(&'static str, &'static str),
    /// Media may not be sent there.
    #[error("media may not be sent to {0}: it is not in server.outgoing_networks")]
    Network(IpAddr),
}

/// A request to forward streams of a call.
#[derive(Debug, Clone)]
pub struct ForwardRequest {
    entries: Vec<Entry>,
}

/// An entry of `streams`.
#[derive(Deserialize)]
struct Members<'a> {
    #[serde(rename = "type")]
    name: &'a str,
    host: String,
    host_family: Option<&'a str>,
    port: u64,
    /// 0 keeps that of the stream.
    #[serde(default)]
    pt: u64,
    /// 0 selects a random one.
    #[serde(default)]
    ssrc: u64,
    srtp_suite: Option<u64>,
    srtp_crypto: Option<&'a str>,
}

/// A request with the addresses of its hosts.
#[derive(Debug, Clone)]
pub struct ResolvedForward {
    entries: Vec<(Entry, SocketAddr)>,
}

#[derive(Debug, Clone)]
struct Entry {
    stream: Stream,
    host: Host,
    port: u16,
    pt: Option<Pt>,
    ssrc: Option<Ssrc>,
    srtp: Option<IngestSrtp>,
}

#[derive(Debug, Clone)]
struct Host {
    name: String,
    wants_v6: bool,
}

impl ForwardRequest {
    /// Reads `streams`.
    pub fn read(fields: Fields<'_>) -> Result<Self, ForwardError> {
        let streams: Vec<Members<'_>> = fields.required("streams")?;
        if streams.is_empty() {
            return Err(FieldError::Missing("streams".to_owned()).into());
        }
        if streams.len() > MAX_FORWARDERS {
            return Err(ForwardError::Value("streams", "64 are the most"));
        }
        let entries = streams.into_iter().map(Entry::new);
        Ok(ForwardRequest {
            entries: entries.collect::<Result<_, _>>()?,
        })
    }

    /// Resolves the names of hosts, and checks that media may be sent to all.
    pub async fn resolve(self, networks: &Networks) -> Result<ResolvedForward, ForwardError> {
        let resolving = async {
            let mut entries = Vec::with_capacity(self.entries.len());
            for entry in self.entries {
                let address = entry.host.resolve().await?;
                if !networks.allow(address) {
                    return Err(ForwardError::Network(address));
                }
                let to = SocketAddr::new(address, entry.port);
                entries.push((entry, to));
            }
            Ok(ResolvedForward { entries })
        };
        let resolved = tokio::time::timeout(PATIENCE, resolving).await;
        resolved.unwrap_or(Err(Host::UNKNOWN))
    }
}

impl Entry {
    fn new(members: Members<'_>) -> Result<Self, ForwardError> {
        let srtp = srtp(members.srtp_suite, members.srtp_crypto)?;
        let stream = match members.name {
            "audio" => Stream::new(Who::Client, Kind::Audio),
            "video" => Stream::new(Who::Client, Kind::Video),
            "peer_audio" => Stream::new(Who::Far, Kind::Audio),
            "peer_video" => Stream::new(Who::Far, Kind::Video),
            _ => return Err(ForwardError::Type),
        };
        let wants_v6 = match members.host_family {
            None | Some("ipv4") => false,
            Some("ipv6") => true,
            Some(_) => return Err(ForwardError::Value("host_family", "ipv4 or ipv6")),
        };
        let port = u16::try_from(members.port).ok().filter(|port| *port > 0);
        let port = port.ok_or(ForwardError::Value("port", "1 to 65535"))?;
        let pt = u8::try_from(members.pt).ok().filter(|pt| *pt < 128);
        let pt = pt.ok_or(ForwardError::Value("pt", "at most 127"))?;
        let ssrc = u32::try_from(members.ssrc);
        let ssrc = ssrc.map_err(|_| ForwardError::Value("ssrc", "at most 32 bits"))?;
        Ok(Entry {
            stream,
            host: Host {
                name: members.host,
                wants_v6,
            },
            port,
            pt: Some(Pt(pt)).filter(|pt| pt.0 > 0),
            ssrc: Some(Ssrc(ssrc)).filter(|ssrc| ssrc.0 > 0),
            srtp,
        })
    }
}

impl Host {
    const UNKNOWN: ForwardError = ForwardError::Value("host", "cannot be resolved");

    /// Resolves to IPv4, or to IPv6 on request. An address is used as it is.
    async fn resolve(&self) -> Result<IpAddr, ForwardError> {
        if let Ok(address) = self.name.parse() {
            return Ok(address);
        }
        let found = tokio::net::lookup_host((self.name.as_str(), 0)).await;
        let mut found = found.map_err(|_| Self::UNKNOWN)?.map(|found| found.ip());
        let found = found.find(|address| address.is_ipv6() == self.wants_v6);
        found.ok_or(Self::UNKNOWN)
    }
}

/// Returns the key of SRTP, or `None` unless both members are there.
fn srtp(suite: Option<u64>, crypto: Option<&str>) -> Result<Option<IngestSrtp>, ForwardError> {
    let suite = match suite {
        None => return Ok(None),
        Some(32) => SrtpSuite::AesCm128HmacSha1_32,
        Some(80) => SrtpSuite::AesCm128HmacSha1_80,
        Some(_) => return Err(ForwardError::Value("srtp_suite", "32 or 80")),
    };
    let Some(crypto) = crypto else {
        return Ok(None);
    };
    let bytes = BASE64_STANDARD.decode(crypto.trim()).ok();
    let key_and_salt = bytes.and_then(|bytes| <[u8; 30]>::try_from(bytes).ok());
    let wrong = ForwardError::Value("srtp_crypto", "expected 30 bytes in base64");
    Ok(Some(IngestSrtp {
        suite,
        key_and_salt: key_and_salt.ok_or(wrong)?,
    }))
}

/// The forwarders of a call.
#[derive(Debug, Default)]
pub(crate) struct Forwarders {
    list: Vec<Forwarder>,
}

#[derive(Debug)]
struct Forwarder {
    id: u32,
    entry: Entry,
    to: SocketAddr,
    /// Its source and route, once there are some.
    from: Option<(portunus_core::media::SourceRef, RouteId)>,
}

impl Forwarder {
    fn options(&self) -> ForwardOptions {
        ForwardOptions {
            encodings: Encodings::Only(0),
            pt: self.entry.pt,
            ssrc: self.entry.ssrc,
            srtp: self.entry.srtp.clone(),
            ..ForwardOptions::new(self.to)
        }
    }

    fn to_json(&self) -> Value {
        let Stream { who, kind } = self.entry.stream;
        let medium = match kind {
            Kind::Video => "video",
            Kind::Audio | Kind::Data => "audio",
        };
        let name = match who {
            Who::Client => medium.to_owned(),
            Who::Far => format!("peer_{medium}"),
        };
        Object::new()
            .with("stream_id", self.id)
            .with("type", name)
            .with("host", self.to.ip().to_string())
            .with("port", self.to.port())
            .with("media", medium)
            .with_some("pt", self.entry.pt.map(|pt| pt.0))
            .with_some("ssrc", self.entry.ssrc.map(|ssrc| ssrc.0))
            .with_some("srtp", self.entry.srtp.is_some().then_some(true))
            .into()
    }
}

impl CallMedia {
    /// Forwards streams, at once or when they begin. Returns the forwarders for clients.
    pub fn forward(&mut self, request: ResolvedForward) -> Result<Vec<Value>, CallError> {
        let room = MAX_FORWARDERS.saturating_sub(self.forwarders.list.len());
        if request.entries.len() > room {
            return Err(CallError::Forwarders);
        }
        let mut shown = Vec::with_capacity(request.entries.len());
        for (entry, to) in request.entries {
            let forwarder = Forwarder {
                id: self.new_forwarder_id(),
                entry,
                to,
                from: None,
            };
            shown.push(forwarder.to_json());
            self.forwarders.list.push(forwarder);
        }
        self.feed_forwarders();
        Ok(shown)
    }

    /// Ends a forwarder. Returns whether it was there.
    pub fn stop_forward(&mut self, id: u64) -> bool {
        let before = self.forwarders.list.len();
        let media = &self.settings.media;
        self.forwarders.list.retain(|forwarder| {
            let ends = u64::from(forwarder.id) == id;
            if let Some((_, route)) = forwarder.from.filter(|_| ends) {
                media.remove_route(route);
            }
            !ends
        });
        self.forwarders.list.len() < before
    }

    /// Returns the forwarders for clients.
    pub fn forwarders(&self) -> Vec<Value> {
        self.forwarders
            .list
            .iter()
            .map(Forwarder::to_json)
            .collect()
    }

    /// Connects forwarders to the present sources.
    pub(crate) fn feed_forwarders(&mut self) {
        let mut list = std::mem::take(&mut self.forwarders.list);
        let media = &self.settings.media;
        for forwarder in &mut list {
            let source = self.source(forwarder.entry.stream);
            if forwarder.from.map(|(from, _)| from) == source {
                continue;
            }
            if let Some((_, route)) = forwarder.from.take() {
                media.remove_route(route);
            }
            forwarder.from = source.map(|source| {
                let route = media.forward(source, RouteOptions::default(), forwarder.options());
                (source, route)
            });
        }
        self.forwarders.list = list;
    }

    /// Disconnects forwarders from the client. They stay.
    pub(crate) fn starve_forwarders_of_client(&mut self) {
        for forwarder in &mut self.forwarders.list {
            if forwarder.entry.stream.who == Who::Client
                && let Some((_, route)) = forwarder.from.take()
            {
                self.settings.media.remove_route(route);
            }
        }
    }

    pub(crate) fn end_forwarders(&mut self) {
        for forwarder in self.forwarders.list.drain(..) {
            if let Some((_, route)) = forwarder.from {
                self.settings.media.remove_route(route);
            }
        }
    }

    fn new_forwarder_id(&self) -> u32 {
        loop {
            let id = rand::random();
            let mut list = self.forwarders.list.iter();
            if id != 0 && !list.any(|forwarder| forwarder.id == id) {
                return id;
            }
        }
    }
}
