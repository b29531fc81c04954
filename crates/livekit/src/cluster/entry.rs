//! Clients that join a room, or begin to publish there: its home decides.

use std::time::Duration;

use portunus_room::{Answered, Whom};
use prost::Message;

use super::question::{Asked, Entering, FarAnswer, FarQuestion};
use crate::door::{Door, EntryError};
use crate::hall::{Entry, EntryRefusal, Hall, RoomNote};
use crate::services::{Code, ServiceError};

/// How long a home has time to answer. After that this node decides.
const PATIENCE: Duration = Duration::from_secs(3);

impl Door {
    /// Asks the home of a room for an identity and a place.
    pub(crate) async fn ask_entry(
        &self,
        room: &str,
        identity: &str,
        sid: &str,
    ) -> Result<Entry, EntryError> {
        let asked = Asked::Enter(Entering {
            identity: identity.to_owned(),
            sid: sid.to_owned(),
        });
        match self.ask_home(room, asked).await.map(FarAnswer::into_result) {
            Some(Ok(body)) => {
                Ok(RoomNote::read(&body).map_or(Entry::Unasked, |note| Entry::Let(Box::new(note))))
            }
            Some(Err(error)) => match error.code() {
                Code::ResourceExhausted => Err(EntryRefusal::Full.into()),
                Code::AlreadyExists => Err(EntryRefusal::Taken.into()),
                // The room has ended there just now.
                _ => Ok(Entry::Unasked),
            },
            None => Ok(Entry::Unasked),
        }
    }

    /// Asks the home of a room. Returns `None` if this node has to decide.
    async fn ask_home(&self, room: &str, asked: Asked) -> Option<FarAnswer> {
        let others = self.rooms.others()?;
        let question = FarQuestion::new(asked, 1).encode_to_vec();
        match others.ask_door(room, Whom::Home, question, PATIENCE).await {
            Answered::Answer(answer) => FarAnswer::decode(&*answer).ok(),
            Answered::Here | Answered::Silent(_) => None,
        }
    }

    /// At the home: lets a client of another node join.
    pub(super) fn let_in(&self, room: &str, node: &str, client: &Entering) -> FarAnswer {
        let Ok(hall) = self.hall(room) else {
            return FarAnswer::of(Err(ServiceError::no_room()));
        };
        let admitted = hall.admit(&client.identity, &client.sid, Some(node));
        if admitted.is_ok() {
            hall.report_started();
        }
        FarAnswer::of(match admitted {
            Ok(ticket) => {
                let mut note = hall.room_note(&hall.room.lock());
                note.ticket = ticket;
                Ok(note.encode_to_vec())
            }
            Err(refusal) => Err(ServiceError::from(refusal)),
        })
    }

    /// At the home: lets a participant of another node begin to publish.
    pub(super) fn let_publish(&self, room: &str, node: &str, identity: &str) -> FarAnswer {
        let Ok(hall) = self.hall(room) else {
            return FarAnswer::of(Err(ServiceError::no_room()));
        };
        let id = hall.id_of(identity);
        let claimed = hall.room.lock().claim_place(&id, node);
        FarAnswer::of(
            claimed
                .map(|()| Vec::new())
                .map_err(|refusal| ServiceError::new(Code::ResourceExhausted, refusal.to_string())),
        )
    }
}

impl Hall {
    /// Asks the home for a place among the publishers. Returns whether it has given one, or `None`
    /// if this node has to decide.
    pub(crate) async fn ask_place(&self, identity: &str) -> Option<bool> {
        let others = self.others()?;
        let question = FarQuestion::new(Asked::Publish(identity.to_owned()), 1);
        let question = question.encode_to_vec();
        let asked = others.ask_door(&self.name, Whom::Home, question, PATIENCE);
        match asked.await {
            Answered::Answer(answer) => {
                let answer = FarAnswer::decode(&*answer).ok()?;
                match answer.into_result() {
                    Ok(_) => Some(true),
                    Err(error) if error.code() == Code::ResourceExhausted => Some(false),
                    Err(_) => None,
                }
            }
            Answered::Here | Answered::Silent(_) => None,
        }
    }
}

impl From<EntryRefusal> for ServiceError {
    fn from(refusal: EntryRefusal) -> Self {
        let code = match refusal {
            EntryRefusal::Full => Code::ResourceExhausted,
            EntryRefusal::Taken => Code::AlreadyExists,
            EntryRefusal::Gone => return ServiceError::no_room(),
        };
        ServiceError::new(code, refusal.to_string())
    }
}
