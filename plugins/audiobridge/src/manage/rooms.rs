//! Making, changing, ending and listing rooms.

use std::sync::{Arc, Weak};
use std::time::Duration;

use portunus_core::{Fields, Reply, Right};
use portunus_resources::{
    AllowedRequest, AllowedTokens, Asker, Maker, RecordedRoom, RoomContent, read_with_secret,
};
use serde_json::Value;
use tokio::time::sleep;

use crate::config::{ConfiguredRoom, RoomSetup};
use crate::options::{OPTIONS, RoomOptions, is_type, sampling_rate, texts};
use crate::plugin::Shared;
use crate::refusal::Refusal;
use crate::room::{Means, Room, RoomState, hear, record_mix};
use crate::target;

/// How long it takes until the host of a configured forwarder is asked for again: at first, and at most.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

impl Shared {
    pub(super) fn create(&self, fields: Fields<'_>, asker: &Asker) -> Result<Reply, Refusal> {
        OPTIONS.check(fields, is_type)?;
        let wanted = self.rooms.ids().wanted(fields, "room")?;
        self.rooms.check_admin_key(fields)?;
        texts(fields, "allowed")?;
        let allowed = AllowedTokens::read(fields)?;
        let mut options = RoomOptions::read(fields)?;
        if !asker.may(Right::Record) {
            // Somebody else may have the room recorded later.
            (options.record_file, options.record_dir, options.mjrs_dir) = (None, None, None);
        }
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
        let recorded = |room: &RoomState| self.recorded(room);
        Ok(self.rooms.created(&room, saved, asker, recorded).reply())
    }

    /// Makes a room.
    pub(crate) fn make(
        &self,
        new: ConfiguredRoom,
        allowed: AllowedTokens,
        maker: Maker,
    ) -> Result<Arc<Room>, Refusal> {
        let ConfiguredRoom { id, options: setup } = new;
        let reservation = self.rooms.reserve(Some(id.clone()), maker)?;
        let options = &setup.options;
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
            telephony: self.telephony.clone(),
            stream_ids: Arc::clone(&self.stream_ids),
        };
        let recorded = options.record;
        let state = RoomState::new(id, setup, allowed, means);
        let room = Arc::new(Room::new(state));
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

    pub(super) fn edit(&self, fields: Fields<'_>, asker: &Asker) -> Result<Reply, Refusal> {
        read_with_secret::<()>(fields)?;
        OPTIONS.check_edited(fields, is_type)?;
        fields.member::<bool>("permanent")?;
        let edited = self.rooms.edit(fields, asker, |room| {
            let options = OPTIONS.edited(&room.options, fields)?;
            // A secret opens what signed tokens do: a client that gives the room its first one has to be let in by them.
            if let (None, Some(_)) = (&room.options.access.secret, &options.access.secret) {
                room.check_signed_token(&options, asker, fields.member("token")?)?;
            }
            room.options = options;
            let moved = ["new_record_dir", "new_mjrs_dir"];
            let is_moved = moved.iter().any(|name| fields.has(name));
            Ok::<_, Refusal>(self.recorded(room).filter(|_| is_moved))
        });
        Ok(edited?.reply())
    }

    /// The room, if it is to be recorded: its mix, or its participants.
    fn recorded(&self, room: &RoomState) -> Option<RecordedRoom> {
        let options = &room.options;
        let mix = options.record.then(|| options.record_dir.clone());
        let people = options.mjrs.then(|| options.mjrs_dir.clone());
        let dirs: Vec<_> = mix.into_iter().chain(people).collect();
        (!dirs.is_empty()).then(|| RecordedRoom {
            recorder: self.recorder.clone(),
            room: room.id.to_string(),
            dirs,
        })
    }

    pub(super) fn destroy(&self, fields: Fields<'_>, asker: &Asker) -> Result<Reply, Refusal> {
        read_with_secret::<()>(fields)?;
        fields.member::<bool>("permanent")?;
        Ok(self.rooms.destroy(fields, asker)?.reply())
    }

    pub(super) fn list(&self, fields: Fields<'_>, asker: &Asker) -> Result<Value, Refusal> {
        // A key that is none is ignored.
        let key = fields.text("admin_key").ok().flatten();
        let list = self.rooms.list(key, asker, |room| {
            let listeners = Some(room.listeners()).filter(|count| *count > 0);
            room.options
                .listed()
                .with("muted", room.is_muted())
                .with("num_participants", room.count())
                .with_some("num_listeners", listeners)
        })?;
        Ok(list.into())
    }

    pub(super) fn allowed(&self, fields: Fields<'_>) -> Result<Value, Refusal> {
        let AllowedRequest { action, .. } = read_with_secret(fields)?;
        self.rooms.ids().required(fields, "room")?;
        let known = ["enable", "disable", "add", "remove"];
        if !known.iter().any(|it| it.eq_ignore_ascii_case(action)) {
            return Err(Refusal::Action(action.to_owned()));
        }
        self.managed(fields, |room, ()| {
            texts(fields, "allowed")?;
            Ok(room.allow(fields)?.into())
        })
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
