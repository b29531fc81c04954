//! What a mountpoint is to be: read from a `create` request, the configuration, or the file of saved mountpoints,
//! which all name the same things in the same way.

mod codec;
mod file;
mod flat;
mod media;
mod payload_types;
mod problem;
mod rtp;
mod rtsp;
mod show;
mod whip;

use portunus_core::Fields;
use portunus_resources::{Access, Id, Ids, Written};
use serde_json::{Map, Value};

use crate::refusal::Refusal;

pub use codec::StreamCodec;
pub use file::{FileOffer, FileSpec};
pub use media::{DataType, MediaKind, MediaSpec};
pub(crate) use payload_types::{PayloadFormat, PayloadTypes, assign as assign_payload_types};
pub use problem::SpecProblem;
pub use rtp::{KeyframeSpec, RtpSpec, SrtpSpec};
pub use rtsp::{RtspSpec, RtspTransport};
pub use whip::WhipSpec;

/// A mountpoint as it was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MountpointSpec {
    /// Its name; made of its id if none.
    pub name: Option<String>,
    /// Its id; random if none.
    pub id: Option<Id>,
    /// For people; the name if none.
    pub description: Option<String>,
    /// Opaque text for clients.
    pub metadata: Option<String>,
    /// Who may manage it, and who may watch it.
    pub access: Access,
    /// Where its media comes from.
    pub source: SourceSpec,
}

/// Where a mountpoint's media comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SourceSpec {
    /// RTP that is sent to ports of the server.
    Rtp(RtpSpec),
    /// A file with one position for all viewers.
    Live(FileSpec),
    /// A file that each viewer sees from its start.
    OnDemand(FileSpec),
    /// A server that RTP is fetched from.
    Rtsp(RtspSpec),
    /// A client that publishes.
    Whip(WhipSpec),
}

/// Where a description stands, which decides what must be in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Anything unknown is ignored.
    Request,
    /// A mistake is better told than ignored; a name is needed.
    Configuration,
}

const COMMON: [&str; 8] = [
    "type",
    "name",
    "id",
    "description",
    "metadata",
    "is_private",
    "secret",
    "pin",
];

impl MountpointSpec {
    /// Reads the members of a request or of a section of the configuration.
    pub(crate) fn read(
        members: &Map<String, Value>,
        ids: Ids,
        origin: Origin,
    ) -> Result<Self, SpecProblem> {
        let fields = Fields(members);
        let text = |name| media::optional_text(fields, name);
        let kind = fields
            .required_string("type")
            .map_err(SpecProblem::field)?
            .to_ascii_lowercase();
        let name = text("name")?;
        if origin == Origin::Configuration && name.is_none() {
            return Err(SpecProblem::missing("name"));
        }
        let id = ids.wanted(fields, "id").map_err(SpecProblem::field)?;
        let access = Access::read(fields).map_err(SpecProblem::field)?;
        let (source, known) = match kind.as_str() {
            "rtp" => {
                let flat = !members.contains_key("media");
                let rtp = RtpSpec::read(members, flat, origin)?;
                (SourceSpec::Rtp(rtp), rtp::known(flat))
            }
            "live" => (
                SourceSpec::Live(FileSpec::read(fields)?),
                file::KNOWN.to_vec(),
            ),
            "ondemand" => (
                SourceSpec::OnDemand(FileSpec::read(fields)?),
                file::KNOWN.to_vec(),
            ),
            "rtsp" => (
                SourceSpec::Rtsp(RtspSpec::read(fields)?),
                rtsp::KNOWN.to_vec(),
            ),
            "whip" => (
                SourceSpec::Whip(WhipSpec::read(members, origin)?),
                whip::KNOWN.to_vec(),
            ),
            _ => {
                let reason = "there are rtp, live, ondemand, rtsp and whip";
                return Err(SpecProblem::new("type", Refusal::element("type", reason)));
            }
        };
        if origin == Origin::Configuration {
            let known: Vec<&str> = COMMON.into_iter().chain(known).collect();
            problem::refuse_unknown(members, &known)?;
        }
        Ok(MountpointSpec {
            name: name.map(|name| presentable(&name)),
            id,
            description: text("description")?,
            metadata: text("metadata")?,
            access,
            source,
        })
    }
}

/// Mountpoints are known by their names: those of the configuration may have no ids of their own.
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

/// A name as its mountpoint has it: it does not start with a digit.
pub(crate) fn presentable(name: &str) -> String {
    match name.starts_with(|first: char| first.is_ascii_digit()) {
        true => format!("mp-{name}"),
        false => name.to_owned(),
    }
}

#[cfg(test)]
mod tests;
