//! The record of one run, as it is stored and exchanged.
//!
//! Each name ends in its unit: `_s`, `_ms`, `_us` (times), `_bytes`, `_bps` (bits per second),
//! `_pps` (packets per second), `_cores` (CPU time per time: 1 is a whole core), `_share` (0 to 1).
//! Traffic is counted as UDP payload: RTP with its SRTP tag, without IP and UDP headers. What was
//! not measured is `None`, never 0.

mod browsers;
mod calls;
mod carried_load;
mod ceiling;
mod cluster;
mod delays;
#[cfg(test)]
pub(crate) mod example;
mod recording;
mod report;
mod run;
mod sample;
mod sound;
mod step;
mod summary;

pub use browsers::{Attempt, Browsers, Phase, State};
pub use calls::{Far, Registered, SetUp};
pub use carried_load::{
    Carried, Criterion, DELIVERED_AT_LEAST, IN_TIME_AT_LEAST, IN_TIME_BEFORE, LOST_AT_MOST, best,
};
pub use ceiling::{BareLoad, BareLoop, Ceiling};
pub use cluster::{Act, Cluster, Losses, News, NodeLoad, Notice, RelayCost};
pub use delays::{Calm, Delays};
pub use recording::Recorded;
pub use report::{FORM, ReadError, Report};
pub use run::{Lateness, Machine, RunRecord, Scenario, Server, Webhook};
pub use sample::{LinkUse, LoadUse, Sample, ServerUse, Stalls, ThreadUse};
pub use sound::{Quality, Sound};
pub use step::Step;
pub use summary::{Held, Leaving, Resumed, Summary};
