//! Descriptions of far ends without ICE and DTLS: what telephones and SIP servers say, and what they are told.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic
)]

mod support;

use std::net::{IpAddr, Ipv4Addr};

use portunus_rtp::Pt;
use portunus_sdp::plain::{
    LocalEnd, LocalPorts, PlainError, PlainSession, Ports, SrtpPolicy, SrtpUse, Suite,
};
use portunus_sdp::{Codec, Description, Direction, Kind};
use support::{offer, parse, path, session};

fn far(name: &str) -> String {
    let text = std::fs::read_to_string(path("far_ends", name)).expect(name);
    text.replace('\n', "\r\n")
}

/// What Chromium offers, without its data channel.
fn chromium() -> Description {
    let mut description = parse(&offer("chromium")).unwrap().description;
    description.media.retain(|media| media.kind != Kind::Data);
    description
}

fn local() -> LocalEnd {
    let ports = |rtp| Some(LocalPorts { rtp, rtcp: rtp + 1 });
    LocalEnd {
        address: IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)),
        ports: Ports {
            audio: ports(10_000),
            video: ports(10_002),
        },
        rtcp_mux: true,
    }
}

fn fill(bytes: &mut [u8]) {
    bytes.fill(9);
}

fn offered(plain: &mut PlainSession, browser: &Description, srtp: Option<SrtpPolicy>) -> String {
    plain.offer(browser, &local(), srtp, &mut fill).unwrap()
}

/// How a browser answers: with what it knows of what it is offered.
fn answered(offer: &Description) -> Description {
    let mut answer = offer.clone();
    for media in &mut answer.media {
        media.direction = media.direction.reversed();
        media.codecs.retain(|codec| {
            let codec = codec.codec();
            codec.is_some_and(|codec| !matches!(codec, Codec::Isac | Codec::ComfortNoise))
        });
    }
    answer
}

/// The lines of the m-line of this kind.
fn section<'t>(text: &'t str, kind: &str) -> Vec<&'t str> {
    let start = format!("m={kind} ");
    let lines = text.lines().skip_while(|line| !line.starts_with(&start));
    let mut lines: Vec<&str> = lines.collect();
    let end = lines.iter().skip(1).position(|line| line.starts_with("m="));
    lines.truncate(end.map_or(lines.len(), |end| end + 1));
    lines
}

/// An answer of a telephone to an offer with audio.
fn telephone(media: &str) -> String {
    format!("v=0\r\no=- 5 5 IN IP4 192.0.2.9\r\ns=-\r\nc=IN IP4 192.0.2.9\r\nt=0 0\r\n{media}")
}

const PCMU: &str = "m=audio 4000 RTP/AVP 0 101\r\na=rtpmap:101 telephone-event/8000\r\n";

#[test]
fn a_browsers_offer_becomes_one_for_telephones() {
    let mut plain = PlainSession::new(false, false);
    let text = offered(&mut plain, &chromium(), None);
    for gone in [
        "ice-",
        "fingerprint",
        "setup",
        "mid",
        "msid",
        "ssrc",
        "rtcp-mux",
        "group",
        "rtx",
        "red",
        "ulpfec",
        "flexfec",
        "transport-cc",
        "goog-remb",
        "candidate",
        "crypto",
        "1.1.1.1",
    ] {
        assert!(
            !text.contains(&format!("a={gone}")) && !text.contains(&format!(" {gone}/")),
            "{gone}: {text}"
        );
    }
    let audio = section(&text, "audio");
    assert!(
        audio[0].starts_with("m=audio 10000 RTP/AVP 111 "),
        "{}",
        audio[0]
    );
    assert_eq!(audio[1..3], ["c=IN IP4 192.0.2.1", "a=sendrecv"]);
    for line in ["a=rtpmap:0 PCMU/8000", "a=rtpmap:126 telephone-event/8000"] {
        assert!(audio.contains(&line), "{audio:?}");
    }
    let mut levels = audio.iter().filter(|line| line.starts_with("a=extmap"));
    assert!(levels.clone().count() == 1 && levels.next_back().unwrap().contains("audio-level"));
    let video = section(&text, "video");
    assert!(
        video[0].starts_with("m=video 10002 RTP/AVP 96 "),
        "{}",
        video[0]
    );
    assert!(video.contains(&"a=rtcp-fb:96 nack pli"), "{video:?}");
    let feedback = video.iter().filter(|line| line.starts_with("a=rtcp-fb"));
    assert!(feedback.clone().all(|line| line.ends_with(" nack pli")));
}

#[test]
fn an_answer_of_a_telephone_answers_the_browser() {
    let mut plain = PlainSession::new(false, false);
    let browser = chromium();
    offered(&mut plain, &browser, None);
    let accepted = plain.accept_answer(&telephone(PCMU), None).unwrap();
    assert_eq!(accepted.srtp, None);
    let [audio, video] = accepted.description.media.as_slice() else {
        panic!("{accepted:?}");
    };
    let codecs: Vec<_> = audio
        .codecs
        .iter()
        .map(|codec| (codec.pt, codec.name.as_str()))
        .collect();
    // The telephone's number for keys is its own: the browser's stays in the browser's answer.
    assert_eq!(codecs, [(Pt(0), "PCMU"), (Pt(126), "telephone-event")]);
    assert!(video.rejected && !audio.rejected);
    let agreed = plain.agreed_on(Kind::Audio).unwrap();
    assert_eq!(agreed.rtp.unwrap().to_string(), "192.0.2.9:4000");
    assert_eq!(agreed.rtcp.unwrap().to_string(), "192.0.2.9:4001");
    let keys = &agreed.events[0];
    assert_eq!((keys.send, keys.recv), (Pt(101), Pt(126)));
    assert!(agreed.sends() && agreed.receives() && !agreed.pli);
    assert_eq!(plain.agreed().len(), 1);

    // The core's side of the browser takes it, too.
    let mut core = session();
    let remote = core
        .parse(&offer("chromium"), portunus_sdp::SdpType::Offer)
        .unwrap();
    core.set_remote_offer(remote).unwrap();
    let (text, negotiated) = core.local_answer(accepted.description).unwrap();
    assert!(
        text.contains("m=audio 9 UDP/TLS/RTP/SAVPF 0 126\r\n"),
        "{text}"
    );
    assert!(negotiated.media[1].disabled);

    // After a provisional answer the last one may come, and be another.
    let moved = telephone(&PCMU.replace("4000", "4010"));
    plain.accept_answer(&moved, None).unwrap();
    assert_eq!(
        plain.agreed_on(Kind::Audio).unwrap().rtp.unwrap().port(),
        4010
    );
}

#[test]
fn real_far_ends_are_offered_to_browsers_and_answered() {
    for (name, audio, video, lines) in [
        ("asterisk", "0 8 101", Some("99"), 2),
        ("freeswitch", "102 9 0 8 103 101", None, 1),
        ("cisco", "114 9 0 8 101", Some("100 126 97"), 3),
        ("linphone", "96 0 8 101 100 99", Some("96 97"), 2),
        ("baresip", "96 0 8 97", None, 1),
        ("t38", "8", None, 2),
    ] {
        let mut plain = PlainSession::new(false, false);
        let accepted = plain
            .take_offer(&far(name), None)
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        // It can be offered.
        let text = session().local_offer(accepted.description.clone()).unwrap();
        assert_eq!(
            text.matches("\r\nm=").count(),
            1 + usize::from(video.is_some()),
            "{name}: {text}"
        );
        let answer = plain
            .answer(&answered(&accepted.description), &local(), None, &mut fill)
            .unwrap();
        assert_eq!(answer.matches("\r\nm=").count(), lines, "{name}: {answer}");
        let formats = |kind| {
            let line = section(&answer, kind)[0].to_owned();
            line.splitn(4, ' ').nth(3).unwrap().to_owned()
        };
        let mut shown: Vec<String> = formats("audio").split(' ').map(str::to_owned).collect();
        let mut expected: Vec<String> = audio.split(' ').map(str::to_owned).collect();
        assert_eq!(shown.first(), expected.first(), "{name}: {answer}");
        shown.sort();
        expected.sort();
        assert_eq!(shown, expected, "{name}: {answer}");
        if let Some(video) = video {
            assert_eq!(formats("video"), video, "{name}: {answer}");
        }
        let agreed = plain.agreed_on(Kind::Audio).unwrap();
        assert!(agreed.sends() && agreed.receives(), "{name}");
    }
}

#[test]
fn what_far_ends_say_of_addresses_keys_and_feedback_is_understood() {
    let taken = |name| {
        let mut plain = PlainSession::new(true, false);
        let accepted = plain.take_offer(&far(name), None).unwrap();
        let browser = answered(&accepted.description);
        let answer = plain.answer(&browser, &local(), None, &mut fill).unwrap();
        (plain, accepted, answer)
    };
    // The first suite is none that is spoken here.
    let (plain, accepted, answer) = taken("freeswitch");
    assert_eq!(accepted.srtp, Some(SrtpUse::Mandatory));
    let audio = plain.agreed_on(Kind::Audio).unwrap();
    assert_eq!(
        audio.remote_key.as_ref().unwrap().suite(),
        Suite::AeadAes128Gcm
    );
    let local_key = audio.local_key.as_ref().unwrap();
    assert_eq!(local_key.key_and_salt(), [9; 28]);
    assert!(answer.contains("m=audio 10000 RTP/SAVP "), "{answer}");
    assert!(
        answer.contains("a=crypto:2 AEAD_AES_128_GCM inline:CQkJ"),
        "{answer}"
    );
    // Opus has a clock of 48 kHz, and so have the keys that go with it.
    assert_eq!(audio.events.len(), 1);
    assert_eq!(audio.events[0].spec.clock_rate, 48_000);

    let (plain, accepted, answer) = taken("linphone");
    assert_eq!(accepted.srtp, Some(SrtpUse::Mandatory));
    let video = plain.agreed_on(Kind::Video).unwrap();
    assert!(video.pli && video.rtcp_mux);
    assert_eq!(video.rtcp, video.rtp);
    assert_eq!(answer.matches("a=rtcp-mux").count(), 1, "{answer}");

    let (plain, _, answer) = taken("cisco");
    assert!(plain.agreed_on(Kind::Video).unwrap().pli);
    assert!(answer.contains("m=application 0 UDP/BFCP *"), "{answer}");
    // One of each codec: the first H.264.
    assert!(section(&answer, "video")[0].ends_with(" 100"), "{answer}");

    let (plain, _, _) = taken("baresip");
    let audio = plain.agreed_on(Kind::Audio).unwrap();
    assert_eq!(audio.rtp.unwrap().to_string(), "[2001:db8::21]:10240");

    let (_, _, answer) = taken("t38");
    assert!(answer.contains("m=image 0 udptl t38"), "{answer}");

    // It holds the call in the old way; its key has an identifier, so that there is plain RTP.
    let (plain, accepted, answer) = taken("polycom_held");
    assert_eq!(accepted.srtp, None);
    assert_eq!(accepted.description.media[0].direction, Direction::SendOnly);
    let audio = plain.agreed_on(Kind::Audio).unwrap();
    assert!(!audio.sends() && audio.receives() && audio.rtp.is_none());
    assert!(
        answer.contains("a=recvonly") && !answer.contains("crypto"),
        "{answer}"
    );
}

#[test]
fn keys_are_offered_and_answered_as_the_policy_says() {
    let suite = Suite::AeadAes256Gcm;
    let key = portunus_sdp::plain::SdesKey::generate(suite, &mut |bytes| bytes.fill(3));
    assert_eq!(key.suite(), suite);
    let crypto = |tag: u32, suite: &str, len: usize| {
        // 3 bytes in base64 are 4 characters.
        let key = match len {
            44 => format!("{}=", "A".repeat(59)),
            30 => "A".repeat(40),
            _ => panic!(),
        };
        format!("a=crypto:{tag} {suite} inline:{key}\r\n")
    };
    let with = |proto: &str, crypto: &str| {
        telephone(&format!("{}{crypto}", PCMU.replace("RTP/AVP", proto)))
    };
    let gcm = crypto(1, "AEAD_AES_256_GCM", 44);
    let policies = [
        None,
        Some(SrtpPolicy::Optional(suite)),
        Some(SrtpPolicy::Mandatory(suite)),
    ];
    for (policy, proto, lines) in [
        (policies[0], "RTP/AVP", 0),
        (policies[1], "RTP/AVP", 2),
        (policies[2], "RTP/SAVP", 2),
    ] {
        let mut plain = PlainSession::new(false, false);
        let text = offered(&mut plain, &chromium(), policy);
        assert!(text.contains(&format!("m=audio 10000 {proto} ")), "{text}");
        assert_eq!(
            text.matches("a=crypto:1 AEAD_AES_256_GCM inline:").count(),
            lines,
            "{text}"
        );
    }
    let answer = |policy, again, text: &str| {
        let mut plain = PlainSession::new(false, false);
        offered(&mut plain, &chromium(), policy);
        let srtp = plain.accept_answer(text, again)?.srtp;
        let media = plain.agreed_on(Kind::Audio).unwrap().clone();
        assert_eq!(media.local_key.is_some(), media.remote_key.is_some());
        Ok::<_, PlainError>((srtp, media.remote_key.is_some()))
    };
    use SrtpUse::{Mandatory, Optional};
    assert_eq!(
        answer(policies[1], None, &with("RTP/AVP", &gcm)),
        Ok((Some(Optional), true))
    );
    assert_eq!(
        answer(policies[1], None, &with("RTP/SAVP", &gcm)),
        Ok((Some(Mandatory), true))
    );
    assert_eq!(
        answer(policies[1], policies[2], &with("RTP/AVP", &gcm)),
        Ok((Some(Mandatory), true))
    );
    // An answer without a key to an optional offer is plain RTP.
    assert_eq!(
        answer(policies[1], None, &with("RTP/AVP", "")),
        Ok((None, false))
    );
    // So is one with a key that was never offered.
    let other = crypto(2, "AEAD_AES_256_GCM", 44);
    assert_eq!(
        answer(policies[1], None, &with("RTP/AVP", &other)),
        Ok((None, false))
    );
    assert_eq!(
        answer(policies[0], None, &with("RTP/AVP", &gcm)),
        Ok((None, false))
    );
    let weaker = crypto(1, "AES_CM_128_HMAC_SHA1_32", 30);
    for (policy, again, text, reason) in [
        (
            policies[2],
            None,
            with("RTP/SAVP", ""),
            "SDES-SRTP required, but there is no key for audio",
        ),
        (
            policies[2],
            None,
            with("RTP/SAVP", &weaker),
            "SDES-SRTP required, but there is no key for audio (tag 1: not the key that was offered)",
        ),
        (
            policies[1],
            None,
            with("RTP/SAVP", ""),
            "SDES-SRTP required, but there is no key for audio",
        ),
        (
            policies[1],
            policies[2],
            with("RTP/AVP", ""),
            "SDES-SRTP required, but there is no key for audio",
        ),
    ] {
        let error = answer(policy, again, &text).unwrap_err();
        assert!(error.is_for_lack_of_srtp());
        assert_eq!(error.to_string(), reason);
    }

    // An offer of the far end.
    let mut plain = PlainSession::new(false, false);
    let mandatory = policies[2];
    assert!(plain.take_offer(&with("RTP/AVP", ""), mandatory).is_err());
    assert!(plain.take_offer(&with("RTP/SAVP", ""), None).is_err());
    assert!(!plain.has_taken_offer());
    let accepted = plain.take_offer(&with("RTP/AVP", ""), None).unwrap();
    let browser = answered(&accepted.description);
    assert!(!plain.is_srtp_offered());
    let error = plain
        .answer(&browser, &local(), mandatory, &mut fill)
        .unwrap_err();
    assert!(error.is_for_lack_of_srtp() && plain.has_taken_offer());
    let sdp = plain.answer(&browser, &local(), None, &mut fill).unwrap();
    assert!(!sdp.contains("crypto"));
    // With a tag of its own, and by the profile that it has.
    let offer = with("RTP/SAVP", &crypto(7, "AES_CM_128_HMAC_SHA1_32", 30));
    plain.take_offer(&offer, None).unwrap();
    let sdp = plain.answer(&browser, &local(), None, &mut fill).unwrap();
    assert!(
        sdp.contains("RTP/SAVP") && sdp.contains("a=crypto:7 AES_CM_128_HMAC_SHA1_32 "),
        "{sdp}"
    );
    // What this side offers next is protected in the same way, with the same key.
    let again = plain
        .offer(&plain.said(), &local(), None, &mut |_| panic!())
        .unwrap();
    assert!(
        again.contains("RTP/SAVP") && again.contains("AES_CM_128_HMAC_SHA1_32"),
        "{again}"
    );
}

#[test]
fn versions_grow_with_what_changes() {
    let version = |text: &str| -> u64 {
        let origin = text.lines().nth(1).unwrap().to_owned();
        origin.split(' ').nth(2).unwrap().parse().unwrap()
    };
    let mut plain = PlainSession::new(false, false);
    let browser = chromium();
    let first = offered(&mut plain, &browser, None);
    let id = |text: &str| {
        text.lines()
            .nth(1)
            .unwrap()
            .split(' ')
            .nth(1)
            .unwrap()
            .to_owned()
    };
    plain.accept_answer(&telephone(PCMU), None).unwrap();
    let same = offered(&mut plain, &browser, None);
    assert_eq!(first, same);
    plain.set_held(Some(Direction::SendOnly));
    let held = plain.said();
    let held = offered(&mut plain, &held, None);
    assert_eq!(version(&held), version(&first) + 1);
    assert_eq!(id(&held), id(&first));
    assert!(section(&held, "audio").contains(&"a=sendonly"), "{held}");
    let answer = telephone(&format!("{PCMU}a=recvonly\r\n"));
    plain.accept_answer(&answer, None).unwrap();
    assert!(
        plain
            .agreed_on(Kind::Audio)
            .is_some_and(|audio| audio.sends())
    );
    plain.set_held(None);
    let back = plain.said();
    let back = offered(&mut plain, &back, None);
    assert_eq!(version(&back), version(&first) + 2);
    // What was only received is inactive while the call is held.
    let mut receiving = browser.clone();
    receiving.media[0].direction = Direction::RecvOnly;
    plain.set_held(Some(Direction::SendOnly));
    let text = offered(&mut plain, &receiving, None);
    assert!(section(&text, "audio").contains(&"a=inactive"), "{text}");
    plain.accept_answer(&telephone(PCMU), None).unwrap();
    assert!(!plain.agreed_on(Kind::Audio).unwrap().sends());
}

#[test]
fn numbers_mean_the_same_to_a_browser_over_all_descriptions() {
    // Opus and VP8 have the same number, which no PeerConnection takes.
    let mut plain = PlainSession::new(false, false);
    let accepted = plain.take_offer(&far("linphone"), None).unwrap();
    let media = &accepted.description.media;
    assert_eq!(media[0].codecs[0].pt, Pt(96));
    assert_ne!(media[1].codecs[0].pt, Pt(96));
    let browser = answered(&accepted.description);
    let answer = plain.answer(&browser, &local(), None, &mut fill).unwrap();
    assert!(section(&answer, "video")[0].ends_with(" 96 97"), "{answer}");
    let vp8 = &plain.agreed_on(Kind::Video).unwrap().codecs[0];
    assert_eq!((vp8.spec.pt, vp8.send), (media[1].codecs[0].pt, Pt(96)));

    // The browser began: what it said stays, whatever the far end says later.
    let mut plain = PlainSession::new(false, false);
    let browser = chromium();
    offered(&mut plain, &browser, None);
    plain.accept_answer(&telephone(PCMU), None).unwrap();
    let later = telephone(
        "m=audio 4000 RTP/AVP 96 0 126\r\na=rtpmap:96 opus/48000/2\r\na=rtpmap:126 G722/8000\r\n\
         a=extmap:4 urn:ietf:params:rtp-hdrext:ssrc-audio-level\r\n",
    );
    let accepted = plain.take_offer(&later, None).unwrap();
    let audio = &accepted.description.media[0];
    let numbers: Vec<_> = audio.codecs.iter().map(|codec| codec.pt).collect();
    assert_eq!(numbers, [Pt(111), Pt(0), Pt(9)]);
    for extmap in &audio.extensions {
        let before = browser.media[0].extensions.iter();
        let mut before = before.filter(|it| it.id == extmap.id);
        assert!(before.all(|it| it.uri == extmap.uri), "{extmap:?}");
    }
    let answer = answered(&accepted.description);
    let text = plain.answer(&answer, &local(), None, &mut fill).unwrap();
    assert!(text.contains(" RTP/AVP 96 0 126\r\n"), "{text}");
    assert!(
        text.contains("a=extmap:4 urn:ietf:params:rtp-hdrext:ssrc-audio-level"),
        "{text}"
    );
    let again = offered(&mut plain, &browser, None);
    assert!(
        again.contains("a=extmap:4 urn:ietf:params:rtp-hdrext:ssrc-audio-level"),
        "{again}"
    );
}

#[test]
fn media_come_and_go() {
    let mut plain = PlainSession::new(false, false);
    let whole = chromium();
    let mut audio_only = whole.clone();
    audio_only.media.truncate(1);
    let text = offered(&mut plain, &audio_only, None);
    assert_eq!(text.matches("\r\nm=").count(), 1);
    plain.accept_answer(&telephone(PCMU), None).unwrap();
    // The browser adds video.
    offered(&mut plain, &whole, None);
    let both = telephone(&format!(
        "{PCMU}m=video 5000 RTP/AVP 96\r\na=rtpmap:96 VP8/90000\r\n"
    ));
    plain.accept_answer(&both, None).unwrap();
    assert_eq!(plain.agreed().len(), 2);
    // The far end takes it away, offers a fax, and another audio.
    let fewer = telephone(&format!(
        "{PCMU}m=video 0 RTP/AVP 96\r\nm=image 9 udptl t38\r\nm=audio 5002 RTP/AVP 0\r\n"
    ));
    let accepted = plain.take_offer(&fewer, None).unwrap();
    let media = &accepted.description.media;
    assert_eq!(media.len(), 2);
    assert!(!media[0].rejected && media[1].rejected);
    assert_eq!(
        (media[0].mid, media[1].mid),
        (whole.media[0].mid, whole.media[1].mid)
    );
    let answer = plain
        .answer(&answered(&accepted.description), &local(), None, &mut fill)
        .unwrap();
    let lines: Vec<&str> = answer
        .lines()
        .filter(|line| line.starts_with("m="))
        .collect();
    assert!(lines[0].starts_with("m=audio 10000 "), "{answer}");
    assert_eq!(
        lines[1..],
        [
            "m=video 0 RTP/AVP 96",
            "m=image 0 udptl t38",
            "m=audio 0 RTP/AVP 0"
        ]
    );
    assert_eq!(plain.agreed().len(), 1);
    // All may end, and begin again.
    let none = telephone("m=audio 0 RTP/AVP 0\r\nm=video 0 RTP/AVP 96\r\n");
    let mut ended = plain.clone();
    let accepted = ended.take_offer(&none, None).unwrap();
    assert!(
        accepted
            .description
            .media
            .iter()
            .all(|media| media.rejected)
    );
    let answer = ended
        .answer(&answered(&accepted.description), &local(), None, &mut fill)
        .unwrap();
    assert_eq!(answer.matches(" 0 RTP/AVP ").count(), 2, "{answer}");
    assert!(ended.agreed().is_empty());
    ended.take_offer(&both, None).unwrap();
    // This side's next offer keeps all places.
    let next = offered(&mut plain, &whole, None);
    let lines: Vec<&str> = next.lines().filter(|line| line.starts_with("m=")).collect();
    assert_eq!(lines.len(), 4);
    assert!(
        lines[1].starts_with("m=video 10002 ") && lines[2] == "m=image 0 udptl t38",
        "{next}"
    );
}

#[test]
fn a_call_goes_on_without_the_browser_and_with_another() {
    let mut plain = PlainSession::new(true, false);
    let browser = chromium();
    offered(&mut plain, &browser, None);
    plain.accept_answer(&telephone(PCMU), None).unwrap();
    // The far end moves, holds, and has other numbers.
    let moved = telephone(
        "m=audio 6000 RTP/AVP 96 8 99\r\na=rtpmap:96 opus/48000/2\r\na=rtpmap:99 telephone-event/8000\r\na=sendonly\r\n",
    );
    plain.take_offer(&moved, None).unwrap();
    let said = plain.said();
    let answer = plain.answer(&said, &local(), None, &mut fill).unwrap();
    assert!(
        answer.contains("m=audio 10000 RTP/AVP 96 8 99\r\n") && answer.contains("a=recvonly"),
        "{answer}"
    );
    let audio = plain.agreed_on(Kind::Audio).unwrap();
    let numbers: Vec<_> = audio
        .codecs
        .iter()
        .map(|codec| (codec.spec.pt, codec.send, codec.recv))
        .collect();
    assert_eq!(numbers, [(Pt(111), Pt(96), Pt(96)), (Pt(8), Pt(8), Pt(8))]);
    assert_eq!(audio.rtp.unwrap().port(), 6000);
    // Another browser takes the call over.
    let offer = plain.offer_to_another();
    assert!(session().local_offer(offer.clone()).is_ok());
    let mut answer = answered(&offer);
    answer.media[0].codecs.retain(|codec| codec.name != "opus");
    plain.moved(&answer);
    let audio = plain.agreed_on(Kind::Audio).unwrap();
    assert_eq!(audio.codecs.len(), 1);
    assert_eq!(audio.mid, answer.media[0].mid);
    // What is offered then is what the new browser said.
    let said = plain.said();
    let next = offered(&mut plain, &said, None);
    assert!(next.contains("m=audio 10000 RTP/AVP 8 "), "{next}");
}

#[test]
fn audio_without_a_common_codec_is_transcoded_where_that_is_wanted() {
    let only = |name: &str| {
        let mut browser = chromium();
        browser.media.truncate(1);
        browser.media[0].codecs.retain(|codec| codec.name == name);
        browser
    };
    let mut plain = PlainSession::new(false, false);
    offered(&mut plain, &only("opus"), None);
    let accepted = plain.accept_answer(&telephone(PCMU), None).unwrap();
    assert!(accepted.description.media[0].rejected && plain.agreed().is_empty());

    let mut plain = PlainSession::new(false, true);
    let text = offered(&mut plain, &only("opus"), None);
    assert!(
        text.contains("m=audio 10000 RTP/AVP 111 9 8 0\r\n"),
        "{text}"
    );
    let accepted = plain.accept_answer(&telephone(PCMU), None).unwrap();
    assert_eq!(accepted.description.media[0].codecs[0].name, "opus");
    let transcoding = plain
        .agreed_on(Kind::Audio)
        .unwrap()
        .transcoding
        .clone()
        .unwrap();
    assert_eq!(
        (transcoding.browser.pt, transcoding.far.send),
        (Pt(111), Pt(0))
    );
    // Who has a common codec is not transcoded.
    offered(&mut plain, &chromium(), None);
    plain.accept_answer(&telephone(PCMU), None).unwrap();
    assert_eq!(plain.agreed_on(Kind::Audio).unwrap().transcoding, None);

    let mut plain = PlainSession::new(false, true);
    let accepted = plain.take_offer(&telephone(PCMU), None).unwrap();
    let mut answer = answered(&accepted.description);
    answer.media[0].codecs.retain(|codec| codec.name == "opus");
    let text = plain.answer(&answer, &local(), None, &mut fill).unwrap();
    assert!(text.contains("m=audio 10000 RTP/AVP 0\r\n"), "{text}");
    let transcoding = plain
        .agreed_on(Kind::Audio)
        .unwrap()
        .transcoding
        .clone()
        .unwrap();
    assert_eq!(transcoding.far.codec, Codec::Pcmu);
}

#[test]
fn what_cannot_be_used_is_refused_with_the_reason() {
    let mut plain = PlainSession::new(false, false);
    let error =
        |result: Result<portunus_sdp::plain::Accepted, PlainError>| result.unwrap_err().to_string();
    let mut take = |media: &str| error(plain.take_offer(&telephone(media), None));
    assert_eq!(
        take("m=audio 0 RTP/AVP 0\r\n"),
        "No audio and no video being negotiated"
    );
    assert_eq!(
        take("m=image 9 udptl t38\r\n"),
        "No audio and no video being negotiated"
    );
    assert_eq!(
        take("m=audio 9 UDP/TLS/RTP/SAVPF 0\r\n"),
        "No audio and no video being negotiated: UDP/TLS/RTP/SAVPF instead of RTP/AVP or RTP/SAVP"
    );
    assert_eq!(
        take(&format!(
            "{PCMU}m=application 9 UDP/DTLS/SCTP webrtc-datachannel\r\n"
        )),
        "DataChannels are not supported"
    );
    let nowhere = telephone(PCMU).replace("c=IN IP4 192.0.2.9\r\n", "");
    assert_eq!(
        error(plain.take_offer(&nowhere, None)),
        "No remote IP addresses"
    );
    assert_eq!(
        error(plain.accept_answer(&telephone(PCMU), None)),
        "there is no offer to answer"
    );
    let browser = chromium();
    offered(&mut plain, &browser, None);
    let swapped = telephone("m=video 9 RTP/AVP 96\r\n");
    assert_eq!(
        error(plain.accept_answer(&swapped, None)),
        "m-line 0 of the answer does not match the offer"
    );
    let longer = telephone(&format!(
        "{PCMU}m=video 0 RTP/AVP 96\r\nm=audio 5 RTP/AVP 0\r\n"
    ));
    assert_eq!(
        error(plain.accept_answer(&longer, None)),
        "m-line 2 of the answer does not match the offer"
    );
    let with_data = parse(&offer("chromium")).unwrap().description;
    if with_data.active(Kind::Data).next().is_some() {
        let refused = plain.offer(&with_data, &local(), None, &mut fill);
        assert_eq!(refused, Err(PlainError::Data));
    }
    let mut silent = browser;
    silent
        .media
        .iter_mut()
        .for_each(|media| media.rejected = true);
    let refused = plain.offer(&silent, &local(), None, &mut fill);
    assert_eq!(refused, Err(PlainError::NoMedia));
}
