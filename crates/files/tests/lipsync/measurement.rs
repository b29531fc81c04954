//! Measurements of a file.

use portunus_files::assembly::{Note, PartReason, TrackStats};

/// Content captured at `true_at`, and its time in the file on the server's clock.
#[derive(Debug, Clone, Copy)]
pub struct Seen {
    pub true_at: f64,
    pub at: f64,
    /// The time by counting samples from the first. For pictures it equals `at`.
    pub counted: f64,
}

impl Seen {
    pub fn error(&self) -> f64 {
        self.at - self.true_at
    }
}

/// The measured file.
#[derive(Debug, Default)]
pub struct Made {
    /// All audio packets of the sender, and all pictures.
    pub seen: [Vec<Seen>; 2],
    /// The starts and ends of all audio packets, including filled ones.
    pub sound: Vec<(f64, f64)>,
    pub counted: f64,
    pub notes: Vec<(usize, Note)>,
    pub parts: Vec<PartReason>,
    pub keyframes_asked: usize,
    pub stats: [TrackStats; 2],
}

impl Made {
    /// Returns for each picture its capture time, and how much later the audio of that moment is,
    /// by times and by samples.
    pub fn lipsync(&self) -> Vec<(f64, f64, f64)> {
        let [sound, pictures] = &self.seen;
        let compare = |picture: &Seen| {
            let after = sound.partition_point(|packet| packet.true_at <= picture.true_at + 1e-9);
            let packet = sound.get(after.checked_sub(1)?)?;
            let into = picture.true_at - packet.true_at;
            (into < 0.020).then_some((
                picture.true_at,
                packet.at + into - picture.at,
                packet.counted + into - picture.at,
            ))
        };
        pictures.iter().filter_map(compare).collect()
    }

    /// Returns the greatest lip-sync errors from `from` on, by times and by samples, in ms, and the
    /// number of pictures.
    pub fn worst(&self, from: f64) -> (f64, f64, usize) {
        let all = self.lipsync();
        let late = all.iter().filter(|(at, ..)| *at >= from);
        late.fold((0.0, 0.0, 0), |(times, samples, count), (_, t, s)| {
            (
                f64::max(times, t.abs() * 1e3),
                f64::max(samples, s.abs() * 1e3),
                count + 1,
            )
        })
    }

    /// Returns the greatest deviation of a step between two frames of a track, in ms, except across
    /// gaps.
    pub fn largest_step(&self, track: usize) -> f64 {
        let seen = &self.seen[track];
        let close = |pair: &&[Seen]| pair[1].true_at - pair[0].true_at < 0.1;
        let steps = seen
            .windows(2)
            .filter(close)
            .map(|pair| (pair[1].error() - pair[0].error()).abs());
        steps.fold(0.0, f64::max) * 1e3
    }

    /// Returns the longest time between two audio packets, in ms.
    pub fn largest_hole(&self) -> f64 {
        let holes = self
            .sound
            .windows(2)
            .map(|pair| (pair[1].0 - pair[0].1).abs());
        holes.fold(0.0, f64::max) * 1e3
    }
}
