//! `info`, `dtmf_info` and `message`, and MESSAGE and INFO of peers.

use portunus_core::{FieldError, Fields, Message, Object};
use portunus_sip::agent::{AccountId, Body, CallId, Command, RequestId};
use portunus_sip::message::{Method, Uri};
use serde::Deserialize;

use super::{Phone, new_call_id};
use crate::directory::Key;
use crate::events::named_event;
use crate::failure::Failure;
use crate::headers;
use crate::refusal::{NOT_IN_A_CALL, Refusal};
use crate::register_request::called;
use crate::sip_message::SipMessage;
use crate::status::{CallStatus, PageId};

/// The default and maximum duration of a key, in ms.
const USUAL_DURATION: u64 = 160;
const MAX_DURATION: u64 = 5_000;

/// The maximum number of unanswered MESSAGEs of a page.
const MAX_MESSAGES: usize = 100;

/// The members of `info`.
#[derive(Deserialize)]
struct Info<'a> {
    #[serde(rename = "type")]
    content_type: &'a str,
    content: &'a str,
    #[serde(default, deserialize_with = "headers::member")]
    headers: Vec<(String, String)>,
}

/// The members of `dtmf_info`.
#[derive(Deserialize)]
struct Dtmf<'a> {
    digit: &'a str,
    /// In ms.
    duration: Option<u64>,
    #[serde(default, deserialize_with = "headers::member")]
    headers: Vec<(String, String)>,
}

/// The members of `message`.
#[derive(Deserialize)]
struct Said<'a> {
    content: &'a str,
    content_type: Option<&'a str>,
    uri: Option<&'a str>,
    call_id: Option<&'a str>,
    #[serde(default, deserialize_with = "headers::member")]
    headers: Vec<(String, String)>,
}

/// A MESSAGE of a page that was not answered.
pub(super) struct SentMessage {
    pub(super) page: PageId,
    call_id: Option<String>,
}

impl Phone {
    /// Returns the accepted call of a page.
    pub(super) fn check_in_call(&self, me: PageId) -> Result<CallId, Refusal> {
        let side = self.side_of(me);
        let side = side.filter(|side| side.status.is_in_call());
        side.map(|side| side.id).ok_or(NOT_IN_A_CALL)
    }

    /// Sends INFO in a call.
    pub(super) fn send_info(&self, call: CallId, headers: Vec<(String, String)>, body: Body) {
        self.command(Command::InDialog {
            call,
            request: RequestId::new(self.common.number()),
            method: Method::Info,
            headers,
            body: Some(body),
        });
    }

    /// `info`.
    pub(super) fn info(&mut self, me: PageId, message: &Message) -> Result<(), Refusal> {
        let call = self.check_in_call(me)?;
        let info: Info<'_> = Fields(&message.body).read()?;
        let body = body(info.content_type, info.content)?;
        self.send_info(call, info.headers, body);
        self.answer(me, message, "infosent");
        Ok(())
    }

    /// `dtmf_info`.
    pub(super) fn dtmf_info(&mut self, me: PageId, message: &Message) -> Result<(), Refusal> {
        let call = self.check_in_call(me)?;
        let Dtmf {
            digit,
            duration,
            headers,
        } = Fields(&message.body).read()?;
        if digit.len() != 1 || !digit.bytes().all(|digit| digit.is_ascii_graphic()) {
            return Err(Refusal::Value("digit should be a single character"));
        }
        let duration = match duration {
            Some(duration @ 1..=MAX_DURATION) => duration,
            _ => USUAL_DURATION,
        };
        let content = format!("Signal={digit}\r\nDuration={duration}");
        let body = body("application/dtmf-relay", &content)?;
        self.send_info(call, headers, body);
        self.answer(me, message, "dtmfsent");
        Ok(())
    }

    /// `message`: in the call, or with `uri` outside of it.
    pub(super) fn message(&mut self, me: PageId, message: &Message) -> Result<(), Refusal> {
        let fields = Fields(&message.body);
        let outside = fields.has("uri");
        let status = self.page(me).map_or(CallStatus::Idle, |page| page.status());
        let mut call = None;
        if outside {
            self.check_may_call(me)?;
        } else if status == CallStatus::Inviting || status.is_in_call() {
            call = self.side_of(me).map(|side| side.id);
        }
        if !outside && call.is_none() {
            return Err(NOT_IN_A_CALL);
        }
        let Said {
            content,
            content_type,
            uri,
            call_id: given_id,
            headers,
        } = fields.read()?;
        let body = body(content_type.unwrap_or("text/plain"), content)?;
        let sent = self.messages.values().filter(|sent| sent.page == me);
        if sent.count() >= MAX_MESSAGES {
            return Err(Refusal::TooMany("too many messages are under way"));
        }
        let request = RequestId::new(self.common.number());
        let (command, call_id) = match (call, uri) {
            (Some(call), _) => {
                let call_id = self.calls.get(call).map(|call| call.call_id.clone());
                let command = Command::InDialog {
                    call,
                    request,
                    method: Method::Message,
                    headers,
                    body: Some(body),
                };
                (command, call_id)
            }
            (None, Some(uri)) => {
                let uri = Uri::Sip(called(uri)?);
                if let Some(call_id) = given_id {
                    self.check_call_id(call_id)?;
                }
                self.spend(message)?;
                let call_id = given_id.map_or_else(new_call_id, str::to_owned);
                let account = self.account_of(me).map(|account| account.id);
                let account = account.ok_or(Refusal::State("register first"))?;
                let command = Command::OutOfDialog {
                    account,
                    request,
                    method: Method::Message,
                    uri,
                    call_id: Some(call_id.clone()),
                    headers,
                    body: Some(body),
                };
                (command, Some(call_id))
            }
            (None, None) => return Err(NOT_IN_A_CALL),
        };
        let sent = SentMessage {
            page: me,
            call_id: call_id.clone(),
        };
        self.messages.insert(request, sent);
        // The response finds its way by the entry, so the entry comes first.
        self.common.directory.enter(Key::Request(request), self.id);
        self.command(command);
        let sent = named_event("messagesent").with_some("call_id", call_id);
        self.answer_with(me, message, sent);
        Ok(())
    }

    /// Answers a request with an event without further members.
    pub(super) fn answer(&self, me: PageId, message: &Message, event: &str) {
        self.answer_with(me, message, named_event(event));
    }

    /// Answers a request with an event.
    pub(super) fn answer_with(&self, me: PageId, message: &Message, event: Object) {
        if let Some(page) = self.page(me) {
            page.reply(&message.transaction, event);
        }
    }

    /// Takes the response to a request of ours.
    pub(super) fn answered(&mut self, request: RequestId, code: u16, reason: &Failure<'_>) {
        self.common.directory.leave(Key::Request(request));
        let Some(SentMessage { page, call_id }) = self.messages.remove(&request) else {
            return;
        };
        let Some(page) = self.page(page) else {
            return;
        };
        let delivery = named_event("messagedelivery")
            .with("code", code)
            .with("reason", reason.to(Some(page)));
        let data = Object::new()
            .with("sip", "event")
            .with("result", delivery)
            .with_some("call_id", call_id);
        page.send_data(data, None);
    }

    /// Handles MESSAGE or INFO of a peer.
    pub(super) fn peer_message(
        &mut self,
        account: Option<AccountId>,
        call: Option<CallId>,
        message: &SipMessage,
    ) {
        let Some(content) = message.body() else {
            return;
        };
        let (name, type_name) = match message.method() {
            Some(Method::Message) => ("message", "content_type"),
            Some(Method::Info) => ("info", "type"),
            _ => return,
        };
        let pages = match call.and_then(|call| self.calls.get(call)) {
            Some(call) => call.pages.clone(),
            None => account
                .map(|it| self.accounts.masters(it))
                .unwrap_or_default(),
        };
        if message.content_type().is_some_and(is_media_control)
            && content.contains("picture_fast_update")
        {
            // A peer without RTCP feedback requests keyframes like this (RFC 5168).
            for page in pages.iter().filter_map(|id| self.page(*id)) {
                page.handle.request_keyframe();
            }
        }
        let from = message.sender();
        let displayname = Some(from.display).filter(|name| !name.is_empty());
        for page in pages.into_iter().filter_map(|id| self.page(id)) {
            let event = named_event(name)
                .with("sender", from.uri)
                .with_some("displayname", displayname)
                .with("content", content.as_str())
                .with(type_name, message.content_type().unwrap_or_default())
                .with_some("headers", message.shown_headers(&page.prefixes));
            page.send(event, None);
        }
    }
}

/// The media type of RFC 5168.
pub(crate) const MEDIA_CONTROL: &str = "application/media_control+xml";

fn is_media_control(content_type: &str) -> bool {
    content_type.eq_ignore_ascii_case(MEDIA_CONTROL)
}

/// Makes the body of a client's text. The type must fit on a line.
pub(crate) fn body(content_type: &str, content: &str) -> Result<Body, FieldError> {
    let is_line = !content_type.is_empty() && !content_type.contains(['\r', '\n', '\0']);
    match is_line {
        true => Ok(Body {
            content_type: content_type.to_owned(),
            content: content.as_bytes().to_vec(),
        }),
        false => Err(FieldError::wrong_type("content_type", "a media type")),
    }
}
