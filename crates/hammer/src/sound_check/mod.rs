//! What listeners heard: the talkers other than themselves, and the delay of sound.

mod playback;

use std::collections::HashMap;
use std::time::Duration;

use portunus_dsp::AudioCodec;

pub(crate) use playback::Playback;

use crate::record::{Delays, Sound};
use crate::speech::{EncodeError, HEARD_RATE, chirp, pilot};
use crate::viewer::{Heard, PeerId};

/// The time for which a chirp is searched. The next one comes after a second.
const WITHIN: Duration = Duration::from_millis(900);

/// The shortest sound that can be judged.
const SHORTEST: usize = HEARD_RATE;

/// A participant of an audio room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Person {
    /// The number of the room.
    pub(crate) room: u32,
    /// The index among the talkers of the room.
    pub(crate) talks: Option<usize>,
}

/// The participants of rooms.
pub(crate) type Roster = HashMap<PeerId, Person>;

/// Returns the figures of the sound heard in a time.
pub(crate) fn findings(
    roster: &Roster,
    codec: AudioCodec,
    heard: &Heard,
) -> Result<Sound, EncodeError> {
    let mut kept: HashMap<PeerId, Vec<_>> = HashMap::new();
    for packet in &heard.kept {
        kept.entry(packet.peer).or_default().push(packet);
    }
    let mut sound = Sound {
        jumps: heard.jumps,
        omitted: heard.omitted,
        ..Sound::default()
    };
    let (mut due, mut present, mut took_us) = (0u32, 0u32, Vec::new());
    for (peer, packets) in kept {
        let Some(listener) = roster.get(&peer) else {
            continue;
        };
        let playback = Playback::of(codec, packets.into_iter())?;
        if playback.sound().len() < SHORTEST {
            continue;
        }
        sound.listeners += 1;
        for (talker, person) in roster {
            let is_there = person.room == listener.room;
            let Some(n) = person.talks.filter(|n| is_there && *n < pilot::PILOTS) else {
                continue;
            };
            let is_heard = pilot::is_heard(n, playback.sound(), HEARD_RATE);
            if *talker == peer {
                sound.own_heard += u32::from(is_heard);
            } else {
                due += 1;
                present += u32::from(is_heard);
            }
        }
        for said in &heard.said {
            let other = roster.get(&said.peer).filter(|_| said.peer != peer);
            if other.is_none_or(|other| other.room != listener.room) {
                continue;
            }
            let Some((from, piece)) = playback.from(said.at, WITHIN) else {
                continue;
            };
            sound.chirps += 1;
            let at = chirp::find(piece).and_then(|at| playback.time_of(from + at));
            if let Some(at) = at {
                sound.chirps_heard += 1;
                took_us.push(at.saturating_sub(said.at).as_secs_f64() * 1e6);
            }
        }
    }
    sound.heard_share = (due > 0).then(|| f64::from(present) / f64::from(due));
    sound.mouth_to_ear = Delays::of(&mut took_us);
    Ok(sound)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;
    use crate::speech::{Encoding, Script, Talker};
    use crate::viewer::{Kept, Said};

    const OPUS: Encoding = Encoding {
        codec: AudioCodec::Opus,
        bitrate: 32_000,
        dtx: false,
        expected_loss: 0,
        rate: 16_000,
    };

    /// Returns the sound from a server that sends the first participant's speech to all three, 70
    /// ms later.
    fn heard(script: &Script) -> Heard {
        let mut heard = Heard::default();
        let start = Duration::from_secs(1_000);
        for (n, packet) in (0u32..).zip(script.packets.iter().take(250)) {
            let at = start + Duration::from_millis(20) * n;
            if let Some(mark) = packet.mark {
                let at = at + Duration::from_secs_f64(mark);
                heard.said.push(Said { peer: 1, at });
            }
            for peer in 1..=3 {
                heard.kept.push(Kept {
                    peer,
                    number: n.into(),
                    timestamp: n * 960,
                    at: at + Duration::from_millis(70),
                    payload: packet.payload.clone(),
                });
            }
        }
        heard
    }

    #[test]
    fn talkers_are_known_and_their_delay_is_that_of_the_server() {
        let script = Script::of(Talker::Voice(0), OPUS).unwrap();
        let person = |room, talks| Person { room, talks };
        let roster = Roster::from([
            (1, person(0, Some(0))),
            (2, person(0, None)),
            (3, person(0, Some(1))),
            (4, person(1, Some(2))),
        ]);
        let sound = findings(&roster, AudioCodec::Opus, &heard(&script)).unwrap();
        assert_eq!(
            (sound.listeners, sound.own_heard),
            (3, 1),
            "the first hears itself"
        );
        // The first is heard by two, the third by none.
        assert_eq!(sound.heard_share, Some(0.5));
        assert!(
            sound.chirps >= 6 && sound.chirps_heard == sound.chirps,
            "{sound:?}"
        );
        let took = sound.mouth_to_ear.unwrap();
        assert!((69_000.0..71_000.0).contains(&took.p50_us), "{took:?}");
    }
}
