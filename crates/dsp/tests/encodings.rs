//! Participants that hear the same share an encoder.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a test fails by a panic"
)]

mod rig;

use std::collections::HashSet;

use portunus_dsp::{AudioCodec, Encoding, ParticipantId, ParticipantOptions};
use rig::{ENCODING, MONO_16, Rig, noise, participant};

fn listener(encoding: Encoding) -> ParticipantOptions {
    ParticipantOptions {
        encoding,
        ..participant()
    }
}

#[test]
fn listeners_with_settings_of_their_own_share_a_few_encoders() {
    let mut rig = Rig::mono(8);
    rig.join(0, participant());
    for id in 1..300_u64 {
        let encoding = Encoding {
            bitrate: Some(6_000 + 700 * id as u32),
            complexity: 1 + (id % 10) as u8,
            fec: true,
            expected_loss: (id % 21) as u8,
            ..ENCODING
        };
        rig.join(id, listener(encoding));
    }
    let telephone = Encoding {
        codec: AudioCodec::Pcma,
        ..ENCODING
    };
    rig.join(300, listener(telephone));
    for frame in 0..20 {
        rig.send(0, &noise(MONO_16, 30.0, frame));
        rig.tick();
    }
    let shared: HashSet<_> = (1..300).map(|id| rig.mix_of(id).expect("a mix")).collect();
    assert_eq!(shared.len(), 8);
    assert_eq!(
        rig.log.open[&rig.mix_of(300).expect("a mix")].codec,
        AudioCodec::Pcma
    );
    // An existing encoding is used as it is.
    let there = rig.log.open[&rig.mix_of(1).expect("a mix")];
    rig.join(301, listener(there));
    rig.tick();
    assert_eq!(rig.mix_of(301), rig.mix_of(1));
    // When nobody has used them for a while, others may be made.
    (1..300).for_each(|id| rig.leave(id));
    (0..510).for_each(|_| rig.tick());
    rig.join(
        302,
        listener(Encoding {
            bitrate: Some(510_000),
            ..ENCODING
        }),
    );
    rig.tick();
    let own = rig.log.open[&rig.mix_of(302).expect("a mix")];
    assert_eq!(own.bitrate, Some(510_000));
}

/// A participant that starts to talk at the same time as many others gets its own mix once an
/// encoder is prepared.
#[test]
fn of_many_who_begin_to_talk_at_once_none_has_an_encoder_that_is_not_ready() {
    let mut rig = Rig::mono(0);
    for id in 0..40 {
        rig.join(id, participant());
    }
    rig.tick();
    let shared = rig.mix_of(0);
    let mut moved = Vec::new();
    for frame in 0..10 {
        for id in 0..40 {
            rig.send(id, &noise(MONO_16, 30.0, frame * 40 + id));
        }
        let warmed = rig.room.stats().warmed;
        rig.tick();
        let away = (0..40).filter(|id| rig.mix_of(*id) != shared).count();
        let before = moved.last().copied().unwrap_or(0);
        assert_eq!(rig.room.stats().warmed - warmed, 5 * (away - before) as u64);
        moved.push(away);
    }
    assert!(moved.contains(&12), "{moved:?}");
    assert_eq!(moved.last(), Some(&40), "{moved:?}");
    assert!(rig.room.participant(ParticipantId(0)).expect("there").heard);
}
