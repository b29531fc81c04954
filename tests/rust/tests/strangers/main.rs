//! The rights of strangers and of trusted clients: the tables of docs/security.md, row by row.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

mod bounds;
mod documented;
mod rows;
mod walk;
mod world;
