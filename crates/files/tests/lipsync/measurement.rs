//! The measurement of the file that was made.

use portunus_files::assemble::{Note, PartReason, TrackStats};

/// Something that was captured at `true_at`, and where it is in the file on the server's clock.
#[derive(Debug, Clone, Copy)]
pub struct Seen {
    pub true_at: f64,
    pub at: f64,
    /// By counting samples from the first; of pictures the same as `at`.
    pub counted: f64,
}

impl Seen {
    pub fn error(&self) -> f64 {
        self.at - self.true_at
    }
}

/// What came of it.
#[derive(Debug, Default)]
pub struct Made {
    /// Each packet of sound that the sender sent, each picture.
    pub seen: [Vec<Seen>; 2],
    /// Beginnings and ends of all packets of sound, filled ones as well.
    pub sound: Vec<(f64, f64)>,
    pub counted: f64,
    pub notes: Vec<(usize, Note)>,
    pub parts: Vec<PartReason>,
    pub keyframes_asked: usize,
    pub stats: [TrackStats; 2],
}

impl Made {
    /// When each picture was captured, and how much later the sound of that moment is, by times and by counted samples.
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

    /// The largest error of lip-sync from `from` on, by times and by samples, in ms, and of how many pictures.
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

    /// The largest step from one frame of a track to the next, against what it should be, in ms. Across gaps nobody sees it.
    pub fn largest_step(&self, track: usize) -> f64 {
        let seen = &self.seen[track];
        let close = |pair: &&[Seen]| pair[1].true_at - pair[0].true_at < 0.1;
        let steps = seen
            .windows(2)
            .filter(close)
            .map(|pair| (pair[1].error() - pair[0].error()).abs());
        steps.fold(0.0, f64::max) * 1e3
    }

    /// The longest time without sound between two packets, in ms.
    pub fn largest_hole(&self) -> f64 {
        let holes = self
            .sound
            .windows(2)
            .map(|pair| (pair[1].0 - pair[0].1).abs());
        holes.fold(0.0, f64::max) * 1e3
    }
}
