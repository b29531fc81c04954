//! The notices to clients.

use portunus_core::Object;
use portunus_room::{LayerKind, Notice, PersonId, Talk};
use serde_json::{Value, json};

use super::Show;
use super::person::{labelled, metadata};

impl Show<'_> {
    /// Writes a notice.
    pub(crate) fn notice(self, notice: &Notice<'_>) -> Value {
        let dominant = |id: &PersonId| self.id(id);
        let event = match notice {
            Notice::Joining(id) => {
                let named = self.room.person(id).map(|person| self.named(person));
                self.event().with_some("joining", named)
            }
            Notice::Published(ids) => {
                let published = ids.iter().filter_map(|id| self.published(id, false));
                let published: Vec<_> = published.collect();
                self.event().with("publishers", published)
            }
            // Without the display name: some clients would take it for a new name.
            Notice::Unpublished(id) => self.event().with("unpublished", self.id(id)),
            Notice::Left(person) => {
                let leaving = self.event().with("leaving", self.id(person.id()));
                labelled(leaving, &person.profile)
            }
            Notice::JoinUndone(id) => self.event().with("leaving", self.id(id)),
            // Clients take an event with a `display` for a change of name.
            Notice::Kicked(person) => self
                .event()
                .with("kicked", self.id(person.id()))
                .with_some("metadata", metadata(&person.profile)),
            Notice::ThrownOut => self
                .event()
                .with_all(json!({ "leaving": "ok", "reason": "kicked" })),
            Notice::Destroyed => self.head("destroyed"),
            Notice::Renamed { id, profile } => {
                let renamed = Object::new()
                    .with("videoroom", "event")
                    .with("id", self.id(id));
                labelled(renamed, profile)
            }
            Notice::Talk(talk) => self.talk(talk),
            Notice::Dominant(id) => self.event().with("dominant", dominant(id)),
            Notice::Moderated { id, mid, mute } => self
                .event()
                .with("id", self.id(id))
                .with("mid", *mid)
                .with("moderation", moderation(*mute)),
            Notice::Seats(key, places) => self
                .event()
                .with("seats", self.some_lines(*key, places))
                .with_some("dominant", self.room.dominant().map(dominant)),
            Notice::Layer {
                mid,
                kind,
                layer,
                reason,
            } => {
                let name = match kind {
                    LayerKind::Encoding => "substream",
                    LayerKind::Temporal => "temporal",
                    LayerKind::SpatialOfSvc => "spatial_layer",
                    LayerKind::TemporalOfSvc => "temporal_layer",
                };
                self.event()
                    .with("mid", mid.as_str())
                    .with(name, *layer)
                    .with("reason", reason.name())
            }
            Notice::Offered(key) => self.offered(*key),
        };
        event.into()
    }

    /// Writes that a participant has started or stopped talking.
    pub(super) fn talk(self, talk: &Talk) -> Object {
        let what = match talk.talking {
            true => "talking",
            false => "stopped-talking",
        };
        self.head(what)
            .with("id", self.id(&talk.id))
            .with("mindex", talk.index)
            .with("mid", talk.mid.as_str())
            .with("audio-level-dBov-avg", talk.level)
    }
}

/// Returns the word for a moderator's change of a stream.
pub(crate) const fn moderation(mute: bool) -> &'static str {
    match mute {
        true => "muted",
        false => "unmuted",
    }
}
