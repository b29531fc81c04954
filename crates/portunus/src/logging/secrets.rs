//! Blanks secrets in log lines: passwords, tokens, pins and ICE credentials.
//!
//! It finds secrets by their names, in the notations of fields, structures, JSON, SDP, headers and
//! URLs. It is the last resort: code should not log secrets.

use std::borrow::Cow;
use std::ops::Range;

/// The replacement of a secret.
pub(super) const BLANK: &str = "***";

/// The ends of the names of secrets, in lower case and without hyphens and underscores.
const ENDS: [&str; 13] = [
    "ufrag",
    "usernamefragment",
    "pwd",
    "passwd",
    "password",
    "passphrase",
    "secret",
    "token",
    "authorization",
    "cookie",
    "adminkey",
    "apikey",
    "srtpcrypto",
];
/// Names of secrets that are also the ends of other words, and names of lists of secrets.
const WHOLE: [&str; 11] = [
    "pass",
    "pin",
    "pins",
    "ha1",
    "tokens",
    "secrets",
    "allowed",
    "inline",
    "credential",
    "credentials",
    "bearer",
];
/// The ends of messages with two credentials.
const DIFFERENCES: [&str; 2] = ["ufrag mismatch", "user mismatch"];

/// Whether a field with this name is a secret.
pub(super) fn is_secret_name(name: &str) -> bool {
    is_secret(&name.to_ascii_lowercase())
}

/// Replaces the secrets of a text.
pub(super) fn redact(line: &str) -> Cow<'_, str> {
    let mut redacted = String::new();
    let mut copied = 0;
    let mut at = 0;
    while let Some(found) = line.get(at..).and_then(|rest| rest.find([':', '=', ' '])) {
        at += found;
        let secret = secret_at(line, at);
        at += 1;
        if let Some(secret) = secret
            && let Some(before) = line.get(copied..secret.start)
        {
            redacted.push_str(before);
            redacted.push_str(BLANK);
            copied = secret.end;
            at = at.max(copied);
        }
    }
    match copied {
        0 => Cow::Borrowed(line),
        _ => {
            redacted.push_str(line.get(copied..).unwrap_or_default());
            Cow::Owned(redacted)
        }
    }
}

/// Returns the place of the secret whose name ends at the separator at `at`.
fn secret_at(line: &str, at: usize) -> Option<Range<usize>> {
    let (before, after) = line.split_at_checked(at)?;
    let separator = after.chars().next()?;
    let rest = after.get(1..)?;
    let place = |secret: Option<Range<usize>>| {
        secret
            .map(|it| at + 1 + it.start..at + 1 + it.end)
            .filter(|it| !it.is_empty())
    };
    if separator == ' ' {
        // As in candidates.
        let is_ufrag = before.ends_with("ufrag") && !rest.starts_with("mismatch");
        return place(is_ufrag.then(|| unquoted(rest, 0, true)));
    }
    if separator == ':' {
        if DIFFERENCES.iter().any(|it| before.ends_with(it)) {
            return place(Some(0..rest.find(['\r', '\n']).unwrap_or(rest.len())));
        }
        // A secret may start like that, too.
        let is_scheme = !name(before).is_some_and(|name| is_secret(&name));
        if let Some(rest) = rest.strip_prefix("//").filter(|_| is_scheme) {
            let in_url = password(rest, &['/', '?', '#']);
            return place(in_url.map(|it| it.start + 2..it.end + 2));
        }
        if ends_with_word(before, "sip") || ends_with_word(before, "sips") {
            return place(password(rest, &['/', '?', ';']));
        }
    }
    let name = name(before)?;
    // In STUN the name consists of both sides' ICE user fragments.
    let is_of_ice = name == "username" && before.contains("StunMessage");
    if !is_of_ice && !is_secret(&name) {
        return None;
    }
    place(value(rest, separator, &name))
}

/// Returns the password in `USER:PASSWORD@HOST`. It ends at one of `ends` at the latest.
fn password(rest: &str, ends: &[char]) -> Option<Range<usize>> {
    let is_end = |c: char| ends.contains(&c) || c.is_whitespace() || "\"'<>,\\".contains(c);
    let authority = rest.split(is_end).next()?;
    let (user, _) = authority.rsplit_once('@')?;
    let colon = user.find(':')?;
    Some(colon + 1..user.len())
}

/// Returns the name at the end of a text in lower case. Quotes and colours may follow the name.
fn name(before: &str) -> Option<String> {
    let mut before = before;
    loop {
        let without = before.trim_end_matches(['"', '\'', '\\', ' ']);
        let without = without_color(without).unwrap_or(without);
        if without.len() == before.len() {
            break;
        }
        before = without;
    }
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let start = before.rfind(|c| !is_part(c)).map_or(0, |at| {
        at + before
            .get(at..)
            .and_then(|it| it.chars().next())
            .map_or(1, char::len_utf8)
    });
    let name = before.get(start..)?;
    let is_colored = before.get(..start).is_some_and(|it| it.ends_with("\x1b["));
    let name = match is_colored {
        // The end of a colour sequence.
        true => name.split_once('m').map_or(name, |(_, name)| name),
        false => name,
    };
    (!name.is_empty()).then(|| name.to_ascii_lowercase())
}

/// Returns a text without the colour sequence at its end, or `None` if there is none.
fn without_color(text: &str) -> Option<&str> {
    let codes = text.strip_suffix('m')?;
    let start = codes.trim_end_matches(|c: char| c.is_ascii_digit() || c == ';');
    start.strip_suffix("\x1b[")
}

fn ends_with_word(text: &str, word: &str) -> bool {
    let before = text.strip_suffix(word);
    before.is_some_and(|it| !it.ends_with(|c: char| c.is_alphanumeric() || c == '_'))
}

fn is_secret(name: &str) -> bool {
    let name = name.replace('-', "_");
    let last = name.rsplit('_').next().unwrap_or_default();
    let joined = name.replace('_', "");
    WHOLE.contains(&last) || ENDS.iter().any(|end| joined.ends_with(end))
}

/// Returns the place of the value at the start of `rest`, which follows the separator of its name.
/// Returns `None` if `rest` is prose.
fn value(rest: &str, separator: char, name: &str) -> Option<Range<usize>> {
    let mut value = rest;
    let is_spaced = rest.starts_with([' ', '\t']);
    loop {
        let without = value.trim_start_matches([' ', '\t']);
        let without = match without.strip_prefix("\x1b[") {
            Some(codes) => codes.split_once('m').map_or(without, |(_, after)| after),
            None => without,
        };
        if without.len() == value.len() {
            break;
        }
        value = without;
    }
    // As structures show `Some("…")`.
    while let Some((wrapper, within)) = value.split_once('(')
        && !wrapper.is_empty()
        && wrapper.chars().all(|c| c.is_ascii_alphabetic())
    {
        value = within;
    }
    let start = rest.len() - value.len();
    if value.starts_with('[') {
        let end = value.find(']').unwrap_or(value.len());
        return Some(start + 1..start + end);
    }
    let quoted = value.trim_start_matches('\\');
    if quoted.starts_with(['"', '\'']) {
        return Some(within_quotes(value, start));
    }
    if name.ends_with("authorization") || name.ends_with("cookie") {
        let ends = ["\r", "\n", "\\r", "\\n"].into_iter();
        let end = ends.filter_map(|end| value.find(end)).min();
        return Some(start..start + end.unwrap_or(value.len()));
    }
    let is_prose =
        is_spaced && separator == ':' && !value.starts_with(|c: char| c.is_ascii_digit());
    (!is_prose).then(|| unquoted(value, start, separator == '='))
}

/// Returns the place of a value inside quotes, which may be escaped, without the quotes.
fn within_quotes(value: &str, start: usize) -> Range<usize> {
    let text = value.trim_start_matches('\\');
    let depth = value.len() - text.len();
    let mut chars = text.char_indices();
    let Some((_, quote)) = chars.next() else {
        return start..start;
    };
    let begin = start + depth + 1;
    let mut slashes = 0;
    for (at, c) in chars {
        if c == '\\' {
            slashes += 1;
            continue;
        }
        // Inner quotes have more backslashes before them than outer ones.
        let ends = match depth {
            0 => slashes % 2 == 0,
            _ => slashes <= depth,
        };
        if c == quote && ends {
            let slashes = if depth == 0 { 0 } else { slashes };
            return begin..start + depth + at - slashes;
        }
        slashes = 0;
    }
    begin..start + value.len()
}

/// Returns the place of a value without quotes. Commas belong to it if it is the value of a field.
fn unquoted(value: &str, start: usize, has_commas: bool) -> Range<usize> {
    let is_end = |c: char| {
        c.is_whitespace()
            || c.is_control()
            || "\"'\\;&)]}>|".contains(c)
            || (c == ',' && !has_commas)
    };
    start..start + value.find(is_end).unwrap_or(value.len())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Lines with the secret `S3cr3t` in them, and one of what has to stay.
    const LINES: [(&str, &str); 39] = [
        // The ICE library at its most verbose.
        (
            r#"Set local credentials: IceCreds { ufrag: "S3cr3t", pass: "S3cr3t" }"#,
            "IceCreds {",
        ),
        (
            r#"remote: Some(IceCreds { ufrag: "S3cr3t", pass: "S3cr3t" }) then"#,
            "then",
        ),
        (
            "Reject candidate with ufrag mismatch: S3cr3t != S3cr3t",
            "Reject candidate",
        ),
        (
            "Message rejected, local user mismatch: S3cr3t != S3cr3t",
            "rejected",
        ),
        (
            r#"Handle receive: StunMessage { method: Binding, attrs: Attributes { username: "S3cr3t:S3cr3t", n: 1 } }"#,
            "n: 1",
        ),
        // SDP, as it is and within quotes.
        (
            "a=ice-ufrag:S3cr3t\r\na=ice-pwd:S3cr3t\r\na=mid:0",
            "a=mid:0",
        ),
        (
            r#"offer="a=ice-ufrag:S3cr3t\r\na=ice-pwd:S3cr3t\r\na=mid:0""#,
            r"\r\na=mid:0",
        ),
        (
            r#"{"sdp":"a=ice-pwd:S3cr3t\\r\\na=mid:0\\r\\n"}"#,
            "a=mid:0",
        ),
        (
            "a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:S3cr3t/S3cr3t+S3cr3t|2^20",
            "AES_CM",
        ),
        (
            "candidate:1 1 udp 2122 192.0.2.1 5000 typ host ufrag S3cr3t network-cost 10",
            "network-cost 10",
        ),
        // Fields.
        (r#"joined token="S3cr3t" room=7"#, "room=7"),
        ("joined token=S3cr3t room=7", "room=7"),
        ("token=1700,janus,videoroom:S3cr3t= room=7", "room=7"),
        ("admin_secret=S3cr3t&x=1", "&x=1"),
        (
            "\x1b[3mpin\x1b[0m\x1b[2m=\x1b[0mS3cr3t \x1b[3mroom\x1b[0m\x1b[2m=\x1b[0m7",
            "room\x1b[0m\x1b[2m=\x1b[0m7",
        ),
        ("\x1b[3mtoken\x1b[0m\x1b[2m=\x1b[0m\"S3cr3t\"", "token"),
        // Structures.
        (
            r#"Config { url: "u", password: Some("S3cr3t"), n: 1 }"#,
            "n: 1",
        ),
        (r#"Config { rtsp_pwd: "S\"S3cr3t", n: 1 }"#, "n: 1"),
        (r#"Config { secret: "S3cr3t\\", n: 1 }"#, "n: 1"),
        (r#"Login { user: "u", pass: "S3cr3t" }"#, "Login"),
        (
            r#"Room { pin: Some("S3cr3t"), secret: None }"#,
            "secret: None",
        ),
        // JSON, plain and within JSON or quotes.
        (r#"{"secret":"S3cr3t","room":7}"#, r#""room":7"#),
        (
            r#"{"admin_secret" : "S3cr3t", "room" : 7}"#,
            r#""room" : 7"#,
        ),
        (
            r#"{"message":"{\"apisecret\":\"S3cr3t\",\"room\":7}"}"#,
            r#"\"room\":7"#,
        ),
        (
            r#"body="{\"pin\":\"S3\\\"S3cr3t\",\"room\":7}""#,
            r#"\"room\":7"#,
        ),
        (r#"{"allowed":["S3cr3t","S3cr3t"],"room":7}"#, r#""room":7"#),
        (
            r#"{"ha1_secret":"S3cr3t","authuser":"u"}"#,
            r#""authuser":"u""#,
        ),
        (r#"{"admin_key":"S3cr3t","room":7}"#, r#""room":7"#),
        (
            r#"{"icePwd":"S3cr3t","usernameFragment":"S3cr3t"}"#,
            "icePwd",
        ),
        // Headers.
        ("Authorization: Bearer S3cr3t\r\nHost: h", "Host: h"),
        (
            r#"Authorization: Digest username="u", response="S3cr3t""#,
            "Authorization",
        ),
        (
            r#""proxy-authorization": "Basic S3cr3t", "host": "h""#,
            r#""host": "h""#,
        ),
        // URLs.
        ("url=rtsp://user:S3cr3t@192.0.2.1:554/x", "192.0.2.1:554/x"),
        (r#"url="amqp://user:S3cr3t@host" n=1"#, "@host\" n=1"),
        (
            "url=https://user:p@S3cr3t@host/x?token=S3cr3t&y=1",
            "@host/x?token=***&y=1",
        ),
        (
            "to sip:alice:S3cr3t@192.0.2.1;transport=tcp",
            "@192.0.2.1;transport=tcp",
        ),
        ("pin: 123S3cr3t, room", "room"),
        ("ha1=S3cr3t n=1", "n=1"),
        ("credential='S3cr3t' n=1", "n=1"),
    ];

    #[test]
    fn no_line_has_a_secret() {
        for (line, stays) in LINES {
            let redacted = redact(line);
            assert!(!redacted.contains("S3cr3t"), "{line}\n{redacted}");
            assert!(redacted.contains(stays), "{line}\n{redacted}");
            assert!(redacted.contains(BLANK), "{line}\n{redacted}");
        }
    }

    #[test]
    fn other_lines_stay_as_they_are() {
        for line in [
            "room created room=7",
            "refused a token: it has expired reason=\"expired\" suppressed=3",
            "requests come by a proxy: set server.trust_loopback = false",
            "callers enter wrong pins room=7 wrong=3 wait=Some(5s)",
            "a call is refused: too many wrong pins",
            "SIP at 192.0.2.1:5060/udp",
            "url=rtsp://192.0.2.1:554/x?a=b@c:d",
            "to sip:1600@192.0.2.1:5060 bypass=1 spin=2 tokenizer=x",
            "ICE failed: no working pair; local 10.0.0.5:10000 host; remote 198.51.100.9:61234 srflx",
            "admin_secret: ",
            "",
        ] {
            assert_eq!(redact(line), line);
        }
    }

    proptest! {
        #[test]
        fn any_line_can_be_redacted(line in "(token|pin|a=ice-pwd|sip|://|[:= \"'\\\\@]|\\PC|\x1b\\[1m){0,24}") {
            let once = redact(&line);
            prop_assert!(once.len() <= line.len() * (BLANK.len() + 1));
        }

        #[test]
        fn whatever_a_secret_is_it_does_not_show(secret in "[a-zA-Z0-9+/]{8,32}") {
            let json = serde_json::json!({ "request": "join", "secret": secret, "sdp": format!("a=ice-pwd:{secret}\r\n") });
            let told = json.to_string();
            for line in [&told, &format!("{told:?}"), &format!("{json:?}"), &serde_json::json!({ "message": told }).to_string()] {
                prop_assert!(!redact(line).contains(&secret), "{line}");
            }
        }
    }
}
