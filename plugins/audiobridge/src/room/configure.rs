//! Changing how somebody is heard and what it hears.

use portunus_core::{Fields, Rights};
use portunus_resources::Id;

use super::{RecordWish, RoomState};
use crate::refusal::Refusal;

impl RoomState {
    /// Does what the request `configure` says of somebody; others are told, if it says something that they see.
    pub(crate) fn configure(
        &mut self,
        id: &Id,
        fields: Fields<'_>,
        rights: Rights,
    ) -> Result<(), Refusal> {
        let Some(person) = self.roster.get_mut(id) else {
            return Ok(());
        };
        let settings = person.settings.configured(fields, &self.options)?;
        let wish = RecordWish::read(fields, rights)?;
        let stops = fields.boolean("record")? == Some(false);
        if let Some(wish) = &wish {
            let name = wish.base.as_deref();
            self.check_recording(name)?;
        }
        let Some(person) = self.roster.get_mut(id) else {
            return Ok(());
        };
        let changed = person.settings != settings;
        person.settings = settings;
        if changed {
            self.remix(id);
        }
        if stops {
            self.stop_recording(id);
        } else if wish.is_some() {
            self.start_recording(id, wish);
        }
        let shown = ["muted", "display", "denoise"];
        let seen = shown.iter().any(|name| fields.has(name))
            || (self.options.spatial && fields.has("spatial_position"));
        if seen {
            self.tell_shown(id);
        }
        if let Some(person) = self.roster.get(id) {
            self.notify_settings(person, "configured");
        }
        Ok(())
    }
}
