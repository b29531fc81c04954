//! Resources of the configuration that are new, changed or gone when it is read again while the server runs.
//!
//! Nobody is put out of a resource for that: one that is used is changed as far as that is possible, and otherwise ends, or
//! is made anew, once nobody uses it any more.

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use portunus_core::PluginReloaded;
use serde_json::{Map, Value};
use tokio::time::sleep;

use crate::{Id, Resource, Resources, Written};

/// How often it is looked whether what has to end is unused.
const PERIOD: Duration = Duration::from_secs(1);

/// A plugin whose resources the configuration can make and end while it runs.
pub trait Reloadable: Send + Sync + 'static {
    /// What its resources are.
    type Resource: Resource;

    /// All of them.
    fn resources(&self) -> &Resources<Self::Resource>;

    /// Makes a resource of the configuration. The error is for people.
    fn make_configured(
        self: Arc<Self>,
        written: <Self::Resource as Resource>::Written,
    ) -> impl Future<Output = Result<(), String>> + Send;
}

/// What ends once it is unused, by the keys of the configuration.
#[derive(Debug)]
pub(crate) struct Waiting<R: Resource>(Mutex<State<R>>);

#[derive(Debug)]
struct State<R: Resource> {
    /// Each with what takes its place, if anything does.
    entries: HashMap<Id, (Arc<R>, Option<R::Written>)>,
    /// A task looks after them.
    is_watched: bool,
}

impl<R: Resource> Default for Waiting<R> {
    fn default() -> Self {
        Waiting(Mutex::new(State {
            entries: HashMap::new(),
            is_watched: false,
        }))
    }
}

impl<R: Resource> Waiting<R> {
    fn state(&self) -> MutexGuard<'_, State<R>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, key: &Id) -> Option<(Arc<R>, Option<R::Written>)> {
        self.state().entries.remove(key)
    }

    /// The resources that nobody uses any more, with their keys.
    fn unused(&self) -> Vec<Id> {
        let entries: Vec<_> = {
            let state = self.state();
            let entries = state.entries.iter();
            entries
                .map(|(key, (resource, _))| (key.clone(), resource.clone()))
                .collect()
        };
        // Not under the lock: a resource has one of its own.
        let unused = entries.into_iter().filter(|(_, it)| !it.has_clients());
        unused.map(|(key, _)| key).collect()
    }

    /// Whether a task has to be started that looks after them.
    fn begin_watching(&self) -> bool {
        let mut state = self.state();
        !state.entries.is_empty() && !std::mem::replace(&mut state.is_watched, true)
    }

    fn end_watching(&self) -> bool {
        let mut state = self.state();
        state.is_watched = !state.entries.is_empty();
        !state.is_watched
    }
}

/// Makes the resources of a plugin those of a configuration that was read again. `running` are those of the configuration
/// that was applied last.
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
        // What waited for its end to be made anew is not made now.
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

/// Ends a resource, and makes another of `by`, at once or when it is unused.
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
            waiting.state().entries.insert(key.clone(), (resource, by));
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

/// Ends a resource that nobody uses. Returns whether it did.
async fn end<P: Reloadable>(plugin: &Arc<P>, resource: &Arc<P::Resource>) -> bool {
    let has_ended = resource.clone().end_unused().await;
    if has_ended {
        // Whoever has removed it since has ended it as well.
        let _ = plugin.resources().remove(resource);
    }
    // One that a request has destroyed is gone, too.
    has_ended || !plugin.resources().has(resource)
}

/// Whether the file of permanent resources says something else of it.
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
            let Some((resource, by)) = plugin.resources().waiting().take(&key) else {
                continue;
            };
            let mut reloaded = PluginReloaded::default();
            if !end(&plugin, &resource).await {
                let waiting = plugin.resources().waiting();
                waiting.state().entries.insert(key, (resource, by));
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

/// The names of the members that differ.
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
