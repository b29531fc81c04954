//! Writes messages.

use super::{Headers, Message, Request, Response};

impl Message {
    /// Writes the message, with Content-Length.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        match self {
            Self::Request(request) => request.to_bytes(),
            Self::Response(response) => response.to_bytes(),
        }
    }
}

impl Request {
    /// Writes the request, with Content-Length.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        write(
            &format!("{} {} SIP/2.0", self.method, self.uri),
            &self.headers,
            &self.body,
        )
    }
}

impl Response {
    /// Writes the response, with Content-Length.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let reason = self.reason.replace(['\r', '\n'], " ");
        write(
            &format!("SIP/2.0 {} {reason}", self.status),
            &self.headers,
            &self.body,
        )
    }
}

fn write(start: &str, headers: &Headers, body: &[u8]) -> Vec<u8> {
    let length: usize = headers
        .iter()
        .map(|header| header.name().len() + header.value().len() + 4)
        .sum();
    let mut out = Vec::with_capacity(start.len() + length + body.len() + 32);
    out.extend_from_slice(start.as_bytes());
    out.extend_from_slice(b"\r\n");
    for header in headers.iter() {
        out.extend_from_slice(header.name().as_bytes());
        out.extend_from_slice(b": ");
        out.extend_from_slice(header.value().as_bytes());
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes());
    out.extend_from_slice(body);
    out
}
