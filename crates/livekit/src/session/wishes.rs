//! The tracks that a client wants, and how.

use std::collections::HashMap;

use livekit_protocol::{TrackInfo, UpdateTrackSettings, VideoLayer, VideoQuality};
use portunus_media::Priority;
use portunus_room::LayerRequest;

/// The most tracks whose wishes are kept.
const MAX_WISHES: usize = 4_096;

/// The longest id of a track, in bytes. Ours are shorter.
const MAX_SID: usize = 64;

/// The wishes of a client.
#[derive(Debug, Default)]
pub(crate) struct Wishes {
    /// Whether it wants all tracks that it did not name.
    pub(crate) auto: bool,
    subscribed: HashMap<String, bool>,
    settings: HashMap<String, UpdateTrackSettings>,
}

impl Wishes {
    pub(crate) fn new(auto: bool) -> Self {
        Wishes {
            auto,
            ..Wishes::default()
        }
    }

    /// Returns whether the client wants a track.
    pub(crate) fn wants(&self, sid: &str) -> bool {
        self.subscribed.get(sid).copied().unwrap_or(self.auto)
    }

    /// Notes that the client wants a track, or does not.
    pub(crate) fn subscribe(&mut self, sid: &str, subscribe: bool) {
        let is_free = self.subscribed.len() < MAX_WISHES && sid.len() <= MAX_SID;
        if is_free || self.subscribed.contains_key(sid) {
            self.subscribed.insert(sid.to_owned(), subscribe);
        }
    }

    /// Notes how the client wants a track.
    pub(crate) fn set(&mut self, sid: &str, settings: &UpdateTrackSettings) {
        let is_free = self.settings.len() < MAX_WISHES && sid.len() <= MAX_SID;
        if is_free || self.settings.contains_key(sid) {
            let mut settings = settings.clone();
            settings.track_sids.clear();
            self.settings.insert(sid.to_owned(), settings);
        }
    }

    /// Returns whether a track is to be relayed, and which layers of it.
    pub(crate) fn layers(&self, sid: &str, track: &TrackInfo) -> (bool, LayerRequest) {
        match self.settings.get(sid) {
            Some(settings) => (!settings.disabled, layers(settings, &track.layers)),
            None => (true, LayerRequest::default()),
        }
    }
}

/// Returns the layers that settings ask for.
fn layers(settings: &UpdateTrackSettings, known: &[VideoLayer]) -> LayerRequest {
    let spatial = match (settings.width, settings.height) {
        (0, 0) => match settings.quality() {
            VideoQuality::Low => 0,
            VideoQuality::Medium => 1,
            VideoQuality::High | VideoQuality::Off => 2,
        },
        (width, height) => covering(known, width, height),
    };
    let temporal = match settings.fps {
        0 => 2,
        1..=9 => 0,
        10..=19 => 1,
        _ => 2,
    };
    let priority = match settings.priority {
        0 => None,
        1 => Some(Priority::High),
        2 => Some(Priority::Medium),
        3..=10 => Some(Priority::Low),
        _ => Some(Priority::VeryLow),
    };
    LayerRequest {
        substream: Some(spatial),
        temporal: Some(temporal),
        spatial_layer: Some(spatial),
        temporal_layer: Some(temporal),
        priority,
        ..LayerRequest::default()
    }
}

/// Returns the number of the smallest layer that covers this size, or of the largest one.
fn covering(known: &[VideoLayer], width: u32, height: u32) -> u8 {
    let mut sizes: Vec<(u32, u32)> = known.iter().map(|it| (it.width, it.height)).collect();
    sizes.sort_unstable();
    // The picture may be turned.
    let long = width.max(height);
    let covers = |(w, h): &(u32, u32)| (*w).max(*h) >= long;
    let number = sizes.iter().position(covers);
    number
        .and_then(|number| u8::try_from(number).ok())
        .unwrap_or(2)
        .min(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layer(width: u32, height: u32) -> VideoLayer {
        VideoLayer {
            width,
            height,
            ..VideoLayer::default()
        }
    }

    fn asked(settings: UpdateTrackSettings) -> Option<u8> {
        let known = [layer(1280, 720), layer(320, 180), layer(640, 360)];
        layers(&settings, &known).substream
    }

    #[test]
    fn the_smallest_layer_that_covers_the_size_is_asked_for() {
        for (width, height, layer) in [
            (320, 180, 0),
            (321, 180, 1),
            (180, 320, 0),
            (640, 360, 1),
            (1280, 720, 2),
            (4000, 3000, 2),
        ] {
            let settings = UpdateTrackSettings {
                width,
                height,
                ..UpdateTrackSettings::default()
            };
            assert_eq!(asked(settings), Some(layer), "{width}×{height}");
        }
    }

    #[test]
    fn without_a_size_the_quality_counts() {
        for (quality, layer) in [
            (VideoQuality::Low, 0),
            (VideoQuality::Medium, 1),
            (VideoQuality::High, 2),
        ] {
            let settings = UpdateTrackSettings {
                quality: quality.into(),
                ..UpdateTrackSettings::default()
            };
            assert_eq!(asked(settings), Some(layer));
        }
    }

    #[test]
    fn what_was_not_named_follows_the_default() {
        let mut wishes = Wishes::new(true);
        assert!(wishes.wants("TR_1"));
        wishes.subscribe("TR_1", false);
        assert!(!wishes.wants("TR_1"));
        assert!(wishes.wants("TR_2"));
        assert!(!Wishes::new(false).wants("TR_1"));
    }
}
