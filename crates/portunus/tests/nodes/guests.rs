//! Clients of video rooms, by HTTP and with real PeerConnections.

use std::net::{IpAddr, Ipv4Addr};
use std::time::{Duration, Instant};

use portunus_hammer::machine::HUB_IP;
use portunus_rtp::ExtensionKind;
use portunus_sdp::{CodecName, Description, Direction, Kind, MediaOffer, OfferOptions};
use portunus_tests::Peer;
use serde_json::{Value, json};

use super::events::Events;
use crate::server::{PATIENCE, ask, attach_to, post};

const PACKAGE: &str = "janus.plugin.videoroom";
/// A VP8 keyframe of 16 by 16 pixels in one packet.
const KEYFRAME: [u8; 12] = [0x10, 0x10, 0, 0, 0x9d, 0x01, 0x2a, 16, 0, 16, 0, 7];
/// The m-line of video.
pub const VIDEO: usize = 1;

/// A client of a room.
pub struct Guest {
    pub handle: String,
    pub peer: Peer,
    events: Events,
    clock: u32,
}

fn publishing() -> Description {
    let mut audio = MediaOffer::new(Kind::Audio, Direction::SendOnly);
    audio.add_codec(CodecName::Opus, None, None);
    audio.extensions.push((ExtensionKind::AudioLevel, 1));
    let mut video = MediaOffer::new(Kind::Video, Direction::SendOnly);
    video.add_codec(CodecName::Vp8, None, None);
    Description::offer(OfferOptions {
        media: vec![audio, video],
        ..Default::default()
    })
}

/// Returns the address of clients of this API: the loopback interface, or that of clients of nodes
/// that are apart.
fn address(api: &str) -> IpAddr {
    match api.starts_with("http://127.0.0.1:") {
        true => Ipv4Addr::LOCALHOST.into(),
        false => HUB_IP.into(),
    }
}

impl Guest {
    async fn new(api: &str, peer: Peer) -> Self {
        let handle = attach_to(api, PACKAGE);
        let events = Events::of(&handle);
        Guest {
            handle,
            peer,
            events,
            clock: 0,
        }
    }

    /// A client that has joined nothing.
    pub async fn idle(api: &str) -> Self {
        Guest::new(api, Peer::offering_from(address(api)).await).await
    }

    /// A participant that joins by this request. Returns the answer, too.
    pub async fn joined(api: &str, join: Value) -> (Self, Value) {
        let mut guest = Guest::idle(api).await;
        guest.send(join, None);
        let joined = guest.until(|data| data["videoroom"] == "joined");
        (guest, joined)
    }

    /// A participant that publishes nothing. Returns the answer to its join, too.
    pub async fn listener(api: &str, room: u64, id: u64) -> (Self, Value) {
        let join = json!({ "request": "join", "ptype": "publisher", "room": room, "id": id });
        Guest::joined(api, join).await
    }

    /// A participant that publishes audio and video, and is connected.
    pub async fn publisher(api: &str, room: u64, id: u64) -> Self {
        Guest::publishing(api, room, id, publishing()).await
    }

    /// A participant that publishes audio, video and data, and is connected.
    pub async fn writer(api: &str, room: u64, id: u64) -> Self {
        let mut audio = MediaOffer::new(Kind::Audio, Direction::SendOnly);
        audio.add_codec(CodecName::Opus, None, None);
        let mut video = MediaOffer::new(Kind::Video, Direction::SendOnly);
        video.add_codec(CodecName::Vp8, None, None);
        let data = MediaOffer::new(Kind::Data, Direction::SendRecv);
        let offer = Description::offer(OfferOptions {
            media: vec![audio, video, data],
            ..Default::default()
        });
        Guest::publishing(api, room, id, offer).await
    }

    async fn publishing(api: &str, room: u64, id: u64, offer: Description) -> Self {
        let mut guest = Guest::new(api, Peer::offering_from(address(api)).await).await;
        let offer = guest.peer.offer(offer);
        let join = json!({
            "request": "joinandconfigure", "ptype": "publisher", "room": room, "id": id,
            "display": format!("p{id}"),
        });
        guest.send(join, Some(("offer", &offer)));
        let joined = guest.until_event(|event| data(event)["videoroom"] == "joined");
        guest.peer.accept(joined["jsep"]["sdp"].as_str().unwrap());
        guest.peer.connect().await;
        guest.until_event(|event| event["janus"] == "webrtcup");
        guest
    }

    /// Asks to join as a publisher by this request. Nobody waits for the answer.
    pub async fn joining(api: &str, join: Value) -> Self {
        let mut guest = Guest::new(api, Peer::offering_from(address(api)).await).await;
        let offer = guest.peer.offer(publishing());
        guest.send(join, Some(("offer", &offer)));
        guest
    }

    /// Returns an offer of audio and video.
    pub fn offer(&mut self) -> String {
        self.peer.offer(publishing())
    }

    /// Waits for the answer to a join: the error code, or `None` if it is in the room.
    #[track_caller]
    pub fn error(&mut self) -> Option<u64> {
        let answer =
            self.until(|data| data["videoroom"] == "joined" || data.get("error").is_some());
        answer["error_code"].as_u64()
    }

    /// A subscriber to a participant, which is connected.
    pub async fn viewer(api: &str, room: u64, feed: u64) -> Self {
        let mut guest = Guest::new(api, Peer::answering_from(address(api)).await).await;
        let join = json!({
            "request": "join", "ptype": "subscriber", "room": room, "streams": [{ "feed": feed }],
        });
        guest.send(join, None);
        let attached = guest.until_event(|event| {
            let data = data(event);
            assert!(data.get("error").is_none(), "{event}");
            data["videoroom"] == "attached"
        });
        let answer = guest.peer.answer(attached["jsep"]["sdp"].as_str().unwrap());
        guest.send(json!({ "request": "start" }), Some(("answer", &answer)));
        guest.peer.connect().await;
        guest.until_event(|event| event["janus"] == "webrtcup");
        guest
    }

    /// The same, once the node knows the participant.
    pub async fn viewer_soon(api: &str, room: u64, feed: u64) -> Self {
        let (mut looker, begin) = (Guest::idle(api).await, Instant::now());
        loop {
            let listed = looker.ask(json!({ "request": "listparticipants", "room": room }));
            let mut participants = listed["participants"].as_array().into_iter().flatten();
            if participants.any(|it| it["id"] == feed && it["publisher"] == true) {
                return Guest::viewer(api, room, feed).await;
            }
            assert!(begin.elapsed() < PATIENCE, "{listed}");
            looker.peer.run_for(Duration::from_millis(50)).await;
        }
    }

    /// Waits until its node lists so many participants.
    pub async fn until_there_are(&mut self, room: u64, count: usize) {
        let begin = Instant::now();
        loop {
            let listed = self.ask(json!({ "request": "listparticipants", "room": room }));
            let participants = listed["participants"].as_array();
            if participants.is_some_and(|all| all.len() == count) {
                return;
            }
            assert!(begin.elapsed() < PATIENCE, "{listed}");
            self.peer.run_for(Duration::from_millis(50)).await;
        }
    }

    pub fn send(&self, body: Value, jsep: Option<(&str, &str)>) {
        let mut message = json!({ "janus": "message", "transaction": "m", "body": body });
        if let Some((kind, sdp)) = jsep {
            message["jsep"] = json!({ "type": kind, "sdp": sdp });
        }
        let reply = post(&self.handle, &message);
        assert_eq!(reply["janus"], "ack", "{reply}");
    }

    /// Asks the plugin for something that it answers at once.
    pub fn ask(&self, body: Value) -> Value {
        ask(&self.handle, body)
    }

    /// Waits for data of the plugin.
    #[track_caller]
    pub fn until(&mut self, holds: impl Fn(&Value) -> bool) -> Value {
        data(&self.until_event(|event| holds(data(event)))).clone()
    }

    #[track_caller]
    fn until_event(&mut self, holds: impl Fn(&Value) -> bool) -> Value {
        self.events.until(holds)
    }

    /// Waits until it is told that its PeerConnection is over.
    #[track_caller]
    pub fn hung_up(&mut self) {
        self.until_event(|event| event["janus"] == "hangup");
    }

    /// Returns the data of the plugin that has come and was not taken.
    pub fn untold(&mut self) -> Vec<Value> {
        let events = self.events.come();
        let told = events.filter(|event| !data(event).is_null());
        told.map(|event| data(&event).clone()).collect()
    }

    /// Returns whether such data of the plugin comes in this time.
    pub fn comes_within(&mut self, time: Duration, holds: impl Fn(&Value) -> bool) -> bool {
        let end = Instant::now() + time;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            match self.events.within(left) {
                Some(event) if holds(data(&event)) => return true,
                Some(_) => {}
                None => return false,
            }
        }
    }

    /// Sends a picture of one packet, which ends with `mark`.
    pub async fn send_picture(&mut self, mark: u8) {
        let mut picture = KEYFRAME.to_vec();
        picture.push(mark);
        self.clock += 3_000;
        self.peer.send(VIDEO, self.clock, &picture).await;
    }

    /// Lets another one write until the text is here.
    pub async fn read(&mut self, writer: &mut Guest, feed: &str, text: &str) {
        let end = Instant::now() + PATIENCE;
        while !self.peer.texts(feed).contains(&text) {
            assert!(Instant::now() < end, "no text {text}");
            writer.peer.send_text("chat", text);
            for _ in 0..10 {
                writer.peer.run_for(Duration::from_millis(10)).await;
                self.peer.run_for(Duration::from_millis(10)).await;
            }
        }
    }

    /// Returns whether it has received a picture with this mark.
    pub fn has_picture(&self, mark: u8) -> bool {
        let mut packets = self.peer.packets.iter();
        packets.any(|packet| packet.payload.last() == Some(&mark))
    }

    /// Lets media flow from `publisher` for this time: a picture each 20 ms, with marks from `mark`
    /// on, modulo 250. Returns the next mark.
    pub async fn flow(&mut self, publisher: &mut Guest, mark: u8, time: Duration) -> u8 {
        let (end, mut mark) = (Instant::now() + time, mark % 250);
        while Instant::now() < end {
            publisher.send_picture(mark).await;
            mark = (mark + 1) % 250;
            publisher.peer.run_for(Duration::from_millis(10)).await;
            self.peer.run_for(Duration::from_millis(10)).await;
        }
        mark
    }

    /// Returns the marks of the pictures that it has received, in their order.
    pub fn marks(&self) -> Vec<u8> {
        let packets = self.peer.packets.iter();
        packets
            .filter_map(|it| it.payload.last().copied())
            .collect()
    }

    /// Lets media flow from `publisher` until a picture with this mark is here.
    pub async fn watch(&mut self, publisher: &mut Guest, mark: u8) {
        let end = Instant::now() + PATIENCE;
        while !self.has_picture(mark) {
            assert!(Instant::now() < end, "no picture {mark}");
            publisher.send_picture(mark).await;
            publisher.peer.run_for(Duration::from_millis(10)).await;
            self.peer.run_for(Duration::from_millis(10)).await;
        }
    }
}

/// The data of the plugin in an event.
fn data(event: &Value) -> &Value {
    &event["plugindata"]["data"]
}
