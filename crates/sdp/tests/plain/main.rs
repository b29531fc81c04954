//! Descriptions of far ends without ICE and DTLS, such as telephones and SIP servers.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

mod changes;
mod descriptions;
mod keys;
#[path = "../support/mod.rs"]
mod support;

use std::net::{IpAddr, Ipv4Addr};

use portunus_sdp::plain::{LocalEnd, LocalPorts, PlainSession, Ports, SrtpPolicy};
use portunus_sdp::{Codec, Description, Kind};
use support::{offer, parse, path};

fn far(name: &str) -> String {
    let text = std::fs::read_to_string(path("far_ends", name)).expect(name);
    text.replace('\n', "\r\n")
}

/// Returns Chromium's offer without its data channel.
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

/// Returns the local end for far ends at this address.
fn local_towards(far: IpAddr) -> LocalEnd {
    let address = match far {
        IpAddr::V4(_) => local().address,
        IpAddr::V6(_) => "2001:db8::1".parse().unwrap(),
    };
    LocalEnd { address, ..local() }
}

fn fill(bytes: &mut [u8]) {
    bytes.fill(9);
}

fn offered(plain: &mut PlainSession, browser: &Description, srtp: Option<SrtpPolicy>) -> String {
    plain.offer(browser, &local(), srtp, &mut fill).unwrap()
}

/// Answers like a browser, with the parts of the offer that it knows.
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

/// Returns the lines of the m-line of this kind.
fn section<'t>(text: &'t str, kind: &str) -> Vec<&'t str> {
    let start = format!("m={kind} ");
    let lines = text.lines().skip_while(|line| !line.starts_with(&start));
    let mut lines: Vec<&str> = lines.collect();
    let end = lines.iter().skip(1).position(|line| line.starts_with("m="));
    lines.truncate(end.map_or(lines.len(), |end| end + 1));
    lines
}

/// Returns a telephone's answer to an offer with audio.
fn telephone(media: &str) -> String {
    format!("v=0\r\no=- 5 5 IN IP4 192.0.2.9\r\ns=-\r\nc=IN IP4 192.0.2.9\r\nt=0 0\r\n{media}")
}

const PCMU: &str = "m=audio 4000 RTP/AVP 0 101\r\na=rtpmap:101 telephone-event/8000\r\n";
