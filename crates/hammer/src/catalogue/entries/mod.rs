//! The figures.

mod field;
mod janus;
mod own;
mod streamer;

use super::figure::Figure;

/// Returns all figures, in the order of the report.
pub(crate) fn all() -> impl Iterator<Item = &'static Figure> {
    janus::FIGURES
        .iter()
        .chain(&streamer::FIGURES)
        .chain(&field::FIGURES)
        .chain(&own::FIGURES)
}
