//! What `register` asks for.

use std::time::Duration;

use portunus_core::Fields;
use portunus_sip::message::{SipUri, Uri};

use crate::account::{AccountSpec, Secret};
use crate::config::SipConfig;
use crate::headers;
use crate::page::RegistrationStatus;
use crate::refusal::Refusal;

/// Expires where a client asks for nothing that can be.
const USUAL_TTL: Duration = Duration::from_secs(3_600);

/// A `register` whose members have their types.
#[derive(Debug)]
pub(crate) struct RegisterRequest<'a> {
    fields: Fields<'a>,
    pub(crate) username: &'a str,
    kind: Option<&'a str>,
    send_register: Option<bool>,
    pub(crate) refresh: bool,
    pub(crate) prefixes: Vec<&'a str>,
    master_id: Option<u64>,
    /// The page is told what its account's other pages do, and its call waits for it when it is gone.
    pub(crate) lines: bool,
    /// What the page is called among those of its account.
    pub(crate) name: Option<&'a str>,
    /// Calls are told to the caller as ringing at once.
    pub(crate) automatic_ringing: bool,
}

/// What somebody asks to be.
#[derive(Debug)]
pub(crate) enum Wanted {
    Account(Box<AccountSpec>),
    Helper(u64),
}

impl<'a> RegisterRequest<'a> {
    /// Checks the types of all members.
    pub(crate) fn read(fields: Fields<'a>) -> Result<Self, Refusal> {
        let username = fields.required_string("username")?;
        for name in [
            "secret",
            "ha1_secret",
            "authuser",
            "display_name",
            "user_agent",
        ] {
            fields.string(name)?;
        }
        for name in ["proxy", "outbound_proxy"] {
            if fields.0.get(name).is_some_and(|value| !value.is_null()) {
                fields.string(name)?;
            }
        }
        for name in ["force_udp", "force_tcp", "sips", "rfc2543_cancel"] {
            fields.boolean(name)?;
        }
        fields.integer("register_ttl")?;
        fields.object("headers")?;
        fields.object("contact_params")?;
        Ok(RegisterRequest {
            fields,
            username,
            kind: fields.string("type")?,
            send_register: fields.boolean("send_register")?,
            refresh: fields.boolean("refresh")?.unwrap_or(false),
            prefixes: fields
                .strings("incoming_header_prefixes")?
                .unwrap_or_default(),
            master_id: fields.positive("master_id")?,
            lines: fields.boolean("lines")?.unwrap_or(false),
            name: fields.string("name")?,
            automatic_ringing: fields.boolean("automatic_ringing")?.unwrap_or(true),
        })
    }

    /// What it asks for, if a page with this status may ask.
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
        let fields = self.fields;
        let flag = |name| Ok::<_, Refusal>(fields.boolean(name)?.unwrap_or(false));
        let (udp, tcp) = (flag("force_udp")?, flag("force_tcp")?);
        if udp && tcp {
            let text = "force_udp and force_tcp cannot both be true";
            return Err(Refusal::Conflict(text));
        }
        let text = |name| fields.string(name).ok().flatten().map(str::to_owned);
        let server = |name| match text(name) {
            None => Ok(None),
            Some(text) => match text.parse::<Uri>() {
                Ok(uri) if uri.as_sip().is_some() => Ok(Some(uri)),
                _ => Err(Refusal::Address(text)),
            },
        };
        let proxy = server("proxy")?;
        let outbound_proxy = server("outbound_proxy")?;
        let uri = called(self.username)?;
        let secret = if guest { None } else { self.secret()? };
        let ttl = match fields.integer("register_ttl")? {
            None => config.register_ttl,
            Some(ttl) => match u64::try_from(ttl) {
                Ok(seconds @ 1..=31_622_400) => Duration::from_secs(seconds),
                _ => USUAL_TTL,
            },
        };
        Ok(Wanted::Account(Box::new(AccountSpec {
            user: uri.user_name().unwrap_or_default().into_owned(),
            identity: Uri::Sip(uri),
            display_name: text("display_name"),
            authuser: text("authuser"),
            secret,
            registers: !guest && self.send_register.unwrap_or(true),
            guest,
            proxy,
            outbound_proxy,
            ttl,
            headers: headers::read(fields, "headers")?,
            contact_params: headers::read(fields, "contact_params")?,
            udp,
            tcp,
            sips: flag("sips")?,
            user_agent: text("user_agent").filter(|text| is_line(text)),
            rfc2543_cancel: flag("rfc2543_cancel")?,
        })))
    }

    fn secret(&self) -> Result<Option<Secret>, Refusal> {
        let missing = Refusal::MissingOneOf("secret or ha1_secret");
        secret(self.fields)?.ok_or(missing).map(Some)
    }
}

/// The members `secret` and `ha1_secret`, of which there may be one.
pub(crate) fn secret(fields: Fields<'_>) -> Result<Option<Secret>, Refusal> {
    let (password, ha1) = (fields.string("secret")?, fields.string("ha1_secret")?);
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

/// The URI of somebody who can be called: `sip:` only.
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
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]
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
