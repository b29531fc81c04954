//! The requests of clients, and the reasons for refusals.

use portunus_core::{Asked, FieldError, Fields, JsepError, Message, Right, Untrusted, requests};
use serde::Deserialize;

use crate::config::TIMES;

requests! {
    /// The requests of clients.
    pub enum Request {
        Greet = "greet": Reply, Nothing;
        Call = "call": Event, Nothing;
        Teach = "teach": Reply, Right(Right::Administer);
    }
}

/// The members of `greet` and `call`.
#[derive(Deserialize)]
pub(crate) struct Introduction<'a> {
    pub(crate) name: Option<&'a str>,
}

/// The members of `teach`: how everybody is greeted from now on.
#[derive(Deserialize)]
pub(crate) struct Lesson<'a> {
    greeting: &'a str,
    times: Option<usize>,
}

/// Why a request is refused. The text is what the client gets.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("Unknown request ({0})")]
    Unknown(String),
    #[error(transparent)]
    Field(#[from] FieldError),
    #[error("Unauthorized ({0})")]
    Untrusted(#[from] Untrusted),
    #[error("Missing offer")]
    NoOffer,
    #[error(transparent)]
    Offer(#[from] JsepError),
}

impl Request {
    /// Returns the request of `message` if its client may make it.
    pub(crate) fn read(message: &Message) -> Result<Self, Refusal> {
        let fields = Fields(&message.body);
        let name = fields.required("request")?;
        let asked = Asked::named(name).ok_or_else(|| Refusal::Unknown(name.to_owned()))?;
        Ok(asked.permit(fields, message.rights)?)
    }
}

impl Lesson<'_> {
    /// Returns the greeting, and how often it is said.
    pub(crate) fn check(self) -> Result<(String, usize), FieldError> {
        let times = self.times.unwrap_or(1);
        match TIMES.contains(&times) {
            true => Ok((self.greeting.to_owned(), times)),
            false => Err(FieldError::value("times", "should be 1 to 3")),
        }
    }
}
