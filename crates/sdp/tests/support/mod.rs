//! Common parts of the tests: offers of real peers, a session with fixed mids, the options of an
//! echo.
#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "each test uses a part of this, and fails by a panic"
)]

use std::path::PathBuf;

use portunus_rtp::ExtensionKind;
use portunus_sdp::{
    AnswerOptions, Description, Fingerprint, FingerprintHash, IceCredentials, LocalTransport,
    Negotiated, RemoteDescription, SdpError, SdpType, Session,
};

/// Reads an offer from `tests/peers/offers`, with the line ends of the wire.
pub fn offer(name: &str) -> String {
    std::fs::read_to_string(path("peers/offers", name))
        .expect(name)
        .replace('\n', "\r\n")
}

pub fn path(folder: &str, name: &str) -> PathBuf {
    [
        env!("CARGO_MANIFEST_DIR"),
        "tests",
        folder,
        &format!("{name}.sdp"),
    ]
    .iter()
    .collect()
}

pub fn credentials(ufrag: &str) -> IceCredentials {
    IceCredentials {
        ufrag: ufrag.to_owned(),
        pwd: format!("{ufrag}-password-of-24-chars"),
    }
}

pub fn transport() -> LocalTransport {
    LocalTransport {
        ice: credentials("serv"),
        fingerprint: Fingerprint {
            hash: FingerprintHash::Sha256,
            digest: (0..32).collect(),
        },
        candidates: vec!["candidate:1 1 udp 2015363327 203.0.113.5 10000 typ host".to_owned()],
        full_trickle: false,
        ice_lite: false,
        address: "203.0.113.5".parse().unwrap(),
        session_id: 1_700_000_000_000_000,
    }
}

pub fn session() -> Session {
    Session::new(transport(), 7)
}

/// Returns the options of the echo test.
pub fn echo(offer: &Description) -> AnswerOptions {
    let mut options = AnswerOptions {
        extensions: ExtensionKind::ALL.to_vec(),
        ..AnswerOptions::default()
    };
    options.audio.fmtp = offer.opus_flags().fmtp();
    options
}

pub fn parse(text: &str) -> Result<RemoteDescription, SdpError> {
    RemoteDescription::parse(text, SdpType::Offer, &[])
}

/// Answers `text` like the echo test.
pub fn answer(text: &str) -> (String, Negotiated) {
    answer_with(&mut session(), text, |_| {})
}

/// Answers `text` in `session` with the echo test's options after `change`.
pub fn answer_with(
    session: &mut Session,
    text: &str,
    change: impl FnOnce(&mut AnswerOptions),
) -> (String, Negotiated) {
    let remote = session.parse(text, SdpType::Offer).unwrap();
    let mut options = echo(&remote.description);
    change(&mut options);
    let answer = Description::answer(&remote.description, &options);
    session.set_remote_offer(remote).unwrap();
    session.local_answer(answer).unwrap()
}

/// Returns the lines of the m-line at `index`, without line ends. 0 is the session level.
pub fn section(text: &str, index: usize) -> Vec<&str> {
    let mut sections = vec![Vec::new()];
    for line in text.lines() {
        if line.starts_with("m=") {
            sections.push(Vec::new());
        }
        sections.last_mut().unwrap().push(line);
    }
    sections.swap_remove(index)
}

/// Returns the lines of the m-line at `index` that start with `start`.
pub fn lines<'a>(text: &'a str, index: usize, start: &str) -> Vec<&'a str> {
    section(text, index)
        .into_iter()
        .filter(|line| line.starts_with(start))
        .collect()
}

/// Returns the direction of the m-line at `index`.
pub fn direction(text: &str, index: usize) -> &str {
    let directions = ["a=sendrecv", "a=sendonly", "a=recvonly", "a=inactive"];
    section(text, index)
        .into_iter()
        .find(|line| directions.contains(line))
        .unwrap()
}

/// Returns an offer of one m-line with these attributes.
pub fn one_line(media: &str, attributes: &[&str]) -> String {
    let mut text = head();
    text.push_str(&media_section(media, "0", attributes));
    text
}

/// Returns the session part of an offer, with transport.
pub fn head() -> String {
    let digest = ["AB"; 32].join(":");
    format!(
        "v=0\r\no=- 52 2 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\na=ice-ufrag:peer\r\n\
         a=ice-pwd:peer-password-of-24-chars\r\na=fingerprint:sha-256 {digest}\r\na=setup:actpass\r\n"
    )
}

/// Returns an m-line with `mid` and these attributes.
pub fn media_section(media: &str, mid: &str, attributes: &[&str]) -> String {
    let mut text = format!("m={media}\r\na=mid:{mid}\r\n");
    for attribute in attributes {
        text.push_str(&format!("a={attribute}\r\n"));
    }
    text
}
