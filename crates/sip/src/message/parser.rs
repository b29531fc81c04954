//! Parses messages.

use super::error::{HeaderError, ParseError, ParseErrorKind, SyntaxError};
use super::headers::{Headers, same_name};
use super::lex::{is_token, number};
use super::method::Method;
use super::status::StatusCode;
use super::uri::Uri;
use super::{Message, Request, Response};

/// The maximum number of octets of a message.
pub const MAX_MESSAGE: usize = 65_536;
/// The maximum number of header fields of a message.
pub const MAX_HEADER_LINES: usize = 128;
/// The maximum number of octets of an unfolded value.
pub const MAX_HEADER_VALUE: usize = 16_384;
/// The maximum number of items of a list, over all lines of its header field, and of parameters of
/// a value.
pub const MAX_LIST: usize = 64;

/// The octets after the header fields, and the length of the body.
struct Head<'a> {
    start: Start,
    headers: Headers,
    content_length: Option<usize>,
    rest: &'a [u8],
}

enum Start {
    Request(Method, Uri),
    Response(StatusCode, String),
}

impl Message {
    /// Parses one whole message. Octets beyond Content-Length are dropped; without Content-Length
    /// the body is all that follows the header fields (RFC 3261 section 18.3).
    ///
    /// Line ends may be LF alone. Octets that are not UTF-8 become U+FFFD.
    ///
    /// # Errors
    /// The message cannot be used. The error has the response.
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        if bytes.len() > MAX_MESSAGE {
            return Err(ParseError::unanswered(ParseErrorKind::TooLarge("message")));
        }
        let head = parse_head(bytes)?;
        let is_ack = matches!(head.start, Start::Request(Method::Ack, _));
        let is_request = matches!(head.start, Start::Request(..));
        let body = match head.content_length {
            Some(length) => head.rest.get(..length).ok_or(ParseErrorKind::Truncated),
            None => Ok(head.rest),
        };
        let checked =
            body.and_then(|body| check(&head.start, &head.headers).map(|()| body.to_vec()));
        match (checked, head.start) {
            (Ok(body), Start::Request(method, uri)) => Ok(Self::Request(Request {
                method,
                uri,
                headers: head.headers,
                body,
            })),
            (Ok(body), Start::Response(status, reason)) => Ok(Self::Response(Response {
                status,
                reason,
                headers: head.headers,
                body,
            })),
            (Err(kind), _) => Err(ParseError {
                kind,
                request: (is_request && !is_ack).then(|| Box::new(head.headers)),
            }),
        }
    }
}

fn parse_head(bytes: &[u8]) -> Result<Head<'_>, ParseError> {
    let (line, mut rest) = take_line(bytes).ok_or(ParseError::unanswered(
        ParseErrorKind::StartLine(SyntaxError("does not end")),
    ))?;
    let line = String::from_utf8_lossy(line);
    let is_response = line
        .get(..4)
        .is_some_and(|start| start.eq_ignore_ascii_case("SIP/"));
    let start = parse_start(&line, is_response);
    let mut headers = Headers::new();
    let mut lengths = Vec::new();
    let mut wrong = None;
    loop {
        let Some((line, after)) = take_folded(rest) else {
            wrong.get_or_insert(ParseErrorKind::HeaderLine(SyntaxError(
                "headers do not end",
            )));
            break;
        };
        rest = after;
        if line.is_empty() {
            break;
        }
        match parse_header(&line) {
            Ok((name, value)) if same_name(name, "Content-Length") => {
                lengths.push(value.to_owned())
            }
            Ok(_) if headers.len() >= MAX_HEADER_LINES => {
                wrong.get_or_insert(ParseErrorKind::TooLarge("header fields"));
                break;
            }
            Ok((_, value)) if value.len() > MAX_HEADER_VALUE => {
                wrong.get_or_insert(ParseErrorKind::TooLarge("header field"));
            }
            Ok((name, value)) => headers.push_parsed(name, value.to_owned()),
            Err(problem) => {
                wrong.get_or_insert(ParseErrorKind::HeaderLine(problem));
            }
        }
    }
    let answered = !is_response && !line.starts_with("ACK ");
    let error = |kind, headers| ParseError {
        kind,
        request: answered.then(|| Box::new(headers)),
    };
    let start = match start {
        Ok(start) => start,
        Err(kind) => return Err(error(kind, headers)),
    };
    if let Some(kind) = wrong {
        return Err(error(kind, headers));
    }
    let content_length = match content_length(&lengths) {
        Ok(length) => length,
        Err(problem) => {
            return Err(error(
                ParseErrorKind::Header(HeaderError {
                    name: "Content-Length",
                    problem,
                }),
                headers,
            ));
        }
    };
    Ok(Head {
        start,
        headers,
        content_length,
        rest,
    })
}

/// Returns the Content-Length of a message header, without checking the rest: 0 if there is none.
pub(crate) fn declared_length(head: &[u8]) -> Result<usize, SyntaxError> {
    let mut lengths = Vec::new();
    let (_, mut rest) = take_line(head).unwrap_or((&[], &[]));
    while let Some((line, after)) = take_folded(rest) {
        rest = after;
        if let Ok((name, value)) = parse_header(&line)
            && same_name(name, "Content-Length")
        {
            lengths.push(value.to_owned());
        }
    }
    Ok(content_length(&lengths)?.unwrap_or(0))
}

/// Several equal values of Content-Length are accepted.
fn content_length(lengths: &[String]) -> Result<Option<usize>, SyntaxError> {
    let mut agreed = None;
    for text in lengths {
        let length = number(text)?;
        if agreed.is_some_and(|other| other != length) {
            return Err(SyntaxError("is there more than once"));
        }
        agreed = Some(length);
    }
    Ok(agreed)
}

fn parse_start(line: &str, is_response: bool) -> Result<Start, ParseErrorKind> {
    let malformed = |problem| ParseErrorKind::StartLine(SyntaxError(problem));
    if line.contains('\r') {
        return Err(malformed("carriage return within a line"));
    }
    let (first, rest) = line.split_once(' ').ok_or(malformed("has no space"))?;
    if is_response {
        if !first.eq_ignore_ascii_case("SIP/2.0") {
            return Err(ParseErrorKind::Version);
        }
        let (code, reason) = rest.split_once(' ').unwrap_or((rest, ""));
        let code = if code.len() == 3 {
            number(code).ok().and_then(StatusCode::new)
        } else {
            None
        };
        return Ok(Start::Response(
            code.ok_or(malformed("no status code"))?,
            reason.trim().to_owned(),
        ));
    }
    let method = first.parse().map_err(ParseErrorKind::StartLine)?;
    let (uri, version) = rest.rsplit_once(' ').ok_or(malformed("no version"))?;
    let numbers = version
        .get(..4)
        .filter(|start| start.eq_ignore_ascii_case("SIP/"))
        .and_then(|_| version.get(4..));
    let numbers = numbers
        .and_then(|numbers| numbers.split_once('.'))
        .ok_or(malformed("no version"))?;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match numbers {
        ("2", "0") => {}
        (major, minor) if digits(major) && digits(minor) => return Err(ParseErrorKind::Version),
        _ => return Err(malformed("no version")),
    }
    let uri: Uri = uri.parse().map_err(ParseErrorKind::RequestUri)?;
    if uri.as_sip().is_some_and(|uri| uri.headers.is_some()) {
        return Err(ParseErrorKind::RequestUri(SyntaxError("has header fields")));
    }
    Ok(Start::Request(method, uri))
}

fn parse_header(line: &str) -> Result<(&str, &str), SyntaxError> {
    let (name, value) = line.split_once(':').ok_or(SyntaxError("no colon"))?;
    let name = name.trim_end();
    if !is_token(name) {
        return Err(SyntaxError("name is not a token"));
    }
    let value = value.trim();
    if value.contains('\r') {
        return Err(SyntaxError("carriage return within a line"));
    }
    Ok((name, value))
}

/// Returns the first line without its end, and the rest.
fn take_line(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = bytes.iter().position(|&byte| byte == b'\n')?;
    let (line, rest) = bytes.split_at_checked(end)?;
    Some((line.strip_suffix(b"\r").unwrap_or(line), rest.get(1..)?))
}

/// Returns the first line with its continuation lines, which start with space (RFC 3261 section
/// 7.3.1).
fn take_folded(bytes: &[u8]) -> Option<(String, &[u8])> {
    let (line, mut rest) = take_line(bytes)?;
    let mut text = String::from_utf8_lossy(line).into_owned();
    while !line.is_empty() && rest.first().is_some_and(|byte| b" \t".contains(byte)) {
        let (more, after) = take_line(rest)?;
        let end = text.trim_end().len();
        text.truncate(end);
        text.push(' ');
        text.push_str(String::from_utf8_lossy(more).trim());
        rest = after;
    }
    Some((text, rest))
}

/// Checks the header fields that transactions and routing need.
fn check(start: &Start, headers: &Headers) -> Result<(), ParseErrorKind> {
    let wrong = ParseErrorKind::Header;
    if headers.vias().map_err(wrong)?.is_empty() {
        return Err(ParseErrorKind::Missing("Via"));
    }
    headers
        .from()
        .map_err(wrong)?
        .ok_or(ParseErrorKind::Missing("From"))?;
    headers
        .to()
        .map_err(wrong)?
        .ok_or(ParseErrorKind::Missing("To"))?;
    if headers
        .single("Call-ID")
        .map_err(wrong)?
        .is_none_or(str::is_empty)
    {
        return Err(ParseErrorKind::Missing("Call-ID"));
    }
    let cseq = headers
        .cseq()
        .map_err(wrong)?
        .ok_or(ParseErrorKind::Missing("CSeq"))?;
    let Start::Request(method, _) = start else {
        return Ok(());
    };
    if cseq.method != *method {
        return Err(ParseErrorKind::Mismatch);
    }
    headers.max_forwards().map_err(wrong)?;
    headers.expires().map_err(wrong)?;
    headers.contacts().map_err(wrong)?;
    headers.routes().map_err(wrong)?;
    headers.record_routes().map_err(wrong)?;
    Ok(())
}
