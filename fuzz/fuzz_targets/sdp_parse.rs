#![no_main]

use libfuzzer_sys::fuzz_target;
use portunus_rtp::ExtensionKind;
use portunus_sdp::{
    AnswerOptions, Description, Fingerprint, FingerprintHash, IceCredentials, LocalTransport,
    RemoteDescription, SdpType, Session,
};

fuzz_target!(|text: &str| {
    let Ok(remote) = RemoteDescription::parse(text, SdpType::Offer, &[]) else {
        return;
    };
    let offered = &remote.description;
    let extensions = ExtensionKind::ALL.to_vec();
    let options = AnswerOptions {
        extensions,
        ..AnswerOptions::default()
    };
    let answer = Description::answer(offered, &options);
    let (lines, passed_on) = (offered.media.len(), offered.clone());

    // A parsed offer can be answered, and the answer can be parsed.
    let mut session = Session::new(transport(), 1);
    session.set_remote_offer(remote).unwrap();
    let (text, negotiated) = session.local_answer(answer).unwrap();
    assert_eq!(negotiated.media.len(), lines);
    let slots = session.slots(SdpType::Answer);
    RemoteDescription::parse(&text, SdpType::Answer, &slots).unwrap();

    // It can be passed on to another peer, unless it would not be an offer.
    let mut other = Session::new(transport(), 2);
    let text = other.local_offer(passed_on.clone()).unwrap();
    if lines > 0 {
        let again = RemoteDescription::parse(&text, SdpType::Offer, &slots);
        assert!(
            again.is_ok_and(|again| again.description.media.len() == lines),
            "{text}"
        );
    }
});

fn transport() -> LocalTransport {
    LocalTransport {
        ice: IceCredentials {
            ufrag: "fuzz".to_owned(),
            pwd: "fuzz-password-of-24-chars".to_owned(),
        },
        fingerprint: Fingerprint {
            hash: FingerprintHash::Sha256,
            digest: vec![7; 32],
        },
        candidates: Vec::new(),
        full_trickle: false,
        ice_lite: false,
        address: [192, 0, 2, 1].into(),
        session_id: 1,
    }
}
