//! Users of the video call, by HTTP and with real PeerConnections.

use std::time::{Duration, Instant};

use portunus_rtp::Pt;
use portunus_sdp::{CodecName, Description, Direction, Kind, MediaOffer, OfferOptions};
use portunus_tests::Peer;
use serde_json::{Value, json};

use super::events::Events;
use crate::server::{PATIENCE, attach_to, post};

const PACKAGE: &str = "janus.plugin.videocall";
/// A VP8 keyframe of 16 by 16 pixels in one packet.
const KEYFRAME: [u8; 12] = [0x10, 0x10, 0, 0, 0x9d, 0x01, 0x2a, 16, 0, 16, 0, 7];
/// The m-lines.
const AUDIO: usize = 0;
const VIDEO: usize = 1;
const LABEL: &str = "chat";

/// A client of the video call.
pub struct Caller {
    pub handle: String,
    pub peer: Option<Peer>,
    events: Events,
    clock: u32,
}

fn media(red: bool) -> Description {
    let mut audio = MediaOffer::new(Kind::Audio, Direction::SendRecv);
    audio.add_codec(CodecName::Opus, None, None);
    if red {
        audio.add_red(Pt(63), CodecName::Opus.default_pt());
    }
    let mut video = MediaOffer::new(Kind::Video, Direction::SendRecv);
    video.add_codec(CodecName::Vp8, None, None);
    let data = MediaOffer::new(Kind::Data, Direction::SendRecv);
    Description::offer(OfferOptions {
        media: vec![audio, video, data],
        ..Default::default()
    })
}

/// The result, or the error code, of an event.
fn result(event: &Value) -> &Value {
    &event["plugindata"]["data"]["result"]
}

impl Caller {
    /// A client without a name.
    pub fn new(api: &str) -> Self {
        let handle = attach_to(api, PACKAGE);
        let events = Events::of(&handle);
        Caller {
            handle,
            peer: None,
            events,
            clock: 0,
        }
    }

    /// A registered user.
    pub fn registered(api: &str, name: &str) -> Self {
        let mut caller = Caller::new(api);
        let registered = caller.register(name);
        assert_eq!(registered["result"]["event"], "registered", "{registered}");
        caller
    }

    fn send(&self, body: Value, jsep: Option<(&str, &str)>) {
        let mut message = json!({ "janus": "message", "transaction": "m", "body": body });
        if let Some((kind, sdp)) = jsep {
            message["jsep"] = json!({ "type": kind, "sdp": sdp });
        }
        let reply = post(&self.handle, &message);
        assert_eq!(reply["janus"], "ack", "{reply}");
    }

    /// Waits for an event.
    #[track_caller]
    fn until_event(&mut self, holds: impl Fn(&Value) -> bool) -> Value {
        self.events.until(holds)
    }

    /// Waits for a result with this event, and returns the whole event.
    #[track_caller]
    pub fn until(&mut self, name: &str) -> Value {
        self.until_event(|event| result(event)["event"] == name)
    }

    /// Sends a request, and returns the data of its answer.
    #[track_caller]
    pub fn ask(&mut self, body: Value, jsep: Option<(&str, &str)>) -> Value {
        self.send(body, jsep);
        let answer = self.until_event(|event| event["transaction"] == "m");
        answer["plugindata"]["data"].clone()
    }

    pub fn register(&mut self, name: &str) -> Value {
        self.ask(json!({ "request": "register", "username": name }), None)
    }

    /// The names of all users.
    pub fn list(&mut self) -> Vec<String> {
        let list = self.ask(json!({ "request": "list" }), None);
        let names = list["result"]["list"].as_array().unwrap().iter();
        names
            .map(|name| name.as_str().unwrap().to_owned())
            .collect()
    }

    /// Calls a user. Returns the data of the answer.
    pub async fn call(&mut self, name: &str) -> Value {
        self.call_with(name, false).await
    }

    /// Calls a user, and offers redundant audio. Returns the data of the answer.
    pub async fn call_redundantly(&mut self, name: &str) -> Value {
        self.call_with(name, true).await
    }

    async fn call_with(&mut self, name: &str, red: bool) -> Value {
        let mut peer = Peer::offering().await;
        let offer = peer.offer(media(red));
        self.peer = Some(peer);
        let call = json!({ "request": "call", "username": name });
        self.ask(call, Some(("offer", &offer)))
    }

    /// Calls a user whose last call is about to end.
    pub async fn call_again(&mut self, name: &str) -> Value {
        let begin = Instant::now();
        loop {
            let answer = self.call(name).await;
            if answer["result"]["reason"] != "User busy" {
                return answer;
            }
            assert!(begin.elapsed() < PATIENCE, "{answer}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Accepts the call of a user.
    pub async fn accept(&mut self, from: &str) {
        self.accept_with(from, false).await;
    }

    /// Accepts the call of a user, and redundant audio or not.
    pub async fn accept_with(&mut self, from: &str, red: bool) {
        let incoming = self.until("incomingcall");
        assert_eq!(result(&incoming)["username"], from);
        let mut peer = Peer::answering().await;
        peer.red = red;
        let answer = peer.answer(incoming["jsep"]["sdp"].as_str().unwrap());
        self.peer = Some(peer);
        let accepted = self.ask(json!({ "request": "accept" }), Some(("answer", &answer)));
        assert_eq!(accepted["result"]["event"], "accepted", "{accepted}");
        self.connect().await;
    }

    /// Waits until its call is accepted.
    pub async fn accepted(&mut self) {
        let accepted = self.until("accepted");
        let answer = accepted["jsep"]["sdp"].as_str().unwrap();
        self.peer().accept(answer);
        self.connect().await;
    }

    async fn connect(&mut self) {
        self.peer().connect().await;
    }

    pub fn peer(&mut self) -> &mut Peer {
        self.peer.as_mut().unwrap()
    }

    async fn run(&mut self) {
        self.peer().run_for(Duration::from_millis(10)).await;
    }

    /// Lets media flow from another one until a picture with this mark is here.
    pub async fn watch(&mut self, other: &mut Caller, mark: u8) {
        let end = Instant::now() + PATIENCE;
        let has = |peer: &Peer| {
            let mut packets = peer.packets.iter();
            packets.any(|packet| packet.media == VIDEO && packet.payload.last() == Some(&mark))
        };
        while !has(self.peer()) {
            assert!(Instant::now() < end, "no picture {mark}");
            let mut picture = KEYFRAME.to_vec();
            picture.push(mark);
            other.clock += 3_000;
            let clock = other.clock;
            other.peer().send(VIDEO, clock, &picture).await;
            other.run().await;
            self.run().await;
        }
    }

    /// Lets audio flow from another one until some is here. Returns the payload of the first packet.
    pub async fn hear(&mut self, other: &mut Caller, payload: &[u8]) -> Vec<u8> {
        let end = Instant::now() + PATIENCE;
        loop {
            let packets = &self.peer().packets;
            if let Some(packet) = packets.iter().find(|packet| packet.media == AUDIO) {
                return packet.payload.clone();
            }
            assert!(Instant::now() < end, "no audio");
            other.clock += 960;
            let clock = other.clock;
            other.peer().send(AUDIO, clock, payload).await;
            other.run().await;
            self.run().await;
        }
    }

    /// Lets another one write until the text is here. The channel is open once both have written.
    pub async fn read(&mut self, other: &mut Caller, text: &str) {
        let end = Instant::now() + PATIENCE;
        while !self.peer().texts(LABEL).contains(&text) {
            assert!(Instant::now() < end, "no text {text}");
            self.peer().send_text(LABEL, "-");
            other.peer().send_text(LABEL, text);
            for _ in 0..10 {
                other.run().await;
                self.run().await;
            }
        }
    }
}
