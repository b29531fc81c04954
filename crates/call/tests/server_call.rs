//! The media of calls that end in the server: what telephones are answered and offered.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic
)]

use std::sync::Arc;

use portunus_call::{CallSettings, ServerCall};
use portunus_core::configuration::PortRange;
use portunus_core::media::MediaPlane;
use portunus_core::testing::everywhere;

/// Calls of a server at 127.0.0.1 that takes RTP at this interface.
fn settings(interface: Option<&str>) -> Arc<CallSettings> {
    let (media, ..) = MediaPlane::detached();
    Arc::new(CallSettings {
        media,
        interface: interface.map(str::to_owned),
        address: "127.0.0.1".parse().unwrap(),
        ports: PortRange::default(),
        dscp_audio: 0,
        dscp_video: 0,
        latching: true,
        networks: everywhere(),
        one_of_each: true,
        transcodes: false,
        audio: None,
        silence: None,
        hears_client: false,
    })
}

fn call(interface: Option<&str>) -> ServerCall {
    ServerCall::new(settings(interface)).unwrap().0
}

/// An offer or answer of a telephone at this address.
fn telephone(address: &str, audio: &str) -> String {
    let family = if address.contains(':') { "IP6" } else { "IP4" };
    format!(
        "v=0\r\no=- 1 1 IN {family} {address}\r\ns=-\r\nc=IN {family} {address}\r\nt=0 0\r\nm=audio 6000 RTP/AVP {audio}"
    )
}

/// By these a pin is entered.
#[tokio::test]
async fn keys_of_telephones_are_taken_with_the_clock_of_their_codec() {
    let maps = |maps: &[&str]| -> String {
        let lines = maps.iter().map(|map| format!("a=rtpmap:{map}\r\n"));
        lines.collect()
    };
    for (audio, offered, expected) in [
        (
            "111 101",
            &["111 opus/48000/2", "101 telephone-event/48000"][..],
            "101 telephone-event/48000",
        ),
        (
            "8 101",
            &["101 telephone-event/16000", "101 telephone-event/8000"],
            "101 telephone-event/8000",
        ),
        (
            "8 101 102",
            &["101 telephone-event/16000", "102 telephone-event/8000"],
            "102 telephone-event/8000",
        ),
        (
            "111 101",
            &["111 opus/48000", "101 telephone-event/8000"],
            "101 telephone-event/8000",
        ),
    ] {
        let offer = telephone("127.0.0.9", &format!("{audio}\r\n{}", maps(offered)));
        let answer = call(None).answer(&offer).unwrap();
        assert!(
            answer.contains(&format!("a=rtpmap:{expected}\r\n")),
            "{answer}"
        );
        assert_eq!(answer.matches("telephone-event").count(), 1, "{answer}");
    }
}

#[tokio::test]
async fn telephones_that_are_called_may_send_keys_with_either_clock() {
    let settings = settings(None);
    let (mut call, _) = ServerCall::new(Arc::clone(&settings)).unwrap();
    let offer = call.offer().unwrap();
    for clock in ["8000", "48000"] {
        assert!(
            offer.contains(&format!("telephone-event/{clock}\r\n")),
            "{offer}"
        );
    }
    let pt = |map: &str| {
        let line = offer.lines().find(|line| line.ends_with(map)).unwrap();
        line["a=rtpmap:".len()..]
            .split(' ')
            .next()
            .unwrap()
            .to_owned()
    };
    let (opus, keys) = (pt(" opus/48000/2"), pt(" telephone-event/48000"));
    let answer = format!(
        "{opus} {keys}\r\na=rtpmap:{opus} opus/48000\r\na=rtpmap:{keys} telephone-event/48000\r\nm=video 0 RTP/AVP 31\r\n"
    );
    call.accept_answer(&telephone("127.0.0.9", &answer))
        .unwrap();
    let legs = settings.media.requested().legs;
    let incoming = &legs[0].remote.as_ref().unwrap().incoming;
    let clock = |payload: &portunus_core::media::leg::LegPayload| {
        (payload.pt.0.to_string() == keys).then_some(payload.clock_rate)
    };
    assert_eq!(incoming.iter().find_map(clock), Some(48_000));
}
