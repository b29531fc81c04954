//! Calls with far ends, as clients of the plugin see them and as the media plane is asked for them.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

mod calls;
mod refusals;
mod support;
