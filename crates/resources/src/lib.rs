//! Named resources: what the rooms, mountpoints and recordings of all plugins have in common.
//!
//! A resource has an [`Id`] and an [`Access`]: who may manage it, who may use it, and whether it is listed. It comes from
//! the configuration, from the file of permanent resources ([`Saved`]), or from a request. A plugin says what its own
//! resources are ([`Resource`], [`Written`]) and gets a [`Resources`] of them. What the crate refuses it says by a
//! [`Refusal`], which each plugin turns into the codes and texts that its clients know.
//!
//! A plugin with rooms has them as [`Room`]s, which bring what all plugins share of the requests about them ([`RoomContent`]), and
//! a table of their options ([`Options`]). Its section of the configuration is made by [`resource_config!`].
//!
//! What strangers make has [`Limits`], and ends once it was unused for a time. Who of them shows too many wrong secrets has to wait
//! ([`Resources::guarded`]).
#![forbid(unsafe_code)]

mod access;
mod answer;
mod asker;
mod configured;
mod expiry;
mod guarded;
mod guesses;
mod id;
mod keys;
mod limits;
mod options;
mod refusal;
mod registry;
mod reload;
mod resources;
mod room;
mod saved;

pub use access::{Access, AllowedRequest, AllowedTokens, check_secret, read_with_secret};
pub use answer::{Answer, RecordedRoom};
pub use asker::Asker;
pub use configured::{ConfiguredOptions, ConfiguredRoom, RoomProblem, check_keys, read_rooms};
pub use guarded::Refused;
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
pub use resources::{Resource, Resources};
pub use room::{Room, RoomContent};
pub use saved::{Saved, SavedError, Writing, Written, off_thread, rewrite_saved};
