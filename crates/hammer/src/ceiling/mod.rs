//! The ceiling of one core: a bare loop of encrypting and sending.
//!
//! The loop seals the same RTP packets for each viewer with bare calls of the crypto library, and
//! sends them by sendmmsg with UDP_SEGMENT. It has no protocol and no stream state, so a server's
//! share of it shows what its design leaves of the machine. It sends to as many addresses as it has
//! viewers, which are read like a server's viewers, since both affect the cost of sending.
//!
//! There are two ceilings. *In time*, each frame leaves within its frame interval, so that no two
//! of a source are joined. *At all*, frames wait for others and leave with them as one message, as
//! far as that pays.

mod bench;
mod cipher;
mod error;
mod options;
mod plan;
mod sender;
mod text;

use std::io;

use serde::Serialize;

use crate::machine::Link;
use crate::record::{BareLoad, Ceiling};
use bench::Bench;
pub use error::CeilingError;
pub use options::Options;
pub(crate) use options::seconds_or_none;

/// Measures, prints and writes the result.
pub fn run(options: &Options) -> Result<(), CeilingError> {
    let options = options.with_scenario()?;
    let link = match options.loopback {
        true => None,
        false => Some(Link::new()?),
    };
    let ceiling = measure(&options, link.as_ref())?;
    let loads = loads(&options, link.as_ref(), &ceiling, &options.viewers)?;
    print!("{}", text::ceiling(&options, &ceiling, &loads));
    let Some(path) = &options.json else {
        return Ok(());
    };
    let result = Measured { ceiling, loads };
    let text = serde_json::to_string_pretty(&result).map_err(io::Error::from);
    let written = text.and_then(|text| std::fs::write(path, text + "\n"));
    written.map_err(|source| CeilingError::Write {
        path: path.clone(),
        source,
    })
}

/// The result as JSON.
#[derive(Debug, Serialize)]
struct Measured {
    #[serde(flatten)]
    ceiling: Ceiling,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    loads: Vec<BareLoad>,
}

/// Measures both ceilings over `link`, or over the loopback interface.
pub fn measure(options: &Options, link: Option<&Link>) -> Result<Ceiling, CeilingError> {
    options.traffic.check()?;
    Bench::new(options, link).ceiling()
}

/// Measures the loop with each number of participants, sending each frame when it is due, in the
/// way that was the fastest in time.
pub fn loads(
    options: &Options,
    link: Option<&Link>,
    ceiling: &Ceiling,
    participants: &[u32],
) -> Result<Vec<BareLoad>, CeilingError> {
    let bench = Bench::new(options, link);
    let loads = participants.iter();
    loads
        .map(|participants| bench.load(*participants, &ceiling.in_time))
        .collect()
}
