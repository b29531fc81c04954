//! The progression of participants that are real browsers: a bar for each, and the server's CPU
//! time as a line.

use std::fmt::Write;

use crate::record::{Attempt, Browsers, RunRecord, State};
use crate::report::escape::escape;

/// What the colours mean.
pub(crate) const LEGEND: &str = "A bar for each participant: grey starting, orange connecting, green connected, red failed. \
     The line is the server\u{2019}s CPU time, from 0 (below) to all of its cores.";

/// The size of the drawing.
const WIDTH: f64 = 560.0;
const LEFT: f64 = 40.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 8.0;
const MOST_BAR: f64 = 14.0;
/// The height of all bars, if there are enough for bars to be thinner than `MOST_BAR`.
const MOST_HEIGHT: f64 = 420.0;
const LEAST_HEIGHT: f64 = 90.0;

/// The drawing of one run.
pub(crate) struct Timeline<'a> {
    run: &'a RunRecord,
    browsers: &'a Browsers,
    end_s: f64,
}

/// Returns the timeline of a run with browsers.
pub(crate) fn of(run: &RunRecord) -> Option<Timeline<'_>> {
    let browsers = run.browsers.as_ref()?;
    let end_s = run.samples.last().map_or(1.0, |sample| sample.at_s);
    Some(Timeline {
        run,
        browsers,
        end_s: end_s.max(1.0),
    })
}

// Writing into a string cannot fail.
macro_rules! put {
    ($out:expr, $($arguments:tt)*) => { let _ = writeln!($out, $($arguments)*); };
}

impl Timeline<'_> {
    /// Draws an `<svg>` element with the style sheet's colours.
    pub(crate) fn to_svg(&self) -> String {
        let count = self.browsers.attempts.len().max(1) as f64;
        let inner = (count * MOST_BAR).clamp(LEAST_HEIGHT, MOST_HEIGHT);
        let height = TOP + inner + 22.0;
        let mut svg = String::new();
        put!(
            svg,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" aria-label=\"Connection progression of {} browsers\" \
             viewBox=\"0 0 {WIDTH} {height:.0}\">",
            self.browsers.attempts.len()
        );
        let bar = (inner / count).min(MOST_BAR);
        for (row, attempt) in self.browsers.attempts.iter().enumerate() {
            self.bar(&mut svg, attempt, TOP + row as f64 * bar, bar);
        }
        self.cpu(&mut svg, inner);
        let bottom = TOP + inner;
        put!(
            svg,
            "<line x1=\"{LEFT}\" y1=\"{bottom:.1}\" x2=\"{:.1}\" y2=\"{bottom:.1}\" style=\"stroke:var(--grid)\"/>",
            WIDTH - RIGHT
        );
        for tick in 0..=4 {
            let at_s = self.end_s * f64::from(tick) / 4.0;
            put!(
                svg,
                "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\" font-size=\"12\" style=\"fill:var(--soft)\">{at_s:.0}</text>",
                self.x(at_s),
                bottom + 16.0
            );
        }
        for (label, y) in [("1", TOP + 8.0), ("0", bottom)] {
            put!(
                svg,
                "<text x=\"{:.1}\" y=\"{y:.1}\" text-anchor=\"end\" font-size=\"12\" style=\"fill:var(--s0)\">{label}</text>",
                LEFT - 6.0
            );
        }
        svg += "</svg>";
        svg
    }

    fn x(&self, at_s: f64) -> f64 {
        LEFT + at_s / self.end_s * (WIDTH - LEFT - RIGHT)
    }

    fn bar(&self, svg: &mut String, attempt: &Attempt, y: f64, height: f64) {
        let ends = attempt.states.iter().skip(1).map(|(_, at_s)| *at_s);
        let ends = ends.chain([self.end_s]);
        for ((state, from), to) in attempt.states.iter().zip(ends) {
            let colour = match state {
                State::Starting => "grid",
                State::Connecting => "s5",
                State::Connected => "s2",
                State::Failed => "warn",
            };
            let (from_x, to_x) = (self.x(*from), self.x(to));
            put!(
                svg,
                "<rect x=\"{from_x:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{:.1}\" style=\"fill:var(--{colour})\">\
                 <title>room {}, {}: {} from {from:.0} s{}</title></rect>",
                (to_x - from_x).max(0.5),
                (height - 1.5).max(0.5),
                attempt.room,
                escape(&attempt.browser),
                state.name(),
                match (&attempt.failure, state) {
                    (Some(reason), State::Failed) => format!(", {}", escape(reason)),
                    _ => String::new(),
                }
            );
        }
    }

    fn cpu(&self, svg: &mut String, inner: f64) {
        let cores = self.run.server.cores.len().max(1) as f64;
        let points = self.run.samples.iter().filter_map(|sample| {
            let share = sample.server.as_ref()?.cpu_cores / cores;
            let y = TOP + inner * (1.0 - share.clamp(0.0, 1.0));
            Some(format!("{:.1},{y:.1}", self.x(sample.at_s)))
        });
        let points: Vec<String> = points.collect();
        put!(
            svg,
            "<polyline points=\"{}\" fill=\"none\" stroke-width=\"2\" style=\"stroke:var(--s0)\"/>",
            points.join(" ")
        );
    }
}
