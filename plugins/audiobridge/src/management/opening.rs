//! Making rooms, for requests and for the configuration.

use std::sync::{Arc, Weak};
use std::time::Duration;

use portunus_resources::{AllowedTokens, Maker, Reloadable, Resources, RoomContent};
use tokio::time::sleep;

use crate::config::ConfiguredRoom;
use crate::refusal::Refusal;
use crate::room::{NewForwarder, Room, RoomState, Services, handle_sound_events, record_mix};
use crate::shared::Shared;
use crate::target;

/// The first pause before the host of a configured forwarder is resolved again. It doubles up to
/// [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

impl Reloadable for Shared {
    type Resource = Room;

    fn resources(&self) -> &Resources<Room> {
        &self.rooms
    }

    async fn make_configured(self: Arc<Self>, room: ConfiguredRoom) -> Result<(), String> {
        let made = self.make(room, AllowedTokens::default(), Maker::Operator);
        made.map(drop).map_err(|error| error.to_string())
    }
}

impl Shared {
    /// Makes a room, and starts the tasks that belong to it.
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
        let services = Services {
            sound,
            media: self.media.clone(),
            recorder: self.recorder.clone(),
            events: self.events.clone(),
            telephony: self.telephony.clone(),
            stream_ids: Arc::clone(&self.stream_ids),
            changes: self.cluster.changes(),
        };
        let recorded = options.record;
        let state = RoomState::new(id, setup, allowed, services);
        let room = Arc::new(Room::new(state));
        reservation.keep(room.clone());
        self.cluster.changes().notify_one();
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let (own, of) = (self.own.clone(), Arc::downgrade(&room));
            runtime.spawn(handle_sound_events(own, room.id.clone(), of, events));
            if recorded {
                let pending = room.lock().first_recording();
                // A failure is logged.
                runtime.spawn(record_mix(room.clone(), pending));
            }
            if room.lock().profile.forwarder().is_some() {
                runtime.spawn(forward_as_configured(Arc::downgrade(&room)));
            }
        }
        Ok(room)
    }
}

/// Starts the configured forwarder of a room once its host is resolved. Failures are logged.
async fn forward_as_configured(room: Weak<Room>) {
    let configured = |room: Arc<Room>| room.lock().profile.forwarder().cloned();
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
        let Some(room) = room.upgrade().filter(|room| !room.lock().has_ended()) else {
            return;
        };
        tracing::warn!(room = %room.id, ?pause, "the mix is not forwarded: {error}; it is tried again");
        drop(room);
        sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    };
    let Some(room) = room.upgrade() else { return };
    let state = &mut *room.lock();
    let group = forwarder.request.group.as_deref();
    match state.forwarders.check(&state.profile, group) {
        Ok(group) => {
            let new = NewForwarder {
                wanted_id: forwarder.id,
                to: (address, port).into(),
                spec: forwarder.request.spec,
                group,
            };
            state.forwarders.start(new, &state.mix, &state.profile);
        }
        Err(error) => tracing::warn!(room = %room.id, "the mix is not forwarded: {error}"),
    }
}
