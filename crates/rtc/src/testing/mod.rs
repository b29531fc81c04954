//! A simulated network between transports: seeded loss, reordering, duplication and delay in
//! virtual time. For tests only.

mod bottleneck;
mod lines;
mod media_pair;
mod media_side;
mod network;
mod pair;
mod publisher;

pub use bottleneck::{Bottleneck, BottleneckLink};
pub use lines::{
    AUDIO_PT, RTX_PT, VIDEO_PT, audio, data, mirrored, simulcast, video, without_feedback,
    without_numbers,
};
pub use media_pair::MediaPair;
pub use media_side::{Arrival, MediaSide};
pub use network::{Datagram, Link, Network};
pub use pair::{Pair, Side, credentials, identity};
pub use publisher::{Frame, Publisher};

/// Returns the seeds of a test: `usual` many, or those of the variable `PORTUNUS_SEEDS`, which is a
/// count or a range such as `17..18`. Prints each seed, so that a failed test shows it.
///
/// # Panics
///
/// If the variable is neither.
#[allow(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "for whoever calls a test"
)]
pub fn seeds(usual: u64) -> impl Iterator<Item = u64> {
    let number = |text: &str| text.parse().expect("PORTUNUS_SEEDS is COUNT or FROM..TO");
    let range = match std::env::var("PORTUNUS_SEEDS") {
        Err(_) => 0..usual,
        Ok(wanted) => match wanted.split_once("..") {
            Some((from, to)) => number(from)..number(to),
            None => 0..number(&wanted),
        },
    };
    range.inspect(|seed| println!("seed {seed}"))
}
