//! The streams that a request names.

use portunus_rtp::Mid;
use portunus_sdp::{CodecName, Kind};

use super::MAX_LINES;
use super::request::Subscribe;
use crate::Refusal;
use crate::publication::Publications;

/// A stream to receive.
#[derive(Debug)]
pub(crate) struct Track {
    pub(super) mid: Mid,
    pub(super) kind: Kind,
    pub(super) codec: Option<CodecName>,
    pub(super) request: Subscribe,
}

/// Returns the requested streams without the disabled ones. All feeds and m-lines have to exist.
pub(super) fn tracks(
    requests: Vec<Subscribe>,
    publications: &Publications,
) -> Result<Vec<Track>, Refusal> {
    let mut tracks = Vec::new();
    for request in requests {
        let publication = publications.published(&request.feed)?;
        let mut streams: Vec<_> = publication.streams().iter().collect();
        if let Some(mid) = &request.mid {
            streams.retain(|stream| stream.mid.as_str() == mid);
            if streams.is_empty() {
                return Err(Refusal::NoSuchFeed(format!("{} mid {mid}", request.feed)));
            }
        }
        for stream in streams.into_iter().filter(|stream| !stream.disabled) {
            // No subscription has room for more. They are refused before they take memory.
            if tracks.len() >= 2 * MAX_LINES {
                return Err(Refusal::TooManyLines);
            }
            tracks.push(Track {
                mid: stream.mid,
                kind: stream.kind,
                codec: stream.format.codec,
                request: request.clone(),
            });
        }
    }
    Ok(tracks)
}

/// Returns whether the tracks are encrypted end to end, or `None` without any. Refuses a mixture.
pub(super) fn e2ee_of(
    tracks: &[Track],
    publications: &Publications,
) -> Result<Option<bool>, Refusal> {
    let mut e2ee = None;
    for track in tracks {
        let this = publications.published(&track.request.feed)?.e2ee;
        if e2ee.is_some_and(|e2ee| e2ee != this) {
            return Err(Refusal::MixedFeeds);
        }
        e2ee = Some(this);
    }
    Ok(e2ee)
}
