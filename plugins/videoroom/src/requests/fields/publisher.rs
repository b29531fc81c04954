//! Requests of publishers.

use portunus_core::record::Format;
use portunus_core::{Fields, Right, Rights, equal_in_constant_time};
use portunus_room::{
    Configure, LineWish, Profile, RecordChange, StreamDescription, StreamSetting, TalkSettings,
};
use serde::{Deserialize, Deserializer};

use super::{ProfileMembers, settings};
use crate::refusal::Refusal;

/// The members of a publisher's `join` besides its id.
#[derive(Deserialize)]
pub(crate) struct JoinRequest<'a> {
    #[serde(with = "ProfileMembers")]
    pub(crate) profile: Profile,
    pub(crate) token: Option<&'a str>,
    #[serde(with = "TalkMembers")]
    pub(crate) talk: TalkSettings,
}

/// A `configure` or `publish`, or the second half of a `joinandconfigure`.
#[derive(Debug, Deserialize)]
pub(crate) struct ConfigureRequest {
    /// Only offers use these.
    #[serde(rename = "update")]
    _update: Option<bool>,
    #[serde(rename = "restart")]
    _restart: Option<bool>,
    #[serde(with = "ConfigureMembers")]
    pub(crate) configure: Configure,
    secret: Option<String>,
}

#[derive(Deserialize)]
#[serde(remote = "Configure")]
struct ConfigureMembers {
    #[serde(skip)]
    streams: Vec<StreamSetting>,
    #[serde(default)]
    descriptions: Vec<StreamDescription>,
    bitrate: Option<u64>,
    #[serde(deserialize_with = "record")]
    record: Option<RecordChange>,
    #[serde(with = "ProfileMembers")]
    profile: Profile,
    #[serde(with = "TalkMembers")]
    talk: TalkSettings,
    audio: Option<bool>,
    video: Option<bool>,
    data: Option<bool>,
    audiocodec: Option<String>,
    videocodec: Option<String>,
    #[serde(skip)]
    lines: Vec<LineWish>,
    #[serde(skip)]
    keeps_data: bool,
    #[serde(skip)]
    has_place: bool,
}

#[derive(Deserialize)]
#[serde(remote = "RecordChange")]
struct RecordMembers {
    #[serde(rename = "record")]
    on: Option<bool>,
    #[serde(rename = "filename")]
    name: Option<String>,
    #[serde(
        rename = "record_format",
        deserialize_with = "portunus_core::with::record_format"
    )]
    format: Option<Format>,
    #[serde(skip)]
    told_why: bool,
}

/// The members about talking. 0 means the room's setting.
#[derive(Deserialize)]
#[serde(remote = "TalkSettings")]
struct TalkMembers {
    #[serde(rename = "audio_active_packets", deserialize_with = "above_0")]
    packets: Option<u64>,
    #[serde(rename = "audio_level_average", deserialize_with = "above_0")]
    level: Option<u64>,
}

fn record<'de, D: Deserializer<'de>>(from: D) -> Result<Option<RecordChange>, D::Error> {
    RecordMembers::deserialize(from).map(Some)
}

fn above_0<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    let number = Option::<u64>::deserialize(from)?;
    Ok(number.filter(|number| *number > 0))
}

impl ConfigureRequest {
    /// Reads the request. Drops the name of recordings if the client may not record.
    pub(crate) fn read(fields: Fields<'_>, rights: Rights) -> Result<Self, Refusal> {
        let streams = settings(fields, |setting: &StreamSetting| setting.mid.as_ref())?;
        let mut request: Self = fields.read()?;
        request.configure.streams = streams;
        if let Some(record) = &mut request.configure.record {
            record.told_why = rights.may(Right::Record);
            record.name.take_if(|_| !record.told_why);
        }
        Ok(request)
    }

    /// Returns whether it asks for a change of recordings, which may need the room's secret.
    pub(crate) fn records(&self) -> bool {
        let record = self.configure.record.as_ref();
        record.is_some_and(|record| record.on.is_some() || record.name.is_some())
    }

    /// Removes the change of recordings, unless the request shows the room's `secret`.
    pub(crate) fn locked(mut self, secret: Option<&str>) -> Self {
        let shown = self.secret.as_deref().unwrap_or_default();
        if secret.is_some_and(|secret| !equal_in_constant_time(secret, shown)) {
            self.configure.record = None;
        }
        self
    }
}
