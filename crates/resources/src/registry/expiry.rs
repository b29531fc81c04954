//! The end of unused resources of strangers.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::{Instant, sleep};

use super::Registry;
use crate::{Resource, Written};

/// The longest period of the checks.
const PERIOD: Duration = Duration::from_secs(60);

/// The shortest period of the checks.
const SHORTEST_PERIOD: Duration = Duration::from_secs(1);

/// Starts the checks of clients' resources, unless they run.
pub(crate) fn watch<R: Resource>(registry: &Arc<Registry<R>>) {
    let timeout = registry.limits().unused_timeout;
    let Ok(runtime) = Handle::try_current() else {
        return;
    };
    if !timeout.is_zero() && registry.begin_watching() {
        runtime.spawn(look_after(Arc::downgrade(registry)));
    }
}

async fn look_after<R: Resource>(registry: Weak<Registry<R>>) {
    let mut period = SHORTEST_PERIOD;
    loop {
        if let Some(registry) = registry.upgrade() {
            let timeout = registry.limits().unused_timeout;
            period = (timeout / 8).clamp(SHORTEST_PERIOD, PERIOD);
        }
        sleep(period).await;
        let Some(registry) = registry.upgrade() else {
            return;
        };
        let timeout = registry.limits().unused_timeout;
        // The configuration may have changed meanwhile.
        if timeout.is_zero() {
            continue;
        }
        for resource in registry.of_clients() {
            if registry.is_expired(&resource, timeout, Instant::now()) {
                end(&registry, resource, timeout).await;
            }
        }
        if registry.end_watching() {
            return;
        }
    }
}

async fn end<R: Resource>(registry: &Registry<R>, resource: Arc<R>, unused: Duration) {
    if !resource.clone().end_unused().await {
        return;
    }
    // If it was removed meanwhile, it has ended too.
    let _ = registry.remove(resource.id(), &resource);
    registry.count_expired();
    let (id, seconds) = (resource.id(), unused.as_secs());
    let what = <R::Written as Written>::ONE;
    tracing::info!(%id, seconds, "a {what} of a client ended, since it was unused");
}
