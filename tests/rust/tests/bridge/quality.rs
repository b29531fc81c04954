//! Participants' requests for the quality of the sound in both directions.

use portunus_sdp::{CodecName, Direction};
use serde_json::json;

use crate::world::{Member, ROOM, manage, talk, talk_for, with_room};

const A: f32 = 400.0;
const B: f32 = 700.0;
/// No tone.
const NONE: f32 = 0.0;

#[tokio::test]
async fn noise_is_heard_until_it_is_taken_out() {
    // All participants are mixed, including silent ones.
    let server = with_room(json!({ "loudest": 0 })).await;
    // G.711 does not pause in silence.
    let how = (CodecName::Pcmu, Direction::SendRecv);
    let mut ann = Member::with(&server, NONE, json!({ "codec": "pcmu" }), how).await;
    let mut bob = Member::join(&server, NONE, json!({ "id": 2 })).await;
    bob.noise = 0.1;
    for _ in 0..2 {
        talk(&mut [&mut ann, &mut bob], "noise", |it| {
            it[0].volume() > 0.015
        })
        .await;
        talk_for(&mut [&mut ann, &mut bob], 25).await;
        let loud = ann.volume();
        let configured = bob
            .ask(json!({ "request": "configure", "denoise": true }))
            .await;
        assert_eq!(configured["result"], "ok", "{configured}");
        talk(&mut [&mut ann, &mut bob], "less noise", |it| {
            it[0].volume() < loud / 2.0
        })
        .await;
        let disable = json!({ "request": "denoise_disable", "room": ROOM, "id": 2 });
        let disabled = manage(&server, disable).await;
        assert_eq!(disabled["audiobridge"], "success", "{disabled}");
    }
}

#[tokio::test]
async fn packets_are_as_large_as_the_bitrate_that_is_asked_for() {
    let server = with_room(json!({ "loudest": 0 })).await;
    let mut ann = Member::join(&server, NONE, json!({})).await;
    let mut bob = Member::join(&server, A, json!({})).await;
    let mut cleo = Member::join(&server, B, json!({})).await;
    ann.is_silent = true;
    for member in [&mut bob, &mut cleo] {
        member.noise = 0.1;
    }
    // The bytes of 20 ms: about 20 and 160.
    for (bitrate, expected) in [(8_000, 10..40), (64_000, 80..240), (8_000, 10..40)] {
        let configure = json!({ "request": "configure", "bitrate": bitrate });
        let configured = ann.ask(configure).await;
        assert_eq!(configured["result"], "ok", "{configured}");
        talk(
            &mut [&mut ann, &mut bob, &mut cleo],
            "packets of that bitrate",
            |it| {
                let last: Vec<_> = it[0].payloads.iter().rev().take(25).map(Vec::len).collect();
                expected.contains(&(last.iter().sum::<usize>() / 25)) && it[0].hears(A)
            },
        )
        .await;
    }
}

/// Returns whether a packet of 20 ms of mono Opus contains a part of the previous one (RFC 6716,
/// sections 3.1 and 4.2.4).
fn carries_the_one_before(payload: &[u8]) -> bool {
    let &[toc, first, ..] = payload else {
        return false;
    };
    let is_silk = toc >> 3 < 16;
    is_silk && first & 0x40 != 0
}

#[tokio::test]
async fn whoever_expects_loss_is_sent_words_twice() {
    let server = with_room(json!({})).await;
    let mut ann = Member::join(&server, NONE, json!({})).await;
    let mut bob = Member::join(&server, A, json!({})).await;
    ann.is_silent = true;
    for loss in [0, 20] {
        let configure = json!({ "request": "configure", "expected_loss": loss });
        let configured = ann.ask(configure).await;
        assert_eq!(configured["result"], "ok", "{configured}");
        ann.payloads.clear();
        // Words, since the encoder takes a continuous sound for noise, which it does not repeat.
        for word in 0.. {
            bob.is_silent = word % 2 == 0;
            talk_for(&mut [&mut ann, &mut bob], 15).await;
            let words = ann
                .payloads
                .iter()
                .filter(|it| carries_the_one_before(it))
                .count();
            if loss == 0 {
                assert_eq!(words, 0, "packets that carry the ones before them");
            }
            if (loss == 0 && word == 10) || words > 5 {
                break;
            }
            assert!(word < 50, "{words} packets carry the ones before them");
        }
    }
}
