//! The components of mixing.

mod denoise;
mod encoder;
mod gains;
pub(crate) mod libopus;
mod limiter;
mod loudest;
mod talk;
mod trust;
mod voice;

pub(crate) use denoise::Denoiser;
pub(crate) use encoder::{Encoder, LARGEST_PACKET};
pub(crate) use gains::Gains;
pub(crate) use limiter::{LOOK_AHEAD, Limiter};
pub(crate) use loudest::{Candidate, Standing, choose};
pub(crate) use talk::TalkWindow;
pub(crate) use trust::Trust;
