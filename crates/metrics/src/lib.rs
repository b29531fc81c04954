//! Histograms, and the text format of Prometheus. Each crate lists its own metrics.
#![forbid(unsafe_code)]

mod histogram;
mod page;

pub use histogram::{Bucket, Histogram, HistogramSnapshot};
pub use page::{MetricKind, MetricsPage, MetricsSource};
