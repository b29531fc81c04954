//! Questions of other nodes of a cluster to the home of a room, and its answers, as JSON.
//!
//! Later versions may add questions and members, which earlier ones skip.

use std::sync::Arc;

use portunus_core::{Fields, Reply};
use portunus_resources::FarAuthor;
use portunus_room::{PersonId, Refusal as RoomRefusal, Work};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::directory;
use crate::prepared::Prepared;
use crate::refusal::Refusal;
use crate::requests::fields;
use crate::shared::Shared;

/// A question to the home of a room.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "question", rename_all = "snake_case")]
pub(crate) enum Question {
    /// A request that the home answers.
    Manage {
        author: FarAuthor,
        body: Map<String, Value>,
    },
    /// A client wants to join the room. `publishes`: it needs a place among the publishers.
    Enter {
        author: FarAuthor,
        publishes: bool,
        body: Map<String, Value>,
    },
    /// A participant wants to begin to publish.
    Publish { id: String },
    /// A request that the other node answers, if the client may manage the room. `adds`: it adds a
    /// publisher.
    Permit {
        author: FarAuthor,
        adds: bool,
        body: Map<String, Value>,
    },
    /// A question of a later version.
    #[serde(other)]
    Later,
}

/// The answer of a home.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub(crate) enum HomeAnswer {
    /// The answer to a request.
    Managed { answer: Value },
    /// The client may join.
    Entered {
        /// Whether it has shown the room's secret.
        by_secret: bool,
        /// Its id, if it is a participant.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
    },
    /// The participant may publish.
    Place,
    /// The other node may answer the request.
    Permitted {
        /// The id of the publisher, if the request adds one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
    },
    /// The refusal as it is sent to the client.
    Refused { answer: Value },
    /// An answer of a later version.
    #[serde(other)]
    Later,
}

impl Question {
    /// Returns the text for the home.
    pub(crate) fn to_text(&self) -> String {
        // The type has no maps with other keys than texts, so this cannot fail.
        serde_json::to_string(self).unwrap_or_default()
    }
}

impl HomeAnswer {
    /// Reads an answer. Returns `None` if it is malformed.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// Returns the text for the node that has asked.
    pub(crate) fn to_text(&self) -> String {
        // As above.
        serde_json::to_string(self).unwrap_or_default()
    }

    fn refused(refusal: &Refusal) -> Self {
        HomeAnswer::Refused {
            answer: refusal.to_json(),
        }
    }
}

impl Shared {
    /// Answers a question of another node about the room `name`. `None` if it cannot be read.
    pub(crate) fn answer_node(
        self: Arc<Self>,
        name: &str,
        node: &str,
        question: &str,
    ) -> Work<Option<String>> {
        let answer = match serde_json::from_str(question) {
            Ok(Question::Manage { author, body }) => {
                return Box::pin(async move {
                    let answer = self.manage_for(&author, &body).await;
                    Some(HomeAnswer::Managed { answer }.to_text())
                });
            }
            Ok(Question::Enter {
                author,
                publishes,
                body,
            }) => self
                .enter_for(node, &author, publishes, &body)
                .unwrap_or_else(|refusal| HomeAnswer::refused(&refusal)),
            Ok(Question::Publish { id }) => self
                .publish_for(name, node, &id.into())
                .unwrap_or_else(|refusal| HomeAnswer::refused(&refusal)),
            Ok(Question::Permit { author, adds, body }) => self
                .permit_for(node, &author, adds, &body)
                .unwrap_or_else(|refusal| HomeAnswer::refused(&refusal)),
            Ok(Question::Later) | Err(_) => return Box::pin(async { None }),
        };
        let text = answer.to_text();
        Box::pin(async move { Some(text) })
    }

    /// Answers a request of a client of another node, which has checked the scope of its token.
    async fn manage_for(&self, author: &FarAuthor, body: &Map<String, Value>) -> Value {
        let fields = Fields(body);
        let name = fields.required_string("request");
        let asker = author.asker(false);
        let reply = name
            .map_err(Refusal::from)
            .and_then(|name| self.manage_named(name, fields, asker, Prepared::Nothing));
        match reply {
            Ok(Reply::Success(answer)) => answer,
            Ok(Reply::Later(later)) => later.result().await,
            // No such request is answered like this.
            Ok(Reply::Ack(_) | Reply::Error(_)) => Value::Null,
            Err(refusal) => refusal.to_json(),
        }
    }

    /// Lets a client of another node in: checks what it shows, and keeps its id and its place.
    fn enter_for(
        &self,
        node: &str,
        author: &FarAuthor,
        publishes: bool,
        body: &Map<String, Value>,
    ) -> Result<HomeAnswer, Refusal> {
        let (fields, ids) = (Fields(body), self.rooms.ids());
        let asker = author.asker(true);
        self.rooms.guarded(fields, asker.maker, || {
            let room = self.rooms.named(fields)?;
            let door = room.lock();
            let mut state = door.conference.lock();
            if state.is_destroyed() {
                return Err(Refusal::NoSuchRoom(room.id.clone()));
            }
            let by_secret = door.admit(&asker, fields)?;
            if fields.string("ptype")? != Some("publisher") {
                let id = None;
                return Ok(HomeAnswer::Entered { by_secret, id });
            }
            if !by_secret {
                door.allowed.check(fields.member("token")?)?;
            }
            let wanted = fields::wanted_id(fields, ids)?;
            let id = wanted.unwrap_or_else(|| fields::free_id(&state, ids));
            state.claim(&id, node, publishes)?;
            let id = Some(id.to_string());
            Ok(HomeAnswer::Entered { by_secret, id })
        })
    }

    /// Checks that a client of another node may manage the room, and keeps the id and the place of a
    /// publisher that its request adds.
    fn permit_for(
        &self,
        node: &str,
        author: &FarAuthor,
        adds: bool,
        body: &Map<String, Value>,
    ) -> Result<HomeAnswer, Refusal> {
        let (fields, ids) = (Fields(body), self.rooms.ids());
        self.rooms.guarded(fields, author.asker(false).maker, || {
            self.rooms.managed(fields, |room, door| {
                if !adds {
                    return Ok(HomeAnswer::Permitted { id: None });
                }
                let mut state = door.conference.lock();
                if state.is_destroyed() {
                    return Err(Refusal::NoSuchRoom(room.id.clone()));
                }
                let wanted = fields::wanted_id(fields, ids)?;
                let id = wanted.unwrap_or_else(|| fields::free_id(&state, ids));
                state.claim(&id, node, true)?;
                let id = Some(id.to_string());
                Ok(HomeAnswer::Permitted { id })
            })
        })
    }

    /// Lets a participant at another node begin to publish.
    fn publish_for(&self, name: &str, node: &str, id: &PersonId) -> Result<HomeAnswer, Refusal> {
        let ids = self.rooms.ids();
        let room = directory::id(ids, name).ok_or(RoomRefusal::NotInRoom)?;
        let room = self.rooms.get(&room)?;
        let door = room.lock();
        door.conference.lock().claim_place(id, node)?;
        Ok(HomeAnswer::Place)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use portunus_resources::{Asker, Id};

    use super::*;

    #[test]
    fn questions_and_answers_are_the_same_when_they_were_written_and_read() {
        let author = FarAuthor::of(&Asker::administrator(), &Id::Number(1), None);
        for question in [
            Question::Manage {
                author: author.clone(),
                body: Map::new(),
            },
            Question::Enter {
                author,
                publishes: true,
                body: Map::new(),
            },
            Question::Publish { id: "7".to_owned() },
            Question::Permit {
                author: FarAuthor::of(&Asker::administrator(), &Id::Number(1), None),
                adds: true,
                body: Map::new(),
            },
        ] {
            let again: Question = serde_json::from_str(&question.to_text()).unwrap();
            assert_eq!(again, question);
        }
        let later: Question = serde_json::from_str(r#"{ "question": "dance" }"#).unwrap();
        assert_eq!(later, Question::Later);
        for answer in [
            HomeAnswer::Entered {
                by_secret: true,
                id: Some("7".to_owned()),
            },
            HomeAnswer::Place,
            HomeAnswer::Permitted { id: None },
            HomeAnswer::Refused {
                answer: Value::Null,
            },
        ] {
            assert_eq!(HomeAnswer::parse(&answer.to_text()), Some(answer));
        }
        assert_eq!(HomeAnswer::parse("[]"), None);
    }
}
