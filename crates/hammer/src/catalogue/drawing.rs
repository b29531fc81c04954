//! A figure's plots, drawn from what was measured.

use serde::Serialize;

use super::bars::{Bar, Bars};
use super::figure::{Figure, Load, Plot, Shape, X, Y};
use super::measured::{self, Measured};
use super::peers::Peer;
use crate::report::html::timeline;
use crate::report::plot::{self, Axis, GREY, Series, Style};

/// Lines whose greatest values differ by more than this need a logarithmic axis.
const FAR_APART: f64 = 25.0;

/// A drawn plot with its numbers.
#[derive(Debug, Serialize)]
pub(super) struct Drawn {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) x: &'static str,
    pub(super) y: &'static str,
    pub(super) lines: Vec<Line>,
    /// An `<svg>` element with the style sheet's colours.
    #[serde(skip)]
    pub(super) svg: String,
}

/// A line of a plot, or a bar.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Line {
    pub(super) name: String,
    pub(super) kind: Kind,
    pub(super) points: Vec<(f64, f64)>,
    #[serde(skip)]
    pub(super) colour: usize,
    #[serde(skip)]
    pub(super) style: Style,
}

/// Where the numbers of a line are from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Kind {
    Measured,
    Ceiling,
    Published,
}

impl Kind {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Measured => "measured",
            Self::Ceiling => "ceiling",
            Self::Published => "published",
        }
    }
}

/// Draws all plots of a figure for which something was measured.
pub(super) fn draw(figure: &Figure, measured: &Measured) -> Vec<Drawn> {
    let plots = figure.plots.iter();
    plots
        .filter_map(|plot| draw_plot(figure, plot, measured))
        .collect()
}

fn draw_plot(figure: &Figure, plot: &Plot, measured: &Measured) -> Option<Drawn> {
    let mut lines = lines(figure, plot, measured);
    if lines.is_empty() {
        return None;
    }
    lines.extend(ceiling(figure, plot, measured));
    let published = plot.published.iter().map(|published| Line {
        name: published.label.to_owned(),
        kind: Kind::Published,
        points: published.points.to_vec(),
        colour: GREY,
        style: Style::Published,
    });
    lines.extend(published);
    let label = format!("{}: {} over {}", figure.title, plot.y.name(), plot.x.name());
    let svg = match plot.x {
        X::Servers => bars(&lines).to_svg(&label),
        X::Progression => progression(figure, measured),
        _ => line_plot(&lines).to_svg(&label).unwrap_or_default(),
    };
    Some(Drawn {
        name: plot.name,
        title: plot.title,
        x: plot.x.name(),
        y: plot.y.name(),
        lines,
        svg,
    })
}

/// Returns the loads of a plot.
fn loads<'a>(figure: &'a Figure, plot: &'a Plot) -> impl Iterator<Item = &'static Load> + 'a {
    let shown = |load: &&Load| plot.of.is_empty() || plot.of.contains(&load.label);
    figure.loads.iter().copied().filter(shown)
}

/// Returns a line for each server and label. Loads with the same label continue each other.
fn lines(figure: &Figure, plot: &Plot, measured: &Measured) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for peer in figure.peers.iter().copied() {
        for (at, load) in loads(figure, plot).enumerate() {
            let runs = measured.of(load, peer);
            let points = match plot.x {
                X::Servers => {
                    let value = measured::at(runs, plot.y);
                    value.map(|value| (0.0, value)).into_iter().collect()
                }
                x => measured::points(load, runs, x, plot.y),
            };
            if points.is_empty() {
                continue;
            }
            let name = name(peer, load);
            match lines.iter_mut().find(|line| line.name == name) {
                Some(line) => line.points.extend(points),
                None => lines.push(Line {
                    name,
                    kind: Kind::Measured,
                    points,
                    colour: peer.colour(),
                    style: style(plot, load, at),
                }),
            }
        }
    }
    lines
}

fn name(peer: Peer, load: &Load) -> String {
    match load.label {
        "" => peer.title().to_owned(),
        label => format!("{}, {label}", peer.title()),
    }
}

fn style(plot: &Plot, load: &Load, at: usize) -> Style {
    let is_second = at > 0 && !load.label.is_empty();
    match (plot.shape, plot.x, is_second) {
        (_, _, true) => Style::Dashed,
        (Shape::Areas, ..) => Style::Filled,
        (_, X::Seconds, _) => Style::Solid,
        _ => Style::Dotted,
    }
}

/// Returns the line of the bare loop, where it is a limit of what is shown.
fn ceiling(figure: &Figure, plot: &Plot, measured: &Measured) -> Option<Line> {
    if !matches!(plot.x, X::Servers | X::At(_)) {
        return None;
    }
    let points = loads(figure, plot).filter_map(|load| {
        let runs = measured.of(load, Peer::Portunus);
        Some((load.at, measured::ceiling(runs, plot.y)?))
    });
    let points: Vec<(f64, f64)> = points.collect();
    (!points.is_empty()).then(|| Line {
        name: "bare loop of encrypting and sending".to_owned(),
        kind: Kind::Ceiling,
        points,
        colour: GREY,
        style: Style::Dashed,
    })
}

fn bars(lines: &[Line]) -> Bars {
    let bars = lines.iter().filter_map(|line| {
        Some(Bar {
            name: line.name.clone(),
            value: line.points.last()?.1,
            colour: line.colour,
        })
    });
    Bars {
        bars: bars.collect(),
    }
}

fn line_plot(lines: &[Line]) -> plot::Plot {
    let axis = |of: fn(&(f64, f64)) -> f64, apart: f64| {
        let most = lines.iter().map(|line| {
            let values = line.points.iter().map(of);
            values.fold(0.0, f64::max)
        });
        let most: Vec<f64> = most.filter(|most| *most > 0.0).collect();
        let least = most.iter().copied().fold(f64::MAX, f64::min);
        let greatest = most.iter().copied().fold(0.0, f64::max);
        let values = lines.iter().flat_map(|line| &line.points).map(of);
        match greatest > least * apart {
            true => Axis::logarithmic(values, 1.0),
            false => Axis::linear(values, 1.0),
        }
    };
    let series = lines.iter().map(|line| Series {
        colour: line.colour,
        style: line.style,
        points: line.points.clone(),
    });
    plot::Plot {
        x: axis(|point| point.0, FAR_APART / 3.0),
        y: axis(|point| point.1, FAR_APART),
        series: series.collect(),
        lines: Vec::new(),
    }
}

/// Draws the participants of each server below each other, as one drawing.
fn progression(figure: &Figure, measured: &Measured) -> String {
    let (mut inner, mut top) = (String::new(), 0.0);
    for peer in figure.peers.iter().copied() {
        let runs = figure.loads.iter().flat_map(|load| measured.of(load, peer));
        for timeline in runs.filter_map(timeline::of) {
            let svg = timeline.to_svg();
            let height = height(&svg);
            inner += &format!(
                "<text x=\"0\" y=\"{:.0}\" font-size=\"12\" style=\"fill:var(--soft)\">{}</text>\n",
                top + 14.0,
                peer.title()
            );
            top += 20.0;
            let placed = format!("<svg y=\"{top:.0}\" width=\"560\" height=\"{height:.0}\" ");
            inner += &svg.replacen("<svg ", &placed, 1);
            top += height + 8.0;
        }
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" aria-label=\"{}\" viewBox=\"0 0 560 {top:.0}\">\n{inner}\n</svg>",
        figure.title
    )
}

/// Returns the height of a drawing by its `viewBox`.
pub(super) fn height(svg: &str) -> f64 {
    let value = svg.split_once("viewBox=\"").and_then(|(_, rest)| {
        let (value, _) = rest.split_once('"')?;
        value.rsplit(' ').next()?.parse().ok()
    });
    value.unwrap_or(260.0)
}

/// Returns the notes of a plot's axes for a caption.
pub(super) fn caption(drawn: &Drawn) -> String {
    match drawn.y {
        _ if drawn.x == X::Servers.name() => drawn.y.to_owned(),
        _ if drawn.name == "progression" => timeline::LEGEND.to_owned(),
        y => format!("{y}, over {}", drawn.x),
    }
}

/// Formats a value of a plot's vertical axis.
pub(super) fn value(y: Y, value: f64) -> String {
    match y {
        Y::Carried(_) | Y::Joins => crate::figures::count(value),
        _ => crate::figures::digits(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_height_is_that_of_the_view_box() {
        assert!((height("<svg viewBox=\"0 0 560 132\">") - 132.0).abs() < 1e-9);
        assert!((height("<svg>") - 260.0).abs() < 1e-9);
    }
}
