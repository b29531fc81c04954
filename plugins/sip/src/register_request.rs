//! The request `register`.

use std::time::Duration;

use portunus_core::Fields;
use portunus_sip::message::{SipUri, Uri};
use serde::de::{Error, Unexpected};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::account::{AccountSpec, Secret};
use crate::config::SipConfig;
use crate::headers;
use crate::refusal::Refusal;
use crate::status::RegistrationStatus;

/// The interval of a registration for invalid values.
const USUAL_TTL: Duration = Duration::from_secs(3_600);

/// The members of `register`.
#[derive(Debug, Deserialize)]
pub(crate) struct RegisterRequest<'a> {
    pub(crate) username: &'a str,
    secret: Option<&'a str>,
    ha1_secret: Option<&'a str>,
    authuser: Option<String>,
    display_name: Option<String>,
    user_agent: Option<String>,
    #[serde(default, deserialize_with = "text_or_null")]
    proxy: Option<String>,
    #[serde(default, deserialize_with = "text_or_null")]
    outbound_proxy: Option<String>,
    #[serde(default)]
    force_udp: bool,
    #[serde(default)]
    force_tcp: bool,
    #[serde(default)]
    sips: bool,
    #[serde(default)]
    rfc2543_cancel: bool,
    /// In s.
    register_ttl: Option<i64>,
    #[serde(default, deserialize_with = "headers::member")]
    headers: Vec<(String, String)>,
    #[serde(default, deserialize_with = "headers::member")]
    contact_params: Vec<(String, String)>,
    #[serde(rename = "type")]
    kind: Option<&'a str>,
    send_register: Option<bool>,
    #[serde(default)]
    pub(crate) refresh: bool,
    #[serde(default, rename = "incoming_header_prefixes")]
    pub(crate) prefixes: Vec<&'a str>,
    master_id: Option<u64>,
    /// The page gets the calls of the account's other pages, and its call outlives it.
    #[serde(default)]
    pub(crate) lines: bool,
    /// The name of the page among those of its account.
    pub(crate) name: Option<&'a str>,
    /// Callers get 180 at once.
    #[serde(default = "yes")]
    pub(crate) automatic_ringing: bool,
}

/// The default of members that are true unless they say `false`.
pub(crate) const fn yes() -> bool {
    true
}

/// A string. `null` counts as absent.
fn text_or_null<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    match Value::deserialize(from)? {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(text)),
        _ => Err(D::Error::invalid_type(
            Unexpected::Other("another value"),
            &"a string",
        )),
    }
}

/// The wish of a request.
#[derive(Debug)]
pub(crate) enum Wanted {
    Account(Box<AccountSpec>),
    Helper(u64),
}

impl<'a> RegisterRequest<'a> {
    /// Checks the types of all members.
    pub(crate) fn read(fields: Fields<'a>) -> Result<Self, Refusal> {
        Ok(fields.read()?)
    }

    /// Returns the wish, if a page with this status may have it.
    pub(crate) fn wanted(
        &self,
        status: RegistrationStatus,
        user: Option<&str>,
        config: &SipConfig,
    ) -> Result<Wanted, Refusal> {
        let is_registered = !matches!(
            status,
            RegistrationStatus::Unregistered | RegistrationStatus::Disabled
        );
        if is_registered && !self.refresh {
            let user = user.unwrap_or(self.username);
            return Err(Refusal::AlreadyRegistered(user.to_owned()));
        }
        if self
            .kind
            .is_some_and(|kind| kind.eq_ignore_ascii_case("helper"))
        {
            let missing = || portunus_core::FieldError::Missing("master_id".to_owned());
            return Ok(Wanted::Helper(self.master_id.ok_or_else(missing)?));
        }
        let guest = self
            .kind
            .is_some_and(|kind| kind.eq_ignore_ascii_case("guest"));
        if guest && self.send_register == Some(true) {
            let text = "send_register cannot be true if guest is true";
            return Err(Refusal::Conflict(text));
        }
        if self.force_udp && self.force_tcp {
            let text = "force_udp and force_tcp cannot both be true";
            return Err(Refusal::Conflict(text));
        }
        let proxy = server(self.proxy.as_deref())?;
        let outbound_proxy = server(self.outbound_proxy.as_deref())?;
        let uri = called(self.username)?;
        let missing = || Refusal::MissingOneOf("secret or ha1_secret");
        let secret = match guest {
            true => None,
            false => Some(self.secret()?.ok_or_else(missing)?),
        };
        let ttl = match self.register_ttl {
            None => config.register_ttl,
            Some(ttl) => match u64::try_from(ttl) {
                Ok(seconds @ 1..=31_622_400) => Duration::from_secs(seconds),
                _ => USUAL_TTL,
            },
        };
        Ok(Wanted::Account(Box::new(AccountSpec {
            user: uri.user_name().unwrap_or_default().into_owned(),
            identity: Uri::Sip(uri),
            display_name: self.display_name.clone(),
            authuser: self.authuser.clone(),
            secret,
            registers: !guest && self.send_register.unwrap_or(true),
            guest,
            proxy,
            outbound_proxy,
            ttl,
            headers: self.headers.clone(),
            contact_params: self.contact_params.clone(),
            udp: self.force_udp,
            tcp: self.force_tcp,
            sips: self.sips,
            user_agent: self.user_agent.clone().filter(|text| is_line(text)),
            rfc2543_cancel: self.rfc2543_cancel,
        })))
    }

    pub(crate) fn secret(&self) -> Result<Option<Secret>, Refusal> {
        secret(self.secret, self.ha1_secret)
    }
}

/// Parses the address of a server.
fn server(text: Option<&str>) -> Result<Option<Uri>, Refusal> {
    match text.map(|text| (text, text.parse::<Uri>())) {
        None => Ok(None),
        Some((_, Ok(uri))) if uri.as_sip().is_some() => Ok(Some(uri)),
        Some((text, _)) => Err(Refusal::Address(text.to_owned())),
    }
}

/// Reads the members `secret` and `ha1_secret`, of which there may be one.
pub(crate) fn secret(password: Option<&str>, ha1: Option<&str>) -> Result<Option<Secret>, Refusal> {
    match (password, ha1) {
        (Some(_), Some(_)) => {
            let text = "specify either secret or ha1_secret, not both";
            Err(Refusal::Conflict(text))
        }
        (Some(password), None) => Ok(Some(Secret::Password(password.to_owned()))),
        (None, Some(ha1)) => Ok(Some(Secret::Ha1(ha1.to_owned()))),
        (None, None) => Ok(None),
    }
}

/// Parses the URI of a callee: `sip:` only.
pub(crate) fn called(text: &str) -> Result<SipUri, Refusal> {
    match text.parse() {
        Ok(Uri::Sip(uri)) if !uri.secure => Ok(uri),
        _ => Err(Refusal::Address(text.to_owned())),
    }
}

fn is_line(text: &str) -> bool {
    !text.bytes().any(|byte| byte < b' ')
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::indexing_slicing,
        clippy::panic,
        reason = "a test fails by a panic"
    )]
    use serde_json::{Value, json};

    use super::*;

    fn wanted(members: &Value, status: RegistrationStatus) -> Result<Wanted, Refusal> {
        let request = RegisterRequest::read(Fields(members.as_object().unwrap()))?;
        request.wanted(status, Some("alice"), &SipConfig::default())
    }

    fn refused(members: Value) -> (u16, String) {
        let refusal = wanted(&members, RegistrationStatus::Unregistered).unwrap_err();
        (refusal.code(), refusal.to_string())
    }

    fn account(members: Value) -> AccountSpec {
        match wanted(&members, RegistrationStatus::Unregistered).unwrap() {
            Wanted::Account(spec) => *spec,
            Wanted::Helper(id) => panic!("a helper of {id}"),
        }
    }

    #[test]
    fn an_account_needs_a_name_and_one_secret() {
        let spec = account(json!({ "username": "sip:alice@example.org", "secret": "s" }));
        assert_eq!((spec.user.as_str(), spec.registers), ("alice", true));
        assert_eq!(spec.secret, Some(Secret::Password("s".to_owned())));
        assert_eq!(spec.ttl, Duration::from_secs(3_600));
        assert_eq!(refused(json!({})).0, 443);
        let text = (443, "Missing element (secret or ha1_secret)".to_owned());
        assert_eq!(refused(json!({ "username": "sip:a@h" })), text);
        let both = json!({ "username": "sip:a@h", "secret": "s", "ha1_secret": "h" });
        assert_eq!(refused(both).0, 444);
    }

    #[test]
    fn checks_come_in_their_order() {
        // Each has all the mistakes of those behind it.
        for (members, code) in [
            (
                json!({ "send_register": 1, "type": "guest", "username": "x" }),
                444,
            ),
            (
                json!({ "type": "helper", "username": "x", "force_udp": true, "force_tcp": true }),
                443,
            ),
            (
                json!({ "type": "guest", "send_register": true, "username": "x" }),
                444,
            ),
            (
                json!({ "force_udp": true, "force_tcp": true, "proxy": "x", "username": "x" }),
                444,
            ),
            (json!({ "proxy": "x", "username": "sip:a@h" }), 446),
            (
                json!({ "outbound_proxy": "http://x", "username": "sip:a@h" }),
                446,
            ),
            (json!({ "username": "sips:a@h" }), 446),
            (json!({ "username": "alice" }), 446),
            (json!({ "username": "sip:a@h", "proxy": null }), 443),
        ] {
            assert_eq!(refused(members.clone()).0, code, "{members}");
        }
    }

    #[test]
    fn who_is_registered_has_to_ask_for_a_refresh() {
        let mut members = json!({ "username": "sip:alice@h", "secret": "s" });
        let refusal = wanted(&members, RegistrationStatus::Registering).unwrap_err();
        let told = (refusal.code(), refusal.to_string());
        assert_eq!(told, (445, "Already registered (alice)".to_owned()));
        assert!(wanted(&members, RegistrationStatus::Disabled).is_ok());
        members["refresh"] = json!(true);
        assert!(wanted(&members, RegistrationStatus::Registered).is_ok());
    }

    #[test]
    fn guests_and_helpers_need_no_secret() {
        let guest = account(json!({ "username": "sip:alice@h", "type": "guest" }));
        assert!(guest.guest && !guest.registers && guest.secret.is_none());
        let quiet =
            account(json!({ "username": "sip:a@h", "secret": "s", "send_register": false }));
        assert!(!quiet.guest && !quiet.registers && quiet.secret.is_some());
        let helper = json!({ "username": "sip:a@h", "type": "helper", "master_id": 7 });
        let helper = wanted(&helper, RegistrationStatus::Unregistered).unwrap();
        assert!(matches!(helper, Wanted::Helper(7)));
        // Another type is none.
        assert_eq!(
            refused(json!({ "username": "sip:a@h", "type": "boss" })).0,
            443
        );
    }

    #[test]
    fn a_lifetime_that_cannot_be_is_an_hour() {
        for (ttl, seconds) in [(json!(8), 8), (json!(0), 3_600), (json!(-5), 3_600)] {
            let spec =
                account(json!({ "username": "sip:a@h", "secret": "s", "register_ttl": ttl }));
            assert_eq!(spec.ttl, Duration::from_secs(seconds));
        }
    }
}
