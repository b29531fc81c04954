//! Whether the m-lines of an offer share a transport (BUNDLE, RFC 9143).

use sdp_types::Session as Sdp;

use crate::description::Media;
use crate::media_lines::{find, values};

/// Returns the active m-lines that are in no BUNDLE group with the first active one.
pub(crate) fn outside(sdp: &Sdp, media: &[Media]) -> Vec<usize> {
    let mut used = in_use(sdp, media);
    let Some((_, first)) = used.next() else {
        return Vec::new();
    };
    let mut groups = values(&sdp.attributes, "group")
        .filter_map(|group| group.trim().strip_prefix("BUNDLE "))
        .filter(|group| has(group, first));
    // A mid is in one group only (RFC 9143 section 7.2).
    let group = groups.next().unwrap_or_default();
    used.filter(|(_, mid)| !has(group, mid))
        .map(|(index, _)| index)
        .collect()
}

/// Returns whether the m-line at `index` has another transport than the first active m-line: other
/// ICE credentials.
pub(crate) fn has_another_transport(sdp: &Sdp, media: &[Media], index: usize) -> bool {
    let ufrag = |index: usize| {
        let line = sdp.medias.get(index);
        let own = line.and_then(|line| find(&line.attributes, "ice-ufrag"));
        own.or_else(|| find(&sdp.attributes, "ice-ufrag")).flatten()
    };
    let first = media.iter().position(|media| !media.rejected);
    // An m-line without credentials has no transport of its own.
    ufrag(index).is_some_and(|own| first.and_then(ufrag) != Some(own))
}

/// Returns the active m-lines with their mids in the text.
fn in_use<'a>(sdp: &'a Sdp, media: &'a [Media]) -> impl Iterator<Item = (usize, &'a str)> {
    let lines = sdp.medias.iter().zip(media).enumerate();
    lines
        .filter(|(_, (_, media))| !media.rejected)
        .map(|(index, (line, media))| {
            let written = find(&line.attributes, "mid").flatten();
            (index, written.unwrap_or(media.mid.as_str()))
        })
}

fn has(group: &str, mid: &str) -> bool {
    group.split_ascii_whitespace().any(|member| member == mid)
}
