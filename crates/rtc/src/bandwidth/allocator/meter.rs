//! The rate of each layer of a source, measured once for all its viewers.

use std::time::{Duration, Instant};

use crate::bandwidth::DataRate;

/// The most encodings or spatial layers, and the most temporal layers, of a source.
pub const LAYERS: (usize, usize) = (3, 3);

/// The time for which bytes are counted before the rates change.
const PERIOD: Duration = Duration::from_millis(500);
/// The weight of a new period, and the factor above the current rate up to which it counts: a
/// keyframe is a burst, not a rate.
const WEIGHT: f64 = 0.25;
const BURST: f64 = 1.25;
/// A layer has vanished if it is silent for the first time while others flow. It is back after
/// flowing for the second time; the lowest one at once.
const VANISHED: Duration = Duration::from_millis(1_500);
const BACK: Duration = Duration::from_secs(1);

/// The kind of the layers of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Layering {
    /// Simulcast, or a single encoding: an encoding does not need the ones below it.
    #[default]
    Encodings,
    /// SVC: a spatial layer needs all below it.
    Spatial,
}

/// The bitrates of a source's layers.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct LayerRates {
    /// The meaning of the first index.
    pub layering: Layering,
    /// The rate of each layer alone, by encoding or spatial layer and by temporal layer. `None` if
    /// it is not sent.
    pub rates: [[Option<DataRate>; LAYERS.1]; LAYERS.0],
}

/// Counts the bytes of a source's layers.
#[derive(Debug, Default)]
pub struct LayerMeter {
    bytes: [[u32; LAYERS.1]; LAYERS.0],
    since: Option<Instant>,
    layers: [[Measured; LAYERS.1]; LAYERS.0],
}

#[derive(Debug, Clone, Copy, Default)]
struct Measured {
    rate: DataRate,
    /// When it started to flow, and when it last flowed.
    flows: Option<(Instant, Instant)>,
    is_there: bool,
}

impl LayerMeter {
    /// Counts a packet of an encoding or spatial layer, and of a temporal layer. Ignores indices
    /// out of range.
    #[inline]
    pub fn record(&mut self, layer: u8, temporal: u8, bytes: usize) {
        let counts = self.bytes.get_mut(usize::from(layer));
        if let Some(count) = counts.and_then(|counts| counts.get_mut(usize::from(temporal))) {
            *count = count.saturating_add(u32::try_from(bytes).unwrap_or(u32::MAX));
        }
    }

    /// Returns the rates at `now`.
    pub fn rates(&mut self, layering: Layering, now: Instant) -> LayerRates {
        let since = *self.since.get_or_insert(now);
        let time = now.saturating_duration_since(since);
        if time >= PERIOD {
            self.since = Some(now);
            self.take_period(time, now);
        }
        let rate = |measured: Measured| measured.is_there.then_some(measured.rate);
        LayerRates {
            layering,
            rates: self.layers.map(|layers| layers.map(rate)),
        }
    }

    fn take_period(&mut self, time: Duration, now: Instant) {
        let flows = |counts: &[u32; LAYERS.1]| counts.iter().any(|bytes| *bytes > 0);
        let mut flowing = self.bytes.iter().filter(|counts| flows(counts)).count();
        let mut lower_flow = false;
        for (counts, layers) in self.bytes.iter_mut().zip(&mut self.layers) {
            // Its own temporal layers do not count, since the first of them may be rare.
            flowing = flowing.saturating_sub(usize::from(flows(counts)));
            let higher_flow = flowing > 0;
            for (count, layer) in counts.iter_mut().zip(layers) {
                let bytes = std::mem::take(count);
                let rate = DataRate::of(bytes.into(), time).unwrap_or_default();
                layer.take_period(rate, (lower_flow, higher_flow), now);
                lower_flow |= bytes > 0;
            }
        }
    }
}

impl Measured {
    /// Ends a period. If no layer flowed, the source has paused, and its layers stay.
    fn take_period(
        &mut self,
        rate: DataRate,
        (lower_flow, higher_flow): (bool, bool),
        now: Instant,
    ) {
        if rate == DataRate::ZERO {
            let Some((_, last)) = self.flows else { return };
            let silent = now.saturating_duration_since(last);
            if (lower_flow || higher_flow) && silent >= VANISHED {
                *self = Self::default();
            }
            return;
        }
        let (began, _) = self.flows.unwrap_or((now, now));
        if self.flows.is_none() {
            self.rate = rate;
        }
        self.flows = Some((began, now));
        let counts = rate.min(self.rate.times(BURST) + DataRate::kbps(10));
        self.rate = self.rate.times(1.0 - WEIGHT) + counts.times(WEIGHT);
        // The lowest layer counts at once.
        self.is_there |= !lower_flow || now.saturating_duration_since(began) >= BACK;
    }
}

impl LayerRates {
    /// Makes the rates of a source with one layer.
    pub fn single(rate: DataRate) -> Self {
        Self {
            layering: Layering::Encodings,
            rates: [[Some(rate), None, None], [None; 3], [None; 3]],
        }
    }

    /// Returns the rate of all layers together.
    pub fn total(&self) -> DataRate {
        self.rates.iter().flatten().flatten().copied().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: Duration = Duration::from_millis(100);

    /// Counts bytes every 100 ms, by layer.
    fn run(meter: &mut LayerMeter, now: &mut Instant, steps: u32, bytes: [usize; 3]) -> LayerRates {
        for _ in 0..steps {
            *now += STEP;
            for (layer, bytes) in (0..).zip(bytes) {
                meter.record(layer, 0, bytes);
            }
            meter.rates(Layering::Encodings, *now);
        }
        meter.rates(Layering::Encodings, *now)
    }

    /// Returns the rates, rounded to 50 kbit/s.
    fn kbps(rates: &LayerRates) -> [Option<u64>; 3] {
        let round = |rate: DataRate| (rate.as_bps() + 25_000) / 50_000 * 50;
        rates.rates.map(|[rate, ..]| rate.map(round))
    }

    #[test]
    fn rates_of_layers_that_flow() {
        let (mut meter, mut now) = (LayerMeter::default(), Instant::now());
        let rates = run(&mut meter, &mut now, 100, [1_250, 6_250, 0]);
        assert_eq!(kbps(&rates), [Some(100), Some(500), None]);
        assert!(rates.total() > DataRate::kbps(590));
    }

    #[test]
    fn a_layer_that_is_silent_while_others_flow_has_vanished() {
        let (mut meter, mut now) = (LayerMeter::default(), Instant::now());
        run(&mut meter, &mut now, 50, [1_250, 6_250, 0]);
        let rates = run(&mut meter, &mut now, 22, [1_250, 0, 0]);
        assert_eq!(kbps(&rates), [Some(100), None, None]);
        let rates = run(&mut meter, &mut now, 6, [1_250, 6_250, 0]);
        assert_eq!(kbps(&rates), [Some(100), None, None], "it may go again");
        let rates = run(&mut meter, &mut now, 30, [1_250, 6_250, 0]);
        assert_eq!(kbps(&rates), [Some(100), Some(500), None]);
    }

    #[test]
    fn the_lowest_layer_vanishes_like_any_other() {
        let (mut meter, mut now) = (LayerMeter::default(), Instant::now());
        run(&mut meter, &mut now, 50, [1_250, 6_250, 0]);
        let rates = run(&mut meter, &mut now, 10, [0, 6_250, 0]);
        assert_eq!(kbps(&rates), [Some(100), Some(500), None]);
        let rates = run(&mut meter, &mut now, 12, [0, 6_250, 0]);
        assert_eq!(kbps(&rates), [None, Some(500), None]);
        let rates = run(&mut meter, &mut now, 6, [1_250, 6_250, 0]);
        assert!(matches!(kbps(&rates), [Some(_), Some(_), None]));
        // The first of the temporal layers may be rare.
        let mut meter = LayerMeter::default();
        meter.record(0, 0, 1_250);
        for _ in 0..50 {
            now += STEP;
            meter.record(0, 1, 1_250);
            meter.rates(Layering::Encodings, now);
        }
        let rates = meter.rates(Layering::Encodings, now);
        assert!(matches!(rates.rates[0], [Some(_), Some(_), None]));
    }

    #[test]
    fn a_source_that_pauses_keeps_its_layers() {
        let (mut meter, mut now) = (LayerMeter::default(), Instant::now());
        run(&mut meter, &mut now, 50, [1_250, 6_250, 0]);
        let rates = run(&mut meter, &mut now, 100, [0, 0, 0]);
        assert_eq!(kbps(&rates), [Some(100), Some(500), None]);
    }
}
