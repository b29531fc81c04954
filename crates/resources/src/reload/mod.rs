//! Changes of configured resources, when the configuration is read again while the server runs.
//!
//! No user loses a resource for that. A resource in use is changed as far as possible. Otherwise it
//! ends, or is made again, once nobody uses it.

use std::future::Future;
use std::sync::{Arc, Weak};
use std::time::Duration;

use portunus_core::PluginReloaded;
use serde_json::{Map, Value};
use tokio::time::sleep;

use crate::waiting::Waiter;
use crate::{Id, Resource, Resources, Written};

/// The period of the checks whether a waiting resource is unused.
const PERIOD: Duration = Duration::from_secs(1);

/// A plugin whose resources the configuration can make and end at run time.
pub trait Reloadable: Send + Sync + 'static {
    /// The type of its resources.
    type Resource: Resource;

    /// Returns all of them.
    fn resources(&self) -> &Resources<Self::Resource>;

    /// Makes a resource of the configuration. The error is for people.
    fn make_configured(
        self: Arc<Self>,
        written: <Self::Resource as Resource>::Written,
    ) -> impl Future<Output = Result<(), String>> + Send;
}

/// Makes a plugin's resources those of the `new` configuration. `running` are those of the last
/// one.
pub async fn reload<P: Reloadable>(
    plugin: &Arc<P>,
    running: &[<P::Resource as Resource>::Written],
    new: &[<P::Resource as Resource>::Written],
) -> PluginReloaded {
    let mut reloaded = PluginReloaded::default();
    let resources = plugin.resources();
    if let Some(saved) = resources.saved() {
        saved.reconfigure(new);
    }
    for gone in running {
        let key = gone.key();
        if new.iter().any(|it| it.key() == key) {
            continue;
        }
        // A resource that waited to be made again is not made now.
        resources.waiting().take(&key);
        replace(plugin, &key, None, &mut reloaded).await;
    }
    for written in new {
        let key = written.key();
        let waited = resources.waiting().take(&key).is_some();
        match running.iter().find(|it| it.key() == key) {
            Some(before) if !waited => change(plugin, before, written, &mut reloaded).await,
            Some(_) => replace(plugin, &key, Some(written.clone()), &mut reloaded).await,
            None if waited => replace(plugin, &key, Some(written.clone()), &mut reloaded).await,
            None => make(plugin, written.clone(), "created", &mut reloaded).await,
        }
    }
    if resources.waiting().begin_watching() {
        tokio::spawn(look_after(Arc::downgrade(plugin)));
    }
    reloaded
}

/// Applies the new description of a resource that the configuration has had before.
async fn change<P: Reloadable>(
    plugin: &Arc<P>,
    before: &<P::Resource as Resource>::Written,
    after: &<P::Resource as Resource>::Written,
    reloaded: &mut PluginReloaded,
) {
    let changed = different(&before.to_members(), &after.to_members());
    if changed.is_empty() {
        return;
    }
    let key = after.key();
    let is_editable = |name: &String| P::Resource::is_editable(name);
    let found = plugin.resources().configured(&key);
    match found.filter(|_| changed.iter().all(is_editable)) {
        Some(_) if is_saved(plugin, &key) => left(plugin, &key, reloaded),
        Some(resource) => {
            resource.apply(after);
            reloaded.changed.push(named::<P>(&key, "changed"));
        }
        None => replace(plugin, &key, Some(after.clone()), reloaded).await,
    }
}

/// Ends a resource and makes another of `by`, at once or when it is unused.
async fn replace<P: Reloadable>(
    plugin: &Arc<P>,
    key: &Id,
    by: Option<<P::Resource as Resource>::Written>,
    reloaded: &mut PluginReloaded,
) {
    if is_saved(plugin, key) {
        return left(plugin, key, reloaded);
    }
    if let Some(resource) = plugin.resources().configured(key) {
        if resource.has_clients() || !end(plugin, &resource).await {
            let what = match by {
                Some(_) => "is in use: it changes once nobody uses it",
                None => "is in use: it ends once nobody uses it",
            };
            reloaded.warnings.push(named::<P>(key, what));
            let waiting = plugin.resources().waiting();
            waiting.insert(key.clone(), Waiter { resource, by });
            return;
        }
        if by.is_none() {
            reloaded.changed.push(named::<P>(key, "removed"));
        }
    }
    if let Some(by) = by {
        make(plugin, by, "changed", reloaded).await;
    }
}

async fn make<P: Reloadable>(
    plugin: &Arc<P>,
    written: <P::Resource as Resource>::Written,
    done: &str,
    reloaded: &mut PluginReloaded,
) {
    let key = written.key();
    if is_saved(plugin, &key) {
        return left(plugin, &key, reloaded);
    }
    match plugin.clone().make_configured(written).await {
        Ok(()) => reloaded.changed.push(named::<P>(&key, done)),
        Err(error) => {
            let text = format!("cannot be made: {error}");
            reloaded.warnings.push(named::<P>(&key, &text));
        }
    }
}

/// Ends an unused resource. Returns whether it did.
async fn end<P: Reloadable>(plugin: &Arc<P>, resource: &Arc<P::Resource>) -> bool {
    let has_ended = resource.clone().end_unused().await;
    if has_ended {
        // If it was removed meanwhile, it has ended too.
        let _ = plugin.resources().remove(resource);
    }
    // A resource that a request has destroyed is gone too.
    has_ended || !plugin.resources().has(resource)
}

/// Returns whether the file of permanent resources replaces or removes it.
fn is_saved<P: Reloadable>(plugin: &Arc<P>, key: &Id) -> bool {
    let saved = plugin.resources().saved();
    saved.is_some_and(|saved| saved.overrides(key))
}

fn left<P: Reloadable>(plugin: &Arc<P>, key: &Id, reloaded: &mut PluginReloaded) {
    let file = plugin.resources().saved().map(|saved| saved.path());
    let file = file.map(|path| path.display().to_string());
    let text = format!(
        "stays as {} has it, which goes before the configuration",
        file.unwrap_or_default()
    );
    reloaded.warnings.push(named::<P>(key, &text));
}

fn named<P: Reloadable>(key: &Id, what: &str) -> String {
    let one = <<P::Resource as Resource>::Written as Written>::ONE;
    format!("{one} {key} {what}")
}

/// Ends what waits for that, and makes what takes its place.
async fn look_after<P: Reloadable>(plugin: Weak<P>) {
    loop {
        sleep(PERIOD).await;
        let Some(plugin) = plugin.upgrade() else {
            return;
        };
        for key in plugin.resources().waiting().unused() {
            let Some(Waiter { resource, by }) = plugin.resources().waiting().take(&key) else {
                continue;
            };
            let mut reloaded = PluginReloaded::default();
            if !end(&plugin, &resource).await {
                let waiting = plugin.resources().waiting();
                waiting.insert(key, Waiter { resource, by });
                continue;
            }
            match by {
                Some(by) => make(&plugin, by, "changed", &mut reloaded).await,
                None => reloaded.changed.push(named::<P>(&key, "removed")),
            }
            for text in reloaded.changed {
                tracing::info!("{text}, as the configuration says");
            }
            for text in reloaded.warnings {
                tracing::warn!("{text}");
            }
        }
        if plugin.resources().waiting().end_watching() {
            return;
        }
    }
}

/// Returns the names of the members that differ.
fn different(before: &Map<String, Value>, after: &Map<String, Value>) -> Vec<String> {
    let changed = before
        .iter()
        .filter(|(key, value)| after.get(*key) != Some(value));
    let added = after.keys().filter(|key| !before.contains_key(*key));
    let changed = changed.map(|(key, _)| key);
    changed.chain(added).cloned().collect()
}

#[cfg(test)]
mod tests;
