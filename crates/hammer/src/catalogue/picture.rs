//! A plot as a file of its own: with its title, legend and colours.

use std::fmt::Write;

use super::drawing::{self, Drawn, Kind};
use crate::report::escape::escape;
use crate::report::plot::{COLOURS, GREY, Style};

const WIDTH: f64 = 560.0;
const LEGEND_ROW: f64 = 18.0;

/// The colours of the page's style sheet, for light backgrounds.
const COLOUR_RULES: &str = "svg{--card:#fff;--soft:#5b6472;--grid:#e3e6eb;--ceiling:#8a6d1a;--warn:#c92a2a;--s0:#0b63ce;--s1:#d9480f;\
     --s2:#2b8a3e;--s3:#9c36b5;--s4:#0c8599;--s5:#e8590c;--s6:#5f3dc4;--s7:#a61e4d}text{font-family:sans-serif}";

// Writing into a string cannot fail.
macro_rules! put {
    ($out:expr, $($arguments:tt)*) => { let _ = writeln!($out, $($arguments)*); };
}

/// Returns a whole file of SVG.
pub(super) fn standalone(figure: &str, drawn: &Drawn) -> String {
    let legend = legend(drawn);
    let top = 46.0 + legend.len() as f64 * LEGEND_ROW;
    let inner = drawing::height(&drawn.svg);
    let full = top + inner + 22.0;
    let mut svg = String::new();
    put!(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {full:.0}\" width=\"{WIDTH}\" height=\"{full:.0}\">"
    );
    put!(svg, "<style>{COLOUR_RULES}</style>");
    put!(svg, "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>");
    put!(
        svg,
        "<text x=\"12\" y=\"20\" font-size=\"14\" font-weight=\"600\">{}: {}</text>",
        escape(figure),
        escape(drawn.title)
    );
    put!(
        svg,
        "<text x=\"12\" y=\"37\" font-size=\"11\" style=\"fill:var(--soft)\">{}</text>",
        escape(&caption(drawn))
    );
    for (row, entry) in legend.iter().enumerate() {
        let y = 54.0 + row as f64 * LEGEND_ROW;
        put!(
            svg,
            "<line x1=\"12\" y1=\"{y:.1}\" x2=\"36\" y2=\"{y:.1}\" stroke-width=\"3\" style=\"stroke:var(--{})\"{}/>",
            entry.colour,
            entry.dashes
        );
        put!(
            svg,
            "<text x=\"44\" y=\"{:.1}\" font-size=\"12\">{}</text>",
            y + 4.0,
            escape(entry.name)
        );
    }
    // The plot's own coordinates go on inside.
    let plot = drawn.svg.replacen(
        "<svg ",
        &format!("<svg y=\"{top:.0}\" width=\"{WIDTH}\" height=\"{inner:.0}\" "),
        1,
    );
    put!(svg, "{plot}");
    put!(svg, "</svg>");
    svg
}

/// An entry of a legend.
pub(super) struct Entry<'a> {
    pub(super) name: &'a str,
    /// The name of the style sheet's colour.
    pub(super) colour: String,
    dashes: &'static str,
    pub(super) is_dashed: bool,
}

/// Returns the legend of lines. Bars have their names beside them.
pub(super) fn legend(drawn: &Drawn) -> Vec<Entry<'_>> {
    let has_own = drawn.x == "server" || drawn.name == "progression";
    let lines = drawn.lines.iter().filter(|_| !has_own);
    let entry = |line: &'_ drawing::Line| {
        let colour = match line.colour {
            GREY => "soft".to_owned(),
            colour => format!("s{}", colour % COLOURS),
        };
        let dashes = match line.style {
            Style::Published => " stroke-dasharray=\"2 4\"",
            Style::Dashed => " stroke-dasharray=\"5 4\"",
            _ => "",
        };
        (colour, dashes)
    };
    lines
        .map(|line| {
            let (colour, dashes) = entry(line);
            Entry {
                name: &line.name,
                colour,
                dashes,
                is_dashed: line.kind != Kind::Measured || line.style == Style::Dashed,
            }
        })
        .collect()
}

/// The caption of the file is a line.
fn caption(drawn: &Drawn) -> String {
    match drawn.name {
        "progression" => "grey starting, orange connecting, green connected, red failed; line: CPU of the server, 0 to 1".to_owned(),
        _ => drawing::caption(drawn),
    }
}
