//! The access of rooms to the media plane.

use portunus_media::{Collector, MediaPlane};

use crate::feeds::Feeds;
use crate::taps::Taps;

/// The parts of a thread that its rooms need to reach the media plane.
pub(crate) struct MediaAccess<'a> {
    pub(crate) media: &'a MediaPlane,
    pub(crate) collector: &'a Collector,
    pub(crate) feeds: &'a mut Feeds,
    pub(crate) taps: &'a mut Taps,
}
