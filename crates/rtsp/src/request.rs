//! Requests as they go out, with credentials.

use std::fmt::Write;

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

    /// Its bytes.
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

    /// The header for a request, once the server has asked for one.
    pub fn authorization(&mut self, request: &Request) -> Option<String> {
        let login = self.login.as_ref()?;
        let answer = self.client.as_mut()?.respond(&PasswordParams {
            username: &login.user,
            password: &login.password,
            uri: &request.uri,
            method: request.method,
            body: Some(&[]),
        });
        answer.ok()
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
