//! The index of keyframes at a file's end (`mfra`, ISO/IEC 14496-12 section 8.8.9).

use mp4_atom::{Encode, Tfra};

/// The limit of entries per track. When it is reached, every second entry is dropped, and half as
/// many are added later.
const MOST: usize = 8_192;

/// The position of a keyframe.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    /// Its time, in units of the track.
    pub time: u64,
    /// The position of its fragment in the file.
    pub fragment: u64,
    /// The number of the track in the fragment, from 1, and of the frame.
    pub traf: u32,
    pub sample: u32,
}

/// The entries of a track.
#[derive(Debug, Default)]
pub(super) struct Places {
    places: Vec<Place>,
    /// The shortest distance of entries, in units of the track.
    apart: u64,
}

impl Places {
    pub(super) fn add(&mut self, place: Place) {
        let last = self.places.last().map(|last| last.time);
        if last.is_some_and(|last| place.time < last.saturating_add(self.apart)) {
            return;
        }
        if self.places.len() >= MOST {
            let mut odd = false;
            self.places.retain(|_| {
                odd = !odd;
                odd
            });
            let first = self.places.first().map_or(0, |first| first.time);
            let kept = self.places.len().max(1) as u64;
            self.apart = place.time.saturating_sub(first) / kept;
        }
        self.places.push(place);
    }
}

/// Appends the index of tracks with their numbers.
pub(super) fn put<'a>(tracks: impl Iterator<Item = (u32, &'a Places)>, out: &mut Vec<u8>) {
    let mut body = Vec::new();
    for (track_id, places) in tracks.filter(|(_, places)| !places.places.is_empty()) {
        let entries = places.places.iter().map(|place| mp4_atom::FragmentInfo {
            time: place.time,
            moof_offset: place.fragment,
            traf_number: place.traf,
            trun_number: 1,
            sample_delta: place.sample,
        });
        let tfra = Tfra {
            track_id,
            entries: entries.collect(),
        };
        if tfra.encode(&mut body).is_err() {
            return;
        }
    }
    /// The length of the last box, which contains the length of the index, with its head, version
    /// and flags.
    const MFRO_LEN: usize = 16;
    let len = 8 + body.len() + MFRO_LEN;
    let Ok(len) = u32::try_from(len) else {
        return;
    };
    out.extend(len.to_be_bytes());
    out.extend(b"mfra");
    out.extend_from_slice(&body);
    out.extend((MFRO_LEN as u32).to_be_bytes());
    out.extend(b"mfro");
    out.extend([0; 4]);
    out.extend(len.to_be_bytes());
}
