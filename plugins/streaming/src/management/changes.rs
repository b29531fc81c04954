//! `edit`: what of a mountpoint can be changed.

use std::sync::Arc;

use portunus_core::{Fields, Handle, Right, Rights};
use portunus_resources::{check_secret, off_thread};
use serde_json::{Value, json};

use super::managed;
use crate::refusal::Refusal;
use crate::shared::Shared;
use crate::spec::{DETAILS, SourceSpec};

pub(super) async fn edit(
    shared: &Arc<Shared>,
    fields: Fields<'_>,
    rights: Rights,
    client: Option<&Handle>,
) -> Result<Value, Refusal> {
    let mountpoint = managed(shared, fields)?;
    DETAILS.check_edited(fields, |_| true)?;
    let saved = shared.mountpoints.permanent(fields)?.cloned();
    let permanent = saved.is_some();
    let edited_event = fields.member("edited_event")?.unwrap_or(false);

    // Another edit may be waiting for the disk.
    let turn = mountpoint.editing.clone().lock_owned().await;
    let before = mountpoint.details().clone();
    // Another edit may have changed the secret meanwhile.
    before.access.check_secret(fields)?;
    let details = DETAILS.edited(&before, fields)?;
    if details.access.secret.is_some() && before.access.secret.is_none() {
        check_first_secret(&mountpoint.spec.source, fields, rights)?;
    }
    let told = (edited_event && details.metadata != before.metadata).then(|| {
        mountpoint
            .event("edited")
            .with("metadata", details.metadata.clone().unwrap_or_default())
    });
    match saved {
        // An edit that cannot be saved changes nothing.
        Some(saved) => {
            let (all, edited) = (shared.clone(), mountpoint.clone());
            let write = move || {
                let spec = || {
                    let is_there = all.mountpoints.has(&edited);
                    is_there.then(|| edited.to_spec(&details))
                };
                // The write continues if the client is gone, and holds the lock until its end.
                let _turn = turn;
                saved.keep(spec, || *edited.details() = details.clone())
            };
            off_thread(write).await?;
            shared.mountpoints.adopt(&mountpoint);
        }
        None => *mountpoint.details() = details,
    }
    shared.notify(client, || {
        let metadata = mountpoint.details().metadata.clone();
        let edited = mountpoint.event("edited");
        edited.with_some("metadata", metadata).into()
    });
    if let Some(event) = told {
        mountpoint.notify_viewers(event);
    }
    Ok(json!({ "streaming": "edited", "id": mountpoint.id.to_json(), "permanent": permanent }))
}

/// Checks the first secret of a mountpoint. A secret permits to publish, and shows the token of
/// publishers, files and servers. Anybody may edit a mountpoint without a secret, so the client has
/// to know the token, or have the right to create such a mountpoint.
fn check_first_secret(
    source: &SourceSpec,
    fields: Fields<'_>,
    rights: Rights,
) -> Result<(), Refusal> {
    match source {
        SourceSpec::Whip(whip) => Ok(check_secret(fields, "token", whip.token.as_deref())?),
        SourceSpec::Live(_) | SourceSpec::OnDemand(_) | SourceSpec::Rtsp(_) => {
            Ok(rights.check(Right::Create.into())?)
        }
        SourceSpec::Rtp(_) | SourceSpec::Relayed(_) => Ok(()),
    }
}
