//! The work before a client joins or publishes on a node of a cluster.

use portunus_core::{Author, Fields, PluginRequest};
use portunus_resources::Asker;
use portunus_room::Work;

use super::{ClientHandle, Role};
use crate::preparation::publishes;
use crate::prepared::Prepared;
use crate::requests::Participation;

impl ClientHandle {
    pub(super) fn prepare_participation(
        &self,
        request: Participation,
        fields: Fields<'_>,
        author: &Author,
        asker: &Asker,
    ) -> Option<Work<Prepared>> {
        match (&self.role, request) {
            (Role::Fresh, _) if request.begins() => {
                let publishes = publishes(request, author.describes);
                self.shared.prepare_join(fields, asker, publishes)
            }
            (Role::Participant(place, id), Participation::Publish | Participation::Configure)
                if author.describes =>
            {
                let publishes = place.conference.lock().publishes(id, self.client.key());
                match publishes {
                    Ok(false) => self.shared.prepare_publication(&place.room.id, id),
                    Ok(true) | Err(_) => None,
                }
            }
            _ => None,
        }
    }
}
