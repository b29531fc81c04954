//! The older form of RTP mountpoints: at most one stream of each kind, with its options in the
//! request itself.

use portunus_core::{Fields, Mid};

use super::SpecProblem;
use super::media::{AUDIO, DATA, Feed, MediaKind, MediaSpec, Tables, VIDEO};

const STREAMS: [(MediaKind, &str, &Tables); 3] = [
    (MediaKind::Audio, "a", &AUDIO),
    (MediaKind::Video, "v", &VIDEO),
    (MediaKind::Data, "d", &DATA),
];

/// Returns the names of all options.
pub(super) fn keys() -> impl Iterator<Item = &'static str> {
    let of_kind = |(kind, _, tables): (MediaKind, &str, &'static Tables)| {
        [kind.name()].into_iter().chain(tables.keys(kind))
    };
    let all = STREAMS.into_iter().flat_map(of_kind);
    all.chain(["videobufferkf"])
}

/// Reads the streams, with mids `a`, `v` and `d`.
pub(super) fn read(fields: Fields<'_>) -> Result<Vec<MediaSpec>, SpecProblem> {
    let mut media = Vec::new();
    for (kind, mid, tables) in STREAMS {
        let is_wanted = fields.member(kind.name())? == Some(true);
        let Some(mid) = Mid::new(mid).filter(|_| is_wanted) else {
            continue;
        };
        let mut spec = MediaSpec::new(kind, mid);
        let mut tables = tables.of(kind, Feed::Ports);
        tables.try_for_each(|table| table.read_into(&mut spec, fields))?;
        spec.check().map_err(|problem| {
            let key = format!("{}{}", kind.name(), problem.key);
            SpecProblem { key, ..problem }
        })?;
        media.push(spec);
    }
    match media.is_empty() {
        true => Err(SpecProblem::cannot_create(
            "media",
            "there is no audio, video or data",
        )),
        false => Ok(media),
    }
}
