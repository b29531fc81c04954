//! Making, changing, ending and listing rooms.

use std::sync::{Arc, Weak};
use std::time::Duration;

use portunus_core::{Fields, Object, Reply};
use portunus_resources::{AllowedTokens, Id, Maker};
use serde_json::Value;
use tokio::time::sleep;

use super::{Asker, RecordedRoom, alive, saving, success};
use crate::config::{ConfiguredRoom, RoomSetup};
use crate::members::{Members, Type, check, texts};
use crate::options::{EDITED, MEMBERS, RoomOptions, sampling_rate};
use crate::plugin::Shared;
use crate::refusal::Refusal;
use crate::room::{Means, Room, RoomState, hear, record_mix};
use crate::target;

/// How long it takes until the host of a configured forwarder is asked for again: at first, and at most.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// The types of `destroy`.
const DESTROYED: Members = &[("secret", Type::Text), ("permanent", Type::Flag)];

impl Shared {
    pub(super) fn create(&self, fields: Fields<'_>, asker: Asker<'_>) -> Result<Reply, Refusal> {
        check(fields, MEMBERS)?;
        let wanted = self.rooms.ids().wanted(fields, "room")?;
        self.rooms.check_admin_key(fields)?;
        texts(fields, "allowed")?;
        let allowed = AllowedTokens::read(fields)?;
        let options = RoomOptions::read(fields)?;
        let saved = self.rooms.permanent(fields)?;
        if let Some(id) = wanted.as_ref().filter(|id| self.rooms.exists(id)) {
            return Err(Refusal::RoomExists(id.clone()));
        }
        let options = RoomOptions {
            rate: sampling_rate(fields)?.unwrap_or(options.rate),
            ..options
        };
        let maker = self.rooms.maker(asker.maker, saved.is_some());
        let wanted = wanted.unwrap_or_else(|| self.rooms.ids().random(|id| self.rooms.exists(id)));
        let new = ConfiguredRoom {
            id: wanted,
            options: RoomSetup {
                options,
                forwarder: None,
            },
        };
        let room = self.make(new, allowed, maker)?;
        tracing::info!(room = %room.id, "room created");
        let state = room.lock();
        state.notify(asker.handle(), || state.notice("created").into());
        // Whoever has destroyed it since then has the last word.
        let saved = saved.filter(|_| !state.destroyed);
        let writing = saved.map(|saved| saved.keep_soon(written(&state)));
        let recorded = self.recorded(&room.id, &state.options);
        Ok(saving(writing, recorded, told("created", &room.id)))
    }

    /// Makes a room.
    pub(crate) fn make(
        &self,
        new: ConfiguredRoom,
        allowed: AllowedTokens,
        maker: Maker,
    ) -> Result<Arc<Room>, Refusal> {
        let ConfiguredRoom { id, options } = new;
        let RoomSetup {
            mut options,
            forwarder,
        } = options;
        let reservation = self.rooms.reserve(Some(id.clone()), maker)?;
        if options.description.is_empty() {
            options.description = format!("Room {id}");
        }
        let opened = self.audio.open(portunus_dsp::RoomOptions {
            format: options.format(),
            loudest: usize::try_from(options.loudest).unwrap_or(0),
            groups: options.groups.len(),
        });
        let (sound, events) = opened.map_err(|error| Refusal::Unknown(error.to_string()))?;
        let means = Means {
            sound,
            media: self.media.clone(),
            recorder: self.recorder.clone(),
            events: self.events.clone(),
            doors: self.doors.clone(),
            stream_ids: Arc::clone(&self.stream_ids),
        };
        let recorded = options.record;
        let room = Arc::new(Room::new(id, options, allowed, forwarder, means));
        reservation.keep(room.clone());
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let heard = (room.id.clone(), Arc::downgrade(&room));
            runtime.spawn(hear(self.own.clone(), heard, events));
            if recorded {
                let what = room.lock().mix_recording();
                // The log has what goes wrong.
                runtime.spawn(record_mix(room.clone(), what));
            }
            if room.lock().configured.is_some() {
                runtime.spawn(forward_as_configured(Arc::downgrade(&room)));
            }
        }
        Ok(room)
    }

    pub(super) fn edit(&self, fields: Fields<'_>, asker: Asker<'_>) -> Result<Reply, Refusal> {
        check(fields, EDITED)?;
        let room = self.rooms.named(fields)?;
        let mut state = room.lock();
        alive(&state)?;
        state.check_secret(fields)?;
        let saved = self.rooms.permanent(fields)?;
        let options = state.options.edited(fields)?;
        let (before, after) = (&state.options.access.secret, &options.access.secret);
        // A secret opens what signed tokens do: a client that gives the room its first one has to be let in by them.
        if let (None, Some(_), Some(client)) = (before, after, asker.client) {
            let token = fields.string("token")?;
            options.check_signed_token(&room.id, client, token)?;
        }
        state.options = options;
        state.notify(asker.handle(), || state.notice("edited").into());
        let writing = saved.map(|saved| saved.keep_soon(written(&state)));
        if writing.is_some() {
            self.rooms.adopt(&room);
        }
        let recorded = self.recorded(&room.id, &state.options);
        let moved = ["new_record_dir", "new_mjrs_dir"];
        let recorded = recorded.filter(|_| moved.iter().any(|name| fields.has(name)));
        Ok(saving(writing, recorded, told("edited", &room.id)))
    }

    /// The room, if it is to be recorded: its mix, or its participants.
    fn recorded(&self, room: &Id, options: &RoomOptions) -> Option<RecordedRoom> {
        let mix = options.record.then(|| options.record_dir.clone());
        let people = options.mjrs.then(|| options.mjrs_dir.clone());
        let dirs: Vec<_> = mix.into_iter().chain(people).collect();
        (!dirs.is_empty()).then(|| RecordedRoom {
            recorder: self.recorder.clone(),
            room: room.to_string(),
            dirs,
        })
    }

    pub(super) fn destroy(&self, fields: Fields<'_>, asker: Asker<'_>) -> Result<Reply, Refusal> {
        check(fields, DESTROYED)?;
        let room = self.rooms.named(fields)?;
        let mut state = room.lock();
        alive(&state)?;
        state.check_secret(fields)?;
        let saved = self.rooms.permanent(fields)?;
        // Before somebody may make another of its id.
        let id = || room.id.clone();
        let writing = saved.map(|saved| saved.remove_soon(id(), id()));
        self.rooms.remove(&room)?;
        state.destroy(None);
        state.notify(asker.handle(), || state.notice("destroyed").into());
        tracing::info!(room = %room.id, "room destroyed");
        Ok(saving(writing, None, told("destroyed", &room.id)))
    }

    pub(super) fn exists(&self, fields: Fields<'_>) -> Result<Value, Refusal> {
        let id = self.rooms.ids().required(fields, "room")?;
        let reply = success()
            .with("room", id.to_json())
            .with("exists", self.rooms.exists(&id));
        Ok(reply.into())
    }

    pub(super) fn list(&self, fields: Fields<'_>, asker: Asker<'_>) -> Result<Value, Refusal> {
        let by_administrator = asker.client.is_none();
        // A key that is none is ignored.
        let shown = fields.text("admin_key").ok().flatten();
        let nothing = serde_json::Map::new();
        let fields = match shown {
            Some(_) => fields,
            None => Fields(&nothing),
        };
        let rooms = self.rooms.listed(fields, by_administrator)?;
        let list = rooms.into_iter().map(|room| {
            let state = room.lock();
            let listeners = Some(state.listeners()).filter(|count| *count > 0);
            let entry = Object::new()
                .with("room", room.id.to_json())
                .with_all(state.options.listed())
                .with("muted", state.is_muted())
                .with("num_participants", state.count())
                .with_some("num_listeners", listeners);
            Value::from(entry)
        });
        Ok(success().with("list", list.collect::<Vec<_>>()).into())
    }
}

/// Forwards the mix of a room where its configuration says, once the host is known. The log has what goes wrong.
async fn forward_as_configured(room: Weak<Room>) {
    let configured = |room: Arc<Room>| room.lock().configured.clone();
    let Some(forwarder) = room.upgrade().and_then(configured) else {
        return;
    };
    let target::Target { host, port } = forwarder.request.target();
    let mut pause = FIRST_PAUSE;
    let address = loop {
        let error = match host.resolve().await {
            Ok(address) => break address,
            Err(error) => error,
        };
        let Some(room) = room.upgrade().filter(|room| !room.lock().destroyed) else {
            return;
        };
        tracing::warn!(room = %room.id, ?pause, "the mix is not forwarded: {error}; it is tried again");
        drop(room);
        sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    };
    let Some(room) = room.upgrade() else { return };
    let mut state = room.lock();
    match state.check_forwarder(forwarder.request.group.as_deref()) {
        Ok(group) => {
            let spec = forwarder.request.spec;
            state.forward(forwarder.id, (address, port).into(), spec, group);
        }
        Err(error) => tracing::warn!(room = %room.id, "the mix is not forwarded: {error}"),
    }
}

/// A room as it is saved.
fn written(room: &RoomState) -> ConfiguredRoom {
    ConfiguredRoom {
        id: room.id.clone(),
        options: RoomSetup {
            options: room.options.clone(),
            forwarder: room.configured.clone(),
        },
    }
}

fn told(what: &str, room: &Id) -> Object {
    Object::new()
        .with("audiobridge", what)
        .with("room", room.to_json())
}
