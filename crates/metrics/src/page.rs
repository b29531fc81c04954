//! Metrics in the text format of Prometheus
//! (https://prometheus.io/docs/instrumenting/exposition_formats/).

use std::fmt::{self, Display, Write};

use crate::HistogramSnapshot;

/// A part of the server that has metrics. It may block to collect them.
pub trait MetricsSource: fmt::Debug + Send + Sync {
    /// Adds its metrics to the page.
    fn write(&self, page: &mut MetricsPage);
}

/// The type of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricKind {
    /// A value that only grows.
    Counter,
    /// A value that goes up and down.
    Gauge,
    /// Times in buckets.
    Histogram,
}

impl MetricKind {
    const fn as_str(self) -> &'static str {
        match self {
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
            MetricKind::Histogram => "histogram",
        }
    }
}

/// The text of all metrics. Names get the prefix `portunus_`.
#[derive(Debug, Default)]
pub struct MetricsPage {
    text: String,
}

impl MetricsPage {
    /// Returns the text.
    pub fn into_text(self) -> String {
        self.text
    }

    /// Adds a counter. Its name ends with `_total`.
    pub fn counter(&mut self, name: &str, help: &str, value: impl Display) {
        self.metric(MetricKind::Counter, name, help, value);
    }

    /// Adds a gauge.
    pub fn gauge(&mut self, name: &str, help: &str, value: impl Display) {
        self.metric(MetricKind::Gauge, name, help, value);
    }

    /// Adds a metric whose name has no prefix, since it is the same for all programs.
    pub fn unprefixed(&mut self, kind: MetricKind, name: &str, help: &str, value: impl Display) {
        self.line(format_args!("# HELP {name} {help}"));
        self.line(format_args!("# TYPE {name} {}", kind.as_str()));
        self.line(format_args!("{name} {value}"));
    }

    /// Adds a metric with a value for each value of `label`.
    pub fn labelled<L: Display, V: Display>(
        &mut self,
        kind: MetricKind,
        name: &str,
        help: &str,
        label: &str,
        values: impl IntoIterator<Item = (L, V)>,
    ) {
        self.head(kind, name, help);
        for (which, value) in values {
            self.line(format_args!(
                "portunus_{name}{{{label}=\"{which}\"}} {value}"
            ));
        }
    }

    /// Adds the help and the type of a metric whose samples follow.
    pub fn head(&mut self, kind: MetricKind, name: &str, help: &str) {
        self.line(format_args!("# HELP portunus_{name} {help}"));
        self.line(format_args!("# TYPE portunus_{name} {}", kind.as_str()));
    }

    /// Adds a sample. `labels` is such as `a="1",b="2"`.
    pub fn sample(&mut self, name: &str, labels: &str, value: impl Display) {
        self.line(format_args!("portunus_{name}{{{labels}}} {value}"));
    }

    /// Adds the samples of a histogram. `labels` are those beside the bounds of buckets, and may be
    /// empty.
    pub fn histogram(&mut self, name: &str, labels: &str, times: &HistogramSnapshot) {
        let comma = if labels.is_empty() { "" } else { "," };
        for bucket in &times.buckets {
            let bound = bucket.bound.map_or("+Inf".to_owned(), |it| it.to_string());
            self.line(format_args!(
                "portunus_{name}_bucket{{{labels}{comma}le=\"{bound}\"}} {}",
                bucket.count
            ));
        }
        let braces = match labels {
            "" => String::new(),
            labels => format!("{{{labels}}}"),
        };
        let (sum, count) = (times.sum, times.count());
        self.line(format_args!("portunus_{name}_sum{braces} {sum}"));
        self.line(format_args!("portunus_{name}_count{braces} {count}"));
    }

    fn metric(&mut self, kind: MetricKind, name: &str, help: &str, value: impl Display) {
        self.head(kind, name, help);
        self.line(format_args!("portunus_{name} {value}"));
    }

    fn line(&mut self, text: fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "{text}");
    }
}
