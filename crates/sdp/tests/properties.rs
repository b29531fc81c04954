//! Properties of arbitrary and of damaged descriptions.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

mod support;

use portunus_rtp::{ExtensionKind, Mid, Pt};
use portunus_sdp::{
    Attribute, Bandwidth, CodecSpec, Description, Direction, Extmap, Kind, Media, Msid, Origin,
    RemoteDescription, SdpType,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use support::{answer_with, echo, offer, session};

const OFFERS: [&str; 9] = [
    "aiortc",
    "chromium",
    "chromium_data_only",
    "chromium_sim_group",
    "chromium_simulcast",
    "firefox",
    "firefox_old_simulcast",
    "firefox_simulcast",
    "gstreamer",
];

fn direction() -> impl Strategy<Value = Direction> {
    (any::<bool>(), any::<bool>()).prop_map(|(send, recv)| Direction::new(send, recv))
}

fn codec(pt: u8) -> impl Strategy<Value = CodecSpec> {
    let name = prop::sample::select(vec!["opus", "VP8", "h264", "telephone-event", "X-new"]);
    let clock_rate = prop::sample::select(vec![8_000, 48_000, 90_000]);
    let fmtp = option::of("[a-z]{1,8}=[0-9a-f]{1,6}(;[a-z-]{1,8}=[0-9]{1,3}){0,3}");
    let feedback = vec(
        prop::sample::select(vec!["ccm fir", "nack pli", "transport-cc"]),
        0..3,
    );
    (name, clock_rate, 0..8_u8, fmtp, feedback).prop_map(
        move |(name, clock_rate, channels, fmtp, feedback)| CodecSpec {
            pt: Pt(pt),
            name: name.to_owned(),
            clock_rate,
            channels,
            fmtp,
            feedback: feedback.into_iter().map(str::to_owned).collect(),
        },
    )
}

fn extension() -> impl Strategy<Value = Extmap> {
    let known =
        prop::sample::select(ExtensionKind::ALL.to_vec()).prop_map(|kind| kind.uri().to_owned());
    (
        1..=255_u8,
        option::of(direction()),
        prop_oneof![known, "urn:x:[a-z]{1,9}( [a-z]{1,3})?"],
    )
        .prop_map(|(id, direction, uri)| Extmap { id, direction, uri })
}

fn attributes() -> impl Strategy<Value = Vec<Attribute>> {
    let name = prop::sample::select(vec!["ptime", "maxptime", "x-flag", "content"]);
    vec((name, option::of("[!-~][ -~]{0,20}")), 0..3).prop_map(|attributes| {
        let attribute = |(name, value): (&str, _)| Attribute {
            name: name.to_owned(),
            value,
        };
        attributes.into_iter().map(attribute).collect()
    })
}

fn media(index: usize) -> impl Strategy<Value = Media> {
    let codecs =
        (1..6_u8).prop_flat_map(|count| (0..count).map(|i| codec(100 + i)).collect::<Vec<_>>());
    let msid = option::of(("[!-~]{1,64}", "[!-~]{1,64}"));
    let bandwidth = option::of((prop::sample::select(vec!["AS", "TIAS"]), any::<u64>()));
    let kind = prop::sample::select(vec![Kind::Audio, Kind::Video, Kind::Data]);
    (
        kind,
        direction(),
        codecs,
        vec(extension(), 0..5),
        msid,
        bandwidth,
        attributes(),
    )
        .prop_map(
            move |(kind, direction, codecs, extensions, msid, bandwidth, attributes)| {
                let data = kind == Kind::Data;
                let active = direction != Direction::Inactive;
                let own = |text: String| Msid {
                    stream: "janus".to_owned(),
                    track: text,
                };
                let msid = msid.map(|(stream, track)| Msid { stream, track });
                let format: Vec<String> =
                    codecs.iter().map(|codec| codec.pt.0.to_string()).collect();
                Media {
                    kind,
                    mid: Mid::new(&format!("m{index}")).unwrap(),
                    rejected: false,
                    direction,
                    proto: if data {
                        "UDP/DTLS/SCTP"
                    } else {
                        "UDP/TLS/RTP/SAVPF"
                    }
                    .to_owned(),
                    format: if data {
                        "webrtc-datachannel".to_owned()
                    } else {
                        format.join(" ")
                    },
                    codecs: if data { Vec::new() } else { codecs },
                    extensions: if data { Vec::new() } else { extensions },
                    msid: msid
                        .or_else(|| Some(own(format!("janusm{index}"))))
                        .filter(|_| !data && active),
                    bandwidth: bandwidth.map(|(modifier, value)| Bandwidth {
                        modifier: modifier.to_owned(),
                        value,
                    }),
                    attributes,
                }
            },
        )
}

fn description() -> impl Strategy<Value = Description> {
    let media = (1..5_usize).prop_flat_map(|count| (0..count).map(media).collect::<Vec<_>>());
    (
        "[1-9][0-9]{0,18}",
        "[!-~]([ -~]{0,20}[!-~])?",
        attributes(),
        media,
    )
        .prop_map(|(session_id, name, attributes, media)| Description {
            origin: Origin {
                username: String::new(),
                session_id,
                version: 1,
                address: "203.0.113.5".to_owned(),
            },
            name,
            attributes,
            media,
        })
}

/// Generates an offer with changed bytes, dropped lines or repeated lines.
fn damaged() -> impl Strategy<Value = String> {
    let bytes = vec((any::<prop::sample::Index>(), any::<char>()), 0..4);
    let lines = vec((any::<prop::sample::Index>(), any::<bool>()), 0..6);
    (prop::sample::select(OFFERS.to_vec()), lines, bytes).prop_map(|(name, edits, bytes)| {
        let text = offer(name);
        let mut lines: Vec<&str> = text.split_inclusive("\r\n").collect();
        for (index, double) in edits {
            let index = index.index(lines.len());
            match double {
                true => lines.push(lines[index]),
                false => drop(lines.remove(index)),
            }
        }
        let mut text: Vec<char> = lines.concat().chars().collect();
        for (index, with) in bytes {
            let index = index.index(text.len());
            text[index] = with;
        }
        text.into_iter().collect()
    })
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(description in description()) {
        let mut session = session();
        let text = session.local_offer(description.clone()).unwrap();
        let read = RemoteDescription::parse(&text, SdpType::Offer, &[]).unwrap();
        // The core handles the repairs, which are part of the m-line's formats.
        let mut media = read.description.media.clone();
        for (read, written) in media.iter_mut().zip(&description.media) {
            read.format.clone_from(&written.format);
        }
        prop_assert_eq!(&Description { media, ..read.description }, &description);
    }

    #[test]
    fn arbitrary_text_does_no_harm(text in "(v=0\r\n)?(.|[\r\n=:]){0,300}") {
        let _ = RemoteDescription::parse(&text, SdpType::Offer, &[]);
    }

    #[test]
    fn damaged_offers_are_refused_or_answered(text in damaged()) {
        let mut session = session();
        if let Ok(remote) = session.parse(&text, SdpType::Offer) {
            let answer = Description::answer(&remote.description, &echo(&remote.description));
            let lines = remote.description.media.len();
            session.set_remote_offer(remote).unwrap();
            let (text, negotiated) = session.local_answer(answer).unwrap();
            prop_assert_eq!(negotiated.media.len(), lines);
            // The output is well-formed whatever the input.
            RemoteDescription::parse(&text, SdpType::Answer, &session.slots(SdpType::Answer)).unwrap();
        }
    }

    #[test]
    fn damaged_descriptions_leave_a_session_usable(texts in vec((damaged(), any::<bool>()), 1..5)) {
        let mut session = session();
        for (text, answers) in texts {
            let kind = if answers { SdpType::Answer } else { SdpType::Offer };
            let Ok(remote) = session.parse(&text, kind) else { continue };
            if answers {
                let description = remote.description.clone();
                let _ = session.local_offer(description);
                let _ = session.accept_answer(remote);
            } else if session.set_remote_offer(remote.clone()).is_ok() {
                let _ = session.local_answer(remote.description);
            }
        }
        let slots = session.slots(SdpType::Offer).len();
        prop_assert!(slots <= 24, "{slots}");
    }
}

#[test]
fn an_answer_to_itself_is_stable() {
    // The same offer twice gives the same answer: no state accumulates.
    for name in OFFERS {
        let mut session = session();
        let first = answer_with(&mut session, &offer(name), |_| {});
        let second = answer_with(&mut session, &offer(name), |_| {});
        assert_eq!(first, second, "{name}");
    }
}
