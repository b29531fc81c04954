//! `[events.nanomsg]`.

use portunus_config::{Configuration, Probe, Section};
use serde::{Deserialize, Serialize};

use super::address::Address;
use portunus_core::JsonForm;

/// The configuration of the nanomsg handler.
#[derive(Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct NanomsgConfig {
    /// Whether waiting events are sent together, as a JSON array.
    pub(super) grouping: bool,
    pub(super) json: JsonForm,
    /// The least time between two batches, in ms.
    pub(super) batch_pause_ms: u64,
    /// Such as `tcp://127.0.0.1:5555` or `ipc:///run/portunus/events.sock`.
    pub(super) address: String,
    pub(super) mode: Mode,
}

/// The direction of connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Mode {
    /// This server connects to one bound subscriber.
    Connect,
    /// Any number of subscribers.
    Bind,
}

impl Default for NanomsgConfig {
    fn default() -> Self {
        NanomsgConfig {
            grouping: true,
            json: JsonForm::default(),
            batch_pause_ms: 50,
            address: String::new(),
            mode: Mode::Connect,
        }
    }
}

impl Configuration for NanomsgConfig {
    fn read(section: &mut Section<'_>) -> Self {
        let nanomsg: Self = section.keys();
        section.range("batch_pause_ms", nanomsg.batch_pause_ms, 0..=10_000);
        if !nanomsg.address.is_empty() {
            section.check(&["address"], nanomsg.address.parse::<Address>().map(drop));
        }
        nanomsg
    }

    fn probe(&self, probe: &mut Probe) {
        let Ok(address) = self.address.parse::<Address>() else {
            return;
        };
        if self.mode == Mode::Connect {
            probe.connects("address", &self.address, async move {
                let connected = address.connect().await;
                connected.map(drop).map_err(|error| error.to_string())
            });
        }
    }
}
