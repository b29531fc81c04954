//! The media of calls: a handle's PeerConnection joined to a far end of plain RTP or SRTP, audio
//! and video.
//!
//! A plugin that calls telephones does the signalling, and has a [`CallMedia`] for each call. That
//! does everything about media: both negotiations (`portunus_sdp::plain`), the legs
//! (`portunus_leg`), the routes between them and the client, holding, recordings and RTP forwarders
//! of both sides.
#![forbid(unsafe_code)]

mod addresses;
mod error;
mod media;
mod server;
mod settings;
mod side;

pub use error::CallError;
pub use media::{
    CallMedia, CallNews, ForwardError, ForwardRequest, KeyframeRequest, MAX_FORWARDERS, Negotiated,
    RecordingAction, RecordingRequest, ResolvedForward, Sides,
};
pub use portunus_core::sdp::plain::{PlainError, SrtpPolicy, SrtpUse, Suite};
pub use portunus_leg::{LegEvent, LegNews, LegSide, LegTones};
pub use server::ServerCall;
pub use settings::CallSettings;
