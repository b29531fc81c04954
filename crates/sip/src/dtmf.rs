//! Keys of a telephone in INFO: `application/dtmf-relay` and `application/dtmf`, as telephones and
//! exchanges send them. No RFC defines the two; RFC 6086 only lists them as uses of INFO.

use crate::message::{Method, Request};

/// The media type with a key and its duration: lines `Signal=5` and `Duration=160`.
const RELAY: &str = "application/dtmf-relay";
/// The media type with a key alone.
const PLAIN: &str = "application/dtmf";

/// Returns the key in an INFO: one of `0123456789*#ABCD`, or `None` if there is none.
///
/// Keys may be characters, or the numbers 10 to 15 that `*#ABCD` have as telephone events (RFC 4733
/// section 3.2).
#[must_use]
pub fn key(request: &Request) -> Option<char> {
    if request.method != Method::Info {
        return None;
    }
    let kind = request.headers.content_type().ok()??;
    let body = std::str::from_utf8(&request.body).ok()?;
    match kind.essence.as_str() {
        RELAY => signal(body),
        // Some senders mix up the two formats.
        PLAIN => of_text(body).or_else(|| signal(body)),
        _ => None,
    }
}

fn signal(body: &str) -> Option<char> {
    let mut fields = body.lines().filter_map(|line| line.split_once('='));
    let (_, value) = fields.find(|(name, _)| name.trim().eq_ignore_ascii_case("signal"))?;
    of_text(value)
}

fn of_text(text: &str) -> Option<char> {
    let text = text.trim();
    let mut characters = text.chars();
    match (characters.next()?, characters.next()) {
        (key, None) => {
            let key = key.to_ascii_uppercase();
            matches!(key, '0'..='9' | '*' | '#' | 'A'..='D').then_some(key)
        }
        _ => match text {
            "10" => Some('*'),
            "11" => Some('#'),
            "12" => Some('A'),
            "13" => Some('B'),
            "14" => Some('C'),
            "15" => Some('D'),
            _ => None,
        },
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;

    fn key_of(content_type: &str, body: &str) -> Option<char> {
        let mut request = info(Method::Info);
        request.set_body(content_type, body);
        key(&request)
    }

    fn info(method: Method) -> Request {
        Request::new(method, "sip:a@b".parse().unwrap())
    }

    #[test]
    fn keys_are_told_as_telephones_write_them() {
        for (body, expected) in [
            ("Signal=5\r\nDuration=160\r\n", Some('5')),
            ("Signal= 5\nDuration= 160\n", Some('5')),
            ("Duration=160\r\nsignal = # ", Some('#')),
            ("Signal=*", Some('*')),
            ("Signal=d\r\n", Some('D')),
            ("Signal=11\r\n", Some('#')),
            ("Signal=16\r\n", None),
            ("Signal=12345\r\n", None),
            ("Signal=\r\n", None),
            ("Signal=E\r\n", None),
            ("Signal", None),
            ("5", None),
            ("", None),
        ] {
            assert_eq!(key_of("application/dtmf-relay", body), expected, "{body:?}");
        }
        for (body, expected) in [
            ("5", Some('5')),
            (" 10\r\n", Some('*')),
            ("Signal=7\r\nDuration=100", Some('7')),
            ("\u{0665}", None),
            ("", None),
        ] {
            let content_type = "Application/DTMF;charset=utf-8";
            assert_eq!(key_of(content_type, body), expected, "{body:?}");
        }
    }

    #[test]
    fn nothing_else_tells_keys() {
        assert_eq!(key_of("text/plain", "5"), None);
        assert_eq!(key(&info(Method::Info)), None);
        let mut message = info(Method::Message);
        message.set_body("application/dtmf", "5");
        assert_eq!(key(&message), None);
        let mut bytes = info(Method::Info);
        bytes.set_body("application/dtmf", [0xff, b'5']);
        assert_eq!(key(&bytes), None);
    }
}
