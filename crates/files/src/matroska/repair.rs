//! Repair of a file without a regular end: torn content is dropped; sizes, duration and index are
//! written.

use std::io::Write;

use mkv_element::prelude::{Element, Info};

use super::CLUSTER_HEAD;
use super::cues::{Cue, Index};
use super::ebml::{Id, put_element, wide_size};
use super::header::seek_head;
use super::scan::{Scan, Span};
use crate::FileError;
use crate::container::Repaired;
use crate::demux::Input;

/// Reads a file up to damage, and writes it anew.
pub(crate) fn repair(mut input: Input, out: &mut dyn Write) -> Result<Repaired, FileError> {
    let scan = Scan::new(&mut input)?;
    let head = Head::new(&scan);
    let write = |out: &mut dyn Write, bytes: &[u8]| out.write_all(bytes).map_err(FileError::Write);
    write(out, &head.bytes)?;
    for cluster in scan.kept_clusters().map(|(_, cluster)| cluster) {
        let mut bytes = Vec::with_capacity(CLUSTER_HEAD as usize);
        Id::CLUSTER.put(&mut bytes);
        bytes.extend(wide_size(cluster.len()));
        write(out, &bytes)?;
        for span in &cluster.spans {
            copy(&mut input, *span, out)?;
        }
    }
    write(out, &head.cues)?;
    Ok(Repaired {
        cut: input.len().saturating_sub(scan.end),
        was_whole: scan.is_whole,
        duration: scan.nanos(scan.duration()),
        frames: scan.frames,
    })
}

/// The header of the new file, and its index.
struct Head {
    bytes: Vec<u8>,
    cues: Vec<u8>,
}

impl Head {
    fn new(scan: &Scan) -> Self {
        let mut info = Vec::new();
        let without = Info {
            duration: None,
            ..scan.info.clone()
        };
        // Writing to memory does not fail.
        let _ = without.encode_body(&mut info);
        Id::DURATION.put(&mut info);
        info.push(0x88);
        info.extend((scan.duration() as f64).to_be_bytes());
        let mut body = Vec::new();
        put_element(&mut body, Id::INFO, &info);
        let tracks = body.len() as u64;
        for kept in &scan.kept {
            body.extend_from_slice(kept);
        }

        let places = seek_head(0, 0, Some(0)).len() as u64;
        let mut at = places + body.len() as u64;
        let mut index = Index::default();
        let mut to_place = scan.places.iter().peekable();
        for (number, cluster) in scan.kept_clusters() {
            while let Some(place) = to_place.next_if(|place| place.cluster == number) {
                index.add(Cue {
                    cluster: at,
                    ..place.cue
                });
            }
            at = at
                .saturating_add(CLUSTER_HEAD)
                .saturating_add(cluster.len());
        }
        let mut cues = Vec::new();
        index.put(&mut cues);

        let mut bytes = scan.ebml.clone();
        Id::SEGMENT.put(&mut bytes);
        bytes.extend(wide_size(at.saturating_add(cues.len() as u64)));
        bytes.extend(seek_head(places, places + tracks, Some(at)));
        bytes.extend(body);
        Self { bytes, cues }
    }
}

fn copy(input: &mut Input, span: Span, out: &mut dyn Write) -> Result<(), FileError> {
    const PIECE: u64 = 64 << 10;
    let mut piece = Vec::new();
    input.seek(span.from)?;
    let mut left = span.len();
    while left > 0 {
        let len = left.min(PIECE);
        input.read_into(&mut piece, len, PIECE, "a cluster")?;
        out.write_all(&piece).map_err(FileError::Write)?;
        left -= len;
    }
    Ok(())
}
