//! RTP forwarders and remote publishers, of which there are none: what asks for one is refused, what asks for those
//! that there are finds none.

use portunus_core::{FieldError, Fields, Object};
use serde_json::Value;

use super::success;
use crate::Shared;
use crate::refusal::Refusal;

const NO_FORWARDERS: Refusal = Refusal::Invalid("RTP forwarders are not available yet");
const NO_REMOTES: Refusal = Refusal::Invalid("Remote publishers are not available yet");

impl Shared {
    /// Answers a request; none if it is no such request.
    pub(super) fn absent(&self, name: &str, fields: Fields<'_>) -> Option<Result<Value, Refusal>> {
        let result = match name {
            "rtp_forward" => self.managed(fields, |_| Err(NO_FORWARDERS)),
            "add_remote_publisher" => self.managed(fields, |_| Err(NO_REMOTES)),
            "publish_remotely" => self.managed(fields, |_| Err(NO_REMOTES)),
            "stop_rtp_forward" => self.unknown(fields, "publisher_id", Some("stream_id")),
            "unpublish_remotely" => self.unknown(fields, "publisher_id", Some("remote_id")),
            "update_remote_publisher" | "remove_remote_publisher" => {
                self.unknown(fields, "id", None)
            }
            "listforwarders" => self.managed(fields, |room| {
                let reply = Object::new()
                    .with("videoroom", "forwarders")
                    .with("room", room.id.to_json())
                    .with("publishers", Vec::<Value>::new());
                Ok(reply.into())
            }),
            "listremotes" | "list_remotes" => self.managed(fields, |room| {
                let id = self.ids.required(fields, "publisher_id")?;
                room.named(&id)?;
                let reply = success()
                    .with("room", room.id.to_json())
                    .with("id", id.to_json())
                    .with("list", Vec::<Value>::new());
                Ok(reply.into())
            }),
            _ => return None,
        };
        Some(result)
    }

    /// Refuses what concerns something that there cannot be, by the member that names it.
    fn unknown(
        &self,
        fields: Fields<'_>,
        whose: &str,
        which: Option<&str>,
    ) -> Result<Value, Refusal> {
        self.managed(fields, |room| {
            let id = self.ids.required(fields, whose)?;
            let Some(which) = which else {
                return Err(Refusal::NoSuchFeed(id.to_string()));
            };
            room.named(&id)?;
            let name = match which {
                "stream_id" => {
                    let number = fields.positive(which)?.map(|number| number.to_string());
                    number.ok_or_else(|| FieldError::Missing(which.to_owned()))?
                }
                _ => fields.required_string(which)?.to_owned(),
            };
            Err(Refusal::NoSuchFeed(name))
        })
    }
}
