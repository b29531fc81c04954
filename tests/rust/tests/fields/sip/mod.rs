//! Telephony with accounts: pages, and a SIP server and telephone that a test controls.

mod accounts;
mod call_media;
mod call_ownership;
mod incoming_calls;
mod outgoing_calls;
mod phone;

use portunus_core::record::Recorder;
use portunus_rtp::Pt;
use portunus_sdp::{CodecName, Description, Direction, Kind, MediaOffer, OfferOptions};
use portunus_sip::message::Method;
use portunus_sip_plugin::{Sip, SipConfig};
use portunus_tests::shape::{Shape, is, object};
use portunus_tests::{Caller, Peer, Server, Watcher};
use serde_json::{Value, json};

use phone::{Phone, Talk, contact};

const PACKAGE: &str = "janus.plugin.sip";

/// A server, a watcher of its events, and a far end.
struct World {
    server: Server,
    watcher: Watcher,
    phone: Phone,
}

/// Returns an event without a call.
fn result<const N: usize>(members: [(&'static str, Shape); N]) -> Shape {
    object([("sip", is("event")), ("result", object(members))])
}

/// Returns an event of a call.
fn in_call<const N: usize>(call_id: &str, members: [(&'static str, Shape); N]) -> Shape {
    result(members).and([("call_id", is(call_id))])
}

fn error(code: u16, call_id: Option<&str>) -> Shape {
    let shape = object([
        ("sip", is("event")),
        ("error_code", is(code)),
        ("error", Shape::Text),
    ]);
    match call_id {
        Some(call_id) => shape.and([("call_id", is(call_id))]),
        None => shape,
    }
}

fn hangup(code: u16, reason: &str) -> [(&'static str, Shape); 3] {
    [
        ("event", is("hangup")),
        ("code", is(code)),
        ("reason", is(reason)),
    ]
}

impl World {
    async fn new() -> Self {
        Self::with(SipConfig::default()).await
    }

    async fn with(config: SipConfig) -> Self {
        let config = SipConfig {
            local_ip: Some([127, 0, 0, 1].into()),
            keepalive_interval: std::time::Duration::ZERO,
            ..config
        };
        let (server, watcher) = Server::watched::<Sip>(config, Recorder::default()).await;
        World {
            server,
            watcher,
            phone: Phone::new().await,
        }
    }

    /// Returns a handle that is not registered.
    async fn page(&self) -> Caller {
        self.server.attach(PACKAGE).await
    }

    /// Returns a handle that has registered `USER`, and its contact.
    async fn registered(&mut self, user: &str, more: Value) -> (Caller, String) {
        let mut page = self.page().await;
        let contact = self.register(&mut page, user, more).await;
        until(&mut page, "registered").await;
        (page, contact)
    }

    async fn register(&mut self, page: &mut Caller, user: &str, more: Value) -> String {
        let mut body = json!({
            "request": "register", "username": self.phone.uri(user), "secret": "s", "force_udp": true,
        });
        body.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        ask(page, body).await;
        let register = self.phone.request(Method::Register).await;
        let contact = contact(register.headers.get("Contact"));
        self.phone
            .answer(
                &register,
                200,
                &[
                    ("Contact", &format!("<{contact}>;expires=3600")),
                    ("X-Told", "1"),
                ],
                "",
            )
            .await;
        contact
    }

    /// Lets a page call the far end, which answers. Returns the page, the Call-ID, the dialog, and
    /// the page's offer.
    async fn talking(&mut self, more: Value) -> (Caller, String, Talk, String) {
        let (mut page, _) = self.registered("ann", json!({})).await;
        let mut body = json!({ "request": "call", "uri": self.phone.uri("bob") });
        body.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        let mut peer = Peer::offering().await;
        let calling = offer(&mut page, &mut peer, body).await;
        let call_id = calling["result"]["call_id"].as_str().unwrap().to_owned();
        let invite = self.phone.request(Method::Invite).await;
        let sdp = self.phone.sdp();
        let talk = self.phone.answer(&invite, 200, &[], &sdp).await;
        self.phone.request(Method::Ack).await;
        until(&mut page, "accepted").await;
        (page, call_id, talk, String::from_utf8(invite.body).unwrap())
    }

    /// Returns the next event for event handlers about a handle, except SIP messages.
    async fn told(&mut self, page: &Caller) -> Value {
        loop {
            let data = self.watcher.told(PACKAGE, Some(page)).await;
            let event = data["event"].as_str().unwrap_or_default().to_owned();
            if event != "sip-in" && event != "sip-out" {
                return data;
            }
            let message = [
                ("event", is(event)),
                ("sip", Shape::Text),
                // An addition to Janus.
                ("peer", Shape::Begins("127.0.0.1:")),
            ];
            object(message).check(&data);
        }
    }
}

/// Returns the plugin's next message.
async fn next(page: &mut Caller) -> Value {
    page.until("/janus", "event").await["plugindata"]["data"].clone()
}

/// Sends a request. Returns the plugin's next message.
async fn ask(page: &mut Caller, body: Value) -> Value {
    page.message(body, None).await;
    next(page).await
}

/// Like `ask`, with an offer of audio and video.
async fn offer(page: &mut Caller, peer: &mut Peer, body: Value) -> Value {
    let sdp = peer.offer(description());
    page.message(body, Some(("offer", &sdp))).await;
    next(page).await
}

/// Waits for an event.
async fn until(page: &mut Caller, event: &str) -> Value {
    page.until("/plugindata/data/result/event", event).await
}

fn description() -> Description {
    described(CodecName::Pcmu)
}

/// Returns audio of this codec with telephone keys, and video.
fn described(codec: CodecName) -> Description {
    let mut audio = MediaOffer::new(Kind::Audio, Direction::SendRecv);
    audio.add_codec(codec, None, None);
    audio.add_dtmf(Pt(101), 8_000);
    let mut video = MediaOffer::new(Kind::Video, Direction::SendRecv);
    video.add_codec(CodecName::Vp8, None, None);
    Description::offer(OfferOptions {
        media: vec![audio, video],
        ..OfferOptions::default()
    })
}
