//! The answer to an offer of audio.

use std::fmt::Write;
use std::net::SocketAddr;

use portunus_sdp::CodecName;

/// Answers with `codec` by the offer's payload type, with telephone events if offered, and with RTP
/// at `rtp`. Returns `None` if the codec is not offered.
pub(super) fn answer(offer: &str, codec: CodecName, rtp: SocketAddr) -> Option<String> {
    let mut lines = offer.lines().map(str::trim_end);
    let media = lines.find_map(|line| line.strip_prefix("m=audio "))?;
    let lines: Vec<&str> = lines.take_while(|line| !line.starts_with("m=")).collect();
    let mut words = media.split(' ');
    let (_, protocol) = (words.next()?, words.next()?);
    let offered: Vec<u8> = words.filter_map(|word| word.parse().ok()).collect();
    let mapped = |pt: u8| {
        let map = |line: &&str| {
            let (number, name) = line.strip_prefix("a=rtpmap:")?.split_once(' ')?;
            (number == pt.to_string()).then(|| name.to_owned())
        };
        lines.iter().find_map(map).or_else(|| known(pt))
    };
    let is_of = |pt: &u8, name: &str| {
        let encoding = mapped(*pt);
        let encoding = encoding.as_deref().and_then(|text| text.split('/').next());
        encoding.is_some_and(|encoding| encoding.eq_ignore_ascii_case(name))
    };
    let find = |name: &str| offered.iter().copied().find(|pt| is_of(pt, name));
    let taken = [find(name_of(codec)?)?].into_iter();
    let taken: Vec<u8> = taken.chain(find("telephone-event")).collect();
    let family = if rtp.is_ipv4() { "IP4" } else { "IP6" };
    let (ip, port) = (rtp.ip(), rtp.port());
    let mut text = format!(
        "v=0\r\no=hammer 1 1 IN {family} {ip}\r\ns=-\r\nc=IN {family} {ip}\r\nt=0 0\r\nm=audio {port} {protocol}"
    );
    let lines = taken.iter().filter_map(|pt| Some((*pt, mapped(*pt)?)));
    let maps: String = lines
        .map(|(pt, name)| format!("a=rtpmap:{pt} {name}\r\n"))
        .collect();
    for pt in &taken {
        // Writing to a string cannot fail.
        let _ = write!(text, " {pt}");
    }
    Some(format!("{text}\r\n{maps}a=ptime:20\r\na=sendrecv\r\n"))
}

/// Returns the encoding of a static payload type (RFC 3551 section 6).
fn known(pt: u8) -> Option<String> {
    let name = match pt {
        0 => "PCMU/8000",
        8 => "PCMA/8000",
        9 => "G722/8000",
        _ => return None,
    };
    Some(name.to_owned())
}

/// Returns the encoding name in RTP.
fn name_of(codec: CodecName) -> Option<&'static str> {
    match codec {
        CodecName::Opus => Some("opus"),
        CodecName::Pcmu => Some("PCMU"),
        CodecName::Pcma => Some("PCMA"),
        CodecName::G722 => Some("G722"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;

    const OFFER: &str = "v=0\r\no=- 1 1 IN IP4 10.0.0.1\r\ns=-\r\nc=IN IP4 10.0.0.1\r\nt=0 0\r\nm=audio 4000 RTP/AVP 111 0 101\r\n\
        a=rtpmap:111 opus/48000/2\r\na=rtpmap:101 telephone-event/8000\r\nm=video 4002 RTP/AVP 96\r\na=rtpmap:96 VP8/90000\r\n";

    #[test]
    fn the_codec_is_taken_by_the_offers_number() {
        let rtp = "10.99.0.2:5004".parse().unwrap();
        let opus = answer(OFFER, CodecName::Opus, rtp).unwrap();
        assert!(opus.contains("m=audio 5004 RTP/AVP 111 101\r\na=rtpmap:111 opus/48000/2\r\n"));
        assert!(opus.contains("c=IN IP4 10.99.0.2\r\n"));
        let pcmu = answer(OFFER, CodecName::Pcmu, rtp).unwrap();
        assert!(pcmu.contains("m=audio 5004 RTP/AVP 0 101\r\na=rtpmap:0 PCMU/8000\r\n"));
        assert_eq!(answer(OFFER, CodecName::G722, rtp), None);
        assert_eq!(answer("v=0\r\n", CodecName::Pcmu, rtp), None);
    }
}
