//! The audio of one participant over good and bad networks, in virtual time.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by a panic"
)]

mod call;
mod formats;
mod losses;
mod networks;
mod skipping;
mod speech;
mod streams;
