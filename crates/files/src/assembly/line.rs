//! The relation between the timestamps of a stream and its sender's clock.

use std::collections::VecDeque;

use super::Nanos;

/// The time for which a point counts.
const MEMORY: Nanos = 60_000_000_000;
/// The limit of points.
const MAX_POINTS: usize = 64;
/// The shortest distance of points. A closer one tells nothing new.
const APART: Nanos = 250_000_000;
/// A greater deviation means that a point is not on the line.
const OFF: Nanos = 100_000_000;
/// The squared error of a report against the squared drift of clocks: 3 ms and 200 ppm, in s². It
/// weighs the nominal slope as long as there are few points.
const LEAN: f64 = 225.0;
/// The greatest drift of a clock. A greater one is invalid.
const MAX_DRIFT: f64 = 0.02;

/// A line through the points of reports.
#[derive(Debug)]
pub(super) struct Line {
    /// The nominal duration of a tick, in ns.
    tick: f64,
    points: VecDeque<Point>,
    /// The last point, if it is off the line. The next one shows whether it was a mistake.
    suspect: Option<Point>,
    fit: Option<Fit>,
}

/// An extended timestamp, and the time on the sender's clock.
#[derive(Debug, Clone, Copy)]
pub(super) struct Point {
    pub(super) ticks: i64,
    pub(super) ntp: Nanos,
}

#[derive(Debug, Clone, Copy)]
struct Fit {
    ticks: i64,
    ntp: Nanos,
    /// In ns per tick.
    slope: f64,
}

impl Fit {
    fn at(&self, ticks: i64) -> Nanos {
        let apart = ticks.saturating_sub(self.ticks) as f64 * self.slope;
        self.ntp.saturating_add(apart as Nanos)
    }
}

/// The effect of a point on the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Added {
    /// It is the first one.
    First,
    /// The line may have moved slightly.
    Fits,
    /// It is off the line, or too close to the last one: the line is unchanged.
    PassedOver,
    /// The line was restarted, so much later.
    Anew(Nanos),
}

impl Line {
    /// Returns a line without points for a clock of this rate.
    pub(super) fn new(rate: u32) -> Self {
        Self {
            tick: 1e9 / f64::from(rate.max(1)),
            points: VecDeque::new(),
            suspect: None,
            fit: None,
        }
    }

    /// Returns the time of a timestamp on the sender's clock, if it is known.
    pub(super) fn at(&self, ticks: i64) -> Option<Nanos> {
        self.fit.map(|fit| fit.at(ticks))
    }

    /// Takes the point of a report.
    pub(super) fn add(&mut self, point: Point) -> Added {
        let Some(fit) = self.fit else {
            self.begin(&[point]);
            return Added::First;
        };
        if let Some(last) = self.points.back()
            && point.ntp.saturating_sub(last.ntp).saturating_abs() < APART
        {
            return Added::PassedOver;
        }
        // The position is unknown since the timestamps jumped.
        if self.points.is_empty() {
            let step = point.ntp.saturating_sub(fit.at(point.ticks));
            self.begin(&[point]);
            return Added::Anew(step);
        }
        let off = point.ntp.saturating_sub(fit.at(point.ticks));
        if off.saturating_abs() <= OFF {
            self.suspect = None;
            self.points.push_back(point);
            self.forget(point.ntp);
            self.fit();
            return Added::Fits;
        }
        // One point off the line may be a mistake. Two that agree are not.
        let before = self.suspect.replace(point);
        match before.filter(|before| self.agree(before, &point)) {
            Some(before) => {
                self.begin(&[before, point]);
                Added::Anew(off)
            }
            None => Added::PassedOver,
        }
    }

    /// Notes that the timestamps have jumped. The line stays until the next point.
    pub(super) fn loosen(&mut self) {
        self.points.clear();
        self.suspect = None;
    }

    fn agree(&self, before: &Point, point: &Point) -> bool {
        let ticks = point.ticks.saturating_sub(before.ticks) as f64;
        let expected = (ticks * self.tick) as Nanos;
        let passed = point.ntp.saturating_sub(before.ntp);
        passed.saturating_sub(expected).saturating_abs() <= OFF
    }

    fn begin(&mut self, points: &[Point]) {
        self.suspect = None;
        self.points.clear();
        self.points.extend(points);
        self.fit();
    }

    fn forget(&mut self, now: Nanos) {
        while self.points.len() > MAX_POINTS
            || (self.points.front())
                .is_some_and(|first| now.saturating_sub(first.ntp).saturating_abs() > MEMORY)
        {
            self.points.pop_front();
        }
    }

    /// Fits by least squares, with a weight for the slope of a perfect clock.
    fn fit(&mut self) {
        let Some(&Point {
            ticks: ticks_0,
            ntp: ntp_0,
        }) = self.points.front()
        else {
            return;
        };
        let count = self.points.len() as f64;
        // Seconds since the first point by the timestamps, and the sender's clock relative to them.
        let points = self.points.iter().map(|point| {
            let time = point.ticks.saturating_sub(ticks_0) as f64 * self.tick / 1e9;
            let ahead = point.ntp.saturating_sub(ntp_0) as f64 / 1e9 - time;
            (time, ahead)
        });
        let (times, aheads) = (points.clone())
            .fold((0.0, 0.0), |(times, aheads), (time, ahead)| {
                (times + time, aheads + ahead)
            });
        let (time, ahead) = (times / count, aheads / count);
        let (square, product) = points.fold((0.0, 0.0), |(square, product), (t, a)| {
            let (t, a) = (t - time, a - ahead);
            (square + t * t, product + t * a)
        });
        let drift = product / (square + LEAN);
        let drift = if drift.abs() <= MAX_DRIFT { drift } else { 0.0 };
        self.fit = Some(Fit {
            ticks: ticks_0.saturating_add((time * 1e9 / self.tick) as i64),
            ntp: ntp_0.saturating_add(((time + ahead) * 1e9) as Nanos),
            slope: self.tick * (1.0 + drift),
        });
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

    use proptest::prelude::*;

    use super::*;

    const SECOND: Nanos = 1_000_000_000;

    /// Returns a point at a time in ms of a sender's clock of 48 kHz that is 200 ppm fast, with an
    /// error in µs.
    fn point(millis: i64, off_us: i64) -> Point {
        Point {
            ticks: millis * 48 + millis * 48 / 5_000,
            ntp: millis * 1_000_000 + off_us * 1_000,
        }
    }

    #[test]
    fn it_is_right_from_the_second_report_on() {
        let mut line = Line::new(48_000);
        assert_eq!(line.at(0), None);
        assert_eq!(line.add(point(0, 2_000)), Added::First);
        for (n, off) in (1..100).zip([-3_000, 3_000, 1_000, 0, -2_000].into_iter().cycle()) {
            assert_eq!(line.add(point(n * 5_000, off)), Added::Fits);
            // As far ahead as the next report.
            let expected = point(n * 5_000 + 5_000, 0);
            let off = line.at(expected.ticks).unwrap() - expected.ntp;
            assert!(off.abs() < 6_000_000, "{n}: {off}");
            assert!(n < 12 || off.abs() < 3_500_000, "{n}: {off}");
        }
    }

    #[test]
    fn one_report_that_is_off_changes_nothing_and_two_begin_anew() {
        let mut line = Line::new(48_000);
        line.add(point(0, 0));
        line.add(point(5_000, 0));
        let before = line.at(480_000);
        assert_eq!(line.add(point(10_000, 3_000_000)), Added::PassedOver);
        assert_eq!(line.at(480_000), before);
        assert_eq!(line.add(point(15_000, 0)), Added::Fits);
        assert_eq!(line.add(point(20_000, -400_000)), Added::PassedOver);
        let anew = line.add(point(25_000, -400_000));
        assert!(
            matches!(anew, Added::Anew(off) if (off + 400_000_000).abs() < 6_000_000),
            "{anew:?}"
        );
        let expected = point(30_000, -400_000);
        let off = line.at(expected.ticks).unwrap() - expected.ntp;
        assert!(off.abs() < 3_000_000, "{off}");
    }

    #[test]
    fn many_at_once_are_one() {
        let mut line = Line::new(90_000);
        for n in 0..1_000 {
            line.add(Point {
                ticks: n,
                ntp: n * 100_000,
            });
        }
        assert!(line.points.len() <= 1);
        assert!(line.at(90_000).unwrap().abs_diff(SECOND) < 1_000_000_000);
    }

    proptest! {
        #[test]
        fn any_points_give_a_line(points in proptest::collection::vec(any::<(i64, i64)>(), 0..200)) {
            let mut line = Line::new(8_000);
            for (ticks, ntp) in points {
                line.add(Point { ticks, ntp });
                prop_assert!(line.at(ticks).is_some());
                prop_assert!(line.points.len() <= MAX_POINTS + 1);
            }
        }
    }
}
