//! `recording`: streams of a mountpoint into files.

use std::collections::BTreeMap;

use portunus_core::record::{Format, Outcome};
use portunus_core::{FieldError, Fields};
use serde::Deserialize;
use serde_json::{Value, json};

use super::managed;
use crate::mountpoint::Mountpoint;
use crate::refusal::Refusal;
use crate::shared::Shared;
use crate::spec::{MediaKind, SourceSpec};

/// The members of older clients, which name the first stream of a kind.
const LEGACY: [(&str, MediaKind); 3] = [
    ("audio", MediaKind::Audio),
    ("video", MediaKind::Video),
    ("data", MediaKind::Data),
];

/// An entry of `media` that starts a recording.
#[derive(Deserialize)]
struct File<'a> {
    mid: &'a str,
    filename: String,
}

pub(super) async fn recording(shared: &Shared, fields: Fields<'_>) -> Result<Value, Refusal> {
    let mountpoint = managed(shared, fields)?;
    let action = fields.required("action")?;
    match mountpoint.spec.source {
        SourceSpec::Rtp(_) | SourceSpec::Rtsp(_) | SourceSpec::Whip(_) | SourceSpec::Relayed(_) => {
        }
        SourceSpec::Live(_) | SourceSpec::OnDemand(_) => {
            let reason = "A mountpoint that plays a file cannot be recorded";
            return Err(Refusal::Invalid(reason.to_owned()));
        }
    }
    match action {
        "start" => start(shared, &mountpoint, fields).await?,
        "stop" => {
            for stream in to_stop(&mountpoint, fields)? {
                mountpoint.stop_recording(stream);
            }
            mountpoint.let_in();
        }
        _ => return Err(Refusal::element("action", "expected start or stop")),
    }
    Ok(json!({ "streaming": "ok" }))
}

/// Starts all requested recordings, or none.
async fn start(
    shared: &Shared,
    mountpoint: &Mountpoint,
    fields: Fields<'_>,
) -> Result<(), Refusal> {
    let wanted = to_start(mountpoint, fields)?;
    if wanted.is_empty() {
        let reason = "There is nothing named to record";
        return Err(Refusal::Invalid(reason.to_owned()));
    }
    let recorder = &shared.recorder;
    let format = fields.record_format()?;
    let format = format.unwrap_or_else(|| recorder.format());
    let first = wanted.values().next().cloned().unwrap_or_default();
    let of = mountpoint.recorded_as(recorder, &first);
    let mut started: Vec<(usize, Outcome)> = Vec::new();
    let mut problem = None;
    if format == Format::Mjr {
        for (stream, name) in wanted {
            match mountpoint.start_recording(recorder, stream, name, of.clone()) {
                Ok(outcome) => started.push((stream, outcome)),
                Err(refusal) => {
                    problem = Some(refusal);
                    break;
                }
            }
        }
    } else {
        let streams: Vec<usize> = wanted.into_keys().collect();
        match mountpoint.start_shared_recording(recorder, &streams, first, format, of) {
            Ok(outcome) => started.extend(streams.iter().map(|it| (*it, outcome.clone()))),
            Err(refusal) => problem = Some(refusal),
        }
    }
    // A recorded stream has to come in, even if viewers do not get it.
    mountpoint.let_in();
    for (_, outcome) in &started {
        if let Err(error) = outcome.clone().opened().await {
            let reason = error.to_string();
            problem.get_or_insert(Refusal::CannotRecord(reason));
        }
    }
    let Some(refusal) = problem else {
        return Ok(());
    };
    for (stream, _) in started {
        mountpoint.stop_recording(stream);
    }
    mountpoint.let_in();
    Err(refusal)
}

/// Returns the names of files, by the indices of the streams.
fn to_start(
    mountpoint: &Mountpoint,
    fields: Fields<'_>,
) -> Result<BTreeMap<usize, String>, Refusal> {
    let mut files = BTreeMap::new();
    for entry in media(fields)?.into_iter().flatten() {
        let File { mid, filename } = entry.read()?;
        files.insert(place(mountpoint, mid)?, filename);
    }
    for (name, kind) in LEGACY {
        if fields.has("media") {
            break;
        }
        let file = fields.member(name)?;
        let stream = mountpoint.streams.iter().position(|it| it.kind() == kind);
        files.extend(stream.zip(file));
    }
    Ok(files)
}

/// Returns the indices of the streams.
fn to_stop(mountpoint: &Mountpoint, fields: Fields<'_>) -> Result<Vec<usize>, Refusal> {
    if let Some(entries) = media(fields)? {
        let place = |entry: Fields<'_>| place(mountpoint, entry.required("mid")?);
        return entries.into_iter().map(place).collect();
    }
    let mut streams = Vec::new();
    for (name, kind) in LEGACY {
        if fields.member(name)? == Some(true) {
            streams.extend(mountpoint.streams.iter().position(|it| it.kind() == kind));
        }
    }
    Ok(streams)
}

fn media(fields: Fields<'_>) -> Result<Option<Vec<Fields<'_>>>, Refusal> {
    let Some(media) = fields.0.get("media") else {
        return Ok(None);
    };
    let wrong = || FieldError::wrong_type("media", "a list of objects");
    let entries = media.as_array().ok_or_else(wrong)?.iter();
    let objects = entries.map(|entry| entry.as_object().map(Fields).ok_or_else(wrong));
    Ok(Some(objects.collect::<Result<_, _>>()?))
}

fn place(mountpoint: &Mountpoint, mid: &str) -> Result<usize, Refusal> {
    let mut streams = mountpoint.streams.iter();
    streams
        .position(|stream| stream.mid().as_str() == mid)
        .ok_or_else(|| Refusal::element("mid", format!("there is no stream {mid}")))
}
