//! Changes during a call.

use portunus_rtp::Pt;
use portunus_sdp::plain::{PlainError, PlainSession};
use portunus_sdp::{Direction, Kind};

use crate::support::session;
use crate::{PCMU, answered, chromium, far, fill, local, offered, section, telephone};

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
    // Media that was only received is inactive while the call is held.
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
    // Opus and VP8 have the same number, which a PeerConnection does not accept.
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

    // The browser made the first offer: its numbers stay, whatever the far end sends later.
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
    // The far end removes it, offers a fax and another audio line.
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
    // It cannot become a fax, so the call continues unchanged.
    let fax = telephone("m=audio 0 RTP/AVP 0\r\nm=video 0 RTP/AVP 96\r\nm=image 9 udptl t38\r\n");
    assert_eq!(plain.take_offer(&fax, None), Err(PlainError::NoMedia));
    assert_eq!(plain.agreed().len(), 1);
    // All media may end and start again.
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
    // Another browser takes over the call.
    let offer = plain.offer_to_another();
    assert!(session().local_offer(offer.clone()).is_ok());
    let mut answer = answered(&offer);
    answer.media[0].codecs.retain(|codec| codec.name != "opus");
    plain.moved(&answer);
    let audio = plain.agreed_on(Kind::Audio).unwrap();
    assert_eq!(audio.codecs.len(), 1);
    assert_eq!(audio.mid, answer.media[0].mid);
    // The next offer is the description of the new browser.
    let said = plain.said();
    let next = offered(&mut plain, &said, None);
    assert!(next.contains("m=audio 10000 RTP/AVP 8 "), "{next}");
}
