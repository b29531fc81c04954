//! Event handlers: where what happens in the server is told.
#![forbid(unsafe_code)]

mod batch;
mod json;
mod tally;
