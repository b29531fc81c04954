//! The plugin's section of the configuration, `[greeter]`.

use std::ops::RangeInclusive;

use portunus_core::configuration::{Configuration, Section};
use serde::{Deserialize, Serialize};

/// The configuration of the plugin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GreeterConfig {
    /// The words before a name.
    pub greeting: String,
    /// The number of repetitions, 1 to 3.
    pub times: usize,
}

/// The permitted numbers of repetitions.
pub(crate) const TIMES: RangeInclusive<usize> = 1..=3;

impl Default for GreeterConfig {
    fn default() -> Self {
        GreeterConfig {
            greeting: "Hello".to_owned(),
            times: 1,
        }
    }
}

impl Configuration for GreeterConfig {
    fn read(section: &mut Section<'_>) -> Self {
        let greeter: Self = section.keys();
        section.range("times", greeter.times, TIMES);
        greeter
    }
}
