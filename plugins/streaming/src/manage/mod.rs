//! The requests that manage mountpoints; they are answered at once, also for administrators.

mod create;
mod edit;
mod recording;

use std::sync::Arc;

use portunus_core::{Fields, Later, Reply};
use serde_json::{Map, Value, json};

use crate::id::MountpointId;
use crate::mountpoint::Mountpoint;
use crate::plugin::Shared;
use crate::refusal::Refusal;
use crate::saved::{Saved, SavedError};
use crate::secret;

pub(crate) use create::create_all;

const REQUESTS: [&str; 9] = [
    "list",
    "info",
    "create",
    "edit",
    "destroy",
    "enable",
    "disable",
    "recording",
    "kick_all",
];

/// Whether the request manages mountpoints.
pub(crate) fn is_management(request: &str) -> bool {
    REQUESTS.contains(&request)
}

/// Answers a request that [`is_management`].
pub(crate) fn reply(shared: Arc<Shared>, request: String, body: Map<String, Value>) -> Reply {
    Reply::Later(Later::new(async move {
        let answered = answer(&shared, &request, &body).await;
        answered.unwrap_or_else(|refusal| refusal.to_json())
    }))
}

async fn answer(
    shared: &Arc<Shared>,
    request: &str,
    body: &Map<String, Value>,
) -> Result<Value, Refusal> {
    let fields = Fields(body);
    match request {
        "list" => list(shared, fields),
        "info" => info(shared, fields),
        "create" => create::create(shared, body).await,
        "edit" => edit::edit(shared, fields).await,
        "destroy" => destroy(shared, fields).await,
        "enable" => switch(shared, fields, true),
        "disable" => switch(shared, fields, false),
        "recording" => recording::recording(shared, fields).await,
        "kick_all" => {
            let mountpoint = managed(shared, fields)?;
            mountpoint.dismiss_viewers("kicked_all");
            Ok(json!({ "streaming": "kicked_all" }))
        }
        _ => Err(Refusal::UnknownRequest(request.to_owned())),
    }
}

fn list(shared: &Shared, fields: Fields<'_>) -> Result<Value, Refusal> {
    let all = match &shared.admin_key {
        Some(key) if fields.string("admin_key")?.is_some() => {
            secret::check(fields, "admin_key", Some(key))?;
            true
        }
        Some(_) | None => false,
    };
    let mountpoints = shared.mountpoints.all();
    let listed = mountpoints
        .iter()
        .filter(|mountpoint| all || !mountpoint.details().is_private)
        .map(|mountpoint| mountpoint.listed())
        .collect::<Vec<_>>();
    Ok(json!({ "streaming": "list", "list": listed }))
}

fn info(shared: &Shared, fields: Fields<'_>) -> Result<Value, Refusal> {
    let mountpoint = named(shared, fields)?;
    let secret = mountpoint.details().secret.clone();
    if secret.is_some() {
        fields.string("secret")?;
    }
    let admin = secret::check(fields, "secret", secret.as_deref()).is_ok();
    Ok(json!({ "streaming": "info", "info": mountpoint.info(admin) }))
}

async fn destroy(shared: &Arc<Shared>, fields: Fields<'_>) -> Result<Value, Refusal> {
    let mountpoint = managed(shared, fields)?;
    let permanent = fields.boolean("permanent")?.unwrap_or(false);
    match saved(shared, permanent)? {
        // What cannot be removed for good stays.
        Some(saved) => {
            let (shared, mountpoint) = (shared.clone(), mountpoint.clone());
            let forget = move || {
                let Mountpoint { name, id, .. } = &*mountpoint;
                saved.remove(name, id, || shared.mountpoints.remove(&mountpoint))
            };
            write(forget).await??;
        }
        None => shared.mountpoints.remove(&mountpoint)?,
    }
    mountpoint.close().await;
    tracing::info!(id = %mountpoint.id, name = mountpoint.name, "mountpoint destroyed");
    Ok(json!({ "streaming": "destroyed", "destroyed": mountpoint.id.to_json() }))
}

fn switch(shared: &Shared, fields: Fields<'_>, enabled: bool) -> Result<Value, Refusal> {
    let mountpoint = managed(shared, fields)?;
    if !enabled {
        let stop = fields.boolean("stop_recording")?.unwrap_or(true);
        if stop {
            mountpoint.stop_recordings();
        }
    }
    mountpoint.enable(enabled);
    Ok(json!({ "streaming": "ok" }))
}

/// The mountpoint that the request names.
fn named(shared: &Shared, fields: Fields<'_>) -> Result<Arc<Mountpoint>, Refusal> {
    let id = MountpointId::of_request(fields, shared.string_ids())?;
    shared.mountpoints.get(&id)
}

/// The same, if the request has its secret.
fn managed(shared: &Shared, fields: Fields<'_>) -> Result<Arc<Mountpoint>, Refusal> {
    let mountpoint = named(shared, fields)?;
    let secret = mountpoint.details().secret.clone();
    secret::check(fields, "secret", secret.as_deref())?;
    Ok(mountpoint)
}

/// The file to write to, if something is to be permanent.
fn saved(shared: &Shared, permanent: bool) -> Result<Option<Arc<Saved>>, Refusal> {
    match (permanent, &shared.saved) {
        (false, _) => Ok(None),
        (true, Some(saved)) => Ok(Some(saved.clone())),
        (true, None) => Err(Refusal::Unknown(
            "Nothing can be permanent: streaming.save is not configured".to_owned(),
        )),
    }
}

/// Writes to the file beside what else the server does.
async fn write<T: Send + 'static>(
    change: impl FnOnce() -> Result<T, SavedError> + Send + 'static,
) -> Result<T, Refusal> {
    let written = tokio::task::spawn_blocking(change).await;
    let written = written.map_err(|error| Refusal::Unknown(error.to_string()))?;
    written.map_err(|error| {
        tracing::error!("{error}");
        Refusal::Unknown(error.to_string())
    })
}
