//! The specification of a mountpoint: from a `create` request, the configuration, or the file of
//! permanent mountpoints. All have the same members.

mod codec;
mod details;
mod file;
mod flat;
mod media;
mod payload_types;
mod problem;
mod relayed;
mod rtp;
mod rtsp;
mod values;
mod whip;

use portunus_core::{Fields, Object};
use portunus_resources::{Id, Ids, Written, check_keys};
use serde_json::{Map, Value};

pub use codec::StreamCodec;
pub(crate) use details::{DETAILS, Details};
pub use file::{FileOffer, FileSpec};
use media::Feed;
pub use media::{DataType, MediaKind, MediaSpec};
pub(crate) use payload_types::{PayloadFormat, PayloadTypes, assign as assign_payload_types};
pub use problem::SpecProblem;
pub use relayed::RelayedSpec;
pub use rtp::{KeyframeSpec, RtpSpec, SrtpSpec};
pub use rtsp::{RtspSpec, RtspTransport};
pub use whip::WhipSpec;

/// The specification of a mountpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MountpointSpec {
    /// Its name. `None` means a name made of its id.
    pub name: Option<String>,
    /// Its id. `None` means a random one.
    pub id: Option<Id>,
    /// The options that can be edited.
    pub(crate) details: Details,
    /// The source of its media.
    pub source: SourceSpec,
}

/// The source of a mountpoint's media.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SourceSpec {
    /// RTP that is sent to ports of the server.
    Rtp(RtpSpec),
    /// A file that plays for all viewers together.
    Live(FileSpec),
    /// A file that each viewer sees from its start.
    OnDemand(FileSpec),
    /// A server that RTP is fetched from.
    Rtsp(RtspSpec),
    /// A client that publishes.
    Whip(WhipSpec),
    /// Another node of the cluster.
    Relayed(RelayedSpec),
}

/// The origin of a specification, which decides on required members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Anything unknown is ignored.
    Request,
    /// Mistakes are errors, and a name is required.
    Configuration,
}

impl MountpointSpec {
    /// Reads the members of a request or of a section of the configuration.
    pub(crate) fn read(
        members: &Map<String, Value>,
        ids: Ids,
        origin: Origin,
    ) -> Result<Self, SpecProblem> {
        let fields = Fields(members);
        let kind = fields.required::<&str>("type")?.to_ascii_lowercase();
        let name = fields.text("name")?.map(presentable);
        if origin == Origin::Configuration && name.is_none() {
            return Err(SpecProblem::missing("name"));
        }
        let id = ids.wanted(fields, "id")?;
        let details = DETAILS.read(fields)?;
        let source = SourceSpec::read(&kind, fields, origin)?;
        if origin == Origin::Configuration {
            let known = ["type", "name", "id"].into_iter();
            let known = known.chain(DETAILS.keys()).chain(source.keys());
            check_keys(members, &known.collect::<Vec<_>>())?;
        }
        Ok(MountpointSpec {
            name,
            id,
            details,
            source,
        })
    }

    /// Returns the members from which [`MountpointSpec::read`] makes the same specification, with a
    /// list of streams.
    pub(crate) fn to_members(&self) -> Map<String, Value> {
        let head = Object::new()
            .with_some("name", self.name.as_deref())
            .with("type", self.source.name())
            .with_some("id", self.id.as_ref().map(Id::to_json));
        let mut members = Map::from(head);
        members.extend(DETAILS.to_members(&self.details));
        members.extend(self.source.to_members());
        members
    }
}

impl SourceSpec {
    fn read(kind: &str, fields: Fields<'_>, origin: Origin) -> Result<Self, SpecProblem> {
        match kind {
            "rtp" => RtpSpec::read(fields, origin).map(SourceSpec::Rtp),
            "live" => FileSpec::read(fields).map(SourceSpec::Live),
            "ondemand" => FileSpec::read(fields).map(SourceSpec::OnDemand),
            "rtsp" => rtsp::OPTIONS.read(fields).map(SourceSpec::Rtsp),
            "whip" => WhipSpec::read(fields, origin).map(SourceSpec::Whip),
            _ => {
                let reason = "there are rtp, live, ondemand, rtsp and whip";
                Err(SpecProblem::element("type", reason))
            }
        }
    }

    /// Returns its name in the API.
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            SourceSpec::Rtp(_) => "rtp",
            SourceSpec::Live(_) => "live",
            SourceSpec::OnDemand(_) => "ondemand",
            SourceSpec::Rtsp(_) => "rtsp",
            SourceSpec::Whip(_) => "whip",
            SourceSpec::Relayed(_) => "relayed",
        }
    }

    /// Returns the names of its options.
    fn keys(&self) -> Vec<&'static str> {
        match self {
            SourceSpec::Rtp(rtp) if rtp.flat => rtp::OPTIONS.keys().chain(flat::keys()).collect(),
            SourceSpec::Rtp(_) => rtp::OPTIONS.keys().chain(["media"]).collect(),
            SourceSpec::Live(_) | SourceSpec::OnDemand(_) => file::OPTIONS.keys().collect(),
            SourceSpec::Rtsp(_) => rtsp::OPTIONS.keys().collect(),
            SourceSpec::Whip(_) => whip::OPTIONS.keys().chain(["media"]).collect(),
            SourceSpec::Relayed(_) => Vec::new(),
        }
    }

    fn to_members(&self) -> Map<String, Value> {
        let (mut members, media, feed) = match self {
            SourceSpec::Rtp(rtp) => (rtp::OPTIONS.to_members(rtp), &rtp.media, Feed::Ports),
            SourceSpec::Whip(whip) => {
                (whip::OPTIONS.to_members(whip), &whip.media, Feed::Publisher)
            }
            SourceSpec::Live(file) | SourceSpec::OnDemand(file) => {
                return file::OPTIONS.to_members(file);
            }
            SourceSpec::Rtsp(rtsp) => return rtsp::OPTIONS.to_members(rtsp),
            // It is never written down.
            SourceSpec::Relayed(_) => return Map::new(),
        };
        let sections = media.iter().map(|stream| stream.to_section(feed));
        members.insert("media".to_owned(), sections.collect());
        members
    }

    /// Returns the options for `info`, with or without the confidential ones.
    pub(crate) fn shown(&self, with_confidential: bool) -> Object {
        match self {
            SourceSpec::Rtp(rtp) => rtp::OPTIONS.shown(rtp, with_confidential),
            SourceSpec::Live(file) | SourceSpec::OnDemand(file) => {
                file::OPTIONS.shown(file, with_confidential)
            }
            SourceSpec::Rtsp(rtsp) => rtsp::OPTIONS.shown(rtsp, with_confidential),
            SourceSpec::Whip(whip) => whip::OPTIONS.shown(whip, with_confidential),
            SourceSpec::Relayed(_) => Object::new(),
        }
    }
}

/// The key of a mountpoint is its name, because the configuration may not give an id.
impl Written for MountpointSpec {
    const ONE: &'static str = "mountpoint";
    const MANY: &'static str = "mountpoints";

    fn key(&self) -> Id {
        Id::Text(self.name.clone().unwrap_or_default())
    }

    fn id(&self) -> Option<&Id> {
        self.id.as_ref()
    }

    fn read(members: &Map<String, Value>, ids: Ids) -> Result<Self, String> {
        MountpointSpec::read(members, ids, Origin::Configuration).map_err(|problem| {
            let name = members.get("name").and_then(Value::as_str).unwrap_or("?");
            format!("mountpoint {name}: {}: {problem}", problem.key)
        })
    }

    fn to_members(&self) -> Map<String, Value> {
        MountpointSpec::to_members(self)
    }
}

/// Returns a name that does not start with a digit.
pub(crate) fn presentable(name: &str) -> String {
    match name.starts_with(|first: char| first.is_ascii_digit()) {
        true => format!("mp-{name}"),
        false => name.to_owned(),
    }
}

#[cfg(test)]
mod tests;
