//! The requests that manage mountpoints, of clients and of administrators. They are answered at
//! once.

mod changes;
mod creation;
mod recording;

use std::sync::Arc;

use portunus_core::{Asked, Fields, Handle, Later, PluginRequest, Reply, Right, Rights};
use portunus_resources::{Asker, Id, Maker, off_thread};
use serde_json::{Map, Value, json};

use crate::mountpoint::{Disclosure, Mountpoint};
use crate::refusal::Refusal;
use crate::requests::Request;
use crate::shared::Shared;

pub(crate) use creation::create_all;

/// Answers a request that manages mountpoints.
pub(crate) fn reply(
    shared: Arc<Shared>,
    asked: Asked<Request>,
    body: Map<String, Value>,
    asker: Asker,
) -> Reply {
    Reply::Later(Later::new(async move {
        let answer = answer(&shared, asked, &body, &asker);
        let mountpoints = &shared.mountpoints;
        let answered = mountpoints.guarded_later(Fields(&body), asker.maker, answer);
        let answered = answered.await;
        shared.changed.notify_one();
        answered.unwrap_or_else(|refusal| refusal.to_json())
    }))
}

async fn answer(
    shared: &Arc<Shared>,
    asked: Asked<Request>,
    body: &Map<String, Value>,
    asker: &Asker,
) -> Result<Value, Refusal> {
    let fields = Fields(body);
    let (request, rights) = shared.permit(asked, fields, asker.rights)?;
    let client = asker.handle.as_ref();
    match request {
        Request::List => list(shared, fields, client.is_none()),
        Request::Info => info(shared, fields, rights, asker.maker),
        Request::Create => {
            let created = creation::create(shared, body, asker).await;
            created.map_err(|refusal| refusal.shown_to(rights))
        }
        Request::Edit => changes::edit(shared, fields, rights, client).await,
        Request::Destroy => destroy(shared, fields, client).await,
        Request::Enable => switch(shared, fields, rights, true),
        Request::Disable => switch(shared, fields, rights, false),
        Request::Recording => recording::recording(shared, fields).await,
        Request::KickAll => {
            let mountpoint = managed(shared, fields)?;
            mountpoint.dismiss_viewers("kicked_all");
            shared.notify(client, || mountpoint.event("kicked_all").into());
            Ok(json!({ "streaming": "kicked_all" }))
        }
        // Events answer the others. They need a client's handle, which administrators do not have.
        _ => Err(Refusal::UnknownRequest(request.names().concat())),
    }
}

fn list(shared: &Shared, fields: Fields<'_>, by_administrator: bool) -> Result<Value, Refusal> {
    let mountpoints = shared.mountpoints.listed(fields, by_administrator)?;
    let listed: Vec<_> = mountpoints.iter().map(|it| it.listed()).collect();
    Ok(json!({ "streaming": "list", "list": listed }))
}

fn info(
    shared: &Shared,
    fields: Fields<'_>,
    rights: Rights,
    maker: Maker,
) -> Result<Value, Refusal> {
    let mountpoint = shared.mountpoints.named(fields)?;
    let access = mountpoint.details().access.clone();
    let has_secret = access.secret.is_some();
    if has_secret {
        fields.member::<&str>("secret")?;
    }
    let secret = access.secret.as_deref();
    let mountpoints = &shared.mountpoints;
    let is_shown = mountpoints.shows_secret(&mountpoint.id, secret, fields, maker)?;
    let admin = is_shown && mountpoint.home().is_none();
    // Anybody may manage a mountpoint without a secret, but not see the server's disk and network.
    let places = admin && (has_secret || rights.may(Right::Create));
    Ok(json!({ "streaming": "info", "info": mountpoint.info(Disclosure { admin, places }) }))
}

async fn destroy(
    shared: &Arc<Shared>,
    fields: Fields<'_>,
    client: Option<&Handle>,
) -> Result<Value, Refusal> {
    let mountpoint = managed(shared, fields)?;
    match shared.mountpoints.permanent(fields)?.cloned() {
        // A mountpoint that cannot be removed from the file stays.
        Some(saved) => {
            let (shared, mountpoint) = (shared.clone(), mountpoint.clone());
            let forget = move || {
                let key = Id::Text(mountpoint.name.clone());
                let forget = || shared.mountpoints.remove(&mountpoint);
                saved.remove(key, mountpoint.id.clone(), forget)
            };
            off_thread(forget).await??;
        }
        None => shared.mountpoints.remove(&mountpoint)?,
    }
    mountpoint.close().await;
    tracing::info!(id = %mountpoint.id, name = mountpoint.name, "mountpoint destroyed");
    shared.notify(client, || mountpoint.event("destroyed").into());
    Ok(json!({ "streaming": "destroyed", "destroyed": mountpoint.id.to_json() }))
}

fn switch(
    shared: &Shared,
    fields: Fields<'_>,
    rights: Rights,
    enabled: bool,
) -> Result<Value, Refusal> {
    let mountpoint = managed(shared, fields)?;
    if !enabled {
        let stop = fields.member("stop_recording")?.unwrap_or(true);
        if stop && rights.may(Right::Record) {
            mountpoint.stop_recordings();
        }
    }
    mountpoint.enable(enabled);
    Ok(json!({ "streaming": "ok" }))
}

/// Returns the mountpoint that the request names, if the request has its secret.
fn managed(shared: &Shared, fields: Fields<'_>) -> Result<Arc<Mountpoint>, Refusal> {
    let mountpoint = shared.mountpoints.named(fields)?;
    mountpoint.check_home()?;
    mountpoint.details().access.check_secret(fields)?;
    Ok(mountpoint)
}
