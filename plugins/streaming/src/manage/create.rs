//! `create`, and the mountpoints that are there from the start.

use std::sync::Arc;

use portunus_core::{Fields, Object};
use serde_json::{Map, Value};

use super::{saved, write};
use crate::mountpoint::{self, Mountpoint};
use crate::plugin::Shared;
use crate::refusal::Refusal;
use crate::registry::Reservation;
use crate::secret;
use crate::spec::{MountpointSpec, Origin, SourceSpec};

pub(super) async fn create(
    shared: &Arc<Shared>,
    body: &Map<String, Value>,
) -> Result<Value, Refusal> {
    let fields = Fields(body);
    secret::check(fields, "admin_key", shared.admin_key.as_deref())?;
    let permanent = fields.boolean("permanent")?.unwrap_or(false);
    let spec = MountpointSpec::read(body, shared.string_ids(), Origin::Request)
        .map_err(|problem| problem.refusal)?;
    let saved = saved(shared, permanent)?;
    let flat = matches!(&spec.source, SourceSpec::Rtp(rtp) if rtp.flat);
    let registry = &shared.mountpoints;
    let reservation = registry.reserve(spec.id.clone(), shared.string_ids())?;
    if let (Some(saved), Some(name)) = (&saved, &spec.name)
        && saved.is_taken(name, reservation.id())
    {
        let reason = format!("another permanent mountpoint has the name {name}");
        return Err(Refusal::CannotCreate(reason));
    }
    let mountpoint = make(shared, spec, reservation).await?;
    if let Some(saved) = saved {
        let made = mountpoint.clone();
        let spec = move || Some(made.to_spec(&made.details()));
        if let Err(refusal) = write(move || saved.keep(spec, || ())).await {
            // What was asked for is a mountpoint that stays: without that there is none.
            let _ = shared.mountpoints.remove(&mountpoint);
            mountpoint.close().await;
            return Err(refusal);
        }
    }
    let created = Object::new()
        .with("streaming", "created")
        .with("created", mountpoint.name.as_str())
        .with("permanent", permanent)
        .with("stream", mountpoint.created())
        .with_some("warning", flat.then_some("deprecated_api"));
    Ok(created.into())
}

/// Makes the mountpoints that are there from the start. One that cannot be made is told in the log; an RTSP server
/// that does not answer holds up nobody.
pub(crate) async fn create_all(shared: &Arc<Shared>, specs: Vec<MountpointSpec>) {
    // The ids that are written down go first, before random ones are chosen.
    let (known, unknown): (Vec<_>, Vec<_>) = specs.into_iter().partition(|s| s.id.is_some());
    for spec in known.into_iter().chain(unknown) {
        let name = spec.name.clone().unwrap_or_default();
        let registry = &shared.mountpoints;
        let reservation = match registry.reserve(spec.id.clone(), shared.string_ids()) {
            Ok(reservation) => reservation,
            Err(refusal) => {
                tracing::error!(name, "mountpoint left out: {refusal}");
                continue;
            }
        };
        if let (Some(saved), None) = (&shared.saved, &spec.id) {
            saved.learn(&name, reservation.id());
        }
        let later = matches!(spec.source, SourceSpec::Rtsp(_));
        let shared = shared.clone();
        let made = async move {
            if let Err(refusal) = make(&shared, spec, reservation).await {
                tracing::error!(name, "mountpoint left out: {refusal}");
            }
        };
        match later {
            true => drop(tokio::spawn(made)),
            false => made.await,
        }
    }
}

async fn make(
    shared: &Arc<Shared>,
    spec: MountpointSpec,
    reservation: Reservation,
) -> Result<Arc<Mountpoint>, Refusal> {
    let mountpoint = mountpoint::open(shared, spec, reservation.id().clone()).await?;
    let mountpoint = Arc::new(mountpoint);
    reservation.keep(mountpoint.clone());
    mountpoint.begin_pulling();
    mountpoint.announce();
    Ok(mountpoint)
}
