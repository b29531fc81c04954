//! Requests, with credentials.

use std::fmt::Write;

use http_auth::digest::{Algorithm, Qop};
use http_auth::{PasswordClient, PasswordParams};
use rtsp_types::{Response, headers};

use crate::{Login, RtspError};

const USER_AGENT: &str = concat!("Portunus/", env!("CARGO_PKG_VERSION"));

/// A request to be sent.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub method: &'static str,
    /// A URL, or a path.
    pub uri: String,
    pub headers: Vec<(&'static str, String)>,
}

impl Request {
    pub fn new(method: &'static str, uri: &str) -> Self {
        Self {
            method,
            uri: uri.to_owned(),
            headers: Vec::new(),
        }
    }

    pub fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// Writes it with its credentials.
    pub fn write(
        &self,
        sequence: u32,
        session: Option<&str>,
        authorization: Option<&str>,
    ) -> String {
        let mut text = format!(
            "{} {} RTSP/1.0\r\nCSeq: {sequence}\r\n",
            self.method, self.uri
        );
        let more = [
            ("User-Agent", Some(USER_AGENT)),
            ("Session", session),
            ("Authorization", authorization),
        ];
        let more = more
            .into_iter()
            .filter_map(|(name, value)| Some((name, value?)));
        let own = self
            .headers
            .iter()
            .map(|(name, value)| (*name, value.as_str()));
        for (name, value) in more.chain(own) {
            // Writing to a string does not fail.
            let _ = write!(text, "{name}: {value}\r\n");
        }
        text.push_str("\r\n");
        text
    }
}

/// Answers a server's challenges.
#[derive(Debug, Default)]
pub(crate) struct Credentials {
    login: Option<Login>,
    client: Option<PasswordClient>,
}

impl Credentials {
    pub fn new(login: Option<Login>) -> Self {
        let client = None;
        Self { login, client }
    }

    /// Returns the header for a request, once the server has asked for one.
    pub fn authorization(&mut self, request: &Request) -> Option<String> {
        let login = self.login.as_ref()?;
        let client = self.client.as_mut()?;
        let mut answer = PasswordParams {
            username: &login.user,
            password: &login.password,
            uri: &request.uri,
            method: request.method,
            // Without a body the answer is of `auth` where that is offered.
            body: None,
        };
        if let PasswordClient::Digest(digest) = client
            && !(digest.qop() & Qop::Auth)
        {
            answer.body = Some(hash_of_nothing(digest.algorithm())?.as_bytes());
        }
        client.respond(&answer).ok()
    }

    /// Takes the challenge of an answer with status 401.
    pub fn challenge(&mut self, response: &Response<Vec<u8>>) -> Result<(), RtspError> {
        if self.login.is_none() {
            return Err(RtspError::Unauthorized("a user and a password"));
        }
        let mut builder = PasswordClient::builder();
        let named = response
            .headers()
            .filter(|(name, _)| **name == headers::WWW_AUTHENTICATE);
        for (_, value) in named {
            builder = builder.challenges(value.as_str());
        }
        let client = builder.build();
        self.client = Some(client.map_err(|_| {
            RtspError::Unauthorized("an authentication that is neither Basic nor Digest")
        })?);
        Ok(())
    }
}

/// Returns the hash of an empty body, which `auth-int` needs (RFC 7616 section 3.4.3). `http_auth`
/// takes the hash in place of the body. Returns `None` for an unknown algorithm.
const fn hash_of_nothing(algorithm: Algorithm) -> Option<&'static str> {
    match algorithm {
        Algorithm::Md5 => Some("d41d8cd98f00b204e9800998ecf8427e"),
        Algorithm::Sha256 => {
            Some("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")
        }
        Algorithm::Sha512Trunc256 => {
            Some("c672b8d1ef56ed28ab87c3622c5114069bdd3ad7b8f9737498d0c01ecef0967a")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

    use md5::{Digest, Md5};
    use rtsp_types::StatusCode;

    use super::*;

    fn md5(text: &str) -> String {
        Md5::digest(text)
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }

    /// Returns the value of a parameter of an answer.
    fn parameter<'a>(answer: &'a str, name: &str) -> &'a str {
        let (_, rest) = answer.split_once(&format!(" {name}=")).unwrap();
        rest.split(',').next().unwrap().trim_matches('"')
    }

    /// Returns the answer to a challenge with this `qop`, for user `u` with password `p`.
    fn answer(qop: &str) -> String {
        let challenge = format!("Digest realm=\"r\", nonce=\"n\", {qop}algorithm=MD5");
        let response = Response::builder(rtsp_types::Version::V1_0, StatusCode::Unauthorized)
            .header(headers::WWW_AUTHENTICATE, challenge)
            .build(Vec::new());
        let mut credentials = Credentials::new(Some(Login {
            user: "u".to_owned(),
            password: "p".to_owned(),
        }));
        credentials.challenge(&response).unwrap();
        let request = Request::new("DESCRIBE", "rtsp://cam/");
        credentials.authorization(&request).unwrap()
    }

    #[test]
    fn cameras_that_offer_auth_int_let_in() {
        let integrity = format!("DESCRIBE:rtsp://cam/:{}", md5(""));
        let plain = "DESCRIBE:rtsp://cam/".to_owned();
        for (offered, qop, covered) in [
            ("auth,auth-int", "auth", &plain),
            ("auth-int, auth", "auth", &plain),
            ("auth", "auth", &plain),
            ("auth-int", "auth-int", &integrity),
        ] {
            let answer = answer(&format!("qop=\"{offered}\", "));
            assert_eq!(parameter(&answer, "qop"), qop, "{offered}");
            let (nc, cnonce) = (parameter(&answer, "nc"), parameter(&answer, "cnonce"));
            let expected = md5(&format!(
                "{}:n:{nc}:{cnonce}:{qop}:{}",
                md5("u:r:p"),
                md5(covered)
            ));
            assert_eq!(parameter(&answer, "response"), expected, "{offered}");
        }
        let older = answer("");
        let expected = md5(&format!("{}:n:{}", md5("u:r:p"), md5(&plain)));
        assert_eq!(parameter(&older, "response"), expected);
    }
}
