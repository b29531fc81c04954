//! The recipients of a room's sound that are no participants, for the list of rooms.

use portunus_resources::Taps;

use super::{RoomState, Who};

impl RoomState {
    /// Counts the recordings of participants, the forwarders, and the captures of administrators.
    /// The recording of the mix and the listeners are listed on their own.
    pub(crate) fn taps(&self) -> Taps {
        let recorded = |person: &&super::Participant| {
            let running = person.recorded.running.as_ref();
            running.is_some_and(|recording| !recording.is_over())
        };
        let clients = self.roster.iter().filter_map(|person| match &person.who {
            Who::Client(handle) => Some(handle),
            Who::Caller(_) | Who::Far(_) => None,
        });
        let captured = clients
            .chain(self.listeners.handles())
            .filter_map(|handle| handle.peer())
            .filter(|peer| self.forwarders.media().is_captured(*peer));
        Taps {
            recordings: self.roster.iter().filter(recorded).count(),
            forwarders: self.forwarders.len(),
            captures: captured.count(),
            viewers: 0,
        }
    }
}
