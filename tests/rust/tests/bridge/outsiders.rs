//! Sound to and from outsiders, who are not in the room by WebRTC: forwarders, plain RTP, and
//! listeners.

use std::time::Duration;

use opusic_c::{Channels, Decoder, SampleRate};
use portunus_dsp::g711::{self, Law};
use portunus_rtp::{Pt, Ssrc};
use portunus_sdp::{CodecName, Direction};
use serde_json::json;

use crate::phone::{Phone, received, socket};
use crate::world::{Member, ROOM, loudness, manage, merge, talk, talk_for, with_room};

const A: f32 = 400.0;
const B: f32 = 700.0;

#[tokio::test]
async fn the_mix_is_forwarded_as_rtp() {
    let server = with_room(json!({ "groups": ["a", "b"] })).await;
    let (all, all_port) = socket();
    let (group, group_port) = socket();
    let forward = |port: u16, more: serde_json::Value| {
        let mut request = json!({
            "request": "rtp_forward", "room": ROOM, "host": "127.0.0.1", "port": port,
        });
        merge(&mut request, more);
        request
    };
    manage(
        &server,
        forward(all_port, json!({ "ssrc": 99, "ptype": 101 })),
    )
    .await;
    manage(
        &server,
        forward(group_port, json!({ "codec": "pcmu", "group": "b" })),
    )
    .await;
    let mut ann = Member::join(&server, A, json!({ "group": "a" })).await;
    let mut bob = Member::join(&server, B, json!({ "group": "b" })).await;
    talk(&mut [&mut ann, &mut bob], "a talk", |it| it[0].hears(B)).await;
    talk_for(&mut [&mut ann, &mut bob], 30).await;

    let packets = received(&all);
    assert!(packets.len() > 20, "{} packets", packets.len());
    let mut decoder = Decoder::new(Channels::Mono, SampleRate::Hz48000).unwrap();
    let mut sound = Vec::new();
    let mut late = 0;
    for pair in packets.windows(2) {
        let (one, next) = (&pair[0].0, &pair[1].0);
        assert_eq!(next.sequence, one.sequence.wrapping_add(1));
        // A frame for which this machine had no time is omitted, with its time.
        let frames = next.timestamp.wrapping_sub(one.timestamp) / 960;
        assert_eq!(next.timestamp, one.timestamp.wrapping_add(frames * 960));
        assert!((1..100).contains(&frames), "{frames} frames");
        late += usize::from(frames > 1);
    }
    assert!(late * 4 < packets.len(), "{late} of {}", packets.len());
    for (header, payload) in &packets {
        assert_eq!(
            (header.ssrc, header.pt, header.marker),
            (Ssrc(99), Pt(101), false)
        );
        let mut frame = [0.0; 5_760];
        let count = decoder
            .decode_float_to_slice(payload, &mut frame, false)
            .unwrap();
        sound.extend(&frame[..count]);
    }
    assert!(loudness(&sound, 48_000, A) > 0.03 && loudness(&sound, 48_000, B) > 0.03);

    let mut sound = Vec::new();
    for (header, payload) in received(&group) {
        assert_eq!((header.pt, payload.len()), (Pt(0), 160));
        g711::decode(Law::Mu, &payload, &mut sound);
    }
    assert!(loudness(&sound, 8_000, B) > 0.03, "its own group");
    assert!(loudness(&sound, 8_000, A) < 0.003, "the other group");
}

#[tokio::test]
async fn a_telephone_talks_by_plain_rtp() {
    let server = with_room(json!({ "allow_rtp_participants": true })).await;
    let mut ann = Member::join(&server, A, json!({ "id": 1 })).await;
    let mut phone = Phone::join(&server, B, 2).await;
    assert_eq!(
        ann.told("audiobridge", "joined").await["participants"][0]["setup"],
        false
    );
    assert_eq!(
        ann.told("audiobridge", "event").await["participants"][0]["setup"],
        true
    );

    let mut both = false;
    for _ in 0..500 {
        let packet = phone.packet();
        phone.send(&packet);
        talk_for(&mut [&mut ann], 1).await;
        phone.receive();
        both = ann.hears(B) && phone.loudness(A) > 0.03;
        if both {
            break;
        }
    }
    assert!(both, "heard: {} and {}", ann.loudness(B), phone.loudness(A));
    assert!(phone.loudness(B) < 0.003, "not itself");
}

#[tokio::test]
async fn a_listener_hears_the_mix_and_nobody_hears_it() {
    let server = with_room(json!({})).await;
    let mut ann = Member::join(&server, A, json!({})).await;
    let mut bob = Member::join(&server, B, json!({})).await;
    let listen = json!({ "request": "listen", "room": ROOM });
    let to_hear = (CodecName::Opus, Direction::RecvOnly);
    let mut eve = Member::asking(&server, 1_300.0, listen, to_hear).await;
    eve.is_silent = true;
    talk(&mut [&mut ann, &mut bob, &mut eve], "a listener", |it| {
        it[2].hears(A) && it[2].hears(B)
    })
    .await;
    let list = json!({ "request": "listparticipants", "room": ROOM });
    let list = manage(&server, list).await;
    assert_eq!(list["participants"].as_array().unwrap().len(), 2);
    eve.peer.run_for(Duration::from_millis(1)).await;
}
