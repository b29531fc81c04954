//! SDP text to and from the SDP library's model, with leniency per line and the errors that clients
//! know.

use sdp_types::Session;

use crate::error::SdpError;

/// The most m-lines of a description.
pub const MAX_MEDIA: usize = 512;
/// The longest m-line, in bytes.
const MAX_MEDIA_LINE: usize = 200;

/// Reads SDP text. CRLF and LF end lines. Blank lines and unused lines are skipped.
pub(crate) fn read(text: &str) -> Result<Session, SdpError> {
    if !text.starts_with("v=") {
        return Err(SdpError::NoVersion);
    }
    let mut seen = Seen::default();
    let mut kept = String::with_capacity(text.len());
    for line in text.split('\n') {
        let line = line.split('\r').next().unwrap_or_default();
        if seen.check(line)? {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    if !(seen.origin && seen.name && seen.media > 0) {
        return Err(SdpError::Incomplete);
    }
    Session::parse(kept.as_bytes()).map_err(|error| SdpError::Syntax(error.to_string()))
}

/// The lines so far.
#[derive(Default)]
struct Seen {
    version: bool,
    origin: bool,
    name: bool,
    time: bool,
    media: usize,
    bandwidth: bool,
}

impl Seen {
    /// Returns whether to keep `line`.
    fn check(&mut self, line: &str) -> Result<bool, SdpError> {
        if line.is_empty() {
            return Ok(false);
        }
        if line.len() < 3 {
            return Err(SdpError::ShortLine(line.to_owned()));
        }
        let Some((key @ ("v" | "o" | "s" | "t" | "m" | "a" | "b"), value)) = line.split_once('=')
        else {
            return match line.as_bytes().get(1) {
                Some(b'=') => Ok(false),
                _ => Err(SdpError::NotKeyValue(line.to_owned())),
            };
        };
        let key = key.chars().next().unwrap_or_default();
        let invalid = || SdpError::InvalidLine {
            key,
            line: line.to_owned(),
        };
        let repeated = || SdpError::RepeatedLine {
            key,
            line: line.to_owned(),
        };
        let in_media = self.media > 0;
        match key {
            'v' if self.version => Ok(false),
            'v' => {
                self.version = true;
                if value == "0" {
                    Ok(true)
                } else {
                    Err(invalid())
                }
            }
            'o' | 's' | 't' if in_media => Ok(false),
            'o' if self.origin => Err(repeated()),
            'o' => {
                self.origin = true;
                if is_origin(value) {
                    Ok(true)
                } else {
                    Err(invalid())
                }
            }
            's' if self.name => Err(repeated()),
            's' => {
                self.name = true;
                Ok(true)
            }
            't' if self.time => Ok(false),
            't' => {
                self.time = true;
                let mut times = value.split_ascii_whitespace().map(str::parse::<u64>);
                let valid = matches!((times.next(), times.next()), (Some(Ok(_)), Some(Ok(_))));
                if valid { Ok(false) } else { Err(invalid()) }
            }
            'm' => {
                self.media += 1;
                self.bandwidth = false;
                self.check_media(line, value).map(|()| true)
            }
            'b' => {
                let (modifier, limit) = value.split_once(':').ok_or_else(invalid)?;
                if limit.is_empty() {
                    return Err(invalid());
                }
                let known = matches!(modifier, "AS" | "TIAS") && limit.parse::<u64>().is_ok();
                let keep = in_media && known && !self.bandwidth;
                self.bandwidth |= keep;
                Ok(keep)
            }
            _ => match value.split_once(':') {
                Some((name, value)) if name.is_empty() || value.is_empty() => Err(invalid()),
                _ if value.contains('\0') => Err(invalid()),
                _ => Ok(true),
            },
        }
    }

    fn check_media(&self, line: &str, value: &str) -> Result<(), SdpError> {
        let invalid = || SdpError::InvalidLine {
            key: 'm',
            line: line.to_owned(),
        };
        if line.len() > MAX_MEDIA_LINE {
            return Err(SdpError::LongMediaLine(line.len()));
        }
        if self.media > MAX_MEDIA {
            return Err(SdpError::TooManyMedia(self.media));
        }
        let mut fields = value.split(' ');
        let (kind, port, proto) = (fields.next(), fields.next(), fields.next());
        let kind_known = kind.is_some_and(|kind| matches!(kind, "audio" | "video" | "application"));
        let port_valid = port.is_some_and(|port| port.parse::<u16>().is_ok());
        if !kind_known || !port_valid || proto.is_none_or(str::is_empty) {
            return Err(invalid());
        }
        if fields.all(str::is_empty) {
            return Err(SdpError::NoFormats(line.to_owned()));
        }
        Ok(())
    }
}

/// Returns whether `value` is a user name, two numbers, `IN`, an address family and an address.
fn is_origin(value: &str) -> bool {
    let fields: Vec<&str> = value.split_ascii_whitespace().collect();
    match fields.as_slice() {
        [_, id, version, "IN", family, _] => {
            id.bytes().all(|digit| digit.is_ascii_digit())
                && version.parse::<u64>().is_ok()
                && (family.eq_ignore_ascii_case("IP4") || family.eq_ignore_ascii_case("IP6"))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;

    const HEAD: &str = "v=0\r\no=- 1 2 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\n";

    fn error(text: &str) -> String {
        read(text).unwrap_err().to_string()
    }

    #[test]
    fn refuses_with_the_texts_that_clients_know() {
        assert_eq!(error("hello"), "Invalid SDP (doesn't start with v=)");
        assert_eq!(error(""), "Invalid SDP (doesn't start with v=)");
        assert_eq!(error(&format!("{HEAD}x\r\n")), "Invalid line (1 bytes): x");
        assert_eq!(
            error(&format!("{HEAD}nonsense\r\n")),
            "Invalid line (2nd char is not '='): nonsense"
        );
        assert_eq!(
            error("v=0\nt=0 0\n"),
            "Missing mandatory lines (o=, s= or m=)"
        );
        assert_eq!(error(HEAD), "Missing mandatory lines (o=, s= or m=)");
        assert_eq!(
            error(&format!("{HEAD}m=text 9 RTP/AVP 98\r\n")),
            "Invalid m= line: m=text 9 RTP/AVP 98"
        );
        assert_eq!(
            error(&format!("{HEAD}m=audio x RTP/AVP 0")),
            "Invalid m= line: m=audio x RTP/AVP 0"
        );
        assert_eq!(
            error(&format!("{HEAD}m=audio 9 RTP/AVP")),
            "Invalid m= line (no payload types/formats): m=audio 9 RTP/AVP"
        );
        assert_eq!(
            error(&format!("{HEAD}m=audio 9 RTP/AVP {}", "0 ".repeat(100))),
            "Invalid m= line (too long): 218"
        );
        assert_eq!(
            error(&format!("{HEAD}s=again\r\n")),
            "Multiple s= lines: s=again"
        );
        assert_eq!(
            error("v=0\ns=-\no=- x 1 IN IP4 h"),
            "Invalid o= line: o=- x 1 IN IP4 h"
        );
        assert_eq!(
            error(&format!("{HEAD}a=fmtp:\r\n")),
            "Invalid a= line: a=fmtp:"
        );
        assert_eq!(error("v=zero\n"), "Invalid v= line: v=zero");
    }

    #[test]
    fn takes_bare_line_feeds_blank_lines_and_unknown_lines() {
        let text = "v=0\n\no=- 18446744073709551615 2 IN IP6 ::1\ns= \nx=y\nk=clear:1\nt=0 0\n\r\nm=audio 9 RTP/AVP 0\n\
                    b=CT:1\nb=AS:30\nb=TIAS:3\nc=IN IP4 0.0.0.0\na=mid:0";
        let session = read(text).unwrap();
        assert_eq!(session.medias.len(), 1);
        let media = session.medias.first().unwrap();
        assert_eq!(media.attributes.len(), 1);
        assert_eq!(media.bandwidths.len(), 1);
    }

    #[test]
    fn refuses_too_many_media_lines() {
        let text = format!("{HEAD}{}", "m=audio 9 RTP/AVP 0\n".repeat(MAX_MEDIA + 1));
        assert_eq!(error(&text), "Too many m= lines (513)");
    }
}
