//! Bars of several servers, drawn as SVG with the style sheet's colours.

use std::fmt::Write;

use crate::figures::digits;
use crate::report::escape::escape;
use crate::report::plot::{COLOURS, GREY};

const WIDTH: f64 = 560.0;
const LEFT: f64 = 190.0;
const RIGHT: f64 = 70.0;
const ROW: f64 = 30.0;

/// A bar.
#[derive(Debug)]
pub(super) struct Bar {
    pub(super) name: String,
    pub(super) value: f64,
    /// One of the plots' colours.
    pub(super) colour: usize,
}

#[derive(Debug)]
pub(super) struct Bars {
    pub(super) bars: Vec<Bar>,
}

// Writing into a string cannot fail.
macro_rules! put {
    ($out:expr, $($arguments:tt)*) => { let _ = writeln!($out, $($arguments)*); };
}

impl Bars {
    /// Draws an `<svg>` element.
    pub(super) fn to_svg(&self, label: &str) -> String {
        let most = self.bars.iter().map(|bar| bar.value).fold(0.0, f64::max);
        let scale = (WIDTH - LEFT - RIGHT) / if most > 0.0 { most } else { 1.0 };
        let height = self.bars.len() as f64 * ROW + 12.0;
        let mut svg = String::new();
        put!(
            svg,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" aria-label=\"{}\" viewBox=\"0 0 {WIDTH} {height}\">",
            escape(label)
        );
        for (row, bar) in self.bars.iter().enumerate() {
            let y = row as f64 * ROW + 6.0;
            let width = (bar.value * scale).max(1.0);
            let colour = match bar.colour {
                GREY => "ceiling".to_owned(),
                colour => format!("s{}", colour % COLOURS),
            };
            let (baseline, end) = (y + 16.0, LEFT + width + 8.0);
            put!(
                svg,
                "<text x=\"{:.1}\" y=\"{baseline:.1}\" text-anchor=\"end\" font-size=\"12\" style=\"fill:var(--soft)\">{}</text>",
                LEFT - 8.0,
                escape(&short(&bar.name))
            );
            put!(
                svg,
                "<rect x=\"{LEFT}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"22\" rx=\"2\" style=\"fill:var(--{colour})\"/>"
            );
            put!(
                svg,
                "<text x=\"{end:.1}\" y=\"{baseline:.1}\" font-size=\"12\" style=\"fill:var(--soft)\">{}</text>",
                digits(bar.value)
            );
        }
        svg += "</svg>";
        svg
    }
}

/// Shortens a name that is too long for its place.
fn short(name: &str) -> String {
    match name.char_indices().nth(30) {
        Some((at, _)) => format!("{}…", name.get(..at).unwrap_or_default()),
        None => name.to_owned(),
    }
}
