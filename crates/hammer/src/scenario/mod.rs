//! What is done to a server: participants come, media flows, figures are taken.

mod audiobridge;
pub mod bridge;
mod crowd;
pub mod echo;
mod error;
mod hall;
mod joining;
pub mod load;
mod mountpoint;
mod quality;
mod recorder;
pub mod recording;
mod registering;
pub mod room;
mod run;
pub mod sip;
pub mod streaming;
mod target;
mod telephone;
mod videoroom;

use std::future::Future;
use std::io;

use tokio::runtime;

pub use error::ScenarioError;
pub use target::Target;

use crate::namespace::pin;

/// Runs a scenario on the calling thread, after pinning it and all it starts to `core`.
pub(crate) fn block_on<T>(
    core: Option<usize>,
    scenario: impl Future<Output = Result<T, ScenarioError>>,
) -> Result<T, ScenarioError> {
    if let Some(core) = core {
        pin(core).map_err(|source| ScenarioError::Core { core, source })?;
    }
    let runtime = runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(ScenarioError::Runtime)?;
    runtime.block_on(scenario)
}

/// Seconds on the command line.
pub(crate) fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.0..=86_400.0).contains(&seconds) => Ok(seconds),
        _ => Err("a time in seconds is expected".to_owned()),
    }
}

/// As many descriptors as the system gives: each participant needs one.
pub(crate) fn raise_descriptor_limit() -> io::Result<u64> {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    setrlimit(Resource::RLIMIT_NOFILE, hard, hard)?;
    Ok(hard)
}
