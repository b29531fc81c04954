//! `create`, and the mountpoints of the configuration.

use std::sync::Arc;

use portunus_core::configuration::PortRange;
use portunus_core::{Fields, Object};
use portunus_resources::{Asker, Maker, Reloadable, Reservation, Resources, Written, off_thread};
use serde_json::{Map, Value};

use crate::bounds::Bounds;
use crate::mountpoint::{self, Mountpoint};
use crate::refusal::Refusal;
use crate::shared::Shared;
use crate::spec::{MountpointSpec, Origin, SourceSpec};

/// The most streams of a mountpoint that a client makes: each may have four sockets.
const MAX_STREAMS_OF_CLIENTS: usize = 16;

/// The limit of bytes that such a stream caches from its last keyframe on.
const MAX_KEPT_OF_CLIENTS: u32 = 1 << 20;

pub(super) async fn create(
    shared: &Arc<Shared>,
    body: &Map<String, Value>,
    asker: &Asker,
) -> Result<Value, Refusal> {
    let fields = Fields(body);
    let mountpoints = &shared.mountpoints;
    mountpoints.check_admin_key(fields)?;
    let saved = mountpoints.permanent(fields)?.cloned();
    let permanent = saved.is_some();
    let mut spec = MountpointSpec::read(body, mountpoints.ids(), Origin::Request)?;
    let maker = mountpoints.maker(asker.maker, permanent);
    if let Maker::Client(_) = maker {
        limit(&mut spec, shared.ports)?;
    }
    let flat = matches!(&spec.source, SourceSpec::Rtp(rtp) if rtp.flat);
    let reservation = mountpoints.reserve(spec.id.clone(), maker)?;
    if let Some(saved) = saved.as_ref().filter(|_| spec.name.is_some()) {
        let free = saved.check_free(&spec.key(), reservation.id());
        free.map_err(|error| Refusal::CannotCreate(error.to_string()))?;
    }
    let mountpoint = make(shared, spec, reservation, shared.bounds.clone()).await?;
    if let Some(saved) = saved {
        let made = mountpoint.clone();
        let spec = move || Some(made.to_spec(&made.details()));
        if let Err(error) = off_thread(move || saved.keep(spec, || ())).await {
            // A permanent mountpoint was requested, and it cannot be saved.
            let _ = mountpoints.remove(&mountpoint);
            mountpoint.close().await;
            return Err(error.into());
        }
    }
    shared.notify(asker.handle.as_ref(), || {
        let created = mountpoint.event("created");
        created.with("type", mountpoint.type_name()).into()
    });
    let created = Object::new()
        .with("streaming", "created")
        .with("created", mountpoint.name.as_str())
        .with("permanent", permanent)
        .with("stream", mountpoint.created())
        .with_some("warning", flat.then_some("deprecated_api"));
    Ok(created.into())
}

/// Checks and limits the resources of a client's mountpoint.
fn limit(spec: &mut MountpointSpec, ports: PortRange) -> Result<(), Refusal> {
    let (media, keyframes) = match &mut spec.source {
        SourceSpec::Rtp(rtp) => (&rtp.media, &mut rtp.keyframes),
        SourceSpec::Whip(whip) => (&whip.media, &mut whip.keyframes),
        SourceSpec::Live(_)
        | SourceSpec::OnDemand(_)
        | SourceSpec::Rtsp(_)
        | SourceSpec::Relayed(_) => return Ok(()),
    };
    if media.len() > MAX_STREAMS_OF_CLIENTS {
        let most = format!("it may have {MAX_STREAMS_OF_CLIENTS} streams at most");
        return Err(Refusal::CannotCreate(most));
    }
    let mut named = media.iter().flat_map(|media| {
        let more = media.more_ports.iter().copied();
        more.chain([media.port]).chain(media.rtcpport)
    });
    let is_outside = |port: &u16| *port > 0 && !(ports.first()..=ports.last()).contains(port);
    if named.any(|port| is_outside(&port)) {
        let within = format!("its ports may be within {ports}, see streaming.rtp_port_range");
        return Err(Refusal::CannotCreate(within));
    }
    keyframes.limit(MAX_KEPT_OF_CLIENTS);
    Ok(())
}

/// Makes the mountpoints of the configuration and of the file of permanent ones. Logs each failure.
/// An RTSP server that does not answer delays no other mountpoint.
///
/// A saved mountpoint has the bounds of requests, unless the configuration has its source: then
/// only its details were edited.
pub(crate) async fn create_all(
    shared: &Arc<Shared>,
    specs: Vec<MountpointSpec>,
    configured: &[SourceSpec],
) {
    // Mountpoints with ids come first, before random ids are chosen.
    let (known, unknown): (Vec<_>, Vec<_>) = specs.into_iter().partition(|s| s.id.is_some());
    for spec in known.into_iter().chain(unknown) {
        let name = spec.name.clone().unwrap_or_default();
        let reservation = match shared.mountpoints.reserve(spec.id.clone(), Maker::Operator) {
            Ok(reservation) => reservation,
            Err(refusal) => {
                let refusal = Refusal::from(refusal);
                tracing::error!(name, "mountpoint left out: {refusal}");
                continue;
            }
        };
        if let (Some(saved), None) = (shared.mountpoints.saved(), &spec.id) {
            saved.learn(&spec.key(), reservation.id());
        }
        let later = matches!(spec.source, SourceSpec::Rtsp(_));
        let bounds = match configured.contains(&spec.source) {
            true => Bounds::Anywhere,
            false => shared.bounds.clone(),
        };
        let shared = shared.clone();
        let made = async move {
            if let Err(refusal) = make(&shared, spec, reservation, bounds).await {
                tracing::error!(name, "mountpoint left out: {refusal}");
            }
        };
        match later {
            true => drop(tokio::spawn(made)),
            false => made.await,
        }
    }
}

/// Makes a mountpoint of the configuration while the server runs. Retries an RTSP server that does
/// not answer.
async fn create_configured(shared: &Arc<Shared>, spec: MountpointSpec) -> Result<(), Refusal> {
    shared.evict(spec.id.as_ref()).await;
    let reservation = shared
        .mountpoints
        .reserve(spec.id.clone(), Maker::Operator)?;
    if let (Some(saved), None) = (shared.mountpoints.saved(), &spec.id) {
        saved.learn(&spec.key(), reservation.id());
    }
    make(shared, spec, reservation, Bounds::Anywhere)
        .await
        .map(drop)
}

async fn make(
    shared: &Arc<Shared>,
    spec: MountpointSpec,
    reservation: Reservation<Mountpoint>,
    bounds: Bounds,
) -> Result<Arc<Mountpoint>, Refusal> {
    let mountpoint = mountpoint::open(
        shared.open_context(),
        spec,
        reservation.id().clone(),
        bounds,
    )
    .await?;
    let mountpoint = Arc::new(mountpoint);
    reservation.keep(mountpoint.clone());
    mountpoint.begin_pulling();
    mountpoint.announce();
    shared.changed.notify_one();
    Ok(mountpoint)
}

impl Reloadable for Shared {
    type Resource = Mountpoint;

    fn resources(&self) -> &Resources<Mountpoint> {
        &self.mountpoints
    }

    async fn make_configured(self: Arc<Self>, spec: MountpointSpec) -> Result<(), String> {
        let made = create_configured(&self, spec).await;
        made.map_err(|refusal| refusal.to_string())
    }
}
