//! `edit`: what of a mountpoint can be changed.

use std::sync::Arc;

use portunus_core::{Fields, Object};
use serde_json::{Value, json};

use super::{managed, saved, write};
use crate::plugin::Shared;
use crate::refusal::Refusal;
use crate::secret;
use crate::spec::SourceSpec;

pub(super) async fn edit(shared: &Arc<Shared>, fields: Fields<'_>) -> Result<Value, Refusal> {
    let mountpoint = managed(shared, fields)?;
    let description = fields.string("new_description")?;
    let metadata = fields.string("new_metadata")?;
    let new_secret = fields.string("new_secret")?;
    let pin = fields.string("new_pin")?;
    let is_private = fields.boolean("new_is_private")?;
    let permanent = fields.boolean("permanent")?.unwrap_or(false);
    let edited_event = fields.boolean("edited_event")?.unwrap_or(false);
    let saved = saved(shared, permanent)?;
    let owned = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());

    // Another edit may be waiting for the disk.
    let turn = mountpoint.editing.clone().lock_owned().await;
    let before = mountpoint.details().clone();
    // Once more: another may have changed the secret just now.
    secret::check(fields, "secret", before.secret.as_deref())?;
    let secret = new_secret.and_then(owned);
    if secret.is_some() && before.secret.is_none() {
        check_first_secret(&mountpoint.spec.source, fields)?;
    }
    let mut details = before.clone();
    details.secret = secret.or(details.secret);
    if let Some(description) = description.and_then(owned) {
        details.description = description;
    }
    if let Some(pin) = pin {
        details.pin = owned(pin);
    }
    details.is_private = is_private.unwrap_or(details.is_private);
    if let Some(metadata) = metadata {
        details.metadata = owned(metadata);
    }
    let told = (edited_event && details.metadata != before.metadata).then(|| {
        Object::new()
            .with("event", "edited")
            .with("id", mountpoint.id.to_json())
            .with("metadata", details.metadata.clone().unwrap_or_default())
    });
    match saved {
        // What cannot be written changes nothing.
        Some(saved) => {
            let (shared, mountpoint) = (shared.clone(), mountpoint.clone());
            let edited = move || {
                let spec = || {
                    let there = shared.mountpoints.get(&mountpoint.id).ok();
                    let is_it = there.is_some_and(|there| Arc::ptr_eq(&there, &mountpoint));
                    is_it.then(|| mountpoint.to_spec(&details))
                };
                // It goes on where nobody waits for the answer any more; so does the turn.
                let _turn = turn;
                saved.keep(spec, || *mountpoint.details() = details.clone())
            };
            write(edited).await?;
        }
        None => *mountpoint.details() = details,
    }
    if let Some(event) = told {
        mountpoint.tell_viewers(&event.into());
    }
    Ok(json!({ "streaming": "edited", "id": mountpoint.id.to_json(), "permanent": permanent }))
}

/// A secret lets its owner publish, and shows the token of publishers. Whoever gives it to a mountpoint that has none,
/// which anybody may edit, has to know the token.
fn check_first_secret(source: &SourceSpec, fields: Fields<'_>) -> Result<(), Refusal> {
    match source {
        SourceSpec::Whip(whip) => secret::check(fields, "token", whip.token.as_deref()),
        _ => Ok(()),
    }
}
