//! Clients of LiveKit's protocol that signal only, and requests to its services.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::{Duration, Instant};

use futures_util::{SinkExt, StreamExt};
use jsonwebtoken::{EncodingKey, Header, encode, get_current_timestamp};
use portunus_livekit::protocol::{
    DisconnectReason, JoinResponse, ParticipantInfo, Room, SignalRequest, SignalResponse,
    participant_info, signal_request, signal_response,
};
use prost::Message as _;
use serde_json::{Value, json};
use tokio::net::TcpStream as Stream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use crate::server::PATIENCE;

pub const KEY: &str = "devkey";
const SECRET: &str = "secret-of-32-bytes-for-the-tests";

/// The section `[livekit]` for a door at this port.
pub fn door(port: u16) -> String {
    format!(
        "\n[livekit]\nkeys = {{ {KEY} = \"{SECRET}\" }}\nbind = [\"127.0.0.1\"]\nport = {port}\n"
    )
}

/// A client. It has no media.
pub struct Client {
    socket: WebSocketStream<MaybeTlsStream<Stream>>,
    pub join: JoinResponse,
    /// The others, as they were told last.
    pub others: Vec<ParticipantInfo>,
    /// The room, as it was told last.
    pub room: Room,
    /// Why it was told to leave.
    pub left: Option<DisconnectReason>,
}

/// Returns an access token.
pub fn token(identity: &str, room: &str, more: Value) -> String {
    let mut video = json!({ "roomJoin": true, "room": room });
    if let (Some(all), Value::Object(more)) = (video.as_object_mut(), more) {
        all.extend(more);
    }
    let claims = json!({
        "iss": KEY, "sub": identity, "exp": get_current_timestamp() + 600, "video": video,
        "sip": { "admin": true, "call": true },
    });
    let key = EncodingKey::from_secret(SECRET.as_bytes());
    encode(&Header::default(), &claims, &key).unwrap()
}

/// Calls a method of a service. Returns the status and the answer.
pub fn call(port: u16, method: &str, room: &str, body: &Value) -> (u16, Value) {
    let grants = json!({
        "roomAdmin": true, "roomCreate": true, "roomList": true, "ingressAdmin": true,
        "destinationRoom": body["destination_room"].as_str().unwrap_or_default(),
    });
    let (token, body) = (token("admin", room, grants), body.to_string());
    let path = match method.contains('/') {
        true => method.to_owned(),
        false => format!("RoomService/{method}"),
    };
    let request = format!(
        "POST /twirp/livekit.{path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\
         Authorization: Bearer {token}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    let status = response.split(' ').nth(1).unwrap().parse().unwrap();
    let (_, body) = response.split_once("\r\n\r\n").unwrap();
    (status, serde_json::from_str(body).unwrap_or(Value::Null))
}

/// Calls a method until its answer is as it is expected. Returns the answer.
pub fn until(
    port: u16,
    (method, room): (&str, &str),
    body: &Value,
    holds: impl Fn(u16, &Value) -> bool,
) -> Value {
    let begin = Instant::now();
    loop {
        let (status, answer) = call(port, method, room, body);
        if holds(status, &answer) {
            return answer;
        }
        assert!(
            begin.elapsed() < PATIENCE,
            "{method} {body}: {status} {answer}"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

impl Client {
    /// Joins a room. Fails with the status of the refusal. It may not subscribe, since it answers no
    /// offers.
    pub async fn join(port: u16, identity: &str, room: &str) -> Result<Self, u16> {
        let token = token(identity, room, json!({ "canSubscribe": false }));
        let url = format!("ws://127.0.0.1:{port}/rtc?access_token={token}&protocol=17");
        let socket = match connect_async(url).await {
            Ok((socket, _)) => socket,
            Err(Error::Http(response)) => return Err(response.status().as_u16()),
            Err(error) => panic!("{error}"),
        };
        let mut client = Client {
            socket,
            join: JoinResponse::default(),
            others: Vec::new(),
            room: Room::default(),
            left: None,
        };
        let is_in = |it: &Client| it.join.participant.is_some() || it.left.is_some();
        client.until("the join", is_in).await;
        Ok(client)
    }

    /// Takes messages until the client is as it is expected.
    pub async fn until(&mut self, what: &str, holds: impl Fn(&Self) -> bool) {
        let waits = async {
            while !holds(self) {
                assert!(self.take().await, "the connection ends before {what}");
            }
        };
        timeout(PATIENCE, waits).await.expect(what);
    }

    /// Takes messages for as long as they follow each other closely.
    pub async fn take_all(&mut self) {
        while let Ok(true) = timeout(Duration::from_millis(50), self.take()).await {}
    }

    /// Takes a message. Returns whether there was one.
    async fn take(&mut self) -> bool {
        let bytes = match self.socket.next().await {
            Some(Ok(Message::Binary(bytes))) => bytes,
            Some(Ok(Message::Close(_))) | Some(Err(_)) | None => return false,
            Some(Ok(_)) => return true,
        };
        use signal_response::Message as Told;
        match SignalResponse::decode(bytes).unwrap().message {
            Some(Told::Join(join)) => {
                self.others.clone_from(&join.other_participants);
                self.room = join.room.clone().unwrap_or_default();
                self.join = join;
            }
            Some(Told::Update(update)) => {
                for person in update.participants {
                    self.others.retain(|it| it.sid != person.sid);
                    if person.state() != participant_info::State::Disconnected {
                        self.others.push(person);
                    }
                }
            }
            Some(Told::RoomUpdate(update)) => self.room = update.room.unwrap_or_default(),
            Some(Told::Leave(leave)) => self.left = Some(leave.reason()),
            _ => {}
        }
        true
    }

    /// Sends a request.
    pub async fn send(&mut self, request: signal_request::Message) {
        let request = SignalRequest {
            message: Some(request),
        };
        let bytes = request.encode_to_vec();
        self.socket
            .send(Message::Binary(bytes.into()))
            .await
            .unwrap();
    }

    /// Returns the id of its session.
    pub fn sid(&self) -> &str {
        &self.join.participant.as_ref().unwrap().sid
    }

    /// Returns another participant, by its identity.
    pub fn other(&self, identity: &str) -> Option<&ParticipantInfo> {
        self.others.iter().find(|it| it.identity == identity)
    }
}
