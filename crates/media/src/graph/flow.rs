//! What of a source flows: its layers, and how much each takes.

use std::time::Instant;

use portunus_rtc::bandwidth::{LayerMeter, LayerRates, Layering};

use super::Packet;
use super::selector::ENCODINGS;

/// The layers of a source as they come in.
#[derive(Debug, Default)]
pub(crate) struct Flow {
    /// Packets of several spatial layers in one stream came.
    svc: bool,
    /// The highest temporal layer of which packets came.
    temporal: u8,
    /// When the last keyframe of each encoding came.
    keyframes: [Option<Instant>; ENCODINGS],
    /// Where somebody's link decides on layers.
    meter: Option<Box<LayerMeter>>,
}

impl Flow {
    /// A packet came. `encodings` is how many the source has.
    #[inline]
    pub(crate) fn record(&mut self, packet: &Packet, encodings: u8) {
        self.svc |= packet.layers.svc;
        self.temporal = self.temporal.max(packet.layers.temporal);
        if packet.layers.keyframe
            && let Some(last) = self.keyframes.get_mut(usize::from(packet.encoding))
        {
            *last = Some(packet.arrival);
        }
        if let Some(meter) = &mut self.meter {
            let layer = if encodings > 1 {
                packet.encoding
            } else {
                packet.layers.spatial
            };
            meter.record(layer, packet.layers.temporal, packet.data.len());
        }
    }

    /// When the last keyframe of an encoding came, as far as packets were looked into.
    pub(crate) fn last_keyframe(&self, encoding: u8) -> Option<Instant> {
        *self.keyframes.get(usize::from(encoding))?
    }

    /// Whether one encoding of it has layers.
    pub(crate) fn has_layers(&self) -> bool {
        self.svc || self.temporal > 0
    }

    /// Whether no other packet needs this one, once its frame is left out: it is of the highest temporal layer.
    pub(crate) fn can_spare(&self, packet: &Packet) -> bool {
        self.temporal > 0 && packet.layers.temporal >= self.temporal
    }

    /// What each layer takes; it is measured from now on.
    pub(crate) fn rates(&mut self, encodings: u8, now: Instant) -> LayerRates {
        let layering = if encodings == 1 && self.svc {
            Layering::Spatial
        } else {
            Layering::Encodings
        };
        let meter = self.meter.get_or_insert_default();
        meter.rates(layering, now)
    }

    /// Nobody needs the rates any more.
    pub(crate) fn stop(&mut self) {
        self.meter = None;
    }
}
