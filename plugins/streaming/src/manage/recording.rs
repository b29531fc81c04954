//! `recording`: checked as it will have to be; there is no recorder yet.

use portunus_core::{FieldError, Fields};
use serde_json::{Value, json};

use super::managed;
use crate::plugin::Shared;
use crate::refusal::Refusal;
use crate::spec::SourceSpec;

pub(super) fn recording(shared: &Shared, fields: Fields<'_>) -> Result<Value, Refusal> {
    let mountpoint = managed(shared, fields)?;
    let action = fields.required_string("action")?;
    match mountpoint.spec.source {
        SourceSpec::Rtp(_) | SourceSpec::Rtsp(_) => {}
        SourceSpec::Live(_) | SourceSpec::OnDemand(_) | SourceSpec::Whip(_) => {
            let reason = "Only mountpoints of type rtp and rtsp can be recorded";
            return Err(Refusal::Invalid(reason.to_owned()));
        }
    }
    match action {
        "start" => {
            if !names_a_stream(fields)? {
                let reason = "There is nothing named to record";
                return Err(Refusal::Invalid(reason.to_owned()));
            }
            Err(Refusal::CannotRecord("recording is not available yet"))
        }
        // Nothing is being recorded.
        "stop" => Ok(json!({ "streaming": "ok" })),
        _ => Err(Refusal::element("action", "expected start or stop")),
    }
}

/// Whether there is a file for at least one stream.
fn names_a_stream(fields: Fields<'_>) -> Result<bool, Refusal> {
    let legacy = ["audio", "video", "data"];
    let Some(media) = fields.0.get("media") else {
        let mut named = false;
        for name in legacy {
            named |= fields.string(name)?.is_some();
        }
        return Ok(named);
    };
    let wrong = || FieldError::Type {
        name: "media".to_owned(),
        wanted: "a list of objects",
    };
    let media = media.as_array().ok_or_else(wrong)?;
    for entry in media {
        let entry = Fields(entry.as_object().ok_or_else(wrong)?);
        entry.required_string("mid")?;
        entry.required_string("filename")?;
    }
    Ok(!media.is_empty())
}
