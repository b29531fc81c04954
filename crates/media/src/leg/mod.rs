//! Legs: RTP or SRTP over UDP with a far end that knows no ICE and no DTLS, both ways by a port of its own.
//!
//! A leg is a source of the media graph ([`AddedLeg::source`]) and a sink ([`crate::MediaPlane::route_to_leg`]). What is public is
//! asked for through [`crate::MediaPlane`].

mod event;
mod key;
mod options;
mod plane;
mod status;

pub use event::{LegEvent, LegNews};
pub use key::SrtpKey;
pub use options::{
    KeyframeAsking, LegGates, LegId, LegPayload, LegRemote, LegRtcp, LegSide, LegSrtp, LegTones,
    NewLeg,
};
pub use plane::AddedLeg;
pub use portunus_srtp::{KeyError, Profile};
pub use status::LegStatus;
