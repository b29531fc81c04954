//! Sessions, handles, the plugin trait, events and configuration: the Janus API without a
//! transport.
//!
//! A transport makes a [`Client`] for each connection, and passes what it reads to the [`Gateway`].
//! A plugin implements [`Plugin`], and programs the media graph through its [`Handle`]s.
#![forbid(unsafe_code)]

mod broadcast;
mod budget;
mod certificate;
mod client;
mod client_event;
mod client_message;
mod cluster_view;
mod config;
mod context;
mod counters;
mod drain;
mod error;
pub mod events;
mod fields;
mod file_replacement;
mod gateway;
mod handle;
mod id;
mod info;
mod json_form;
mod machine_memory;
mod mdns;
mod metrics;
mod networks;
mod object;
mod outbox;
mod plugin;
mod plugin_counter;
mod plugin_info;
mod plugin_request;
pub mod prices;
mod public_address;
mod public_file;
mod rate;
mod recording;
mod reflected_address;
mod registration;
mod reload;
pub mod request;
mod request_rights;
mod request_traces;
mod requester;
mod services;
mod session;
mod settings;
#[cfg(feature = "testing")]
pub mod testing;
mod times;

pub use broadcast::{Broadcast, Refusal, Stream};
pub use budget::{Budget, BudgetKeys, BudgetLimits, BudgetTotals, OverBudget, Purse, Share};
pub use certificate::certificate_expiry;
pub use client::Client;
pub use client_message::{ClientMessage, Notice};
pub use cluster_view::{ClusterStatus, ClusterView, OtherNode};
pub use config::{CoreConfig, InfoName, RidOrder};
pub use counters::{BadRequest, Counters, CountersSnapshot};
pub use drain::DRAIN_RETRY_SECONDS;
pub use error::ApiError;
pub use fields::{FieldError, Fields, Members, with};
pub use file_replacement::replace_file;
pub use gateway::{BuildFacts, DrainStatus, Gateway, NotReady, PendingReply};
pub use handle::{
    ConnectionFacts, Handle, HandleFacts, JsepError, LocalIce, PeerFacts, PendingOffer,
};
pub use id::{HandleId, SessionId};
pub use info::{ServerFacts, TransportInfo};
pub use json_form::JsonForm;
pub use networks::{Network, Networks};
pub use object::Object;
pub use outbox::{OUTBOX, OUTBOX_OF_HANDLE, Outbox, Posted};
pub use plugin::{Author, HandleEvent, Later, Message, Plugin, PluginHandle, Preparation, Reply};
pub use plugin_counter::{Count, PluginCounter};
pub use plugin_info::PluginInfo;
pub use plugin_request::{Answered, Asked, Needs, PluginRequest};
pub use portunus_log_gate::LogGate;
pub use portunus_rtp::{ExtensionKind, ExtensionMap, Mid, Pt, Ssrc};
pub use portunus_sdp::{Jsep, LocalJsep, SdpType as JsepKind, Svc};
pub use portunus_tokens::{
    Credentials, JwtConfig, JwtError, JwtVerifier, KeyError, KeyFileError, OutOfScope, Right,
    Rights, StoredToken, TokenFault, TokenScope, TokenTotals, Untrusted, equal_in_constant_time,
};
pub use public_file::{PublicFile, PublicFiles};
pub use recording::{
    ClientRecording, RecordingNews, SentMedia, Wish, publish_recordings, recording_fault,
};
pub use reflected_address::reflected_address;
pub use registration::{
    ConfiguredPlugin, PluginConfig, PluginContext, PluginError, PluginReloaded, Registration,
    StartedPlugin,
};
pub use reload::{Reloaded, Reloader, Reloading};
pub use request_rights::{recording, with_admin_key};
pub use request_traces::{RequestTrace, RequestTraces};
pub use requester::{ClientAddress, Requester};
pub use services::{MissingService, Services};
pub use session::{Session, SessionFacts, SessionTimeout};
pub use times::{RequestTimes, Times};

/// Reads sections of the configuration file into types, and writes them.
pub use portunus_config as configuration;
/// The terms of the media graph: routes, layers, data messages.
pub use portunus_media as media;
/// Recorders, which write sources into files.
pub use portunus_record as record;
/// The terms of negotiation: descriptions, m-lines, codecs.
pub use portunus_sdp as sdp;
/// The TURN server.
pub use portunus_turn as turn;
