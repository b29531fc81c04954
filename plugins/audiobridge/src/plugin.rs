//! The plugin, and what its handles share.

use std::net::IpAddr;
use std::sync::{Arc, Weak};

use portunus_audio::AudioThreads;
use portunus_core::configuration::PortRange;
use portunus_core::events::{EventBus, PluginEvents};
use portunus_core::media::MediaPlane;
use portunus_core::record::Recorder;
use portunus_core::{
    Asked, Broadcast, ConfiguredPlugin, Fields, Handle, MissingService, Networks, Plugin,
    PluginContext, PluginCounter, PluginHandle, PluginInfo, PluginReloaded, Reply,
};
use portunus_files::Folders;
use portunus_resources::{AllowedTokens, Asker, Maker, Reloadable, Resources, SavedError};
use portunus_telephony::Telephony;
use serde_json::Value;

use crate::attached::Attached;
use crate::config::{AudioBridgeConfig, ConfiguredRoom};
use crate::refusal::Refusal;
use crate::requests::{Management, Participation};
use crate::room::{PhoneRooms, Room, StreamIds};

pub(crate) const PACKAGE: &str = "janus.plugin.audiobridge";

/// The plugin, with its rooms.
#[derive(Debug)]
pub struct AudioBridge {
    pub(crate) shared: Arc<Shared>,
}

/// What all handles of the plugin share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) own: Weak<Shared>,
    /// Forwarding needs the admin key.
    pub(crate) lock_rtp_forward: bool,
    /// Announcements need the admin key.
    pub(crate) lock_play_file: bool,
    /// Where files may be that are announced.
    pub(crate) folders: Arc<Folders>,
    /// The networks that media may be sent to.
    pub(crate) outgoing: Arc<Networks>,
    /// What plain RTP participants are told.
    pub(crate) local_ip: IpAddr,
    /// Where their ports are taken from.
    pub(crate) ports: PortRange,
    pub(crate) media: MediaPlane,
    pub(crate) recorder: Recorder,
    pub(crate) audio: AudioThreads,
    /// Where whoever watches the server is told of what no client does.
    pub(crate) events: PluginEvents,
    pub(crate) stream_ids: Arc<StreamIds>,
    /// Where telephones are.
    pub(crate) telephony: Telephony,
    pub(crate) rooms: Resources<Room>,
}

impl AudioBridge {
    /// The plugin with the rooms of its configuration, which run on `audio`; an error if the saved rooms cannot be read. To be
    /// called within tokio's runtime.
    pub fn new(
        config: AudioBridgeConfig,
        media: MediaPlane,
        recorder: Recorder,
        audio: AudioThreads,
    ) -> Result<Self, SavedError> {
        let (events, telephony) = (EventBus::default(), Telephony::default());
        Self::watched(config, (media, recorder, audio), (&events, telephony))
    }

    /// The same, whose doings are told on `events`; its rooms are behind `telephony`.
    fn watched(
        config: AudioBridgeConfig,
        (media, recorder, audio): (MediaPlane, Recorder, AudioThreads),
        (events, telephony): (&EventBus, Telephony),
    ) -> Result<Self, SavedError> {
        let keys = config.resource_keys();
        let told_address = config.told_address();
        let AudioBridgeConfig {
            lock_rtp_forward,
            lock_play_file,
            folders,
            outgoing,
            rtp_port_range,
            rooms: configured,
            ..
        } = config;
        let (rooms, first) = Resources::start(keys, configured)?;
        let shared = Arc::new_cyclic(|own| Shared {
            own: own.clone(),
            lock_rtp_forward: lock_rtp_forward && rooms.has_admin_key(),
            lock_play_file: lock_play_file && rooms.has_admin_key(),
            folders: Arc::new(Folders::new(folders)),
            outgoing: Arc::new(outgoing),
            local_ip: told_address.unwrap_or_else(|| media.address()),
            ports: rtp_port_range,
            media,
            recorder,
            audio,
            events: events.of_plugin(PACKAGE),
            stream_ids: Arc::default(),
            telephony: telephony.clone(),
            rooms,
        });
        telephony.offer_audio_rooms(Arc::new(PhoneRooms(shared.own.clone())));
        for room in first {
            let made = shared.make(room, AllowedTokens::default(), Maker::Operator);
            if let Err(error) = made {
                tracing::warn!("a configured room is left out: {error}");
            }
        }
        Ok(AudioBridge { shared })
    }
}

/// An error that keeps the plugin from starting.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The saved rooms cannot be read.
    #[error(transparent)]
    Saved(#[from] SavedError),
    /// The server lacks what audio rooms need.
    #[error(transparent)]
    Service(#[from] MissingService),
}

impl ConfiguredPlugin for AudioBridge {
    const NAME: &'static str = "audiobridge";
    type Config = AudioBridgeConfig;
    type Error = StartError;

    async fn from_config(
        config: AudioBridgeConfig,
        context: PluginContext,
    ) -> Result<Self, StartError> {
        let PluginContext {
            media,
            recorder,
            outgoing,
            events,
            services,
        } = context;
        let audio = services.get::<AudioThreads>()?.clone();
        let telephony = services.get::<Telephony>()?.clone();
        let config = AudioBridgeConfig { outgoing, ..config };
        let started = AudioBridge::watched(config, (media, recorder, audio), (&events, telephony))?;
        Ok(started)
    }

    async fn reload(&self, running: &AudioBridgeConfig, new: &AudioBridgeConfig) -> PluginReloaded {
        let limits = new.resource_keys().limits;
        self.shared.rooms.set_limits(limits);
        portunus_resources::reload(&self.shared, &running.rooms, &new.rooms).await
    }
}

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

impl Plugin for AudioBridge {
    fn info(&self) -> PluginInfo {
        PluginInfo {
            package: PACKAGE,
            name: "Audio Bridge plugin",
            description: "Rooms in which all hear the mix of all others.",
            version: 13,
            version_string: "0.0.13",
        }
    }

    fn begins(&self, request: &str) -> bool {
        Asked::<Participation>::named(request).is_some_and(Asked::begins)
    }

    fn attach(&self, handle: Handle) -> Box<dyn PluginHandle> {
        Box::new(Attached::new(handle, self.shared.clone()))
    }

    fn calls_without_peers(&self) -> usize {
        let rooms = self.shared.rooms.all();
        rooms.iter().map(|room| room.lock().without_peer()).sum()
    }

    fn broadcast(&self) -> Option<&dyn Broadcast> {
        Some(self)
    }

    fn counters(&self) -> Vec<PluginCounter> {
        self.shared.rooms.counters()
    }

    fn admin(&self, request: Value) -> Option<Reply> {
        let reply = match request.as_object().map(Fields) {
            None => Err(Refusal::NotAnObject),
            Some(fields) => self.administer(fields),
        };
        Some(reply.unwrap_or_else(|refusal| Reply::Success(refusal.to_json())))
    }
}

impl AudioBridge {
    /// Answers an administrator's request.
    fn administer(&self, fields: Fields<'_>) -> Result<Reply, Refusal> {
        let name = fields.required::<&str>("request")?;
        let unknown = || Refusal::UnknownRequest(name.to_owned());
        let asked = Asked::<Management>::named(name).ok_or_else(unknown)?;
        self.shared.manage(asked, fields, Asker::administrator())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use portunus_audio::AudioConfig;

    use super::*;

    #[tokio::test]
    async fn a_plugin_that_nobody_has_leaves_nothing_behind() {
        let (media, recorder) = (MediaPlane::detached().0, Recorder::default());
        let audio = AudioThreads::new(AudioConfig::default(), media.clone(), recorder.clone());
        let plugin = AudioBridge::new(AudioBridgeConfig::default(), media, recorder, audio);
        let plugin = plugin.unwrap();
        let shared = plugin.shared.own.clone();
        assert!(shared.upgrade().is_some());
        drop(plugin);
        assert!(shared.upgrade().is_none());
    }
}
