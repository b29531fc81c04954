//! `[traces]`: where traces of requests go.

use portunus_core::configuration::{self, Configuration, Section};
use serde::{Deserialize, Serialize};

use super::HttpUrl;

/// The export of traces by OTLP.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct TracesConfig {
    /// The collector's address for traces, by HTTP; `None` disables traces.
    #[serde(with = "configuration::optional")]
    pub(crate) url: Option<HttpUrl>,
    /// The share of requests that are traced, 0 to 1. Requests with a parent follow its decision.
    pub(crate) share: f64,
}

impl Default for TracesConfig {
    fn default() -> Self {
        Self {
            url: None,
            share: 1.0,
        }
    }
}

impl Configuration for TracesConfig {
    fn read(section: &mut Section<'_>) -> Self {
        let traces: Self = section.keys();
        section.range("share", traces.share, 0.0..=1.0);
        traces
    }
}
