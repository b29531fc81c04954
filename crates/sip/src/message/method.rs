//! Methods of requests.

use std::fmt;
use std::str::FromStr;

use super::error::SyntaxError;
use super::lex::is_token;

/// The method of a request. Its case counts.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names are those of the RFCs")]
pub enum Method {
    Invite,
    Ack,
    Bye,
    Cancel,
    Register,
    Options,
    Prack,
    Update,
    Info,
    Message,
    Refer,
    Notify,
    Subscribe,
    Publish,
    /// Another method.
    Other(String),
}

impl Method {
    /// Returns the name on the wire.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Invite => "INVITE",
            Self::Ack => "ACK",
            Self::Bye => "BYE",
            Self::Cancel => "CANCEL",
            Self::Register => "REGISTER",
            Self::Options => "OPTIONS",
            Self::Prack => "PRACK",
            Self::Update => "UPDATE",
            Self::Info => "INFO",
            Self::Message => "MESSAGE",
            Self::Refer => "REFER",
            Self::Notify => "NOTIFY",
            Self::Subscribe => "SUBSCRIBE",
            Self::Publish => "PUBLISH",
            Self::Other(name) => name,
        }
    }
}

impl FromStr for Method {
    type Err = SyntaxError;

    fn from_str(text: &str) -> Result<Self, SyntaxError> {
        Ok(match text {
            "INVITE" => Self::Invite,
            "ACK" => Self::Ack,
            "BYE" => Self::Bye,
            "CANCEL" => Self::Cancel,
            "REGISTER" => Self::Register,
            "OPTIONS" => Self::Options,
            "PRACK" => Self::Prack,
            "UPDATE" => Self::Update,
            "INFO" => Self::Info,
            "MESSAGE" => Self::Message,
            "REFER" => Self::Refer,
            "NOTIFY" => Self::Notify,
            "SUBSCRIBE" => Self::Subscribe,
            "PUBLISH" => Self::Publish,
            _ if is_token(text) => Self::Other(text.to_owned()),
            _ => return Err(SyntaxError("method is not a token")),
        })
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
