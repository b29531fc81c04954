//! SIP messages: parsed, built, written.
//!
//! [`Message::parse`] takes one whole message. Afterwards the header fields that every element
//! needs are well-formed: Via, From, To, Call-ID and CSeq; in requests also Contact, Route,
//! Max-Forwards and Expires, where present. All other header fields stay text, which the typed
//! getters of [`Headers`] parse.
//!
//! Content-Length is not among the headers: [`Message::parse`] removes it, [`Message::to_bytes`]
//! writes it.

mod address;
mod error;
mod fields;
mod headers;
mod lex;
mod method;
mod params;
mod parser;
mod status;
mod telephone;
mod typed;
mod uri;
mod via;
mod writer;

pub use address::{Contacts, NameAddr};
pub use error::{HeaderError, ParseError, ParseErrorKind, SyntaxError};
pub use fields::{
    CSeq, Event, MediaType, RAck, Reason, Refresher, Replaces, SessionExpires, SubscriptionState,
};
pub use headers::{Header, Headers, same_name};
pub use lex::{escape_user, is_token, quote, split_list, unescape, unquote};
pub use method::Method;
pub use params::Params;
pub(crate) use parser::declared_length;
pub use parser::{MAX_HEADER_LINES, MAX_HEADER_VALUE, MAX_LIST, MAX_MESSAGE};
pub use status::StatusCode;
pub use uri::{Host, SipUri, Uri};
pub use via::Via;

/// A SIP message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// A request.
    Request(Request),
    /// A response.
    Response(Response),
}

/// A request (RFC 3261 section 7.1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The method.
    pub method: Method,
    /// The Request-URI.
    pub uri: Uri,
    /// All header fields but Content-Length.
    pub headers: Headers,
    /// The body; may be empty.
    pub body: Vec<u8>,
}

/// A response (RFC 3261 section 7.2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// The status code.
    pub status: StatusCode,
    /// The reason phrase as on the wire; may be empty.
    pub reason: String,
    /// All header fields but Content-Length.
    pub headers: Headers,
    /// The body; may be empty.
    pub body: Vec<u8>,
}

impl Message {
    /// Returns the header fields.
    #[must_use]
    pub fn headers(&self) -> &Headers {
        match self {
            Self::Request(request) => &request.headers,
            Self::Response(response) => &response.headers,
        }
    }

    /// Returns the header fields for changes.
    pub fn headers_mut(&mut self) -> &mut Headers {
        match self {
            Self::Request(request) => &mut request.headers,
            Self::Response(response) => &mut response.headers,
        }
    }

    /// Returns the body.
    #[must_use]
    pub fn body(&self) -> &[u8] {
        match self {
            Self::Request(request) => &request.body,
            Self::Response(response) => &response.body,
        }
    }
}

impl Request {
    /// Makes a request without header fields.
    #[must_use]
    pub fn new(method: Method, uri: Uri) -> Self {
        Self {
            method,
            uri,
            headers: Headers::new(),
            body: Vec::new(),
        }
    }

    /// Sets the body and its Content-Type.
    pub fn set_body(&mut self, content_type: &str, body: impl Into<Vec<u8>>) {
        self.headers.set("Content-Type", content_type);
        self.body = body.into();
    }
}

impl Response {
    /// Makes a response with the usual reason phrase, without header fields.
    #[must_use]
    pub fn new(status: StatusCode) -> Self {
        Self {
            status,
            reason: status.reason().to_owned(),
            headers: Headers::new(),
            body: Vec::new(),
        }
    }

    /// Makes the response to `request`, with its Via, From, To, Call-ID and CSeq (RFC 3261 section
    /// 8.2.6.2), and for 100 its Timestamp. The caller adds the tag of To
    /// ([`Headers::set_to_tag`]), Record-Route and Contact.
    #[must_use]
    pub fn to(request: &Request, status: StatusCode) -> Self {
        let mut response = Self::new(status);
        response.headers.copy_for_response(&request.headers, status);
        response
    }

    /// Sets the body and its Content-Type.
    pub fn set_body(&mut self, content_type: &str, body: impl Into<Vec<u8>>) {
        self.headers.set("Content-Type", content_type);
        self.body = body.into();
    }
}

impl From<Request> for Message {
    fn from(request: Request) -> Self {
        Self::Request(request)
    }
}

impl From<Response> for Message {
    fn from(response: Response) -> Self {
        Self::Response(response)
    }
}
