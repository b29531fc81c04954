//! Participants that are moved to another room.

use livekit_protocol::MoveParticipantRequest;

use super::here::member;
use crate::door::Door;
use crate::hall::{Event, Move, RoomOptions};
use crate::services::Answer;

impl Door {
    /// Has the client of a participant join another room. Makes the room where joins do.
    pub(crate) async fn move_to(&self, request: &MoveParticipantRequest) -> Answer<()> {
        let member = member(&*self.hall(&request.room)?, &request.identity)?;
        self.prepare_room(&request.destination_room, self.config.auto_create)
            .await?;
        let options = || RoomOptions::new(&self.config);
        let make: Option<&dyn Fn() -> RoomOptions> = match self.config.auto_create {
            true => Some(&options),
            false => None,
        };
        let hall = self.hall_with(&request.destination_room, make)?;
        let state = hall.room.lock();
        let mut people = hall.people();
        let shown = state.people().map(|person| person.id());
        let shown: Vec<_> = shown.filter(|id| !people.is_hidden(id)).collect();
        let participants = shown.into_iter().filter_map(|id| people.info(&state, id));
        let participants = participants.collect();
        drop(people);
        member.happens(Event::Move(Box::new(Move {
            room: hall.info(&state),
            participants,
        })));
        Ok(())
    }
}
