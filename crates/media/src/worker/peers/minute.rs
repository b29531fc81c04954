//! The last minute of a peer: a sample for each second.
//!
//! A sample is taken when the peer's reports leave, as its inputs are in the cache then. Without
//! traffic there are no reports and no samples; the seconds in between are filled in by the next
//! sample.

use std::time::{Duration, Instant};

use portunus_rtp::Ssrc;

use crate::{Layer, Sample, SampledLayers};

/// The number of samples.
const SAMPLES: usize = 60;
const SECOND: Duration = Duration::from_secs(1);
/// Reports may be early. A younger sample waits for the next report.
const LEAST: Duration = Duration::from_millis(900);
/// Reports of a busy worker may be late. After a longer gap, there was no traffic.
const LONG: Duration = Duration::from_millis(2_500);

/// The last minute of a peer.
pub(in crate::worker) struct Minute {
    /// When the last sample was taken.
    last: Instant,
    /// The position of the next sample.
    next: u8,
    /// The number of samples.
    count: u8,
    samples: [Packed; SAMPLES],
    streams: Vec<Counted>,
}

/// A stored sample.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Packed {
    /// In bit/s.
    received: u32,
    sent: u32,
    /// In bit/s. 0 means unknown.
    estimate: u32,
    /// In 0.1 ms. 0 means unknown.
    round_trip: u16,
    /// Four bits each for encoding, spatial and temporal layer, plus one. 0 means none.
    layers: u16,
    /// In 255ths.
    received_lost: u8,
    sent_lost: u8,
    keyframes_asked: u8,
    keyframes_wanted: u8,
}

/// The counters of a stream. Differences are below 2^32.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Totals {
    pub(super) packets: u32,
    pub(super) bytes: u32,
    pub(super) lost: u32,
    /// Packets that were repaired (received) or retransmitted (sent).
    pub(super) repaired: u32,
    pub(super) keyframes: u32,
}

/// A stream of a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StreamOf {
    pub(super) ssrc: Ssrc,
    pub(super) is_sent: bool,
}

#[derive(Debug, Clone, Copy)]
struct Counted {
    of: StreamOf,
    totals: Totals,
    second: Second,
    is_there: bool,
}

/// The traffic of a stream in the last second.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Second {
    pub(super) packets: u32,
    pub(super) bytes: u32,
    /// Negative if packets counted as lost arrived later.
    pub(super) lost: i32,
    pub(super) repaired: u32,
}

/// What is known of a peer besides its streams.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Link {
    pub(super) round_trip: Option<Duration>,
    pub(super) estimate: Option<u64>,
    pub(super) layers: Layer,
}

impl Minute {
    /// Returns an empty minute that starts at `begin`.
    pub(super) fn new(begin: Instant) -> Self {
        Self {
            last: begin,
            next: 0,
            count: 0,
            samples: [Packed::default(); SAMPLES],
            streams: Vec::new(),
        }
    }

    /// Whether about a second has passed.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.last) >= LEAST
    }

    /// Takes the sample of the last second.
    pub(super) fn take(
        &mut self,
        streams: impl Iterator<Item = (StreamOf, Totals)>,
        link: Link,
        now: Instant,
    ) {
        let elapsed = now.saturating_duration_since(self.last);
        self.last = now;
        let (mut received, mut sent) = (Sum::default(), Sum::default());
        self.streams.iter_mut().for_each(|it| it.is_there = false);
        for (of, totals) in streams {
            let (second, keyframes) = self.count(of, totals);
            let sum = if of.is_sent { &mut sent } else { &mut received };
            sum.add(second, keyframes, of.is_sent);
        }
        self.streams.retain(|stream| stream.is_there);
        // Reports continue as long as there is traffic: after a long gap, there was none before the
        // last second.
        // the last second.
        let is_late = elapsed < LONG;
        let over = if is_late { elapsed } else { SECOND }.as_secs_f64();
        let rate = |bytes: u64| (bytes as f64 * 8.0 / over) as u32;
        let tenths = |time: Duration| (time.as_micros() / 100).clamp(1, u128::from(u16::MAX));
        let layer = |layer: Option<u8>| layer.map_or(0, |layer| u16::from(layer.min(14)) + 1);
        let sample = Packed {
            received: rate(received.bytes),
            sent: rate(sent.bytes),
            estimate: link
                .estimate
                .map_or(0, |rate| u32::try_from(rate).unwrap_or(u32::MAX).max(1)),
            round_trip: link.round_trip.map_or(0, tenths) as u16,
            layers: layer(link.layers.substream)
                | layer(link.layers.spatial) << 4
                | layer(link.layers.temporal) << 8,
            received_lost: received.share_lost(),
            sent_lost: sent.share_lost(),
            keyframes_asked: u8::try_from(received.keyframes).unwrap_or(u8::MAX),
            keyframes_wanted: u8::try_from(sent.keyframes).unwrap_or(u8::MAX),
        };
        let before = match is_late {
            true => Packed {
                keyframes_asked: 0,
                keyframes_wanted: 0,
                ..sample
            },
            false => Packed::default(),
        };
        let seconds = elapsed.as_secs_f64().round() as usize;
        for _ in 1..seconds.min(SAMPLES) {
            self.push(before);
        }
        self.push(sample);
    }

    /// Returns the traffic of a stream in the last second.
    pub(super) fn second(&self, of: StreamOf) -> Second {
        let stream = self.streams.iter().find(|stream| stream.of == of);
        stream.map_or_else(Second::default, |stream| stream.second)
    }

    /// Returns the samples, the oldest first.
    pub(super) fn series(&self, now: Instant) -> Vec<Sample> {
        let (count, next) = (usize::from(self.count), usize::from(self.next));
        let since = now.saturating_duration_since(self.last);
        let samples = (0..count).rev().filter_map(|back| {
            let place = (next + 2 * SAMPLES - 1 - back) % SAMPLES;
            let age = since + SECOND * back as u32;
            Some(self.samples.get(place)?.sample(age))
        });
        samples.collect()
    }

    fn push(&mut self, sample: Packed) {
        if let Some(place) = self.samples.get_mut(usize::from(self.next)) {
            *place = sample;
        }
        self.next = (self.next + 1) % SAMPLES as u8;
        self.count = (self.count + 1).min(SAMPLES as u8);
    }

    /// Returns the traffic of a stream since the last sample.
    fn count(&mut self, of: StreamOf, totals: Totals) -> (Second, u32) {
        let known = self.streams.iter_mut().find(|stream| stream.of == of);
        let stream = match known {
            Some(stream) => stream,
            None => {
                self.streams.reserve_exact(1);
                self.streams.push(Counted {
                    of,
                    totals: Totals::default(),
                    second: Second::default(),
                    is_there: true,
                });
                match self.streams.last_mut() {
                    Some(stream) => stream,
                    None => return Default::default(),
                }
            }
        };
        let before = std::mem::replace(&mut stream.totals, totals);
        stream.is_there = true;
        stream.second = Second {
            packets: totals.packets.wrapping_sub(before.packets),
            bytes: totals.bytes.wrapping_sub(before.bytes),
            lost: totals.lost.wrapping_sub(before.lost) as i32,
            repaired: totals.repaired.wrapping_sub(before.repaired),
        };
        let keyframes = totals.keyframes.wrapping_sub(before.keyframes);
        (stream.second, keyframes)
    }
}

/// The streams of one direction.
#[derive(Default)]
struct Sum {
    bytes: u64,
    expected: u64,
    lost: u64,
    keyframes: u32,
}

impl Sum {
    fn add(&mut self, second: Second, keyframes: u32, is_sent: bool) {
        self.bytes += u64::from(second.bytes);
        let lost = second.lost_on_the_way(is_sent);
        self.lost += lost;
        self.expected += second.expected(is_sent);
        self.keyframes = self.keyframes.saturating_add(keyframes);
    }

    /// In 255ths. 0 means none at all.
    fn share_lost(&self) -> u8 {
        let share = (self.lost * 255).div_ceil(self.expected.max(1));
        share.min(255) as u8
    }
}

impl Second {
    /// Packets that did not arrive the first time.
    fn lost_on_the_way(&self, is_sent: bool) -> u64 {
        let lost = i64::from(self.lost);
        let lost = match is_sent {
            // The receiver reports packets that did not arrive under their own number.
            true => lost,
            false => lost + i64::from(self.repaired),
        };
        lost.max(0) as u64
    }

    /// Packets that should have arrived, or left, for the first time.
    fn expected(&self, is_sent: bool) -> u64 {
        let packets = i64::from(self.packets);
        let expected = match is_sent {
            true => packets,
            false => packets + i64::from(self.lost),
        };
        expected.max(0) as u64
    }

    /// The share of packets that arrived the first time, and of those that arrived at all, in
    /// percent.
    pub(super) fn qualities(&self, is_sent: bool) -> (u8, u8) {
        let expected = self.expected(is_sent);
        let came = |lost: u64| {
            let came = expected.saturating_sub(lost) * 100;
            came.checked_div(expected).map_or(100, |share| share as u8)
        };
        let lost = self.lost_on_the_way(is_sent);
        (came(lost), came(lost.saturating_sub(self.repaired.into())))
    }
}

impl Packed {
    fn sample(&self, age: Duration) -> Sample {
        let share = |lost: u8| f64::from(lost) / 255.0;
        let layer = |bits: u16| {
            u8::try_from((self.layers >> bits) & 15)
                .unwrap_or(0)
                .checked_sub(1)
        };
        Sample {
            age,
            received: self.received.into(),
            sent: self.sent.into(),
            received_lost: share(self.received_lost),
            sent_lost: share(self.sent_lost),
            round_trip: (self.round_trip > 0)
                .then(|| Duration::from_micros(u64::from(self.round_trip) * 100)),
            estimate: (self.estimate > 0).then(|| self.estimate.into()),
            layers: SampledLayers {
                substream: layer(0),
                spatial: layer(4),
                temporal: layer(8),
            },
            keyframes_asked: self.keyframes_asked,
            keyframes_wanted: self.keyframes_wanted,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::indexing_slicing,
        reason = "a failed test panics"
    )]
    use std::mem::size_of;

    use super::*;

    const CAMERA: StreamOf = StreamOf {
        ssrc: Ssrc(1),
        is_sent: false,
    };
    const VIEW: StreamOf = StreamOf {
        ssrc: Ssrc(2),
        is_sent: true,
    };

    fn totals(packets: u32, lost: u32, repaired: u32) -> Totals {
        Totals {
            packets,
            bytes: packets * 1_000,
            lost,
            repaired,
            keyframes: packets / 100,
        }
    }

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 0.005
    }

    /// An idle viewer takes 32 KiB at most, all in all.
    #[test]
    fn a_minute_takes_little() {
        assert_eq!(size_of::<Packed>(), 20);
        assert!(size_of::<Minute>() <= 1_280, "{}", size_of::<Minute>());
        assert!(size_of::<Counted>() <= 48, "{}", size_of::<Counted>());
    }

    #[test]
    fn a_sample_tells_what_the_second_was_like() {
        let start = Instant::now();
        let mut minute = Minute::new(start);
        assert!(!minute.is_due(start + SECOND / 2));
        let link = Link {
            round_trip: Some(Duration::from_micros(12_340)),
            estimate: Some(2_000_000),
            layers: Layer {
                substream: Some(2),
                temporal: Some(0),
                ..Layer::default()
            },
        };
        let first = [(CAMERA, totals(100, 0, 0)), (VIEW, totals(200, 0, 0))];
        minute.take(first.into_iter(), link, start + SECOND);
        // Of 100 packets 90 came: 5 at once asked for again, 10 never.
        let second = [(CAMERA, totals(190, 10, 5)), (VIEW, totals(400, 50, 0))];
        minute.take(second.into_iter(), link, start + 2 * SECOND);
        let series = minute.series(start + 3 * SECOND);
        assert_eq!(series.len(), 2);
        let (before, last) = (series[0], series[1]);
        assert_eq!((before.age, last.age), (2 * SECOND, SECOND));
        assert_eq!((before.received, before.sent), (800_000, 1_600_000));
        assert_eq!((last.received, last.sent), (720_000, 1_600_000));
        assert!(before.received_lost == 0.0 && before.sent_lost == 0.0);
        assert!(near(last.received_lost, 0.15), "{}", last.received_lost);
        assert!(near(last.sent_lost, 0.25), "{}", last.sent_lost);
        assert_eq!(last.round_trip, Some(Duration::from_micros(12_300)));
        assert_eq!(last.estimate, Some(2_000_000));
        let layers = (
            last.layers.substream,
            last.layers.spatial,
            last.layers.temporal,
        );
        assert_eq!(layers, (Some(2), None, Some(0)));
        assert_eq!((before.keyframes_asked, before.keyframes_wanted), (1, 2));
        assert_eq!((last.keyframes_asked, last.keyframes_wanted), (0, 2));
        assert_eq!(minute.second(CAMERA).qualities(false), (85, 90));
        assert_eq!(minute.second(VIEW).qualities(true), (75, 75));
    }

    #[test]
    fn seconds_without_anything_are_filled_in() {
        let start = Instant::now();
        let mut minute = Minute::new(start);
        let at = |seconds| start + SECOND * seconds;
        minute.take(
            [(CAMERA, totals(100, 0, 0))].into_iter(),
            Link::default(),
            at(1),
        );
        minute.take(
            [(CAMERA, totals(200, 0, 0))].into_iter(),
            Link::default(),
            at(11),
        );
        let series = minute.series(at(11));
        assert_eq!(series.len(), 11);
        let quiet = series.iter().filter(|sample| sample.received == 0).count();
        assert_eq!(quiet, 9);
        assert_eq!(series[10].received, 800_000);
    }

    #[test]
    fn what_is_looked_at_late_was_even_in_between() {
        let start = Instant::now();
        let mut minute = Minute::new(start);
        let streams = [(CAMERA, totals(200, 0, 0))];
        minute.take(streams.into_iter(), Link::default(), start + 2 * SECOND);
        let series = minute.series(start + 2 * SECOND);
        let rates: Vec<u64> = series.iter().map(|sample| sample.received).collect();
        assert_eq!(rates, [800_000, 800_000]);
        let asked: Vec<u8> = series.iter().map(|it| it.keyframes_asked).collect();
        assert_eq!(asked, [0, 2], "once");
    }

    #[test]
    fn a_minute_is_kept_and_no_more() {
        let start = Instant::now();
        let mut minute = Minute::new(start);
        for n in 1..=100 {
            let streams = [(CAMERA, totals(n * 100, 0, 0))];
            minute.take(streams.into_iter(), Link::default(), start + SECOND * n);
        }
        let series = minute.series(start + SECOND * 100);
        assert_eq!(series.len(), SAMPLES);
        assert_eq!(series[0].age, SECOND * 59);
        assert!(series.windows(2).all(|two| two[0].age > two[1].age));
        // After a long silence nothing of before is left.
        minute.take(std::iter::empty(), Link::default(), start + SECOND * 1_000);
        assert!(
            minute
                .series(start + SECOND * 1_000)
                .iter()
                .all(|it| it.received == 0)
        );
        assert!(minute.streams.is_empty(), "the stream has ended");
    }
}
