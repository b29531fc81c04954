//! The text of a far end as the SDP library's model. Telephones deviate from the standard, so
//! useless parts are skipped, and only incomprehensible ones are refused.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use sdp_types::{Attribute, Bandwidth, Connection, Media, Origin, Session};

use super::error::PlainError;

/// The longest description, in bytes.
pub(super) const MAX_TEXT: usize = 65_536;
/// The most m-lines.
pub(super) const MAX_MEDIA: usize = 32;
/// The most attributes of an m-line, or of the session. More are skipped.
const MAX_ATTRIBUTES: usize = 512;
/// The most characters of a line in an error.
const SHOWN: usize = 120;

/// Reads SDP text. CRLF, CR and LF end lines; blank lines are skipped.
pub(super) fn read(text: &str) -> Result<Session, PlainError> {
    if text.len() > MAX_TEXT {
        return Err(PlainError::TooLong(text.len()));
    }
    let lines = text.split(['\n', '\r']).map(str::trim).enumerate();
    // With CRLF, every other line is empty.
    let is_crlf = text.contains("\r\n");
    let number = |index: usize| match is_crlf {
        true => index / 2 + 1,
        false => index + 1,
    };
    let mut lines = lines.filter(|(_, line)| !line.is_empty());
    let Some((_, "v=0")) = lines.next() else {
        return Err(PlainError::NotSdp);
    };
    let mut reader = Reader::default();
    for (index, text) in lines {
        reader.line(Line {
            number: number(index),
            text,
        })?;
    }
    let origin = reader.origin.ok_or(PlainError::Missing('o'))?;
    if reader.media.is_empty() {
        return Err(PlainError::Missing('m'));
    }
    let mut session = Session::new(origin, reader.name.unwrap_or_else(|| "-".to_owned()));
    session.connection = reader.connection;
    session.attributes = reader.attributes;
    session.medias = reader.media;
    Ok(session)
}

/// Reads the address of a `c=` line or of another place. It is an error if it cannot be sent to.
pub(super) fn address(text: &str) -> Result<IpAddr, PlainError> {
    let wrong = |what| PlainError::Address(shown(text), what);
    // The lifetime and the number of a group's addresses follow a slash.
    let (host, rest) = match text.split_once('/') {
        Some((host, rest)) => (host, Some(rest)),
        None => (text, None),
    };
    let address: IpAddr = host
        .parse()
        .map_err(|_| wrong("expected an IPv4 or IPv6 address"))?;
    let is_broadcast = address == IpAddr::V4(Ipv4Addr::BROADCAST);
    if address.is_multicast() || is_broadcast {
        return Err(wrong("it is of a group"));
    }
    match rest {
        Some(_) => Err(wrong("only groups have a lifetime")),
        None => Ok(address.to_canonical()),
    }
}

/// Returns whether the address is unspecified, which holds media (RFC 3264 section 8.4).
pub(super) fn is_nowhere(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address == Ipv4Addr::UNSPECIFIED,
        IpAddr::V6(address) => address == Ipv6Addr::UNSPECIFIED,
    }
}

#[derive(Clone, Copy)]
struct Line<'a> {
    /// The number, from 1.
    number: usize,
    text: &'a str,
}

impl Line<'_> {
    fn wrong(self, what: &'static str) -> PlainError {
        PlainError::Line {
            line: self.number,
            what,
            text: shown(self.text),
        }
    }
}

#[derive(Default)]
struct Reader {
    origin: Option<Origin>,
    name: Option<String>,
    connection: Option<Connection>,
    attributes: Vec<Attribute>,
    media: Vec<Media>,
}

impl Reader {
    fn line(&mut self, line: Line<'_>) -> Result<(), PlainError> {
        let Some((key, value)) = line.text.split_once('=').filter(|(key, _)| key.len() == 1) else {
            return Err(PlainError::NotKeyValue(line.number, shown(line.text)));
        };
        if value.contains('\0') {
            return Err(line.wrong("it has a zero byte"));
        }
        let value = value.trim();
        match key {
            "m" => self.media_line(line, value),
            "c" => self.connection(line, value),
            "a" => {
                self.attribute(value);
                Ok(())
            }
            "b" => {
                self.bandwidth(value);
                Ok(())
            }
            "o" if self.media.is_empty() && self.origin.is_none() => {
                self.origin = Some(origin(line, value)?);
                Ok(())
            }
            "s" if self.media.is_empty() && self.name.is_none() => {
                self.name = (!value.is_empty()).then(|| value.to_owned());
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn media_line(&mut self, line: Line<'_>, value: &str) -> Result<(), PlainError> {
        if self.media.len() >= MAX_MEDIA {
            return Err(PlainError::TooManyMedia(MAX_MEDIA));
        }
        let mut fields = value.split_ascii_whitespace();
        let (Some(media), Some(port), Some(proto)) = (fields.next(), fields.next(), fields.next())
        else {
            return Err(line.wrong("expected media, port, protocol and formats"));
        };
        // The number of ports follows a slash.
        let port = port.split('/').next().unwrap_or_default();
        let port: u16 = port.parse().map_err(|_| line.wrong("the port"))?;
        let formats: Vec<&str> = fields.collect();
        if formats.is_empty() {
            return Err(line.wrong("there are no formats"));
        }
        self.media.push(Media {
            media: media.to_ascii_lowercase(),
            port,
            num_ports: None,
            proto: proto.to_owned(),
            fmt: formats.join(" "),
            media_title: None,
            connections: Vec::new(),
            bandwidths: Vec::new(),
            key: None,
            attributes: Vec::new(),
        });
        Ok(())
    }

    fn connection(&mut self, line: Line<'_>, value: &str) -> Result<(), PlainError> {
        let fields: Vec<&str> = value.split_ascii_whitespace().collect();
        let [net, family, text] = fields.as_slice() else {
            return Err(line.wrong("expected IN, IP4 or IP6, and an address"));
        };
        if !net.eq_ignore_ascii_case("IN") {
            return Err(line.wrong("it is not of the internet"));
        }
        let address = address(text)?;
        let is_v4 = family.eq_ignore_ascii_case("IP4");
        let is_known = is_v4 || family.eq_ignore_ascii_case("IP6");
        if !is_known || is_v4 != address.is_ipv4() {
            return Err(line.wrong("the address is of another family"));
        }
        let connection = Connection::from_ip_addr(address);
        match self.media.last_mut() {
            Some(media) => media.connections.push(connection),
            None => self.connection = Some(connection),
        }
        Ok(())
    }

    /// Reads an attribute. No wrong attribute of a telephone is worth refusing its call.
    fn attribute(&mut self, value: &str) {
        let (name, value) = match value.split_once(':') {
            Some((name, value)) => (name.trim(), Some(value.trim().to_owned())),
            None => (value, None),
        };
        let attributes = match self.media.last_mut() {
            Some(media) => &mut media.attributes,
            None => &mut self.attributes,
        };
        if !name.is_empty() && attributes.len() < MAX_ATTRIBUTES {
            attributes.push(Attribute {
                attribute: name.to_owned(),
                value,
            });
        }
    }

    /// Keeps an m-line's limits of known types, the first of each.
    fn bandwidth(&mut self, value: &str) {
        let Some(media) = self.media.last_mut().filter(|it| it.bandwidths.is_empty()) else {
            return;
        };
        let Some((modifier @ ("AS" | "TIAS"), limit)) = value.split_once(':') else {
            return;
        };
        if let Ok(bandwidth) = limit.trim().parse() {
            let bwtype = modifier.to_owned();
            media.bandwidths.push(Bandwidth { bwtype, bandwidth });
        }
    }
}

/// Reads an origin. Only the numbers count; its address may be anything.
fn origin(line: Line<'_>, value: &str) -> Result<Origin, PlainError> {
    // Some user names contain spaces.
    let fields: Vec<&str> = value.split_ascii_whitespace().collect();
    let [user @ .., id, version, _, _, _] = fields.as_slice() else {
        return Err(line.wrong("expected six fields"));
    };
    let digits = version.bytes().all(|byte| byte.is_ascii_digit());
    if user.is_empty() || !digits {
        return Err(line.wrong("expected six fields"));
    }
    let version = version.parse().unwrap_or(u64::MAX);
    Ok(Origin::with_ip_addr(id, version, Ipv4Addr::UNSPECIFIED))
}

fn shown(text: &str) -> String {
    text.chars().take(SHOWN).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;

    const HEAD: &str = "v=0\r\no=- 1 2 IN IP4 192.0.2.1\r\ns=-\r\nc=IN IP4 192.0.2.1\r\nt=0 0\r\n";

    fn error(lines: &str) -> String {
        read(&format!("{HEAD}{lines}")).unwrap_err().to_string()
    }

    #[test]
    fn telephones_may_write_what_they_like() {
        let text = "\nv=0\no=a phone 0 0 IN IP4 host.example\ns=\ni=x\nz=1\nb=AS:64\na=\na=:x\na=inactive\n\
            m=AUDIO  4000/2  RTP/AVP 0   8\r\rc=IN IP6 2001:db8::1\nb=CT:1\nb=TIAS:64000\nb=AS:1\na=ptime: 20\nm=image 0 udptl t38";
        let session = read(text).unwrap();
        assert_eq!(session.medias.len(), 2);
        assert_eq!(session.attributes.len(), 1);
        let audio = session.medias.first().unwrap();
        assert_eq!((audio.media.as_str(), audio.port), ("audio", 4000));
        assert_eq!(audio.fmt, "0 8");
        assert_eq!(audio.bandwidths.len(), 1);
        assert_eq!(
            audio.attributes.first().unwrap().value.as_deref(),
            Some("20")
        );
        let huge = text.replace(" 0 0 IN", " x 99999999999999999999999 IN");
        assert_eq!(read(&huge).unwrap().origin.sess_version, u64::MAX);
    }

    #[test]
    fn what_cannot_be_understood_is_refused_with_its_line() {
        for (lines, expected) in [
            ("hello", "line 6 is no SDP: hello"),
            ("mm=x", "line 6 is no SDP: mm=x"),
            ("", "there is no m= line"),
            (
                "m=audio",
                "line 6 cannot be read (expected media, port, protocol and formats): m=audio",
            ),
            (
                "m=audio 70000 RTP/AVP 0",
                "line 6 cannot be read (the port): m=audio 70000 RTP/AVP 0",
            ),
            (
                "m=audio 1 RTP/AVP",
                "line 6 cannot be read (there are no formats): m=audio 1 RTP/AVP",
            ),
            (
                "m=audio 1 RTP/AVP 0\r\nc=IN IP4",
                "line 7 cannot be read (expected IN, IP4 or IP6, and an address): c=IN IP4",
            ),
            (
                "c=IN IP6 192.0.2.1",
                "line 6 cannot be read (the address is of another family): c=IN IP6 192.0.2.1",
            ),
            (
                "c=ATM NSAP 4",
                "line 6 cannot be read (it is not of the internet): c=ATM NSAP 4",
            ),
            (
                "c=IN IP4 pbx.example.org",
                "pbx.example.org is no address to send to (expected an IPv4 or IPv6 address)",
            ),
            (
                "c=IN IP4 224.2.1.1/127",
                "224.2.1.1/127 is no address to send to (it is of a group)",
            ),
            (
                "c=IN IP4 255.255.255.255",
                "255.255.255.255 is no address to send to (it is of a group)",
            ),
            (
                "a=x\0y",
                "line 6 cannot be read (it has a zero byte): a=x\0y",
            ),
        ] {
            assert_eq!(error(lines), expected);
        }
        let one = |text: &str| read(text).unwrap_err().to_string();
        assert_eq!(one(""), "it does not begin with v=0");
        assert_eq!(one("v=1\n"), "it does not begin with v=0");
        assert_eq!(one("v=0\nm=audio 1 RTP/AVP 0"), "there is no o= line");
        assert_eq!(
            one("v=0\no=- 1 x IN IP4 h"),
            "line 2 cannot be read (expected six fields): o=- 1 x IN IP4 h"
        );
        let many = "m=audio 1 RTP/AVP 0\r\n".repeat(MAX_MEDIA + 1);
        assert_eq!(error(&many), "it has more than 32 m= lines");
        let long = format!("v=0\n{}", "a=x\n".repeat(20_000));
        assert_eq!(one(&long), "it has 80004 bytes, 65536 are the most");
    }
}
