//! Legs: RTP or SRTP over UDP with a far end that knows no ICE and no DTLS, both ways by a port of its own.
//!
//! A leg is a source of the media graph ([`AddedLeg::source`]) and a sink ([`crate::MediaPlane::route_to_leg`]). What is public is
//! asked for through [`crate::MediaPlane`].

mod event;
mod incoming;
mod key;
mod latch;
mod options;
mod outgoing;
mod plane;
mod reports;
mod state;
mod status;
mod tones;

use portunus_sdp::negotiated::Codec;

pub use event::{LegEvent, LegNews};
pub(crate) use incoming::NotTaken;
pub use key::SrtpKey;
pub use options::{
    KeyframeAsking, LegGates, LegId, LegPayload, LegRemote, LegRtcp, LegSide, LegSrtp, LegTones,
    NewLeg,
};
pub(crate) use outgoing::Wrote;
pub use plane::AddedLeg;
pub use portunus_srtp::{KeyError, Profile};
pub(crate) use state::{Datagram, Due, LegState, Told};
pub use status::LegStatus;

/// The payload type of telephone events: one with the clock of the codec, if there are several.
fn event_payload(payloads: &[LegPayload]) -> Option<LegPayload> {
    let is_event = |payload: &&LegPayload| payload.codec == Codec::TelephoneEvent;
    let mut events = payloads.iter().filter(is_event);
    let main = payloads.iter().find(|payload| !is_event(payload));
    let of_main = |event: &&LegPayload| main.is_some_and(|it| it.clock_rate == event.clock_rate);
    let same = events.clone().find(of_main);
    same.or_else(|| events.next()).copied()
}

#[cfg(test)]
mod tests;
