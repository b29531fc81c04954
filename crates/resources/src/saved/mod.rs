//! The file of resources that were made, changed or removed permanently.
//!
//! The server never writes to its configuration. This file has the differences, and is read after
//! it. A resource here replaces the configured one with its key. A configured one whose key is in
//! `removed` is left out. Resources that are not permanent may have any key, so those here have
//! unique ids as well.
//!
//! A change can be made in two ways. [`Saved::keep`] and [`Saved::remove`] write it first and then
//! apply it, so a failed write changes nothing. [`Saved::keep_soon`] and [`Saved::remove_soon`]
//! write a change that was applied, while others go on. In both ways, a later write is never of an
//! older state. A plugin uses one of them for all its resources.

use std::collections::HashMap;
use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use portunus_core::replace_file;
use serde_json::{Map, Value, json};
use tokio::task::JoinHandle;

use crate::{Id, Ids};

/// A resource in the configuration and in the file of permanent ones.
pub trait Written: Clone + Debug + Send + 'static {
    /// The name of its section, such as `room`.
    const ONE: &'static str;
    /// Several of them.
    const MANY: &'static str;

    /// Returns its key in the configuration: its id, or a name.
    fn key(&self) -> Id;

    /// Returns its id, if it has its own.
    fn id(&self) -> Option<&Id>;

    /// Reads a section. The error names the member with the mistake.
    fn read(members: &Map<String, Value>, ids: Ids) -> Result<Self, String>;

    /// Returns the section from which [`Written::read`] makes the same resource.
    fn to_members(&self) -> Map<String, Value>;
}

/// The file, with its content.
#[derive(Debug)]
pub struct Saved<W> {
    path: PathBuf,
    /// Locked as long as the file is written.
    content: Mutex<Content<W>>,
    /// The changes to write, by the keys of their resources.
    noted: Mutex<HashMap<Id, Change<W>>>,
}

#[derive(Debug, Clone)]
struct Content<W> {
    /// The keys of the configured resources, with their ids. They are not written.
    configured: Vec<(Id, Option<Id>)>,
    removed: Vec<Id>,
    resources: Vec<W>,
}

/// A change for good.
#[derive(Debug, Clone)]
enum Change<W> {
    Keep(W),
    /// The resource with this key and this id.
    Remove(Id, Id),
}

/// Why the file cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SavedError {
    /// It cannot be read.
    #[error("cannot read the saved {what} {}: {error}", path.display())]
    Read {
        /// The kind of resources in it.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// It is not what the server writes.
    #[error("cannot understand the saved {what} {}: {error}", path.display())]
    Content {
        /// The kind of resources in it.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        error: String,
    },
    /// It cannot be written.
    #[error("cannot write the saved {what} {}: {error}", path.display())]
    Write {
        /// The kind of resources in it.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// Another resource has this name there.
    #[error("another permanent {what} has the name {name}")]
    Taken {
        /// The kind of resource.
        what: &'static str,
        /// The name.
        name: Id,
    },
    /// Writing was cut off.
    #[error("the file was not written: {0}")]
    CutOff(String),
}

impl<W: Written> Saved<W> {
    /// Opens the file, which may be absent. Returns it, and the resources at the start: the saved
    /// ones, and the `configured` ones that are not replaced or removed.
    pub fn open(path: PathBuf, ids: Ids, configured: Vec<W>) -> Result<(Self, Vec<W>), SavedError> {
        let what = W::MANY;
        let mut content: Content<W> = match std::fs::read_to_string(&path) {
            Ok(text) => match Content::read(&text, ids) {
                Ok(content) => content,
                Err(error) => return Err(SavedError::Content { what, path, error }),
            },
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Content::empty(),
            Err(error) => return Err(SavedError::Read { what, path, error }),
        };
        let known = configured.iter().map(|resource: &W| {
            let key = resource.key();
            // A resource without its own id keeps the saved one.
            let saved = || content.find(&key)?.id().cloned();
            let id = resource.id().cloned().or_else(saved);
            (key, id)
        });
        content.configured = known.collect();
        let stays = |resource: &W| {
            let key = resource.key();
            !content.removed.contains(&key) && content.find(&key).is_none()
        };
        let mut first: Vec<W> = configured.into_iter().filter(stays).collect();
        first.extend(content.resources.iter().cloned());
        let saved = Saved {
            path,
            content: Mutex::new(content),
            noted: Mutex::default(),
        };
        Ok((saved, first))
    }

    /// Notes the resources of a new configuration.
    pub(crate) fn reconfigure(&self, configured: &[W]) {
        let mut content = self.content();
        let known = configured.iter().map(|resource| {
            let key = resource.key();
            let former = content.configured.iter().find(|(known, _)| *known == key);
            let former = former.and_then(|(_, id)| id.clone());
            let saved = || content.find(&key)?.id().cloned();
            let id = resource.id().cloned().or(former).or_else(saved);
            (key, id)
        });
        content.configured = known.collect();
    }

    /// Returns whether the file replaces or removes the resource with this key.
    pub(crate) fn overrides(&self, key: &Id) -> bool {
        let content = self.content();
        content.removed.contains(key) || content.find(key).is_some()
    }

    /// Returns whether the file or the configuration has a resource with this key.
    pub(crate) fn has(&self, key: &Id) -> bool {
        let content = self.content();
        let mut configured = content.configured.iter();
        content.find(key).is_some()
            || configured.any(|(known, _)| known == key) && !content.removed.contains(key)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Notes the id of a configured resource without its own.
    pub fn learn(&self, key: &Id, id: &Id) {
        let mut content = self.content();
        let known = content.configured.iter_mut();
        for (_, known) in known.filter(|(known, _)| known == key) {
            known.get_or_insert_with(|| id.clone());
        }
    }

    /// Checks that no resource but `id` is saved or configured under `key`.
    pub fn check_free(&self, key: &Id, id: &Id) -> Result<(), SavedError> {
        self.content().check_free(key, id)
    }

    /// Saves the result of `resource`, in place of the former one. Saves nothing if it returns
    /// `None`. It is called at the time of the write. `apply` is called after the write, before any
    /// other one. It blocks: see [`off_thread`].
    pub fn keep<T>(
        &self,
        resource: impl FnOnce() -> Option<W>,
        apply: impl FnOnce() -> T,
    ) -> Result<T, SavedError> {
        let mut content = self.content();
        self.write(&mut content, resource().map(Change::Keep))?;
        Ok(apply())
    }

    /// Removes the resource `id` for good, even if the configuration has it, but no other one under
    /// its key. `forget` is called after the write, before anybody can save it again. It blocks:
    /// see [`off_thread`].
    pub fn remove<T>(&self, key: Id, id: Id, forget: impl FnOnce() -> T) -> Result<T, SavedError> {
        let mut content = self.content();
        self.write(&mut content, Some(Change::Remove(key, id)))?;
        Ok(forget())
    }

    /// Saves a resource that has just changed. The caller has to hold the lock of that change, so
    /// that the last change is the last write.
    pub fn keep_soon(self: &Arc<Self>, resource: W) -> Writing {
        self.soon(resource.key(), Change::Keep(resource))
    }

    /// Removes a resource that has just been removed, as [`Saved::keep_soon`] saves one.
    pub fn remove_soon(self: &Arc<Self>, key: Id, id: Id) -> Writing {
        self.soon(key.clone(), Change::Remove(key, id))
    }

    fn soon(self: &Arc<Self>, key: Id, change: Change<W>) -> Writing {
        self.noted().insert(key.clone(), change);
        let saved = self.clone();
        Writing(tokio::task::spawn_blocking(move || saved.write_noted(key)))
    }

    /// Writes the noted change of a resource, unless a later change did.
    fn write_noted(&self, key: Id) -> Result<(), SavedError> {
        let mut content = self.content();
        let Some(change) = self.noted().remove(&key) else {
            return Ok(());
        };
        let written = self.write(&mut content, Some(change.clone()));
        if written.is_err() {
            // A later change may have noted its own, and retries.
            self.noted().entry(key).or_insert(change);
        }
        written
    }

    /// Changes the content, if that can be written.
    fn write(&self, content: &mut Content<W>, change: Option<Change<W>>) -> Result<(), SavedError> {
        let mut changed = content.clone();
        match change {
            Some(Change::Keep(resource)) => changed.keep(resource)?,
            Some(Change::Remove(key, id)) => changed.remove(key, &id),
            None => {}
        }
        let text = changed.to_toml().map_err(std::io::Error::other);
        let written = text.and_then(|text| replace_file(&self.path, &text));
        written.map_err(|error| SavedError::Write {
            what: W::MANY,
            path: self.path.clone(),
            error,
        })?;
        *content = changed;
        Ok(())
    }

    fn content(&self) -> MutexGuard<'_, Content<W>> {
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn noted(&self) -> MutexGuard<'_, HashMap<Id, Change<W>>> {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A change that is being written, whether or not this is waited for.
#[derive(Debug)]
pub struct Writing(JoinHandle<Result<(), SavedError>>);

impl Writing {
    /// Leaves it to itself. The error is in the log.
    pub(crate) fn detach(self) {
        tokio::spawn(self.done());
    }

    /// Waits until it is written. The error is in the log.
    pub async fn done(self) -> Result<(), SavedError> {
        finish(self.0).await
    }
}

/// Runs a blocking function, such as [`Saved::keep`], on another thread. It continues even if
/// nobody waits for it. Its error is in the log.
pub async fn off_thread<T: Send + 'static>(
    change: impl FnOnce() -> Result<T, SavedError> + Send + 'static,
) -> Result<T, SavedError> {
    finish(tokio::task::spawn_blocking(change)).await
}

async fn finish<T>(task: JoinHandle<Result<T, SavedError>>) -> Result<T, SavedError> {
    let done = task
        .await
        .unwrap_or_else(|error| Err(SavedError::CutOff(error.to_string())));
    if let Err(error) = &done {
        tracing::error!("{error}");
    }
    done
}

/// Reads the text of a file of saved resources and writes it again.
pub fn rewrite_saved<W: Written>(text: &str, ids: Ids) -> Result<String, String> {
    let content = Content::<W>::read(text, ids)?;
    content.to_toml().map_err(|error| error.to_string())
}

impl<W: Written> Content<W> {
    fn empty() -> Self {
        Content {
            configured: Vec::new(),
            removed: Vec::new(),
            resources: Vec::new(),
        }
    }

    /// Returns the saved resource under this key.
    fn find(&self, key: &Id) -> Option<&W> {
        self.resources.iter().find(|known| known.key() == *key)
    }

    /// Returns whether the configuration has the resource `id` under `key`.
    fn is_configured(&self, key: &Id, id: &Id) -> bool {
        let mut known = self.configured.iter();
        known.any(|(known, of)| known == key && of.as_ref() == Some(id))
    }

    /// Returns whether the configuration has another resource than `id` under `key`.
    fn has_other(&self, key: &Id, id: &Id) -> bool {
        let mut known = self.configured.iter();
        known.any(|(known, of)| known == key && of.as_ref() != Some(id))
    }

    fn check_free(&self, key: &Id, id: &Id) -> Result<(), SavedError> {
        let is_taken = match self.find(key) {
            Some(saved) => saved.id() != Some(id),
            None => self.has_other(key, id) && !self.removed.contains(key),
        };
        match is_taken {
            true => Err(SavedError::Taken {
                what: W::ONE,
                name: key.clone(),
            }),
            false => Ok(()),
        }
    }

    fn keep(&mut self, resource: W) -> Result<(), SavedError> {
        let key = resource.key();
        let Some(id) = resource.id().cloned() else {
            return Ok(());
        };
        self.check_free(&key, &id)?;
        let mut known = self.resources.iter_mut();
        match known.find(|known| known.key() == key) {
            Some(known) => *known = resource,
            None => self.resources.push(resource),
        }
        if !self.has_other(&key, &id) {
            self.removed.retain(|removed| *removed != key);
        }
        Ok(())
    }

    fn remove(&mut self, key: Id, id: &Id) {
        let is_it = |known: &W| known.key() == key && known.id() == Some(id);
        self.resources.retain(|known| !is_it(known));
        if self.is_configured(&key, id) && !self.removed.contains(&key) {
            self.removed.push(key);
        }
    }

    fn read(text: &str, ids: Ids) -> Result<Self, String> {
        let members: Map<String, Value> =
            toml::from_str(text).map_err(|error| error.to_string())?;
        let list = |name: &str| members.get(name).and_then(Value::as_array);
        let removed = list("removed").into_iter().flatten();
        let resources = list(W::ONE).into_iter().flatten().map(|entry| {
            let members = entry.as_object();
            let members = members.ok_or_else(|| format!("a {} is not a section", W::ONE))?;
            W::read(members, ids)
        });
        Ok(Content {
            configured: Vec::new(),
            removed: removed.filter_map(Id::from_json).collect(),
            resources: resources.collect::<Result<_, String>>()?,
        })
    }

    fn to_toml(&self) -> Result<String, toml::ser::Error> {
        let removed: Vec<_> = self.removed.iter().map(Id::to_json).collect();
        let resources: Vec<_> = self.resources.iter().map(W::to_members).collect();
        let content = json!({ "removed": removed, W::ONE: resources });
        let head = format!(
            "# The {} that were made by requests. The server writes this file.\n\n",
            W::MANY
        );
        Ok(head + &toml::to_string(&content)?)
    }
}

#[cfg(test)]
mod tests;
