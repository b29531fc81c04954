//! Failures of the SIP stack, for pages and the log.

use std::borrow::Cow;
use std::net::IpAddr;

use crate::page::Page;

/// A failure.
#[derive(Debug, Clone)]
pub(crate) struct Failure<'a> {
    /// The public reason.
    plain: &'a str,
    /// The forbidden address, if that is the reason.
    forbidden: Option<IpAddr>,
}

impl<'a> Failure<'a> {
    /// Makes a failure with the reason `plain` of the SIP stack.
    pub(crate) fn new(plain: &'a str, forbidden: Option<IpAddr>) -> Self {
        Failure { plain, forbidden }
    }

    /// Returns the public reason.
    pub(crate) fn plain(&self) -> &str {
        self.plain
    }

    /// Returns the reason for a page. Only a trusted page learns of the configuration.
    pub(crate) fn to(&self, page: Option<&Page>) -> Cow<'_, str> {
        match self
            .forbidden
            .filter(|_| page.is_some_and(|page| page.is_trusted))
        {
            Some(address) => forbidden(address).into(),
            None => self.plain.into(),
        }
    }

    /// Returns the reason for the operator of the server.
    pub(crate) fn to_owner(&self) -> Cow<'_, str> {
        match self.forbidden {
            Some(address) => forbidden(address).into(),
            None => self.plain.into(),
        }
    }
}

/// Names the setting to change.
pub(crate) fn forbidden(address: IpAddr) -> String {
    format!("SIP may not be sent to {address}: it is not in server.outgoing_networks")
}
