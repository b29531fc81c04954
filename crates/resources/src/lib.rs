//! Named resources: the common parts of the rooms, mountpoints and recordings of all plugins.
//!
//! A resource has an [`Id`] and an [`Access`]: its secret, its pin, and whether it is listed. It
//! comes from the configuration, from the file of permanent resources ([`Saved`]), or from a
//! request. A plugin implements [`Resource`] and [`Written`] for its own resources and gets
//! [`Resources`] of them. The crate refuses requests by a [`Refusal`], which each plugin translates
//! into its own codes and texts.
//!
//! A plugin with rooms has [`Room`]s, with the requests that all plugins share ([`RoomContent`]),
//! and a table of their options ([`Options`]). [`resource_config!`] makes its section of the
//! configuration.
//!
//! Resources of strangers have [`Limits`], and end after a time without use. A stranger who shows
//! too many wrong secrets has to wait ([`Resources::guarded`]).
#![forbid(unsafe_code)]

mod access;
mod answer;
mod asker;
mod configured_room;
mod ended;
mod far_author;
mod guard;
mod guesses;
mod id;
mod keys;
mod limits;
mod options;
mod refusal;
mod registry;
mod reload;
mod resource;
mod resources;
mod room;
mod saved;
mod sealed;
mod taps;
mod waiting;

pub use access::{
    Access, AllowedRequest, AllowedTokens, SealedAllowed, check_secret, read_with_secret,
};
pub use answer::{Answer, RecordedRoom};
pub use asker::{Asker, ClientElsewhere};
pub use configured_room::{ConfiguredOptions, ConfiguredRoom, RoomProblem, check_keys, read_rooms};
pub use far_author::FarAuthor;
pub use guard::Refused;
pub use guesses::Guessing;
pub use id::{Id, Ids};
pub use keys::ResourceKeys;
pub use limits::{Limits, Maker, TooMany};
#[doc(hidden)]
pub use options::written;
pub use options::{Opt, OptionValue, Options, Place};
pub use refusal::Refusal;
pub use registry::Reservation;
pub use reload::{Reloadable, reload};
pub use resource::Resource;
pub use resources::Resources;
pub use room::{Room, RoomContent};
pub use saved::{Saved, SavedError, Writing, Written, off_thread, rewrite_saved};
pub use taps::Taps;
