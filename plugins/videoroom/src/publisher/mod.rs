//! Participants: joining, publishing and leaving.

mod answer;
mod configure;
mod join;
mod keyframes;
mod leave;

pub(crate) use configure::Configure;
pub(crate) use join::Join;
