//! Changing the settings of a participant.

use portunus_core::Rights;
use portunus_resources::Id;

use super::{RecordWish, RoomState};
use crate::refusal::Refusal;
use crate::settings::{Configuring, Settings};

/// The checked changes of a request `configure`.
#[derive(Debug)]
pub(crate) struct Change {
    settings: Settings,
    /// The recording to start, if any.
    wish: Option<RecordWish>,
    /// Whether the recording ends.
    stops: bool,
    /// Whether others are told.
    is_visible: bool,
}

impl RoomState {
    /// Checks the changes of a request `configure`. Returns `None` if there is no such participant.
    pub(crate) fn change(
        &self,
        id: &Id,
        asked: &Configuring<'_>,
        rights: Rights,
    ) -> Result<Option<Change>, Refusal> {
        let Some(person) = self.roster.get(id) else {
            return Ok(None);
        };
        let settings = person.settings.configured(asked, self.profile.options())?;
        let Configuring {
            record,
            filename,
            record_format,
            ..
        } = *asked;
        let wish = RecordWish::new(record, filename, record_format, rights)?;
        let stops = record == Some(false);
        if let Some(wish) = &wish {
            self.people_recorder
                .check(&self.profile, wish.base.as_deref())?;
        }
        let is_visible = asked.muted.is_some()
            || asked.display.is_some()
            || asked.denoise.is_some()
            || (self.profile.options().spatial && asked.spatial_position.is_some());
        Ok(Some(Change {
            settings,
            wish,
            stops,
            is_visible,
        }))
    }

    /// Applies the changes. Others are told if they see them.
    pub(crate) fn configure(&mut self, id: &Id, change: Change) {
        let Some(person) = self.roster.get_mut(id) else {
            return;
        };
        let changed = person.settings != change.settings;
        person.settings = change.settings;
        if changed {
            self.update(id);
        }
        if change.stops {
            self.stop_recording(id);
        } else if change.wish.is_some() {
            self.start_recording(id, change.wish);
        }
        if change.is_visible {
            self.send_state(id);
        }
        if let Some(person) = self.roster.get(id) {
            self.notify_settings(person, "configured");
        }
    }
}
