//! The media of calls that end in the server: answers and offers to telephones.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

use std::sync::Arc;

use portunus_call::{CallError, CallSettings, ServerCall};
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

const PCMA: &str = "8\r\n";

#[tokio::test]
async fn a_telephone_is_answered_with_an_address_of_its_own_family() {
    let mut call = call(None);
    let answer = call.answer(&telephone("::1", PCMA)).unwrap();
    assert!(answer.contains("c=IN IP6 ::1\r\n"), "{answer}");
    assert!(
        !answer.contains("IP4") && !answer.contains("m=audio 0"),
        "{answer}"
    );
    // What is offered within the call, too.
    let offer = call.offer().unwrap();
    assert!(offer.contains("c=IN IP6 ::1\r\n"), "{offer}");
    // The old way to hold it says nothing of the telephone's family.
    let held = call.answer(&telephone("0.0.0.0", PCMA)).unwrap();
    assert!(held.contains("c=IN IP6 ::1\r\n"), "{held}");
    let moved = call.answer(&telephone("127.0.0.9", PCMA)).unwrap();
    assert!(moved.contains("c=IN IP4 127.0.0.1\r\n"), "{moved}");
}

#[tokio::test]
async fn a_telephone_of_a_family_that_takes_no_media_is_refused() {
    let mut call = call(Some("127.0.0.1"));
    let refused = call.answer(&telephone("::1", PCMA)).unwrap_err();
    assert!(matches!(refused, CallError::Family(_)), "{refused}");
    let answer = call.answer(&telephone("127.0.0.9", PCMA)).unwrap();
    // The call stays as it was.
    assert!(call.answer(&telephone("::1", PCMA)).is_err());
    assert!(answer.contains("c=IN IP4 127.0.0.1\r\n"), "{answer}");
    assert!(call.offer().unwrap().contains("c=IN IP4 127.0.0.1\r\n"));
}

#[tokio::test]
async fn a_telephone_is_offered_an_address_of_the_family_by_which_it_is_called() {
    let mut by_ipv6 = call(None);
    by_ipv6.expect_at("::1".parse().unwrap());
    assert!(by_ipv6.offer().unwrap().contains("c=IN IP6 ::1\r\n"));
    // There is none: it may take what there is.
    let mut only_ipv4 = call(Some("127.0.0.1"));
    only_ipv4.expect_at("::1".parse().unwrap());
    assert!(
        only_ipv4
            .offer()
            .unwrap()
            .contains("c=IN IP4 127.0.0.1\r\n")
    );
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
