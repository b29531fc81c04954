//! The index at the end of a file.

use mkv_element::prelude::{
    CueClusterPosition, CuePoint, CueRelativePosition, CueTime, CueTrack, CueTrackPositions, Cues,
    Element,
};

use super::ebml::{Id, put_element};

/// The limit of entries in an index: some 1.5 MiB. In a file of days, entries are thinned out.
const MAX_CUES: usize = 65_536;

/// A position where decoding can start.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cue {
    /// In ms.
    pub time: u64,
    /// The number of the track in the file.
    pub track: u64,
    /// The position of its cluster in the segment.
    pub cluster: u64,
    /// The position of its block in the body of the cluster.
    pub block: u64,
}

/// The entries so far.
#[derive(Debug, Default)]
pub(super) struct Index {
    cues: Vec<Cue>,
    /// The shortest distance of entries, in ms.
    apart: u64,
}

impl Index {
    pub fn add(&mut self, cue: Cue) {
        let last = self.cues.last().map(|last| last.time);
        if last.is_some_and(|last| cue.time < last.saturating_add(self.apart)) {
            return;
        }
        if self.cues.len() >= MAX_CUES {
            let mut keep = false;
            self.cues.retain(|_| {
                keep = !keep;
                keep
            });
            let length = cue.time / MAX_CUES as u64;
            self.apart = self.apart.max(length).saturating_mul(2).max(1);
        }
        self.cues.push(cue);
    }

    pub fn is_empty(&self) -> bool {
        self.cues.is_empty()
    }

    /// Writes it as an element.
    pub fn put(&self, out: &mut Vec<u8>) {
        let cues = Cues {
            cue_point: self.cues.iter().map(point).collect(),
            ..Cues::default()
        };
        let mut body = Vec::new();
        // Writing to memory does not fail.
        let _ = cues.encode_body(&mut body);
        put_element(out, Id::CUES, &body);
    }
}

fn point(cue: &Cue) -> CuePoint {
    CuePoint {
        cue_time: CueTime(cue.time),
        cue_track_positions: vec![CueTrackPositions {
            cue_track: CueTrack(cue.track),
            cue_cluster_position: CueClusterPosition(cue.cluster),
            cue_relative_position: Some(CueRelativePosition(cue.block)),
            ..CueTrackPositions::default()
        }],
        ..CuePoint::default()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing, reason = "a test fails by a panic")]

    use super::*;

    #[test]
    fn a_long_index_thins_out_evenly() {
        let mut index = Index::default();
        for time in 0..300_000 {
            index.add(Cue {
                time: time * 1_000,
                track: 1,
                cluster: time,
                block: 6,
            });
        }
        assert!((MAX_CUES / 4..=MAX_CUES).contains(&index.cues.len()));
        let apart = |pair: &[Cue]| pair[1].time - pair[0].time;
        let longest = index.cues.windows(2).map(apart).max();
        assert!(
            longest.is_some_and(|longest| longest <= 20_000),
            "{longest:?}"
        );
    }
}
