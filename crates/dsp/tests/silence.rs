//! Rooms without talkers cost next to nothing, and listeners stay synchronous.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a test fails by a panic"
)]

mod rig;

use portunus_dsp::{
    AudioCodec, Encoding, MixId, Mixture, ParticipantId, ParticipantOptions, TalkOptions,
};
use rig::{ENCODING, Heard, Rig, participant};

fn packets(rig: &Rig, mix: MixId) -> Vec<&Heard> {
    rig.log
        .packets
        .iter()
        .filter(|packet| packet.mix == mix)
        .collect()
}

#[test]
fn a_silent_mix_is_paused_and_reminds_now_and_then() {
    let mut rig = Rig::mono(8);
    rig.join(1, participant());
    for _ in 0..30 {
        rig.tick();
    }
    let before = rig.room.stats();
    rig.log.packets.clear();
    for _ in 0..1_000 {
        rig.tick();
    }
    let stats = rig.room.stats();
    assert_eq!(stats.encoded, before.encoded, "no encoder runs");
    // Every 400 ms a packet of silence, and one that continues it.
    assert_eq!(rig.log.packets.len(), 100);
    assert!(rig.last(1, 500).iter().all(|sample| sample.abs() < 1e-3));
    assert!(rig.log.packets.iter().all(|packet| !packet.marker));
    assert!(
        rig.log
            .packets
            .iter()
            .any(|packet| packet.payload.len() == 1)
    );
}

#[test]
fn sound_after_a_pause_is_marked_and_in_time() {
    let mut rig = Rig::mono(8);
    rig.join(1, participant());
    rig.join(2, participant());
    for _ in 0..103 {
        rig.tick();
    }
    rig.log.packets.clear();
    for _ in 0..50 {
        rig.send_tone(1, 400.0, 0.3);
        rig.tick();
    }
    let mix = rig.mix_of(2).expect("a mix");
    let sent = packets(&rig, mix);
    assert_eq!(sent.iter().filter(|packet| packet.marker).count(), 1);
    assert!(rig.hears(2, 400.0) > 0.25);
    for packet in &rig.log.packets {
        assert_eq!(
            u64::from(packet.timestamp),
            packet.tick * 960,
            "all mixes share a clock"
        );
    }
}

#[test]
fn telephones_and_forwarders_get_a_packet_each_20_ms() {
    let mut rig = Rig::mono(8);
    rig.join(
        1,
        ParticipantOptions {
            encoding: Encoding {
                codec: AudioCodec::Pcmu,
                ..ENCODING
            },
            ..participant()
        },
    );
    let forwarded = rig
        .room
        .subscribe(Mixture::Everyone, ENCODING, false)
        .expect("all");
    for _ in 0..200 {
        rig.tick();
    }
    let telephone = rig.mix_of(1).expect("a mix");
    assert_eq!(packets(&rig, telephone).len(), 200);
    let sent = packets(&rig, forwarded);
    assert_eq!(sent.len(), 200);
    assert!(sent.iter().all(|packet| packet.payload.len() > 1));
    assert!(rig.room.stats().encoded < 50);
    rig.room.unsubscribe(forwarded, false);
    for _ in 0..600 {
        rig.tick();
    }
    assert!(!rig.log.open.contains_key(&forwarded));
}

#[test]
fn an_empty_room_is_sent_to_those_who_always_want_it() {
    let mut rig = Rig::mono(8);
    let sometimes = rig
        .room
        .subscribe(Mixture::Everyone, ENCODING, false)
        .expect("all");
    assert!(rig.room.is_idle());
    for _ in 0..50 {
        rig.tick();
    }
    assert_eq!(packets(&rig, sometimes).len(), 0);
    let always = rig
        .room
        .subscribe(Mixture::Everyone, ENCODING, true)
        .expect("all");
    assert_eq!(sometimes, always, "they share an encoder");
    assert!(!rig.room.is_idle());
    for _ in 0..50 {
        rig.tick();
    }
    assert_eq!(packets(&rig, always).len(), 50);
    rig.room.unsubscribe(always, true);
    rig.log.packets.clear();
    rig.tick();
    assert_eq!(rig.log.packets.len(), 0);
    rig.join(1, participant());
    rig.tick();
    assert_eq!(packets(&rig, sometimes).len(), 1);
}

#[test]
fn who_talks_alone_is_no_work_for_an_encoder() {
    let mut rig = Rig::mono(8);
    rig.join(1, participant());
    for _ in 0..50 {
        rig.send_tone(1, 400.0, 0.3);
        rig.tick();
    }
    let before = rig.room.stats();
    for _ in 0..50 {
        rig.send_tone(1, 400.0, 0.3);
        rig.tick();
    }
    let stats = rig.room.stats();
    assert_eq!(stats.encoded, before.encoded);
    assert!(rig.hears(1, 400.0) < 1e-3);
}

#[test]
fn packets_of_level_127_are_not_mixed() {
    let mut rig = Rig::mono(0);
    rig.join(1, participant());
    rig.join(2, participant());
    for _ in 0..50 {
        rig.send_tone(1, 400.0, 0.0);
        rig.tick();
    }
    assert_eq!(rig.room.stats().decoded, 0);
    assert_eq!(rig.mix_of(1), rig.mix_of(2));
}

#[test]
fn talking_is_told_as_the_window_says_of_those_who_may_be_heard() {
    let mut rig = Rig::mono(8);
    let talk = Some(TalkOptions {
        packets: 10,
        level: 25,
    });
    rig.join(
        1,
        ParticipantOptions {
            talk,
            ..participant()
        },
    );
    rig.join(
        2,
        ParticipantOptions {
            talk,
            muted: true,
            ..participant()
        },
    );
    rig.join(
        3,
        ParticipantOptions {
            talk,
            levels: false,
            ..participant()
        },
    );
    for frame in 0..40 {
        for id in 1..=3 {
            rig.send_tone(id, 400.0, if frame < 20 { 0.5 } else { 0.001 });
        }
        rig.tick();
    }
    let mut told = rig.log.talking.clone();
    told.sort_by_key(|(tick, id, _)| (*id, *tick));
    let one = ParticipantId(1);
    assert_eq!(told, [(10, one, true), (30, one, false)]);
}

/// As with a page that mutes by a request: the microphone stays on.
#[test]
fn who_is_muted_while_it_talks_is_told_to_have_stopped() {
    type Change = fn(&mut Rig, ParticipantOptions);
    let changes: [(&str, Change); 3] = [
        ("muted", |rig, options| {
            let options = ParticipantOptions {
                muted: true,
                ..options
            };
            rig.room.set(ParticipantId(1), options).expect("there");
        }),
        ("suspended", |rig, options| {
            let options = ParticipantOptions {
                suspended: true,
                ..options
            };
            rig.room.set(ParticipantId(1), options).expect("there");
        }),
        ("in a muted room", |rig, _| rig.room.set_muted(true)),
    ];
    for (what, change) in changes {
        let mut rig = Rig::mono(8);
        let talk = Some(TalkOptions {
            packets: 10,
            level: 25,
        });
        let options = ParticipantOptions {
            talk,
            ..participant()
        };
        rig.join(1, options.clone());
        for frame in 0..60 {
            if frame == 20 {
                change(&mut rig, options.clone());
            }
            rig.send_tone(1, 400.0, 0.5);
            rig.tick();
        }
        let told: Vec<_> = rig.log.talking.iter().map(|it| (it.0, it.2)).collect();
        assert_eq!(told, [(10, true), (30, false)], "{what}");
        assert!(
            !rig.room
                .participant(ParticipantId(1))
                .expect("there")
                .talking
        );
    }
}
