//! Offers and answers, and reading them.

use portunus_rtp::Pt;
use portunus_sdp::plain::{FarSession, LocalEnd, PlainError, PlainSession, SrtpUse, Suite};
use portunus_sdp::{Codec, Direction, Kind};

use crate::support::{offer, parse, session};
use crate::{
    PCMU, answered, chromium, far, fill, local, local_towards, offered, section, telephone,
};

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
    // The telephone's number for telephone events is its own. The browser's stays in the browser's
    // answer.
    assert_eq!(codecs, [(Pt(0), "PCMU"), (Pt(126), "telephone-event")]);
    assert!(video.rejected && !audio.rejected);
    let agreed = plain.agreed_on(Kind::Audio).unwrap();
    assert_eq!(agreed.rtp.unwrap().to_string(), "192.0.2.9:4000");
    assert_eq!(agreed.rtcp.unwrap().to_string(), "192.0.2.9:4001");
    let keys = &agreed.events[0];
    assert_eq!((keys.send, keys.recv), (Pt(101), Pt(126)));
    assert!(agreed.sends() && agreed.receives() && !agreed.pli);
    assert_eq!(plain.agreed().len(), 1);

    // The core accepts it for the browser too.
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

    // After a provisional answer, a different final one may follow.
    let moved = telephone(&PCMU.replace("4000", "4010"));
    plain.accept_answer(&moved, None).unwrap();
    assert_eq!(
        plain.agreed_on(Kind::Audio).unwrap().rtp.unwrap().port(),
        4010
    );
}

/// Returns the local end for a real far end.
fn towards(name: &str) -> LocalEnd {
    let address = FarSession::parse(&far(name)).unwrap().address();
    local_towards(address.unwrap_or(local().address))
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
            .answer(
                &answered(&accepted.description),
                &towards(name),
                None,
                &mut fill,
            )
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
        let answer = plain
            .answer(&browser, &towards(name), None, &mut fill)
            .unwrap();
        (plain, accepted, answer)
    };
    // The first suite is not supported.
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
    // Opus has a clock rate of 48 kHz, and so have its telephone events.
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

    // It holds the call in the old way. Its key has an identifier, so plain RTP is used.
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
    // A far end with a common codec is not transcoded.
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

#[test]
fn a_browser_is_answered_with_the_format_of_h264_that_it_has_offered() {
    let browser = chromium();
    let of_video = |codec: &&portunus_sdp::CodecSpec| codec.codec() == Some(Codec::H264);
    let video = &browser.media[1];
    let formats: Vec<_> = video.codecs.iter().filter(of_video).collect();
    assert!(formats.len() > 1, "{video:?}");
    for own in &formats {
        for (said, level) in [
            ("", None),
            (
                "a=fmtp:PT max-mbps=40500;profile-level-id=42801E\r\n",
                Some("1E"),
            ),
            ("a=fmtp:PT packetization-mode=0\r\n", None),
        ] {
            let pt = own.pt.0.to_string();
            let text = format!(
                "{PCMU}m=video 4002 RTP/AVP {pt}\r\na=rtpmap:{pt} H264/90000\r\n{}",
                said.replace("PT", &pt)
            );
            let mut plain = PlainSession::new(false, false);
            offered(&mut plain, &browser, None);
            let accepted = plain.accept_answer(&telephone(&text), None).unwrap();
            let [answered] = accepted.description.media[1].codecs.as_slice() else {
                panic!("{accepted:?}");
            };
            let mode = "packetization-mode";
            assert_eq!(answered.parameter(mode), own.parameter(mode));
            let profile = |codec: &portunus_sdp::CodecSpec| {
                let profile = codec.parameter("profile-level-id").unwrap();
                (profile[..4].to_owned(), profile[4..].to_owned())
            };
            let (own, told) = (profile(own), profile(answered));
            assert_eq!(
                (&told.0, told.1.as_str()),
                (&own.0, level.unwrap_or(&own.1))
            );
            // It may send the other formats nevertheless.
            let video = plain.agreed_on(Kind::Video).unwrap();
            let others = video.unanswered.iter().filter(of_video).count();
            assert_eq!(others + 1, formats.len());
            assert_eq!(video.unanswered.len(), others);
            let passes = answered.parameter("max-mbps") == Some("40500");
            assert_eq!(passes, level.is_some());
        }
    }
}

#[test]
fn an_answer_with_more_refused_lines_than_were_offered_carries_the_call() {
    let mut plain = PlainSession::new(false, false);
    let mut browser = chromium();
    browser.media.truncate(1);
    offered(&mut plain, &browser, None);
    for more in [
        "m=video 0 RTP/AVP 31\r\n",
        "m=image 0 udptl t38\r\nm=video 0 RTP/AVP 31\r\n",
    ] {
        let answer = telephone(&format!("{PCMU}{more}"));
        let accepted = plain.accept_answer(&answer, None).unwrap();
        assert_eq!(accepted.description.media.len(), 1, "{more}");
        assert_eq!(plain.agreed().len(), 1, "{more}");
    }
    // A refused line may have any type, an active one may not.
    let mut plain = PlainSession::new(false, false);
    offered(&mut plain, &chromium(), None);
    let answer = |port| telephone(&format!("{PCMU}m=image {port} udptl t38\r\n"));
    plain.accept_answer(&answer(0), None).unwrap();
    let refused = plain.accept_answer(&answer(5000), None);
    assert_eq!(refused.unwrap_err(), PlainError::Mismatch(1));
}

#[test]
fn opus_is_opus_however_many_channels_a_telephone_says_it_has() {
    for said in ["opus/48000", "OPUS/48000/1", "opus/48000/2"] {
        let mut plain = PlainSession::new(false, false);
        offered(&mut plain, &chromium(), None);
        let media = format!("m=audio 4000 RTP/AVP 107\r\na=rtpmap:107 {said}\r\n");
        plain.accept_answer(&telephone(&media), None).unwrap();
        let agreed = plain.agreed_on(Kind::Audio).unwrap();
        let codec = &agreed.codecs[0];
        assert_eq!((codec.codec, codec.send), (Codec::Opus, Pt(107)), "{said}");

        // A browser accepts only an offer of two channels.
        let mut plain = PlainSession::new(false, false);
        let taken = plain.take_offer(&telephone(&media), None).unwrap();
        assert_eq!(taken.description.media[0].codecs[0].channels, 2, "{said}");
        let answer = answered(&taken.description);
        let text = plain.answer(&answer, &local(), None, &mut fill).unwrap();
        assert!(
            text.contains("a=rtpmap:107 opus/48000/2\r\n") || text.contains("OPUS/48000/2"),
            "{text}"
        );
    }
}

/// Two clock rates of one payload type, as in gateways with wideband codecs.
#[test]
fn telephone_events_have_the_clock_of_their_codec() {
    for (codecs, clocks, expected) in [
        ("8 101", [16_000, 8_000], 8_000),
        ("8 101", [8_000, 16_000], 8_000),
        ("107 101", [8_000, 48_000], 48_000),
        ("107 101", [16_000, 8_000], 16_000),
    ] {
        let maps: String = clocks
            .iter()
            .map(|clock| format!("a=rtpmap:101 telephone-event/{clock}\r\n"))
            .collect();
        let media = format!("m=audio 4000 RTP/AVP {codecs}\r\na=rtpmap:107 opus/48000/2\r\n{maps}");
        let far = FarSession::parse(&telephone(&media)).unwrap();
        let event = far.media[0].codecs.iter().find(|codec| codec.pt == Pt(101));
        assert_eq!(event.unwrap().clock_rate, expected, "{codecs} {clocks:?}");
    }
}

#[test]
fn media_of_another_family_of_addresses_are_refused() {
    let by_ipv6 = telephone(PCMU).replace("c=IN IP4 192.0.2.9", "c=IN IP6 2001:db8::9");
    let mut plain = PlainSession::new(false, false);
    let taken = plain.take_offer(&by_ipv6, None).unwrap();
    let answer = answered(&taken.description);
    let text = plain
        .clone()
        .answer(&answer, &local(), None, &mut fill)
        .unwrap();
    assert!(text.contains("m=audio 0 "), "{text}");
    let local = local_towards("2001:db8::9".parse().unwrap());
    let text = plain.answer(&answer, &local, None, &mut fill).unwrap();
    assert!(text.contains("c=IN IP6 2001:db8::1\r\n"), "{text}");
    assert!(
        !text.contains("IP4") && !text.contains("m=audio 0"),
        "{text}"
    );
    assert_eq!(plain.agreed().len(), 1);
}
