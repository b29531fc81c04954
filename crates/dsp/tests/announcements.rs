//! Announcements.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a test fails by a panic"
)]

mod rig;

use portunus_dsp::{
    AnnouncementId, AnnouncementSource, AnnouncementState, Channels, Format, Mixture, NextPacket,
    RoomError, RoomOptions, SampleRate,
};
use rig::{ENCODING, Rig, amount, encoder, participant, tone};

const ID: AnnouncementId = AnnouncementId(7);

const MONO_48: Format = Format {
    rate: SampleRate::Hz48000,
    channels: Channels::Mono,
};

/// Packets from memory, and the result after them.
struct Memory {
    packets: std::vec::IntoIter<Vec<u8>>,
    then: NextPacket,
}

impl AnnouncementSource for Memory {
    fn next_packet(&mut self, packet: &mut Vec<u8>) -> NextPacket {
        match self.packets.next() {
            Some(next) => {
                packet.extend(next);
                NextPacket::Packet
            }
            None => self.then,
        }
    }
}

/// A tone in packets of so many frames of 20 ms.
fn announcement(packets: u64, frames: u64, then: NextPacket) -> Box<dyn AnnouncementSource> {
    let mut encoder = encoder(MONO_48);
    let packets: Vec<_> = (0..packets)
        .map(|packet| {
            let sound: Vec<f32> = (0..frames)
                .flat_map(|frame| tone(MONO_48, 900.0, 0.3, packet * frames + frame))
                .collect();
            let mut payload = vec![0; 4_000];
            let length = encoder
                .encode_float_to_slice(&sound, &mut payload)
                .expect("a packet");
            payload.truncate(length);
            payload
        })
        .collect();
    Box::new(Memory {
        packets: packets.into_iter(),
        then,
    })
}

#[test]
fn all_hear_an_announcement_and_it_ends() {
    for frames in [1, 2, 3] {
        let mut rig = Rig::mono(8);
        rig.join(1, participant());
        rig.join(2, participant());
        let source = announcement(60 / frames, frames, NextPacket::End);
        rig.room
            .announce(ID, None, source)
            .expect("an announcement");
        assert_eq!(
            rig.room
                .announce(ID, None, announcement(1, 1, NextPacket::End)),
            Err(RoomError::AnnouncementExists(ID))
        );
        for _ in 0..50 {
            rig.send_tone(1, 400.0, 0.3);
            rig.tick();
        }
        assert!(
            (rig.hears(1, 900.0) - 0.3).abs() < 0.05,
            "who talks hears it"
        );
        assert!((rig.hears(2, 900.0) - 0.3).abs() < 0.05);
        assert!((rig.hears(2, 400.0) - 0.3).abs() < 0.05);
        for _ in 0..40 {
            rig.tick();
        }
        assert!(rig.hears(2, 900.0) < 0.01);
        let told = [
            (1, ID, AnnouncementState::Started),
            (61, ID, AnnouncementState::Ended),
        ];
        assert_eq!(rig.log.announcements, told);
    }
}

#[test]
fn an_empty_room_is_announced_to_as_well() {
    let mut rig = Rig::new(RoomOptions {
        format: rig::STEREO_48,
        loudest: 8,
        groups: 2,
    });
    let source = announcement(50, 1, NextPacket::End);
    rig.room
        .announce(ID, Some(1), source)
        .expect("an announcement");
    assert!(!rig.room.is_idle());
    let mixes = [Mixture::Everyone, Mixture::Group(0), Mixture::Group(1)]
        .map(|mixture| rig.room.subscribe(mixture, ENCODING, false).expect("a mix"));
    for _ in 0..40 {
        rig.tick();
    }
    for (mix, heard) in mixes.into_iter().zip([true, false, true]) {
        let mut decoder = rig::decoder(rig::STEREO_48);
        let mut sound = vec![0.0; 1_920];
        for packet in rig.log.packets.iter().filter(|packet| packet.mix == mix) {
            decoder
                .decode_float_to_slice(&packet.payload, &mut sound, false)
                .expect("Opus");
        }
        for channel in 0..2 {
            let ear: Vec<f32> = sound.iter().skip(channel).step_by(2).copied().collect();
            let got = amount(&ear, SampleRate::Hz48000, 900.0);
            assert_eq!((got - 0.3).abs() < 0.05, heard, "{got}");
        }
    }
}

#[test]
fn a_stop_fades_out() {
    let mut rig = Rig::mono(8);
    rig.room.listen(None, true).expect("all are heard");
    rig.join(1, participant());
    let source = announcement(100, 1, NextPacket::End);
    rig.room
        .announce(ID, None, source)
        .expect("an announcement");
    for _ in 0..30 {
        rig.tick();
    }
    rig.room.stop_announcement(ID);
    rig.room.stop_announcement(AnnouncementId(99));
    for _ in 0..10 {
        rig.tick();
    }
    assert_eq!(
        rig.log.announcements.last(),
        Some(&(32, ID, AnnouncementState::Ended))
    );
    let mix: Vec<f32> = rig
        .log
        .sounds
        .iter()
        .flat_map(|(_, sound)| sound.clone())
        .collect();
    let jump = |sound: &[f32]| {
        sound
            .windows(2)
            .map(|pair| (pair[1] - pair[0]).abs())
            .fold(0.0, f32::max)
    };
    assert!(jump(&mix[20 * 320..]) < 1.1 * jump(&mix[20 * 320..30 * 320]));
    assert!(mix[33 * 320..].iter().all(|sample| *sample == 0.0));
}

#[test]
fn what_cannot_be_heard_fails_and_the_room_goes_on() {
    for source in [
        announcement(0, 1, NextPacket::End),
        announcement(0, 1, NextPacket::Broken),
        Box::new(Memory {
            packets: vec![Vec::new()].into_iter(),
            then: NextPacket::NotYet,
        }),
        Box::new(Memory {
            // Frames of 40 ms, none of which is complete.
            packets: vec![vec![0xff, 0xff, 0xff]].into_iter(),
            then: NextPacket::NotYet,
        }),
    ] {
        let mut rig = Rig::mono(8);
        rig.join(1, participant());
        rig.room
            .announce(ID, None, source)
            .expect("an announcement");
        rig.tick();
        rig.tick();
        assert_eq!(rig.log.announcements, [(1, ID, AnnouncementState::Failed)]);
    }
}

#[test]
fn a_source_that_is_late_is_waited_for() {
    let mut rig = Rig::mono(8);
    rig.join(1, participant());
    rig.room
        .announce(ID, None, announcement(20, 1, NextPacket::NotYet))
        .expect("an announcement");
    for _ in 0..40 {
        rig.tick();
    }
    assert_eq!(rig.log.announcements, [(1, ID, AnnouncementState::Started)]);
    assert!(rig.last(1, 5).iter().all(|sample| sample.abs() < 0.01));
    rig.room.stop_announcement(ID);
    rig.tick();
    assert_eq!(
        rig.log.announcements.last(),
        Some(&(41, ID, AnnouncementState::Ended))
    );
}
