//! The feedback and repair of answers.

use crate::support::{answer, lines, offer, one_line};
use crate::{AUDIO, OPUS, VIDEO, VP8};

#[test]
fn video_feedback_is_answered_whether_offered_or_not() {
    let (text, negotiated) = answer(&one_line(VIDEO, &[VP8]));
    let expected = [
        "a=rtcp-fb:96 ccm fir",
        "a=rtcp-fb:96 nack",
        "a=rtcp-fb:96 nack pli",
        "a=rtcp-fb:96 goog-remb",
    ];
    assert_eq!(lines(&text, 1, "a=rtcp-fb"), expected);
    let feedback = negotiated
        .media
        .first()
        .unwrap()
        .payloads
        .first()
        .unwrap()
        .feedback;
    // Keyframes can always be requested; packets only if the peer supports NACK.
    assert!(feedback.pli && !feedback.nack && !feedback.fir);
}

#[test]
fn audio_has_nack_where_it_is_offered_and_transport_cc_with_its_extension_only() {
    let twcc = "extmap:3 http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01";
    let feedback = ["rtcp-fb:111 nack", "rtcp-fb:111 transport-cc"];
    let (text, _) = answer(&one_line(AUDIO, &[OPUS, twcc, feedback[0], feedback[1]]));
    let both = ["a=rtcp-fb:111 transport-cc", "a=rtcp-fb:111 nack"];
    assert_eq!(lines(&text, 1, "a=rtcp-fb"), both);
    let (text, negotiated) = answer(&one_line(AUDIO, &[OPUS, feedback[0], feedback[1]]));
    assert_eq!(lines(&text, 1, "a=rtcp-fb"), ["a=rtcp-fb:111 nack"]);
    assert!(negotiated.media[0].payloads[0].feedback.nack);
    let (text, _) = answer(&one_line(AUDIO, &[OPUS, feedback[1]]));
    assert!(lines(&text, 1, "a=rtcp-fb").is_empty());
}

#[test]
fn feedback_for_all_codecs_counts_for_each() {
    let (_, negotiated) = answer(&one_line(
        VIDEO,
        &[VP8, "rtcp-fb:* nack", "rtcp-fb:* nack pli"],
    ));
    let feedback = negotiated
        .media
        .first()
        .unwrap()
        .payloads
        .first()
        .unwrap()
        .feedback;
    assert!(feedback.nack && feedback.pli);
}

#[test]
fn fec_is_never_answered() {
    let (text, _) = answer(&offer("chromium"));
    assert!(!text.contains("ulpfec") && !text.contains("flexfec") && !text.contains("red/90000"));
}

#[test]
fn retransmissions_need_nack_and_the_offered_number() {
    let rtx = ["rtpmap:97 rtx/90000", "fmtp:97 apt=96"];
    let (text, negotiated) = answer(&one_line(VIDEO, &[VP8, rtx[0], rtx[1]]));
    assert!(!text.contains("rtx"));
    assert_eq!(
        negotiated
            .media
            .first()
            .unwrap()
            .payloads
            .first()
            .unwrap()
            .rtx,
        None
    );

    let (text, _) = answer(&one_line(VIDEO, &[VP8, rtx[0], rtx[1], "rtcp-fb:96 nack"]));
    assert_eq!(lines(&text, 1, "m="), ["m=video 9 UDP/TLS/RTP/SAVPF 96 97"]);
    // The peer has no SSRC for repair, so the server declares none either.
    assert!(!text.contains("FID"));

    let offered = one_line(VIDEO, &[VP8, rtx[0], rtx[1], "rtcp-fb:96 nack", "recvonly"]);
    let (text, negotiated) = answer(&offered);
    assert_eq!(lines(&text, 1, "a=ssrc-group:FID").len(), 1);
    assert_eq!(lines(&text, 1, "a=ssrc:").len(), 2);
    assert!(negotiated.media.first().unwrap().local_rtx_ssrc.is_some());
}
