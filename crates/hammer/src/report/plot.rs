//! A plot, drawn by plotters as SVG. Its colours come from the page's style sheet.

use plotters::coord::Shift;
use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint};
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::escape::escape;
use crate::figures::digits;

/// The size of the drawing, in its own units. The page scales it.
const SIZE: (u32, u32) = (560, 260);
/// The size of the font. plotters writes fonts a fifth smaller than this.
const FONT: u32 = 15;
/// Stand-ins for colours of the style sheet: red and green are always 1 and 2, blue is the index.
const INK: RGBColor = RGBColor(1, 2, 250);
const GRID: RGBColor = RGBColor(1, 2, 251);
const CEILING: RGBColor = RGBColor(1, 2, 252);
const PAPER: RGBColor = RGBColor(1, 2, 253);
/// The number of colours for series. Further series reuse them.
pub(crate) const COLOURS: usize = 8;
/// The colour of figures that were not measured here.
pub(crate) const GREY: usize = usize::MAX;

/// A plot's content and axes.
#[derive(Debug, Clone)]
pub(crate) struct Plot {
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    pub(crate) series: Vec<Series>,
    /// Horizontal lines with their labels.
    pub(crate) lines: Vec<(f64, String)>,
}

/// The division of an axis.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Axis {
    pub(crate) scale: Scale,
    /// The least range of shown values.
    pub(crate) from: f64,
    pub(crate) to: f64,
    /// The divisor of written values.
    pub(crate) unit: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scale {
    Linear,
    Logarithmic,
}

/// Points joined by a line.
#[derive(Debug, Clone)]
pub(crate) struct Series {
    /// The colour, of [`COLOURS`], or [`GREY`].
    pub(crate) colour: usize,
    pub(crate) style: Style,
    pub(crate) points: Vec<(f64, f64)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// A line with a dot at each point.
    Dotted,
    Solid,
    Dashed,
    /// A line with a dot at each point, and the area below it.
    Filled,
    /// A dotted line with a ring at each point: figures of somebody else.
    Published,
}

/// The opacity of areas.
const FAINT: f64 = 0.15;

type Drawing<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Failed = DrawingAreaErrorKind<std::io::Error>;

impl Plot {
    /// Returns whether there is nothing to draw.
    pub(crate) fn is_empty(&self) -> bool {
        self.series.iter().all(|series| series.points.is_empty())
    }

    /// Draws an `<svg>` element. `label` describes it for screen readers.
    pub(crate) fn to_svg(&self, label: &str) -> Result<String, Failed> {
        let mut svg = String::new();
        {
            let drawing = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
            self.draw(&drawing)?;
            drawing.present()?;
        }
        Ok(themed(&svg, label))
    }

    fn draw(&self, drawing: &Drawing<'_>) -> Result<(), Failed> {
        let (x, y) = (self.x.ticks(7), self.y.ticks(5));
        let mut chart = ChartBuilder::on(drawing)
            .margin_top(10)
            .margin_right(24)
            .set_label_area_size(LabelAreaPosition::Left, 52)
            .set_label_area_size(LabelAreaPosition::Bottom, 28)
            .build_cartesian_2d(self.x.range(&x), self.y.range(&y))?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .bold_line_style(GRID)
            .light_line_style(TRANSPARENT)
            .axis_style(GRID)
            .label_style(("sans-serif", FONT).into_font().color(&INK))
            .x_label_formatter(&|at| self.x.write(*at))
            .y_label_formatter(&|at| self.y.write(*at))
            .x_labels(x.len())
            .y_labels(y.len())
            .draw()?;
        for (value, label) in &self.lines {
            let at = self.y.place(*value);
            let (from, to) = (self.x.place(self.x.from), self.x.place(self.x.to));
            chart.draw_series(DashedLineSeries::new(
                [(from, at), (to, at)],
                2,
                4,
                CEILING.stroke_width(2),
            ))?;
            let reach = y.last().copied().unwrap_or(at) - y.first().copied().unwrap_or(at);
            let at_the_top = y.last().is_some_and(|top| top - at < 0.1 * reach);
            let below = if at_the_top { VPos::Top } else { VPos::Bottom };
            let anchor = Pos::new(HPos::Left, below);
            let style = ("sans-serif", FONT).into_font().color(&CEILING).pos(anchor);
            chart.draw_series(std::iter::once(Text::new(
                format!(" {label}"),
                (from, at),
                style,
            )))?;
        }
        for series in &self.series {
            let colour = match series.colour {
                GREY => INK,
                colour => RGBColor(1, 2, (colour % COLOURS) as u8),
            };
            let points = series
                .points
                .iter()
                .map(|(x, y)| (self.x.place(*x), self.y.place(*y)));
            let points: Vec<(f64, f64)> = points
                .filter(|(x, y)| x.is_finite() && y.is_finite())
                .collect();
            match series.style {
                Style::Dashed => {
                    let line =
                        DashedLineSeries::new(points.iter().copied(), 5, 4, colour.stroke_width(2));
                    chart.draw_series(line)?;
                }
                Style::Published => {
                    let line =
                        DashedLineSeries::new(points.iter().copied(), 2, 4, colour.stroke_width(2));
                    chart.draw_series(line)?;
                }
                Style::Solid | Style::Dotted | Style::Filled => {
                    chart.draw_series(LineSeries::new(
                        points.iter().copied(),
                        colour.stroke_width(2),
                    ))?;
                }
            }
            if series.style == Style::Filled {
                let bottom = y.first().copied().unwrap_or_default();
                let ends = [points.last(), points.first()].into_iter().flatten();
                let outline = points
                    .iter()
                    .copied()
                    .chain(ends.map(|(x, _)| (*x, bottom)));
                let area = Polygon::new(outline.collect::<Vec<_>>(), colour.mix(FAINT));
                chart.draw_series(std::iter::once(area))?;
            }
            if series.style != Style::Solid && series.style != Style::Dashed {
                let ring = |point: &(f64, f64)| Circle::new(*point, 4, PAPER.filled());
                chart.draw_series(points.iter().map(ring))?;
                let (size, dot) = match series.style {
                    Style::Published => (4, colour.stroke_width(1)),
                    _ => (3, colour.filled()),
                };
                let dot = |point: &(f64, f64)| Circle::new(*point, size, dot);
                chart.draw_series(points.iter().map(dot))?;
            }
        }
        Ok(())
    }
}

impl Axis {
    /// Returns an axis from 0 to the largest of `values`.
    pub(crate) fn linear(values: impl Iterator<Item = f64>, unit: f64) -> Self {
        let to = values.fold(0.0, f64::max);
        Self {
            scale: Scale::Linear,
            from: 0.0,
            to: if to > 0.0 { to } else { unit },
            unit,
        }
    }

    /// Returns an axis from the smallest positive one of `values` to the largest.
    pub(crate) fn logarithmic(values: impl Iterator<Item = f64>, unit: f64) -> Self {
        let positive = values.filter(|value| *value > 0.0);
        let (from, to) = positive.fold((f64::MAX, 0.0_f64), |(from, to), v| {
            (from.min(v), to.max(v))
        });
        if to == 0.0 {
            return Self::linear(std::iter::empty(), unit);
        }
        Self {
            scale: Scale::Logarithmic,
            from,
            to: to.max(from * 1.01),
            unit,
        }
    }

    /// Returns a value's place in the drawing's coordinates.
    fn place(&self, value: f64) -> f64 {
        match self.scale {
            Scale::Linear => value,
            Scale::Logarithmic => value.log10(),
        }
    }

    fn write(&self, place: f64) -> String {
        let value = match self.scale {
            Scale::Linear => place,
            Scale::Logarithmic => 10_f64.powf(place),
        };
        tick_text(value / self.unit)
    }

    /// Returns about `wanted` ticks at round values.
    fn ticks(&self, wanted: usize) -> Vec<f64> {
        match self.scale {
            Scale::Linear => {
                let step =
                    round_step((self.to - self.from) / self.unit / wanted as f64) * self.unit;
                let (first, last) = (
                    (self.from / step).floor() as i64,
                    (self.to / step - 0.05).ceil() as i64,
                );
                (first..=last).map(|n| n as f64 * step).collect()
            }
            Scale::Logarithmic => {
                let (from, to) = (
                    (self.from / self.unit).log10().floor(),
                    (self.to / self.unit).log10().ceil(),
                );
                let decades = (from as i32)..=(to as i32);
                let factors: &[f64] = if to - from <= 3.0 {
                    &[1.0, 2.0, 5.0]
                } else {
                    &[1.0]
                };
                let ticks =
                    decades.flat_map(|decade| factors.iter().map(move |f| f * 10_f64.powi(decade)));
                let ticks: Vec<f64> = ticks.map(|tick| tick * self.unit).collect();
                // One tick below the smallest value, and one above the largest.
                let first = ticks
                    .iter()
                    .rposition(|tick| *tick <= self.from * 1.001)
                    .unwrap_or(0);
                let last = ticks
                    .iter()
                    .position(|tick| *tick >= self.to * 0.999)
                    .unwrap_or(ticks.len());
                let shown = ticks.get(first..=last).unwrap_or(&ticks);
                shown.iter().map(|tick| tick.log10()).collect()
            }
        }
    }

    fn range(&self, ticks: &[f64]) -> Ticked {
        let ends = |end: f64, tick: Option<&f64>| tick.copied().unwrap_or(end);
        let from = ends(self.place(self.from), ticks.first()).min(self.place(self.from));
        let to = ends(self.place(self.to), ticks.last()).max(self.place(self.to));
        Ticked {
            range: (from..to).into(),
            ticks: ticks.to_vec(),
        }
    }
}

/// A range with explicit ticks.
struct Ticked {
    range: RangedCoordf64,
    ticks: Vec<f64>,
}

impl Ranged for Ticked {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        self.range.map(value, limit)
    }

    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        self.ticks.clone()
    }

    fn range(&self) -> std::ops::Range<f64> {
        self.range.range()
    }
}

/// Returns 1, 2 or 5 times a power of ten, at least `least`.
fn round_step(least: f64) -> f64 {
    let power = 10_f64.powf(least.log10().floor());
    let factors = [1.0, 2.0, 5.0, 10.0];
    let factor = factors
        .into_iter()
        .find(|factor| factor * power >= least * 0.999);
    factor.unwrap_or(10.0) * power
}

fn tick_text(value: f64) -> String {
    let text = digits(value);
    if !text.contains('.') {
        return text;
    }
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Inserts the style sheet's colours, and leaves size and font to it.
fn themed(svg: &str, label: &str) -> String {
    let mut svg = svg.to_owned();
    let mut paint = |colour: RGBColor, name: &str| {
        let code = format!("#{:02X}{:02X}{:02X}", colour.0, colour.1, colour.2);
        for attribute in ["fill", "stroke"] {
            let from = format!("{attribute}=\"{code}\"");
            svg = svg.replace(&from, &format!("style=\"{attribute}:var(--{name})\""));
        }
    };
    paint(INK, "soft");
    paint(GRID, "grid");
    paint(CEILING, "ceiling");
    paint(PAPER, "card");
    for colour in 0..COLOURS {
        paint(RGBColor(1, 2, colour as u8), &format!("s{colour}"));
    }
    let (width, height) = SIZE;
    svg = svg.replace(&format!("width=\"{width}\" height=\"{height}\" "), "");
    let label = escape(label);
    svg.replacen(
        "<svg ",
        &format!("<svg role=\"img\" aria-label=\"{label}\" "),
        1,
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;

    #[test]
    fn ticks_are_round_and_reach_over_all_values() {
        let linear = Axis::linear([19.6e9].into_iter(), 1e9);
        assert_eq!(linear.ticks(5), [0.0, 5e9, 10e9, 15e9, 20e9]);
        assert_eq!(linear.write(15e9), "15");
        let logarithmic = Axis::logarithmic([50.0, 8_000.0].into_iter(), 1.0);
        let ticks: Vec<String> = logarithmic
            .ticks(7)
            .iter()
            .map(|at| logarithmic.write(*at))
            .collect();
        assert_eq!(
            ticks,
            [
                "50", "100", "200", "500", "1,000", "2,000", "5,000", "10,000"
            ]
        );
        let tiny = Axis::linear([0.3].into_iter(), 1.0);
        let ticks: Vec<String> = tiny.ticks(5).iter().map(|at| tiny.write(*at)).collect();
        assert_eq!(ticks, ["0", "0.1", "0.2", "0.3"]);
    }

    #[test]
    fn nothing_to_show_is_still_drawn() {
        let plot = Plot {
            x: Axis::linear(std::iter::empty(), 1.0),
            y: Axis::logarithmic([0.0].into_iter(), 1.0),
            series: vec![Series {
                colour: 0,
                style: Style::Dotted,
                points: vec![(1.0, 0.0), (f64::NAN, 1.0)],
            }],
            lines: Vec::new(),
        };
        assert!(
            plot.to_svg("a \"label\"")
                .unwrap()
                .contains("&quot;label&quot;")
        );
    }
}
