//! Requests of those who publish.

use portunus_core::{Fields, Right, Rights, equal_in_constant_time};
use portunus_room::{Configure, RecordChange, StreamSetting, TalkSettings};

use super::{profile, text};
use crate::refusal::Refusal;

/// A `configure` or `publish`, or the second half of a `joinandconfigure`.
#[derive(Debug)]
pub(crate) struct ConfigureRequest {
    pub(crate) configure: Configure,
    /// It asks for what only those may who show the room's secret, if its recordings are locked.
    pub(crate) records: bool,
    secret: Option<String>,
}

/// Reads when somebody counts as talking.
pub(crate) fn talk(fields: Fields<'_>) -> Result<TalkSettings, Refusal> {
    let above_0 = |name| -> Result<Option<u64>, Refusal> {
        Ok(fields.positive(name)?.filter(|number| *number > 0))
    };
    Ok(TalkSettings {
        packets: above_0("audio_active_packets")?,
        level: above_0("audio_level_average")?,
    })
}

/// Reads a `configure`.
pub(crate) fn configure(fields: Fields<'_>, rights: Rights) -> Result<ConfigureRequest, Refusal> {
    fields.boolean("update")?;
    fields.boolean("restart")?;
    let streams = match fields.objects("streams")? {
        Some(entries) => entries.into_iter().map(setting).collect(),
        None => setting(fields).map(|setting| vec![setting]),
    };
    let streams: Vec<StreamSetting> = streams?;
    if streams.len() > 1 && streams.iter().any(|setting| setting.mid.is_none()) {
        return Err(Refusal::value(
            "mid",
            "needed where there are several streams",
        ));
    }
    let mut descriptions = Vec::new();
    for entry in fields.objects("descriptions")?.into_iter().flatten() {
        let mid = entry.required_string("mid")?.to_owned();
        let description = entry.required_string("description")?.to_owned();
        descriptions.push((mid, description));
    }
    let bitrate = fields.positive("bitrate")?;
    let record = RecordChange {
        on: fields.boolean("record")?,
        told_why: rights.may(Right::Record),
        name: text(fields, "filename")?.filter(|_| rights.may(Right::Record)),
        format: fields.record_format()?,
    };
    Ok(ConfigureRequest {
        records: record.on.is_some() || record.name.is_some(),
        secret: text(fields, "secret")?,
        configure: Configure {
            bitrate,
            record: Some(record),
            profile: profile(fields)?,
            talk: talk(fields)?,
            audio: fields.boolean("audio")?,
            video: fields.boolean("video")?,
            data: fields.boolean("data")?,
            streams,
            descriptions,
            audiocodec: text(fields, "audiocodec")?,
            videocodec: text(fields, "videocodec")?,
        },
    })
}

impl ConfigureRequest {
    /// The same for a room whose recordings are locked: nothing about them, unless the request shows the room's `secret`.
    pub(crate) fn locked(mut self, secret: Option<&str>) -> Self {
        let shown = self.secret.as_deref().unwrap_or_default();
        if secret.is_some_and(|secret| !equal_in_constant_time(secret, shown)) {
            self.configure.record = None;
        }
        self
    }
}

fn setting(fields: Fields<'_>) -> Result<StreamSetting, portunus_core::FieldError> {
    Ok(StreamSetting {
        mid: text(fields, "mid")?,
        send: fields.boolean("send")?,
        keyframe: fields.boolean("keyframe")?.unwrap_or(false),
        min_delay: fields.integer("min_delay")?,
        max_delay: fields.integer("max_delay")?,
    })
}
