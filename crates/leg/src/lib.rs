//! Legs of calls: media with far ends of plain RTP, without ICE and DTLS, joined to
//! PeerConnections.
#![forbid(unsafe_code)]

mod error;
mod leg;
mod options;
mod ports;

pub use error::LegError;
pub use leg::Leg;
pub use options::{LegOptions, Medium};
pub use portunus_media::leg::{
    KeyError, KeyframeAsking, LegEvent, LegGates, LegId, LegNews, LegPayload, LegRemote, LegRtcp,
    LegSide, LegSrtp, LegStatus, LegTones, Profile, SrtpKey,
};
