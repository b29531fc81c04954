//! SRTP keys (RFC 4568).

use portunus_sdp::Kind;
use portunus_sdp::plain::{PlainError, PlainSession, SrtpPolicy, SrtpUse, Suite};

use crate::{PCMU, answered, chromium, fill, local, offered, telephone};

#[test]
fn keys_are_offered_and_answered_as_the_policy_says() {
    let suite = Suite::AeadAes256Gcm;
    let key = portunus_sdp::plain::SdesKey::generate(suite, &mut |bytes| bytes.fill(3));
    assert_eq!(key.suite(), suite);
    let crypto = |tag: u32, suite: &str, len: usize| {
        // 3 bytes are 4 characters in base64.
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
    // An answer without a key to an optional offer means plain RTP.
    assert_eq!(
        answer(policies[1], None, &with("RTP/AVP", "")),
        Ok((None, false))
    );
    // So does one with a key that was not offered.
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
    // With its own tag, and with its profile.
    let offer = with("RTP/SAVP", &crypto(7, "AES_CM_128_HMAC_SHA1_32", 30));
    plain.take_offer(&offer, None).unwrap();
    let sdp = plain.answer(&browser, &local(), None, &mut fill).unwrap();
    assert!(
        sdp.contains("RTP/SAVP") && sdp.contains("a=crypto:7 AES_CM_128_HMAC_SHA1_32 "),
        "{sdp}"
    );
    // The next offer of this side has the same protection and the same key.
    let again = plain
        .offer(&plain.said(), &local(), None, &mut |_| panic!())
        .unwrap();
    assert!(
        again.contains("RTP/SAVP") && again.contains("AES_CM_128_HMAC_SHA1_32"),
        "{again}"
    );
}
