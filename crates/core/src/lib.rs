//! Sessions, handles, the plugin trait, events and configuration: the Janus API without a transport.
//!
//! A transport makes a [`Client`] for each connection and hands what it reads to the [`Gateway`]; a plugin
//! implements [`Plugin`] and programs the media graph through the [`Handle`]s that it is given.
#![forbid(unsafe_code)]

mod admin;
mod begun;
mod broadcast;
mod budget;
mod certificate;
mod client;
mod client_event;
mod client_message;
mod config;
mod context;
mod counters;
mod doors;
mod drain;
mod error;
pub mod events;
mod fields;
mod gateway;
mod handle;
mod histogram;
mod id;
mod info;
mod json_form;
mod log_gate;
mod machine_memory;
mod mdns;
mod networks;
mod object;
mod outbox;
mod plugin;
mod plugin_request;
pub mod prices;
mod public_address;
mod rate;
mod reach;
mod recording;
mod reflected_address;
mod registration;
mod replaced;
pub mod request;
mod request_traces;
mod requester;
mod rights;
mod session;
#[cfg(feature = "testing")]
pub mod testing;
mod times;
mod tokens;

pub use admin::{AdminConfig, LogControl, LogLevel, LogLosses, RememberedLog, TransportControl};
pub use begun::Begun;
pub use broadcast::{Broadcast, Refusal, Stream};
pub use budget::{Budget, BudgetKeys, BudgetLimits, BudgetTotals, OverBudget, Purse, Share};
pub use certificate::certificate_expiry;
pub use client::Client;
pub use client_message::{ClientMessage, Notice};
pub use config::{CoreConfig, InfoName, RidOrder, StoredToken, equal_in_constant_time};
pub use counters::{BadRequest, Counters, CountersSnapshot};
pub use doors::{
    AudioRooms, Caller, CallerNews, DialError, DialId, DialNews, Dialled, Doors, Entrance,
    EntranceError, Stay, Staying, Telephone,
};
pub use drain::DRAIN_RETRY_SECONDS;
pub use error::ApiError;
pub use fields::{FieldError, Fields, Members, with};
pub use gateway::{
    BuildFacts, Credentials, DrainStatus, Gateway, NotReady, Reloaded, Reloader, Reloading,
};
pub use handle::{Handle, JsepError, LocalIce, PendingOffer};
pub use histogram::{Histogram, HistogramSnapshot};
pub use id::{HandleId, SessionId};
pub use info::{ServerFacts, TransportInfo};
pub use json_form::JsonForm;
pub use log_gate::LogGate;
pub use networks::{Network, Networks};
pub use object::Object;
pub use outbox::{OUTBOX, OUTBOX_OF_HANDLE, Outbox, Posted};
pub use plugin::{
    Count, HandleEvent, Later, Message, Plugin, PluginCounter, PluginHandle, PluginInfo,
    PublicFile, PublicFiles, Reply,
};
pub use plugin_request::{Answered, Asked, Needs, PluginRequest};
pub use portunus_rtp::{ExtensionKind, ExtensionMap, Mid, Pt, Ssrc};
pub use portunus_sdp::{Jsep, LocalJsep, SdpType as JsepKind, Svc};
pub use reach::{Untrusted, recording};
pub use recording::{
    ClientRecording, RecordingNews, SentMedia, Wish, recording_fault, tell_of_recordings,
};
pub use reflected_address::reflected_address;
pub use registration::{
    ConfiguredPlugin, PluginConfig, PluginContext, PluginError, PluginReloaded, Registration,
    StartedPlugin,
};
pub use replaced::replace_file;
pub use request_traces::{RequestTrace, RequestTraces};
pub use requester::{ClientAddress, Requester};
pub use rights::{Right, Rights};
pub use times::{RequestTimes, Times};
pub use tokens::{
    JwtConfig, JwtError, JwtVerifier, KeyError, KeyFileError, OutOfScope, TokenFault, TokenScope,
    TokenTotals,
};

/// Audio rooms and the threads that they run on.
pub use portunus_audio as audio;
/// Reads sections of the configuration file into types, and writes them.
pub use portunus_config as configuration;
/// The media graph's words: routes, layers, data messages.
pub use portunus_media as media;
/// Recorders: files of what comes from a source.
pub use portunus_record as record;
/// The words of negotiations: descriptions, m-lines, codecs.
pub use portunus_sdp as sdp;
/// The TURN server.
pub use portunus_turn as turn;
