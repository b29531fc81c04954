//! The media of calls: a handle's PeerConnection joined to a far end of plain RTP or SRTP, audio and video.
//!
//! A plugin that calls telephones has signalling, and a [`CallMedia`] for each call. That has all that is about media: both
//! negotiations (`portunus_sdp::plain`), the legs (`portunus_leg`), the routes between them and the client, holding, recordings
//! and RTP forwarders of both sides.
#![forbid(unsafe_code)]

mod addresses;
mod error;
mod forward;
mod media;
mod moving;
mod record;
mod server;
mod settings;
mod side;
mod state;

pub use error::CallError;
pub use forward::{ForwardError, ForwardRequest, MAX_FORWARDERS, ResolvedForward};
pub use media::{CallMedia, CallNews, Negotiated};
pub use portunus_core::sdp::plain::{PlainError, SrtpPolicy, SrtpUse, Suite};
pub use portunus_leg::{LegEvent, LegNews, LegSide, LegTones};
pub use record::{KeyframeRequest, RecordingAction, RecordingRequest, Sides};
pub use server::ServerCall;
pub use settings::CallSettings;
