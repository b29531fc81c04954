//! SRTP and SRTCP: seal and open, replay windows, key derivation (RFC 3711, RFC 7714).
//!
//! Everything works in place on the caller's buffer, allocates nothing per packet and keeps the
//! expanded keys across packets. A [`Sealer`] protects outgoing packets, and an [`Opener`] checks
//! and decrypts incoming ones. DTLS gives each its own master key. All `unsafe` is in `sys`.

mod derive;
mod error;
mod opener;
mod profile;
mod sealer;
mod sources;
mod sys;
mod transform;
mod window;

pub use error::{KeyError, OpenError, SealError};
pub use opener::{DEFAULT_SOURCE_LIMIT, Opened, Opener};
pub use profile::Profile;
pub use sealer::Sealer;
pub use sys::{fetch, fetch_head};
pub use window::ReplayWindow;

#[cfg(test)]
mod tests;
