//! How our side ends a call.

/// The end of a call by our side: a status code with its phrase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ending {
    pub(crate) code: u16,
    pub(crate) reason: String,
    /// A sentence about the cause, if the server ends the call by itself.
    pub(crate) text: Option<String>,
}

impl Ending {
    pub(crate) fn new(code: u16, reason: &str) -> Self {
        Ending {
            code,
            reason: reason.to_owned(),
            text: None,
        }
    }

    /// Adds the sentence that says why the server ends the call.
    pub(crate) fn because(self, text: impl ToString) -> Self {
        Ending {
            text: Some(text.to_string()),
            ..self
        }
    }

    /// BYE was sent.
    pub(crate) fn bye() -> Self {
        Ending::new(200, "to BYE")
    }

    /// CANCEL was sent or came.
    pub(crate) fn cancelled() -> Self {
        Ending::new(487, "Request Terminated")
    }
}
