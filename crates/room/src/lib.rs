//! Conferences: who is in them, what they publish, and what each of them receives.
//!
//! This crate knows no wire. A *door* is a crate that speaks a protocol: it parses what a client
//! asks for, calls a method of [`State`], and writes the outcome in the protocol's own words. So one
//! conference can have several doors. The video room plugin is the door of the Janus API, and WHIP
//! and WHEP come through it.
//!
//! - A door implements [`Connection`] for each of its clients, and [`Watcher`] for those who watch
//!   the server. The room tells them what happens as [`Notice`] and [`Event`].
//! - Requests are typed: [`Join`], [`Configure`], [`Subscribe`], [`Change`], [`Switch`], [`Watch`]
//!   and others. A refused request is a [`Refusal`], which a door maps to its own codes.
//! - Requests are read by serde, in whatever format a door has: most have the names of their members.
//! - Secrets, PINs and tokens are not here: a door lets a client in before it calls the room.
//!
//! What another protocol calls by other names: an *identity* is a [`PersonId`]; a *session* of it,
//! which a reconnect replaces, a [`ConnectionId`]; a *track* is a [`Stream`], named by its publisher
//! and its mid; its *name* is [`Stream::description`]; *mute* is a stream that its publisher does not
//! send ([`Configure::streams`]), and mute by a moderator is [`State::moderate`]; the *quality* or size that a
//! viewer wants is a [`LayerRequest`]; *metadata* is a text of the door's own ([`Profile::metadata`]),
//! where attributes belong as well; *permissions* are [`Permissions`]. *Data messages* are streams of
//! [`portunus_sdp::Kind::Data`].
#![forbid(unsafe_code)]

mod connection;
mod delay;
mod id;
mod news;
mod notice;
mod publication;
mod refusal;
mod room;
mod roster;
mod settings;
mod speakers;
mod subscription;

pub use connection::{Connection, RecordedClient, Told, Watcher};
pub use id::{ConnectionId, PersonId};
pub use notice::{Event, Notice, Talk};
pub use publication::{
    Configure, ExtensionIds, FileNames, ForwardRequest, Forwarder, MAX_STREAMS, Place, Publication,
    RecordChange, Remote, RemotePublication, Stream, StreamSetting,
};
pub use refusal::Refusal;
pub use room::{Configured, Join, NewRemote, Outcome, Room, Setup, State, Switched, hear};
pub use roster::{MediaSettings, Participant, Permissions, Profile, RecordSettings, TalkSettings};
pub use settings::{Dummy, DummyStream, RoomSettings};
pub use subscription::{
    Change, LastN, LayerKind, LayerRequest, Line, LineSetting, MAX_SPEAKERS, RequestedLayers,
    Subscribe, Subscriber, SubscriberConfigure, SubscriberJoin, Switch, SwitchEntry, Unsubscribe,
    Watch,
};
