//! How much each layer of a source takes, measured once for all its viewers.

use std::time::{Duration, Instant};

use crate::bandwidth::DataRate;

/// Encodings or spatial layers, and temporal layers, that a source has at most.
pub const LAYERS: (usize, usize) = (3, 3);

/// Bytes are counted for this time before they change the rates.
const PERIOD: Duration = Duration::from_millis(500);
/// Weight of a new period, and how far above the present rate it counts: a keyframe is a burst, not a
/// rate.
const WEIGHT: f64 = 0.25;
const BURST: f64 = 1.25;
/// A layer that is silent for the first time while others are not has vanished; it is there again once it
/// flowed for the second (the lowest at once).
const VANISHED: Duration = Duration::from_millis(1_500);
const BACK: Duration = Duration::from_secs(1);

/// What tells the layers of a source apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Layering {
    /// Simulcast: an encoding does not need the ones below it. Also a single encoding.
    #[default]
    Encodings,
    /// SVC: a spatial layer needs all below it.
    Spatial,
}

/// The bitrates of a source's layers.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct LayerRates {
    /// What the first index stands for.
    pub layering: Layering,
    /// By encoding or spatial layer, then by temporal layer: what this layer takes for itself; none if
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
    /// When it began to flow, and flowed last.
    flows: Option<(Instant, Instant)>,
    is_there: bool,
}

impl LayerMeter {
    /// A packet came: of an encoding or spatial layer, and a temporal layer. What is beyond the bounds
    /// is not counted.
    #[inline]
    pub fn record(&mut self, layer: u8, temporal: u8, bytes: usize) {
        let counts = self.bytes.get_mut(usize::from(layer));
        if let Some(count) = counts.and_then(|counts| counts.get_mut(usize::from(temporal))) {
            *count = count.saturating_add(u32::try_from(bytes).unwrap_or(u32::MAX));
        }
    }

    /// The rates at `now`.
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
            // Temporal layers of its own do not count: the first of them may be rare.
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
    /// Where nothing flows at all the source only pauses: what was there stays.
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
        // The lowest layer is never waited for.
        self.is_there |= !lower_flow || now.saturating_duration_since(began) >= BACK;
    }
}

impl LayerRates {
    /// A source with one layer of `rate`.
    pub fn single(rate: DataRate) -> Self {
        Self {
            layering: Layering::Encodings,
            rates: [[Some(rate), None, None], [None; 3], [None; 3]],
        }
    }

    /// Everything that the source sends.
    pub fn total(&self) -> DataRate {
        self.rates.iter().flatten().flatten().copied().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: Duration = Duration::from_millis(100);

    /// Bytes every 100 ms, by layer.
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

    /// To the nearest 50 kbit/s.
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
        // Of temporal layers the first may be rare.
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
