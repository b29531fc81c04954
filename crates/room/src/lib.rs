//! Conferences: participants, their publications, and the subscriptions to them.
//!
//! This crate knows no wire protocol. A *door* is a crate that speaks one: it parses the requests
//! of clients, calls the methods of [`State`], and writes the outcomes and notices in the
//! protocol's format. One conference can have several doors. The video room plugin is the door of
//! the Janus API; WHIP and WHEP use it too.
//!
//! # What a door does
//!
//! - It makes a [`Room`] of a [`Setup`], and locks it for each request ([`Room::lock`]).
//! - It implements [`Connection`] (the PeerConnection) and [`Client`] (the notices) for its
//!   clients, and [`Watcher`] for the observers of the server. The room tells them [`Notice`]s and
//!   [`Event`]s.
//! - It checks secrets, PINs and tokens before it calls the room, which knows none of them.
//! - It reports what happens to a client's media:
//!
//! | event of the PeerConnection | of a participant | of a subscriber |
//! |---|---|---|
//! | up | [`State::media_up`], then [`State::announce`] | |
//! | ended | [`State::media_ended`] | [`State::subscriber_hung_up`] |
//! | audio level | [`State::heard`], [`State::speech`] | |
//! | another layer is relayed | | [`State::layer_changed`] |
//! | the client is gone | [`State::gone`] | [`State::leave_subscriber`] |
//!
//! # Commands
//!
//! | a client wants to | command | its argument |
//! |---|---|---|
//! | join as a participant | [`State::join`] | [`Join`] |
//! | publish, or change how | [`State::configure`] | [`Configure`] |
//! | leave | [`State::leave`] | |
//! | subscribe to streams | [`State::join_subscriber`] | [`SubscriberJoin`] |
//! | follow a publisher or the speakers | [`State::watch`] | [`Watch`] |
//! | answer an offer | [`State::accept`], then [`State::offer_pending`] | |
//! | add and remove streams | [`State::change`] | [`Change`] |
//! | replace streams without an offer | [`State::switch`] | [`Switch`] |
//! | choose layers | [`State::configure_subscriber`] | [`SubscriberConfigure`] |
//! | mute or kick somebody | [`State::moderate`], [`State::kick`] | |
//!
//! A refused command is a [`Refusal`], which a door maps to its own codes. Arguments implement
//! `Deserialize` where a door can read them as they are.
//!
//! # Words of other protocols
//!
//! | there | here |
//! |---|---|
//! | identity | [`PersonId`] |
//! | session, which a reconnect replaces | [`ConnectionId`] |
//! | track | [`Stream`], named by its publisher and its mid |
//! | name of a track | [`Stream::description`] |
//! | mute by the publisher | [`Configure::streams`] with `send: false` |
//! | mute by a moderator | [`State::moderate`] |
//! | quality, size | [`LayerRequest`] |
//! | metadata, attributes | [`Profile::metadata`], a text that only doors understand |
//! | permissions | [`Permissions`] |
//! | data messages | streams of [`portunus_sdp::Kind::Data`] |
#![forbid(unsafe_code)]

mod announcements;
mod connection;
mod delay;
mod directory;
mod id;
mod notice;
mod publication;
mod refusal;
mod room;
mod roster;
mod settings;
mod speakers;
mod subscription;

pub use connection::{Connection, RecordedClient};
pub use directory::{
    Answered, ClaimError, CreateError, Directory, FarDoor, FarRoom, OtherNodes, Rooms, Unprepared,
    Whom, Work,
};
pub use id::{ConnectionId, PersonId};
pub use notice::{Event, Notice};
pub use publication::{
    Configure, ExtensionIds, FileNames, ForwardRequest, Forwarder, LineWish, MAX_STREAMS, Place,
    Publication, RecordChange, Relayed, RelayedStream, Remote, RemotePublication, RtcpPorts,
    Stream, StreamDescription, StreamFormat, StreamSetting, Talk,
};
pub use refusal::Refusal;
pub use room::{
    ClaimRefusal, Client, Configured, Displaced, FarOrigin, Join, NewRemote, Outcome, Room, Setup,
    State, Switched, Taps, Told, Watcher, hear,
};
pub use roster::{MediaSettings, Participant, Permissions, Profile, RecordSettings, TalkSettings};
pub use settings::{
    CodecSettings, Dummy, DummyStream, ExtensionSettings, KeyframeSettings, RoomRecording,
    RoomSettings, RoomTalk,
};
pub use subscription::{
    Change, LastN, LayerKind, LayerRequest, Line, LineSetting, MAX_SPEAKERS, Missing,
    RequestedLayers, Subscribe, Subscriber, SubscriberConfigure, SubscriberJoin, Switch,
    SwitchEntry, Unsubscribe, Watch,
};
