//! The layers that a source sends, and their bitrates.

use std::time::Instant;

use portunus_rtc::bandwidth::{LayerMeter, LayerRates, Layering};

use super::{ENCODINGS, Packet};

/// The layers that a source sends.
#[derive(Debug, Default)]
pub struct Flow {
    /// The stream has several spatial layers in one SSRC.
    svc: bool,
    /// The highest temporal layer so far.
    temporal: u8,
    /// When the last keyframe of each encoding arrived.
    keyframes: [Option<Instant>; ENCODINGS],
    /// Measures bitrates, if a link limits the layers of some viewer.
    meter: Option<Box<LayerMeter>>,
}

impl Flow {
    /// Records a packet of a source with `encodings` encodings.
    #[inline]
    pub fn record(&mut self, packet: &Packet, encodings: u8) {
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

    /// When the last keyframe of an encoding arrived. Only keyframes that could be recognized
    /// count.
    #[inline]
    pub fn last_keyframe(&self, encoding: u8) -> Option<Instant> {
        *self.keyframes.get(usize::from(encoding))?
    }

    /// Whether one encoding has several layers.
    #[inline]
    pub fn has_layers(&self) -> bool {
        self.svc || self.temporal > 0
    }

    /// Whether a packet is of the highest temporal layer, so that its frame can be dropped.
    #[inline]
    pub fn can_spare(&self, packet: &Packet) -> bool {
        self.temporal > 0 && packet.layers.temporal >= self.temporal
    }

    /// Returns the bitrate of each layer. Measuring starts with the first call.
    pub fn rates(&mut self, encodings: u8, now: Instant) -> LayerRates {
        let layering = if encodings == 1 && self.svc {
            Layering::Spatial
        } else {
            Layering::Encodings
        };
        let meter = self.meter.get_or_insert_default();
        meter.rates(layering, now)
    }

    /// Stops measuring.
    pub fn stop(&mut self) {
        self.meter = None;
    }
}
