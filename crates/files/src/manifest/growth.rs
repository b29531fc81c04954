//! Adding to a manifest, within a size that can be read, and rewritten often.

use super::{File, MAX_ENTRIES, Manifest, Participant, Track};

/// The greatest estimated size of a manifest in bytes: half of what is read.
const MAX_SIZE: usize = super::MAX_MANIFEST / 2;

/// The greatest sizes of entries in bytes, without their texts.
const PARTICIPANT: usize = 256;
const FILE: usize = 768;
const TRACK: usize = 1_024;
const GAP: usize = 192;
const LAYER: usize = 128;
const CHANGE: usize = 224;
const TALK: usize = 128;
const LEFT_OUT: usize = 64;

/// The estimated size of a manifest in bytes. It is not part of the manifest.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Size(usize);

impl PartialEq for Size {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Size {
    /// Adds to the size, if there is room.
    fn take(&mut self, bytes: usize) -> bool {
        let size = self.0.saturating_add(bytes);
        let fits = size <= MAX_SIZE;
        if fits {
            self.0 = size;
        }
        fits
    }
}

impl Manifest {
    /// Returns the participant with this id, which is added if there is room.
    pub fn participant(&mut self, id: &str, display: Option<&str>) -> Option<&mut Participant> {
        let known = self.participants.iter().position(|it| it.id == id);
        let index = match known {
            Some(index) => index,
            None => {
                let size = PARTICIPANT + text(id) + display.map_or(0, text);
                if self.participants.len() >= MAX_ENTRIES || !self.size.take(size) {
                    self.more += 1;
                    return None;
                }
                self.participants.push(Participant {
                    id: id.to_owned(),
                    ..Participant::default()
                });
                self.participants.len() - 1
            }
        };
        let participant = self.participants.get_mut(index)?;
        let is_same = participant.display.as_deref() == display;
        if let Some(display) = display
            && !is_same
            && (known.is_none() || self.size.take(text(display)))
        {
            participant.display = Some(display.to_owned());
        }
        Some(participant)
    }

    /// Adds a file of a participant, if there is room. Returns its index among the participant's
    /// files.
    pub fn add_file(&mut self, id: &str, display: Option<&str>, file: File) -> Option<usize> {
        self.participant(id, display)?;
        let participant = self.participants.iter_mut().find(|it| it.id == id)?;
        let index = participant.files.len();
        if index >= MAX_ENTRIES || !self.size.take(size(&file)) {
            participant.more += 1;
            return None;
        }
        participant.files.push(file);
        Some(index)
    }

    /// Changes a file of a participant. Its lists grow only as far as there is room. Returns false
    /// if there is no such file.
    pub fn change_file(&mut self, id: &str, index: usize, change: impl FnOnce(&mut File)) -> bool {
        let participant = self.participants.iter_mut().find(|it| it.id == id);
        let Some(participant) = participant else {
            return false;
        };
        let Some(file) = participant.files.get_mut(index) else {
            return false;
        };
        let (before, lists) = (size(file), lens(file));
        change(file);
        let added = size(file).saturating_sub(before);
        if added > 0 && !self.size.take(added) {
            let tracks = lists.len();
            shorten(&mut file.tracks, tracks, &mut participant.more);
            cut(file, &lists);
        }
        true
    }

    /// Notes that an m-line of a participant is in no file.
    pub fn leave_out(&mut self, id: &str, display: Option<&str>, mid: &str) {
        if self.participant(id, display).is_none() {
            return;
        }
        let Some(participant) = self.participants.iter_mut().find(|it| it.id == id) else {
            return;
        };
        if participant.left_out.iter().any(|it| it == mid) {
            return;
        }
        match participant.left_out.len() < MAX_ENTRIES && self.size.take(LEFT_OUT + text(mid)) {
            true => participant.left_out.push(mid.to_owned()),
            false => participant.more += 1,
        }
    }
}

/// Returns the greatest length of a text in JSON: six bytes for a control character.
fn text(text: &str) -> usize {
    let of = |byte: u8| match byte {
        0..0x20 => 6,
        b'"' | b'\\' => 2,
        _ => 1,
    };
    text.bytes().map(of).sum()
}

fn size(file: &File) -> usize {
    let tracks: usize = file.tracks.iter().map(size_of_track).sum();
    FILE + text(&file.file) + file.error.as_deref().map_or(0, text) + tracks
}

fn size_of_track(track: &Track) -> usize {
    TRACK
        + text(&track.mid)
        + track.description.as_deref().map_or(0, text)
        + track.gaps.len() * GAP
        + track.layers.len() * LAYER
        + track.changes.len() * CHANGE
        + track.talks.len() * TALK
}

/// Returns the lengths of the lists of each track.
fn lens(file: &File) -> Vec<[usize; 4]> {
    let lens = |track: &Track| {
        [
            track.gaps.len(),
            track.layers.len(),
            track.changes.len(),
            track.talks.len(),
        ]
    };
    file.tracks.iter().map(lens).collect()
}

/// Truncates the lists of a file to their earlier lengths. Other members stay.
fn cut(file: &mut File, lists: &[[usize; 4]]) {
    for (place, track) in file.tracks.iter_mut().enumerate() {
        let [gaps, layers, changes, talks] = lists.get(place).copied().unwrap_or_default();
        let more = &mut track.more;
        shorten(&mut track.gaps, gaps, more);
        shorten(&mut track.layers, layers, more);
        shorten(&mut track.changes, changes, more);
        shorten(&mut track.talks, talks, more);
    }
}

fn shorten<T>(list: &mut Vec<T>, len: usize, more: &mut u64) {
    let left_out = list.len().saturating_sub(len);
    *more = more.saturating_add(left_out as u64);
    list.truncate(len);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by a panic")]
    use super::super::*;

    fn full_track() -> Track {
        let mut track = Track::default();
        for at in 0..MAX_ENTRIES {
            let (from_ms, to_ms) = (at as f64 + 1_000_000.125, at as f64 + 1_000_000.333);
            let why = GapReason::Keyframe;
            track.add_gap(Gap {
                from_ms,
                to_ms,
                why,
            });
            track.add_talk(from_ms, to_ms);
        }
        track
    }

    #[test]
    fn whatever_happens_a_manifest_can_be_read() {
        let mut manifest = Manifest::new("", "", UnixMicros(0));
        for id in 0..5 {
            let id = id.to_string();
            let index = manifest.add_file(&id, Some("\u{1}Ann"), File::default());
            let Some(index) = index else {
                continue;
            };
            assert!(manifest.change_file(&id, index, |file| {
                file.tracks = vec![Track::default(), Track::default()];
            }));
            // One at a time, as in a recording.
            let full = full_track();
            for place in 0..MAX_ENTRIES {
                manifest.change_file(&id, index, |file| {
                    file.bytes += 1;
                    let Some(track) = file.tracks.first_mut() else {
                        return;
                    };
                    track.add_gap(*full.gaps.get(place).unwrap());
                    let (from, to) = *full.talks.get(place).unwrap();
                    track.add_talk(from, to);
                });
            }
        }
        let [_, _, third] = manifest.participants.as_slice() else {
            panic!("{} are known", manifest.participants.len());
        };
        let file = third.files.first().unwrap();
        // The members of the file itself still change.
        assert_eq!(file.bytes, MAX_ENTRIES as u64);
        let track = file.tracks.first().unwrap();
        let lists = track.gaps.len() + track.talks.len();
        assert_eq!(lists as u64 + track.more, 2 * MAX_ENTRIES as u64);
        assert!(track.more > 0);
        // There is no room for the others.
        assert_eq!(manifest.more, 2);
        let json = manifest.to_json();
        assert!(
            (1 << 20..MAX_MANIFEST).contains(&json.len()),
            "{}",
            json.len()
        );
        assert_eq!(Manifest::read(&json).unwrap(), manifest);
    }

    #[test]
    fn people_and_files_without_end_are_counted() {
        let mut manifest = Manifest::new("", "", UnixMicros(0));
        let long = "\u{1}".repeat(10_000);
        let file = || File {
            file: long.clone(),
            ..File::default()
        };
        for id in 0..1_000 {
            manifest.add_file(&id.to_string(), Some(&long), file());
        }
        manifest.leave_out("0", None, &long);
        let known = &manifest.participants;
        let files: usize = known.iter().map(|it| it.files.len()).sum();
        let more: u64 = known.iter().map(|it| it.more).sum();
        assert_eq!(known.len() as u64 + manifest.more, 1_000);
        assert_eq!(files as u64 + more + manifest.more, 1_001);
        assert!(manifest.to_json().len() < MAX_MANIFEST);
    }
}
