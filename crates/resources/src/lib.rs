//! Named resources: what the rooms, mountpoints and recordings of all plugins have in common.
//!
//! A resource has an [`Id`] and an [`Access`]: who may manage it, who may use it, and whether it is listed. It comes from
//! the configuration, from the file of permanent resources ([`Saved`]), or from a request. A plugin says what its own
//! resources are ([`Resource`], [`Written`]) and gets a [`Resources`] of them. What the crate refuses it says by a
//! [`Refusal`], which each plugin turns into the codes and texts that its clients know.
//!
//! What strangers make has [`Limits`], and ends once it was unused for a time. Who of them shows too many wrong secrets has to wait
//! ([`Resources::guarded`]).
#![forbid(unsafe_code)]

mod access;
mod configured;
mod expiry;
mod guarded;
mod guesses;
mod id;
mod limits;
mod refusal;
mod registry;
mod reload;
mod resources;
mod saved;

pub use access::{Access, AllowedTokens, check_secret};
pub use configured::{ConfiguredOptions, ConfiguredRoom, RoomProblem, check_keys, read_rooms};
pub use guarded::Refused;
pub use guesses::Guessing;
pub use id::{Id, Ids};
pub use limits::{Limits, Maker, TooMany};
pub use refusal::Refusal;
pub use registry::Reservation;
pub use reload::{Reloadable, reload};
pub use resources::{Resource, Resources};
pub use saved::{Saved, SavedError, Writing, Written, off_thread, rewrite_saved};
