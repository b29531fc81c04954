//! What a room hears of one participant, over networks good and bad, in virtual time.
#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing)]

mod call;
mod formats;
mod losses;
mod networks;
mod skipping;
mod speech;
mod streams;
