//! What strangers may do, and what the trusted may: the tables of docs/security.md, row by row.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic
)]

mod bounds;
mod documented;
mod rows;
mod walk;
mod world;
