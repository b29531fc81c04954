//! The state that all handles of the plugin share.

use std::net::IpAddr;
use std::sync::{Arc, Weak};

use portunus_audio::AudioThreads;
use portunus_core::Networks;
use portunus_core::configuration::PortRange;
use portunus_core::events::PluginEvents;
use portunus_core::media::MediaPlane;
use portunus_core::record::Recorder;
use portunus_files::Folders;
use portunus_resources::Resources;
use portunus_telephony::Telephony;

use crate::cluster::ClusterRooms;
use crate::home::Places;
use crate::room::{Room, StreamIds};

/// The state that all handles of the plugin share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) own: Weak<Shared>,
    /// Whether forwarding needs the admin key.
    pub(crate) lock_rtp_forward: bool,
    /// Whether announcements need the admin key.
    pub(crate) lock_play_file: bool,
    /// The folders of announcements.
    pub(crate) folders: Arc<Folders>,
    /// The networks that media may be sent to.
    pub(crate) outgoing: Arc<Networks>,
    /// The address for plain RTP participants.
    pub(crate) local_ip: IpAddr,
    /// The range of the ports for plain RTP participants.
    pub(crate) ports: PortRange,
    pub(crate) media: MediaPlane,
    pub(crate) recorder: Recorder,
    pub(crate) audio: AudioThreads,
    /// Publishes events that no client causes.
    pub(crate) events: PluginEvents,
    pub(crate) stream_ids: Arc<StreamIds>,
    /// The telephones of other plugins.
    pub(crate) telephony: Telephony,
    pub(crate) rooms: Resources<Room>,
    /// The rooms of other nodes.
    pub(crate) cluster: ClusterRooms,
    /// The clients of other nodes in the rooms.
    pub(crate) places: Places,
}
