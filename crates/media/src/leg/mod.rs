//! Legs: RTP or SRTP both ways, by UDP ports of their own, with a far end without ICE and DTLS.
//!
//! A leg is a source of the media graph ([`AddedLeg::source`]) and a sink
//! ([`crate::MediaPlane::route_to_leg`]). [`crate::MediaPlane`] adds and changes legs.

mod event;
mod incoming;
mod key;
mod keys;
mod latch;
mod news;
mod options;
mod outgoing;
mod presence;
mod reports;
mod rtcp;
mod state;
mod status;
mod tones;

use portunus_sdp::negotiated::Codec;

pub use event::{LegEvent, LegNews};
pub(crate) use incoming::NotTaken;
pub use key::SrtpKey;
pub use options::{
    AddedLeg, KeyframeAsking, LegGates, LegId, LegPayload, LegRemote, LegRtcp, LegSide, LegSrtp,
    LegTones, NewLeg,
};
pub(crate) use outgoing::Written;
pub use portunus_srtp::{KeyError, Profile};
pub(crate) use state::{
    Datagram, Due, LegOptions, LegState, ReportContents, ReportSource, RtcpFeedback,
};
pub use status::LegStatus;

/// Returns the payload type of telephone events. If there are several, prefers the clock of the
/// codec.
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
