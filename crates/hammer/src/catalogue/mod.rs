//! `hammer figures`: named figures of published evaluations, measured here.
//!
//! A figure is data (`entries/`): its loads, plots and published numbers. A `plan` of jobs, each a
//! run of `hammer lab`, is worked off; what was measured is drawn, and written as one report.

mod bars;
mod call;
mod docs;
mod drawing;
mod entries;
mod error;
mod figure;
mod files;
mod headlines;
mod measured;
mod options;
mod page;
mod peers;
mod picture;
mod plan;
mod report;
mod state;

use call::Call;
pub use error::FiguresError;
pub use options::Options;

/// Measures the figures, and writes the report.
pub fn run(options: &Options) -> Result<(), FiguresError> {
    if options.list {
        list();
        return Ok(());
    }
    let figures = options.figures()?;
    let mut call = Call::new(options, figures)?;
    // What was measured until an error or interruption is in the report.
    let outcome = call.work();
    let report = report::Report::of(&call);
    files::write(&report, &options.out)?;
    if let Some(page) = &options.into {
        docs::write(&report, page, options.extent())?;
    }
    print!("{}", report.to_text());
    println!("Reports: {}", options.out.display());
    outcome?;
    match report.has_runs() {
        true => Ok(()),
        false => Err(FiguresError::Nothing(report.first_reason())),
    }
}

/// Prints the names with their subjects.
fn list() {
    for figure in entries::all() {
        let peers: Vec<&str> = figure.peers.iter().map(|peer| peer.name()).collect();
        println!(
            "{:<22} {} ({})",
            figure.name,
            figure.title,
            peers.join(", ")
        );
        if let Some(missing) = figure.missing {
            println!("{:<22} cannot be measured: {missing}", "");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn names_are_unique_and_plots_have_loads() {
        let names: Vec<&str> = entries::all().map(|figure| figure.name).collect();
        let unique: HashSet<&str> = names.iter().copied().collect();
        assert_eq!(unique.len(), names.len());
        for n in 3..=14 {
            assert!(unique.contains(&*format!("janus-{n}")), "{n}");
        }
        for figure in entries::all() {
            let empty = figure.loads.is_empty() || figure.plots.is_empty();
            assert_eq!(empty, figure.missing.is_some(), "{}", figure.name);
        }
    }
}
