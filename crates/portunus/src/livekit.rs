//! The server of the LiveKit door.

use portunus_api::ExtraServer;
use portunus_audio::AudioThreads;
use portunus_core::Gateway;
use portunus_livekit::{LiveKit, Means, SavedError};
use portunus_room::Rooms;
use portunus_telephony::Telephony;

use crate::config::Config;

/// Its name.
pub(crate) const LIVEKIT: &str = "livekit";

/// Returns a door to the rooms of the server.
pub(crate) fn door(
    config: &Config,
    rooms: Rooms,
    telephones: (AudioThreads, Telephony),
) -> LiveKit {
    let means = Means {
        composer: std::env::current_exe().ok(),
        telephones: Some(telephones),
    };
    LiveKit::new(config.livekit.clone(), rooms).with(means)
}

/// Returns the door's server. From now on the door lets clients in.
pub(crate) fn server(
    config: &Config,
    door: &LiveKit,
    gateway: &Gateway,
) -> Result<ExtraServer, SavedError> {
    let livekit = &config.livekit;
    Ok(ExtraServer {
        name: LIVEKIT,
        key: "livekit.port",
        bind: livekit.bind.clone(),
        port: livekit.port,
        tls: livekit.tls.then_some("livekit.tls"),
        max_connections: livekit.max_connections,
        limit_key: "livekit.max_connections",
        router: door.open(gateway.clone())?,
    })
}
