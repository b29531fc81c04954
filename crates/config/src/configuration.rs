//! The trait of the configurable parts of the server.

use std::fmt::Debug;

use serde::Serialize;

use crate::{Probe, Section};

/// The configuration of a part of the server: the keys of its section, each with a default.
///
/// serde reads and writes it, so the type derives `Serialize` and `Deserialize`, with
/// `#[serde(default)]`.
pub trait Configuration: Debug + Default + Serialize + Send + Sync + 'static {
    /// Whether it has any keys. A part without has no section.
    const HAS_KEYS: bool = true;

    /// The keys that take effect without a restart when the configuration is read again. For any
    /// other key the server reports that a restart is needed, so no new key is ignored silently.
    const LIVE: &'static [&'static str] = &[];

    /// Reads the section: usually by [`Section::keys`], followed by the checks that serde cannot
    /// do. The section notes mistakes. The result is not used after one.
    fn read(section: &mut Section<'_>) -> Self;

    /// Looks for faults that reading cannot find, such as missing files and addresses. It blocks,
    /// and changes nothing.
    fn probe(&self, _: &mut Probe) {}
}

/// No keys.
impl Configuration for () {
    const HAS_KEYS: bool = false;

    fn read(_: &mut Section<'_>) -> Self {}
}
