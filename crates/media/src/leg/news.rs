//! How the events of a leg are published.

use portunus_rtp::telephone_event::Pressed;
use tokio::sync::mpsc;

use super::{LegEvent, LegId, LegNews, LegSide};

/// The channel for the events of a leg.
#[derive(Debug)]
pub(super) struct News {
    leg: LegId,
    channel: mpsc::Sender<LegNews>,
}

impl News {
    pub(super) fn new(leg: LegId, channel: mpsc::Sender<LegNews>) -> Self {
        Self { leg, channel }
    }

    /// Publishes an event. It is lost if the channel is full.
    pub(super) fn publish(&self, event: LegEvent) {
        let leg = self.leg;
        if self.channel.try_send(LegNews { leg, event }).is_err() {
            tracing::debug!(?event, "an event of a leg finds no room");
        }
    }

    /// Publishes that a key was pressed. `clock_rate` is that of its duration, in Hz.
    pub(super) fn publish_key(&self, by: LegSide, key: Pressed, clock_rate: u32) {
        self.publish(LegEvent::Key {
            by,
            event: key.event,
            duration: key.duration,
            clock_rate,
        });
    }
}
