//! What a part of the server implements to be configured.

use std::fmt::Debug;

use serde::Serialize;

use crate::{Probe, Section};

/// What a part of the server can be told: the keys of its section, each with a default.
///
/// It is read by serde and written by serde, so the type derives `Serialize` and `Deserialize`, the latter with
/// `#[serde(default)]`.
pub trait Configuration: Debug + Default + Serialize + Send + Sync + 'static {
    /// Whether it has any keys. A part without has no section.
    const HAS_KEYS: bool = true;

    /// The keys that take effect without a restart when the configuration is read again. A key that is not among them needs a
    /// restart, which is what the server says then: so a new key is never ignored silently.
    const LIVE: &'static [&'static str] = &[];

    /// Reads the section. Most do it by [`Section::keys`], followed by what serde cannot check. Mistakes are the
    /// section's to remember: what is returned after one is not used.
    fn read(section: &mut Section<'_>) -> Self;

    /// Looks for faults that reading cannot find, such as files and addresses that the machine lacks. It blocks, and changes
    /// nothing.
    fn probe(&self, _: &mut Probe) {}
}

/// No keys.
impl Configuration for () {
    const HAS_KEYS: bool = false;

    fn read(_: &mut Section<'_>) -> Self {}
}
