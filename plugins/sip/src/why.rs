//! Why something of SIP failed, as pages and the log are told.

use std::borrow::Cow;
use std::net::IpAddr;

use portunus_sip::agent::About;

use crate::page::Page;
use crate::phones::Phones;

/// A reason.
#[derive(Debug, Clone)]
pub(crate) struct Why<'a> {
    /// What everybody may know.
    plain: &'a str,
    /// The address that nothing may be sent to, if that is it.
    forbidden: Option<IpAddr>,
}

impl Why<'_> {
    /// What everybody may know.
    pub(crate) fn plain(&self) -> &str {
        self.plain
    }

    /// What a page is told: the configuration is nothing that strangers are to know.
    pub(crate) fn to(&self, page: Option<&Page>) -> Cow<'_, str> {
        match self
            .forbidden
            .filter(|_| page.is_some_and(|page| page.is_trusted))
        {
            Some(address) => forbidden(address).into(),
            None => self.plain.into(),
        }
    }

    /// What whoever runs the server is told.
    pub(crate) fn to_owner(&self) -> Cow<'_, str> {
        match self.forbidden {
            Some(address) => forbidden(address).into(),
            None => self.plain.into(),
        }
    }
}

/// What has to be configured.
fn forbidden(address: IpAddr) -> String {
    format!("SIP may not be sent to {address}: it is not in server.outgoing_networks")
}

impl Phones {
    /// Nothing may be sent to an address. What does not come about for that is told next.
    pub(crate) fn forbidden(&mut self, about: About, address: IpAddr) {
        if let Some(before) = self.forbidden_log.open() {
            tracing::warn!(suppressed = before, "{}", forbidden(address));
        }
        if about != About::Nothing {
            self.forbidden = Some((about, address));
        }
    }

    /// Why something failed for the reason `plain` of the SIP stack.
    pub(crate) fn why<'a>(&mut self, about: About, plain: &'a str) -> Why<'a> {
        let told = self.forbidden.take_if(|(told, _)| *told == about);
        let forbidden = told.map(|(_, address)| address);
        Why { plain, forbidden }
    }
}
