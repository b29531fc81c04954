//! Changing how somebody is heard and what it hears.

use portunus_core::Rights;
use portunus_resources::Id;

use super::{RecordWish, RoomState};
use crate::refusal::Refusal;
use crate::settings::{Configuring, Settings};

/// What a request `configure` changes of somebody: it can be done.
#[derive(Debug)]
pub(crate) struct Change {
    settings: Settings,
    /// The recording that is to begin.
    wish: Option<RecordWish>,
    /// The recording is to end.
    stops: bool,
    /// Others are told.
    is_seen: bool,
}

impl RoomState {
    /// What the request `configure` says of somebody; none if it is not there. Nothing is changed yet.
    pub(crate) fn change(
        &self,
        id: &Id,
        asked: &Configuring<'_>,
        rights: Rights,
    ) -> Result<Option<Change>, Refusal> {
        let Some(person) = self.roster.get(id) else {
            return Ok(None);
        };
        let settings = person.settings.configured(asked, &self.options)?;
        let Configuring {
            record,
            filename,
            record_format,
            ..
        } = *asked;
        let wish = RecordWish::new(record, filename, record_format, rights)?;
        let stops = record == Some(false);
        if let Some(wish) = &wish {
            self.check_recording(wish.base.as_deref())?;
        }
        let is_seen = asked.muted.is_some()
            || asked.display.is_some()
            || asked.denoise.is_some()
            || (self.options.spatial && asked.spatial_position.is_some());
        Ok(Some(Change {
            settings,
            wish,
            stops,
            is_seen,
        }))
    }

    /// Does it; others are told, if it says something that they see.
    pub(crate) fn configure(&mut self, id: &Id, change: Change) {
        let Some(person) = self.roster.get_mut(id) else {
            return;
        };
        let changed = person.settings != change.settings;
        person.settings = change.settings;
        if changed {
            self.remix(id);
        }
        if change.stops {
            self.stop_recording(id);
        } else if change.wish.is_some() {
            self.start_recording(id, change.wish);
        }
        if change.is_seen {
            self.tell_shown(id);
        }
        if let Some(person) = self.roster.get(id) {
            self.notify_settings(person, "configured");
        }
    }
}
