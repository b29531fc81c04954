//! The options of `hammer figures`.

use std::path::PathBuf;

use clap::Args;

use super::docs::Extent;
use super::entries;
use super::error::FiguresError;
use super::figure::Figure;
use super::peers::Peer;
use crate::lab::Named;
use crate::scenario::load;

/// Which figures, and how.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct Options {
    /// The names of figures; `--list` shows them
    #[arg(value_name = "NAME", required_unless_present_any = ["all", "list"])]
    pub(super) names: Vec<String>,
    /// All figures
    #[arg(long, conflicts_with = "names")]
    pub(super) all: bool,
    /// List the figures, and measure nothing
    #[arg(long)]
    pub(super) list: bool,
    /// The servers to measure, as far as figures are about them
    #[arg(
        long,
        value_enum,
        value_name = "PEER,PEER",
        value_delimiter = ',',
        default_value = "portunus,janus"
    )]
    pub(super) peers: Vec<Peer>,
    /// The command of a peer, in place of the one that is found: PEER=COMMAND, with {ip} and {dir} as
    /// for lab; once for each
    #[arg(long = "peer", value_name = "PEER=COMMAND")]
    pub(super) commands: Vec<Named>,
    /// Install no peer that is missing
    #[arg(long)]
    pub(super) no_install: bool,
    /// Few and short steps: all figures in some ten minutes
    #[arg(long)]
    pub(super) quick: bool,
    /// A factor of all numbers of participants, for smaller and larger machines
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = scale)]
    pub(super) scale: f64,
    /// The cores that servers may use
    #[arg(long, value_name = "N,N", value_delimiter = ',', default_value = "0")]
    pub(super) server_cores: Vec<usize>,
    /// The cores that the load comes from
    #[arg(long, value_name = "N,N", value_delimiter = ',', default_value = "1")]
    pub(super) load_cores: Vec<usize>,
    /// The folder for reports, pictures and runs; a call that was interrupted goes on there
    #[arg(long, value_name = "FOLDER", default_value = "hammer-figures")]
    pub(super) out: PathBuf,
    /// Measure everything anew
    #[arg(long)]
    pub(super) fresh: bool,
    /// Write the pictures and tables into this page of Markdown as well, between its marks
    /// <!-- figures: NAME --> and <!-- /figures -->; headlines and the machine with --all only
    #[arg(long, value_name = "FILE.md")]
    pub(super) into: Option<PathBuf>,
}

const AFTER_HELP: &str = "\
Each server runs on one core, and the load on another, between two network namespaces: it takes root and iproute2.

Example, as root:
  portunus-hammer figures --all --quick --peers portunus,janus,mediasoup,livekit,jvb";

impl Options {
    /// Returns which figures are measured.
    pub(super) const fn extent(&self) -> Extent {
        if self.all { Extent::All } else { Extent::Named }
    }

    /// Returns the named figures.
    pub(super) fn figures(&self) -> Result<Vec<&'static Figure>, FiguresError> {
        if self.all {
            return Ok(entries::all().collect());
        }
        let find = |name: &String| {
            let found = entries::all().find(|figure| figure.name == name);
            found.ok_or_else(|| FiguresError::Unknown(name.clone()))
        };
        self.names.iter().map(find).collect()
    }
}

fn scale(text: &str) -> Result<f64, String> {
    let expected = "a factor from 0.001 to 1000 is expected";
    load::number(text, 0.001..=1_000.0, expected)
}
