//! A mountpoint in answers.

use portunus_core::Object;
use portunus_core::media::ingest::Refusal;
use serde_json::Value;

use super::{Mountpoint, Stream};
use crate::spec::{DETAILS, MediaKind, SourceSpec, StreamCodec};

fn on(flag: bool) -> Option<bool> {
    flag.then_some(true)
}

/// The confidential members of `info` that a client gets.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Disclosure {
    /// Those for clients that may manage the mountpoint.
    pub(crate) admin: bool,
    /// The places of its media on the disk and in the network.
    pub(crate) places: bool,
}

impl Mountpoint {
    /// Returns `on demand` if each viewer sees it from its start, or else `live`.
    pub(crate) fn type_name(&self) -> &'static str {
        match self.spec.source {
            SourceSpec::OnDemand(_) => "on demand",
            SourceSpec::Rtp(_)
            | SourceSpec::Live(_)
            | SourceSpec::Rtsp(_)
            | SourceSpec::Whip(_)
            | SourceSpec::Relayed(_) => "live",
        }
    }

    fn is_file(&self) -> bool {
        matches!(
            self.spec.source,
            SourceSpec::Live(_) | SourceSpec::OnDemand(_)
        )
    }

    /// Writes its entry in `list`.
    pub(crate) fn listed(&self) -> Value {
        let details = DETAILS.listed(&self.details());
        let media = (!self.is_file()).then(|| self.streams.iter().map(Stream::listed).collect());
        Object::new()
            .with("id", self.id.to_json())
            .with("type", self.type_name())
            .with_all(details)
            .with("enabled", self.is_enabled())
            .with_some("media", media.map(Value::Array))
            .with_some("node", self.home())
            .into()
    }

    /// Returns the object `info`. Confidential members are for `admin` only, who is everybody
    /// without a secret. The places of its media on the disk and in the network are there only with
    /// `places`.
    pub(crate) fn info(&self, disclosure: Disclosure) -> Value {
        let Disclosure { admin, places } = disclosure;
        let details = self.details().clone();
        let has_secret = self.has_secret();
        let whip = matches!(self.spec.source, SourceSpec::Whip(_));
        let media: Vec<Value> = self
            .streams
            .iter()
            .enumerate()
            .map(|(index, stream)| match self.is_file() {
                true => stream.info_of_file(),
                false => stream.info(index, disclosure, whip),
            })
            .collect();
        let public = Object::new()
            .with("id", self.id.to_json())
            .with_some("name", admin.then_some(self.name.as_str()))
            .with_all(DETAILS.shown(&details, admin))
            .with_some("secret_required", on(has_secret))
            .with_some("viewers", admin.then(|| self.viewer_count()))
            .with("enabled", self.is_enabled())
            .with("type", self.type_name());
        let source = match &self.spec.source {
            SourceSpec::Rtp(rtp) => {
                let host = self
                    .streams
                    .iter()
                    .find_map(|s| s.ports.as_ref()?.host.clone());
                Object::new()
                    .with_some("srtp", on(rtp.srtp.is_some()))
                    .with_some("host", host.filter(|_| places))
            }
            SourceSpec::Live(_) | SourceSpec::OnDemand(_) => {
                Object::new().with_some("duration", self.duration().map(|it| it.as_secs_f64()))
            }
            SourceSpec::Rtsp(_) => Object::new().with("rtsp", true),
            SourceSpec::Relayed(relayed) => Object::new().with("node", relayed.node.as_str()),
            SourceSpec::Whip(whip) => Object::new()
                .with("whip", true)
                .with("publishing", self.is_published())
                .with_some("token_required", on(whip.token.is_some() || has_secret)),
        };
        let with_confidential = match self.spec.source {
            // The token is for those who showed the secret.
            SourceSpec::Whip(_) => admin && has_secret,
            SourceSpec::Rtp(_)
            | SourceSpec::Live(_)
            | SourceSpec::OnDemand(_)
            | SourceSpec::Rtsp(_)
            | SourceSpec::Relayed(_) => places,
        };
        let options = self.spec.source.shown(with_confidential);
        public
            .with_all(source)
            .with_all(options)
            .with("media", media)
            .into()
    }

    /// Writes the object `stream` of the answer to `create`.
    pub(crate) fn created(&self) -> Value {
        let details = self.details().clone();
        let created = Object::new()
            .with("id", self.id.to_json())
            .with("type", self.type_name())
            .with("description", details.description)
            .with("is_private", details.access.is_private);
        match &self.spec.source {
            SourceSpec::Rtp(rtp) if rtp.flat => self
                .streams
                .iter()
                .fold(created, |created, stream| {
                    created.with_all(stream.flat_ports())
                })
                .into(),
            SourceSpec::Rtp(_) => {
                let ports: Vec<Value> = self.streams.iter().map(Stream::ports).collect();
                created.with("ports", ports).into()
            }
            SourceSpec::Live(_)
            | SourceSpec::OnDemand(_)
            | SourceSpec::Rtsp(_)
            | SourceSpec::Whip(_)
            | SourceSpec::Relayed(_) => created.into(),
        }
    }
}

/// Returns the fault of a stream's packets.
fn refused(refusal: Refusal) -> Value {
    let age = u64::try_from(refusal.age.as_millis()).unwrap_or(u64::MAX);
    Object::new()
        .with("reason", refusal.why.name())
        .with("packets", refusal.datagrams)
        .with("age_ms", age)
        .into()
}

impl Stream {
    fn msid(&self) -> Option<String> {
        let (stream, track) = self.spec.msid.as_ref()?;
        Some(format!("{stream} {track}"))
    }

    fn listed(&self) -> Value {
        let age = self.live().age.clone();
        Object::new()
            .with("mid", self.mid().as_str())
            .with("type", self.kind().name())
            .with("label", self.spec.label.as_str())
            .with_some("msid", self.msid())
            .with_some("age_ms", age.millis())
            .with_some("waiting", on(age.is_waiting()))
            .with_some("refused", age.refusal().map(refused))
            .into()
    }

    fn codec(&self) -> Object {
        let live = self.live();
        let codec = live.codec;
        Object::new()
            .with_some("pt", codec.map(|_| live.pt))
            .with_some("codec", codec.map(StreamCodec::name))
            .with_some("rtpmap", codec.map(|codec| codec.rtpmap(live.channels)))
            .with_some("fmtp", live.fmtp.as_deref())
    }

    fn info_of_file(&self) -> Value {
        Object::new()
            .with("type", self.kind().name())
            .with_all(self.codec())
            .into()
    }

    fn info(&self, index: usize, disclosure: Disclosure, whip: bool) -> Value {
        let Disclosure { admin, places } = disclosure;
        let is_data = self.kind() == MediaKind::Data;
        let live = self.live().clone();
        let codec_required = whip && self.spec.codec.is_some();
        let info = Object::new()
            .with("mindex", index)
            .with("type", self.kind().name())
            .with("mid", self.mid().as_str())
            .with("label", self.spec.label.as_str())
            .with_some("msid", self.msid())
            .with_all(self.codec())
            .with_some("codec_required", on(codec_required))
            .with_some("videosimulcast", on(live.simulcast))
            .with_some("videosvc", on(live.svc))
            .with_some("skew_compensation", on(self.spec.skew))
            .with_some("datatype", is_data.then(|| self.spec.datatype.name()));
        let ports = self.ports.as_ref().filter(|_| admin);
        let more = |index| ports.and_then(|ports| ports.more.get(index).copied());
        let host = ports
            .filter(|_| places)
            .and_then(|ports| ports.host.as_deref());
        info.with_some("host", host)
            .with_some("port", ports.map(|ports| ports.rtp))
            .with_some("rtcpport", ports.and_then(|ports| ports.rtcp))
            .with_some("port2", more(0))
            .with_some("port3", more(1))
            .with_some("age_ms", live.age.millis())
            .with_some("waiting", on(live.age.is_waiting()))
            .with_some("refused", live.age.refusal().map(refused))
            .with_some("recording", self.recorded().filter(|_| places))
            .into()
    }

    /// Writes its entry in `ports`.
    fn ports(&self) -> Value {
        let ports = self.ports.as_ref();
        let more = |index| ports.and_then(|ports| ports.more.get(index).copied());
        Object::new()
            .with("type", self.kind().name())
            .with("mid", self.mid().as_str())
            .with_some("msid", self.msid())
            .with_some("host", ports.and_then(|ports| ports.host.as_deref()))
            .with_some("port", ports.map(|ports| ports.rtp))
            .with_some("rtcp_port", ports.and_then(|ports| ports.rtcp))
            .with_some("port_2", more(0))
            .with_some("port_3", more(1))
            .into()
    }

    /// Writes its ports as members that start with the kind of media.
    fn flat_ports(&self) -> Object {
        let Some(ports) = &self.ports else {
            return Object::new();
        };
        let name = |member: &str| format!("{}_{member}", self.kind().name());
        Object::new()
            .with_some(&name("host"), ports.host.as_deref())
            .with(&name("port"), ports.rtp)
            .with_some(&name("rtcp_port"), ports.rtcp)
            .with_some(&name("port_2"), ports.more.first().copied())
            .with_some(&name("port_3"), ports.more.get(1).copied())
    }
}

/// The members for event handlers and logs about a new mountpoint.
impl Mountpoint {
    pub(crate) fn announce(&self) {
        let streams: Vec<String> = self.streams.iter().map(Stream::summary).collect();
        tracing::info!(
            id = %self.id,
            name = self.name,
            source = self.spec.source.name(),
            streams = streams.join(", "),
            "mountpoint created"
        );
    }
}

impl Stream {
    fn summary(&self) -> String {
        let codec = self.live().codec.map_or("", StreamCodec::name);
        let ports = match &self.ports {
            Some(ports) => ports.rtp.to_string(),
            None => String::new(),
        };
        let mid = self.mid();
        let words = [mid.as_str(), self.kind().name(), codec, &ports];
        let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
        words.join(" ")
    }
}
