//! Detection of talking by the levels of packets (RFC 6464).

use super::{MS, Nanos};

/// Levels louder than this in -dBov count as talking.
const LOUD: u8 = 50;
/// Pauses up to this length are part of it.
const PAUSE: Nanos = 500 * MS;
/// The shortest duration.
const SHORTEST: Nanos = 300 * MS;

/// Detects talking in a track.
#[derive(Debug, Default)]
pub(super) struct Talk {
    current: Option<(Nanos, Nanos)>,
}

impl Talk {
    /// Takes a packet from `at` to `end`. Returns talking that has ended before it.
    pub(super) fn hear(
        &mut self,
        level: Option<u8>,
        at: Nanos,
        end: Nanos,
    ) -> Option<(Nanos, Nanos)> {
        let is_over = (self.current).is_some_and(|(_, until)| at.saturating_sub(until) > PAUSE);
        let ended = if is_over { self.end() } else { None };
        if level.is_some_and(|level| level < LOUD) {
            let (_, until) = self.current.get_or_insert((at, end));
            *until = end.max(*until);
        }
        ended
    }

    /// Ends the track. Returns its last talking, if any.
    pub(super) fn end(&mut self) -> Option<(Nanos, Nanos)> {
        (self.current.take()).filter(|(from, until)| until.saturating_sub(*from) >= SHORTEST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_pauses_belong_to_it_and_short_noise_does_not_count() {
        let mut talk = Talk::default();
        let mut heard = Vec::new();
        for n in 0..500 {
            let level = match n {
                10..30 | 40..60 | 200..205 => 20,
                _ => 70,
            };
            let at = n * 20 * MS;
            heard.extend(talk.hear(Some(level), at, at + 20 * MS));
        }
        assert_eq!(talk.end(), None);
        assert_eq!(heard, [(200 * MS, 1_200 * MS)]);
    }
}
