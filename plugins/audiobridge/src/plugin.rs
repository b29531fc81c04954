//! The plugin.

use std::sync::{Arc, Weak};

use portunus_audio::AudioThreads;
use portunus_core::events::EventBus;
use portunus_core::media::MediaPlane;
use portunus_core::record::Recorder;
use portunus_core::{
    Asked, Broadcast, ConfiguredPlugin, Fields, Handle, MissingService, Plugin, PluginContext,
    PluginCounter, PluginHandle, PluginInfo, PluginReloaded, Reply,
};
use portunus_files::Folders;
use portunus_resources::{AllowedTokens, Asker, Maker, Resources, SavedError};
use portunus_telephony::Telephony;
use serde_json::Value;

use crate::PACKAGE;
use crate::client_handle::Attached;
use crate::cluster::{ClusterRooms, Home};
use crate::config::AudioBridgeConfig;
use crate::home::Places;
use crate::refusal::Refusal;
use crate::requests::{Management, Participation};
use crate::room::PhoneRooms;
use crate::shared::Shared;

/// The plugin with its rooms.
#[derive(Debug)]
pub struct AudioBridge {
    pub(crate) shared: Arc<Shared>,
}

/// The parts of the server that the plugin uses.
struct ServerParts {
    media: MediaPlane,
    recorder: Recorder,
    audio: AudioThreads,
    events: EventBus,
    telephony: Telephony,
    cluster: ClusterRooms,
}

impl AudioBridge {
    /// Starts the plugin with the rooms of its configuration, which run on `audio`. Fails if the
    /// saved rooms cannot be read. Needs tokio's runtime.
    pub fn new(
        config: AudioBridgeConfig,
        media: MediaPlane,
        recorder: Recorder,
        audio: AudioThreads,
    ) -> Result<Self, SavedError> {
        let parts = ServerParts {
            media,
            recorder,
            audio,
            events: EventBus::default(),
            telephony: Telephony::default(),
            cluster: ClusterRooms::default(),
        };
        Self::start(config, parts)
    }

    fn start(config: AudioBridgeConfig, parts: ServerParts) -> Result<Self, SavedError> {
        let ServerParts {
            media,
            recorder,
            audio,
            events,
            telephony,
            cluster,
        } = parts;
        let keys = config.resource_keys();
        let announced_address = config.announced_address();
        let AudioBridgeConfig {
            lock_rtp_forward,
            lock_play_file,
            folders,
            rtp_port_range,
            rooms: configured,
            outgoing,
            ..
        } = config;
        let (rooms, first) = Resources::start(keys, configured)?;
        let shared = Arc::new_cyclic(|own| Shared {
            own: own.clone(),
            lock_rtp_forward: lock_rtp_forward && rooms.has_admin_key(),
            lock_play_file: lock_play_file && rooms.has_admin_key(),
            folders: Arc::new(Folders::new(folders)),
            outgoing: Arc::new(outgoing),
            local_ip: announced_address.unwrap_or_else(|| media.address()),
            ports: rtp_port_range,
            media,
            recorder,
            audio,
            events: events.of_plugin(PACKAGE),
            stream_ids: Arc::default(),
            telephony: telephony.clone(),
            rooms,
            cluster,
            places: Places::default(),
        });
        shared.cluster.keep_in(shared.own.clone() as Weak<dyn Home>);
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
        let parts = ServerParts {
            media,
            recorder,
            audio: services.get::<AudioThreads>()?.clone(),
            events,
            telephony: services.get::<Telephony>()?.clone(),
            cluster: services.get::<ClusterRooms>().cloned().unwrap_or_default(),
        };
        let config = AudioBridgeConfig { outgoing, ..config };
        Ok(AudioBridge::start(config, parts)?)
    }

    async fn reload(&self, running: &AudioBridgeConfig, new: &AudioBridgeConfig) -> PluginReloaded {
        let limits = new.resource_keys().limits;
        self.shared.rooms.set_limits(limits);
        portunus_resources::reload(&self.shared, &running.rooms, &new.rooms).await
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
    /// Answers a request of an administrator.
    fn administer(&self, fields: Fields<'_>) -> Result<Reply, Refusal> {
        let name = fields.required::<&str>("request")?;
        let unknown = || Refusal::UnknownRequest(name.to_owned());
        let asked = Asked::<Management>::named(name).ok_or_else(unknown)?;
        self.shared.manage(asked, fields, Asker::administrator())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
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
