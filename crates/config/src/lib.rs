//! The configuration file. Each part of the server reads its own section into its own type by
//! serde. Every mistake is reported with its line. The effective configuration can be written as a
//! file.
//!
//! ```
//! use portunus_config::{Configuration, Section};
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Debug, Serialize, Deserialize)]
//! #[serde(default)]
//! struct Greetings {
//!     greeting: String,
//!     times: u8,
//! }
//!
//! impl Default for Greetings {
//!     fn default() -> Self {
//!         Greetings { greeting: "Hello".to_owned(), times: 1 }
//!     }
//! }
//!
//! impl Configuration for Greetings {
//!     fn read(section: &mut Section<'_>) -> Self {
//!         let greetings: Self = section.keys();
//!         section.range("times", greetings.times, 1..=3);
//!         greetings
//!     }
//! }
//!
//! let read = |text| portunus_config::read(text, |file| file.section("greeter", Greetings::read));
//! assert_eq!(read("[greeter]\ngreeting = \"Hi\"").map(|it| it.times), Ok(1));
//! let mistakes = read("[greeter]\ngreeting = 5\ntims = 2\n").map(|it| it.times).unwrap_err();
//! let told: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
//! assert_eq!(told, [
//!     "line 2: greeter.greeting: expected text in quotes, got 5",
//!     "line 3: greeter.tims: unknown key; did you mean greeter.times?",
//! ]);
//! ```
#![forbid(unsafe_code)]

mod changes;
mod claims;
mod configuration;
mod entry;
mod fields;
mod form;
mod lines;
mod message;
mod mistake;
mod ports;
mod printed;
mod probe;
mod secret;
mod section;
mod suggestion;

pub use changes::{Changes, Sections, with_live};
pub use claims::{Listener, Protocol};
pub use configuration::Configuration;
pub use entry::Entry;
pub use form::{optional, seconds, text};
pub use lines::Lines;
pub use mistake::Mistake;
pub use ports::PortRange;
pub use printed::{PrintError, Printed, Table, keys_of};
pub use probe::{
    Attempt, Certificate, Finding, Probe, Recorded, Remote, Severity, Written, takes_files,
};
pub use secret::Secret;
pub use section::{Section, defaults, read};
