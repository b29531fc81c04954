//! A door on a media plane without workers, and clients that speak the protocol by WebSockets.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use jsonwebtoken::{EncodingKey, Header, encode, get_current_timestamp};
use portunus_core::CoreConfig;
use portunus_core::testing::{Line, TestServer, jsep};
use portunus_livekit::protocol::{
    JoinResponse, SessionDescription, SignalRequest, SignalResponse, signal_request,
    signal_response,
};
use portunus_livekit::{LiveKit, LiveKitConfig};
use portunus_media::{Event as MediaEvent, MediaPlane, PeerId};
use portunus_metrics::{MetricsPage, MetricsSource};
use portunus_record::Recorder;
use portunus_room::{
    CreateError, Directory, Event, FileNames, Room, RoomSettings, Rooms, Setup, State, Watcher,
    Work,
};
use prost::Message as _;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

pub const KEY: &str = "devkey";
pub const SECRET: &str = "secret-of-32-bytes-for-the-tests";

/// The limit of rooms.
pub const MAX_ROOMS: usize = 8;

/// How long something may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// A server with the door only.
#[derive(Debug)]
pub struct World {
    pub server: TestServer,
    pub rooms: Arc<Halls>,
    pub address: SocketAddr,
    pub door: LiveKit,
}

/// The rooms of the server.
#[derive(Debug)]
pub struct Halls {
    media: MediaPlane,
    rooms: Mutex<HashMap<String, Arc<Room>>>,
}

#[derive(Debug)]
struct Nobody;

impl Watcher for Nobody {
    fn is_watching(&self) -> bool {
        false
    }

    fn notify(&self, _: &State, _: &Event<'_>) {}
}

impl Directory for Halls {
    fn find(&self, name: &str) -> Option<Arc<Room>> {
        let rooms = self.rooms.lock().unwrap_or_else(PoisonError::into_inner);
        rooms.get(name).cloned()
    }

    fn create(&self, name: &str, settings: RoomSettings) -> Result<Arc<Room>, CreateError> {
        if name == "0" {
            return Err(CreateError::Name(name.to_owned()));
        }
        if self.list().len() >= MAX_ROOMS {
            return Err(CreateError::Refused("the limit is reached".to_owned()));
        }
        let room = Arc::new(Room::new(Setup {
            name: name.into(),
            settings,
            media: self.media.clone(),
            recorder: Recorder::default(),
            names: FileNames::default(),
            watcher: Box::new(Nobody),
        }));
        let mut rooms = self.rooms.lock().unwrap_or_else(PoisonError::into_inner);
        rooms.insert(name.to_owned(), room.clone());
        Ok(room)
    }

    fn destroy(&self, name: &str) {
        let room = {
            let mut rooms = self.rooms.lock().unwrap_or_else(PoisonError::into_inner);
            rooms.remove(name)
        };
        if let Some(room) = room {
            room.lock().destroy();
        }
    }

    fn has_numbers(&self) -> bool {
        true
    }

    fn definition(&self, _: &str) -> Option<String> {
        None
    }

    fn adopt(&self, name: &str, _: &str) -> Result<(), CreateError> {
        Err(CreateError::Name(name.to_owned()))
    }

    fn answer(&self, _: &str, _: &str, _: &str) -> Work<Option<String>> {
        Box::pin(async { None })
    }

    fn changes(&self) -> watch::Receiver<()> {
        watch::channel(()).1
    }

    fn list(&self) -> Vec<(String, Arc<Room>)> {
        let rooms = self.rooms.lock().unwrap_or_else(PoisonError::into_inner);
        rooms
            .iter()
            .map(|(name, room)| (name.clone(), room.clone()))
            .collect()
    }
}

impl World {
    pub async fn new() -> Self {
        Self::with(LiveKitConfig::default()).await
    }

    pub async fn with(config: LiveKitConfig) -> Self {
        let config = LiveKitConfig {
            keys: [(KEY.to_owned(), SECRET.into())].into(),
            ..config
        };
        let directory = Rooms::default();
        let door = LiveKit::new(config, directory.clone());
        let mut rooms = None;
        let server = TestServer::with(CoreConfig::default(), |media| {
            let halls = Arc::new(Halls {
                media: media.clone(),
                rooms: Mutex::default(),
            });
            directory.set(halls.clone());
            rooms = Some(halls);
            vec![door.plugin()]
        });
        let router = door.open(server.gateway.clone());
        let router = router.expect("nothing saved");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        tokio::spawn(async move { axum::serve(listener, router).await });
        World {
            server,
            rooms: rooms.expect("rooms"),
            address,
            door,
        }
    }

    /// Returns the door's metrics.
    pub fn metrics(&self) -> String {
        let mut page = MetricsPage::default();
        self.door.write(&mut page);
        page.into_text()
    }

    /// Joins with two PeerConnections.
    pub async fn join(&self, identity: &str, room: &str) -> Client {
        self.join_with(identity, room, json!({}), "").await
    }

    /// Joins with more grants and more of a query.
    pub async fn join_with(&self, identity: &str, room: &str, video: Value, query: &str) -> Client {
        let token = token(identity, room, video);
        let query = format!("access_token={token}&protocol=17&{query}");
        let mut client = self.connect(&query).await.expect("a connection");
        let joined = client.expect("join", |message| match message {
            signal_response::Message::Join(join) => Some(join),
            _ => None,
        });
        client.join = joined.await;
        client
    }

    pub async fn connect(&self, query: &str) -> Result<Client, Error> {
        let url = format!("ws://{}/rtc?{query}", self.address);
        let (socket, _) = connect_async(url).await?;
        Ok(Client {
            socket,
            join: JoinResponse::default(),
        })
    }

    /// Returns status and text of a request.
    pub async fn get(&self, path: &str) -> (u16, String) {
        let request = format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        self.exchange(&request).await
    }

    async fn exchange(&self, request: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(self.address)
            .await
            .expect("a connection");
        tokio::io::AsyncWriteExt::write_all(&mut stream, request.as_bytes())
            .await
            .expect("written");
        let mut text = String::new();
        tokio::io::AsyncReadExt::read_to_string(&mut stream, &mut text)
            .await
            .expect("a response");
        let status = text
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok());
        let (_, body) = text.split_once("\r\n\r\n").unwrap_or_default();
        (status.unwrap_or_default(), body.to_owned())
    }

    /// Calls a method of the service of rooms by JSON. Returns status and text.
    pub async fn call(&self, method: &str, token: &str, body: &Value) -> (u16, String) {
        let body = body.to_string();
        let request = format!(
            "POST /twirp/livekit.RoomService/{method} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\
             Authorization: Bearer {token}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        self.exchange(&request).await
    }

    /// Has the streams of a room that exists play in sync.
    pub async fn in_sync(&self, room: &str) {
        let admin = token("admin", room, json!({ "roomCreate": true }));
        let body = json!({ "name": room, "sync_streams": true });
        let (status, text) = self.call("CreateRoom", &admin, &body).await;
        assert_eq!(status, 200, "{text}");
    }

    /// Has all PeerConnections be up.
    pub async fn all_up(&self) {
        for peer in self.server.peers() {
            self.up(peer).await;
        }
    }

    pub async fn up(&self, peer: PeerId) {
        let srtp_profile = "SRTP_AEAD_AES_128_GCM";
        self.server
            .happen(peer, MediaEvent::Connected { srtp_profile })
            .await;
    }
}

/// Returns an access token with more grants.
pub fn token(identity: &str, room: &str, video: Value) -> String {
    let mut grant = json!({ "roomJoin": true, "room": room });
    if let (Some(all), Value::Object(more)) = (grant.as_object_mut(), video) {
        all.extend(more);
    }
    signed(&json!({
        "iss": KEY,
        "sub": identity,
        "name": identity.to_uppercase(),
        "exp": get_current_timestamp() + 600,
        "video": grant,
    }))
}

pub fn signed(claims: &Value) -> String {
    let key = EncodingKey::from_secret(SECRET.as_bytes());
    encode(&Header::default(), claims, &key).expect("a token")
}

/// A client.
#[derive(Debug)]
pub struct Client {
    socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
    pub join: JoinResponse,
}

impl Client {
    pub async fn send(&mut self, message: signal_request::Message) {
        let request = SignalRequest {
            message: Some(message),
        };
        let frame = Message::binary(request.encode_to_vec());
        self.socket.send(frame).await.expect("sent");
    }

    pub async fn send_raw(&mut self, frame: Message) {
        self.socket.send(frame).await.expect("sent");
    }

    /// Returns the next frame, or `None` once the server has closed the connection.
    pub async fn frame(&mut self) -> Option<Message> {
        loop {
            let next = tokio::time::timeout(PATIENCE, self.socket.next()).await;
            match next.expect("a frame in time") {
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                Some(Ok(Message::Close(_)) | Err(_)) | None => return None,
                Some(Ok(frame)) => return Some(frame),
            }
        }
    }

    /// Returns the next message, or `None` once the server has closed the connection.
    pub async fn next(&mut self) -> Option<signal_response::Message> {
        match self.frame().await? {
            Message::Binary(bytes) => SignalResponse::decode(bytes).expect("a response").message,
            frame => panic!("unexpected {frame:?}"),
        }
    }

    /// Returns the next message of a kind. Others are skipped.
    pub async fn expect<T>(
        &mut self,
        what: &str,
        read: impl Fn(signal_response::Message) -> Option<T>,
    ) -> T {
        let found = tokio::time::timeout(PATIENCE, async {
            loop {
                let message = self
                    .next()
                    .await
                    .unwrap_or_else(|| panic!("closed before {what}"));
                if let Some(found) = read(message) {
                    return found;
                }
            }
        });
        found.await.unwrap_or_else(|_| panic!("no {what}"))
    }

    /// Offers these m-lines for publishing. Returns the answer.
    pub async fn offer(&mut self, lines: &[Line]) -> SessionDescription {
        let offer = description("offer", lines);
        self.send(signal_request::Message::Offer(offer)).await;
        let answer = self.expect("answer", |message| match message {
            signal_response::Message::Answer(answer) => Some(answer),
            _ => None,
        });
        answer.await
    }
}

pub fn description(kind: &str, lines: &[Line]) -> SessionDescription {
    let jsep = jsep(kind, "ufrag", lines);
    SessionDescription {
        r#type: kind.to_owned(),
        sdp: jsep["sdp"].as_str().unwrap_or_default().to_owned(),
        id: 1,
        ..SessionDescription::default()
    }
}

impl Client {
    /// Sends a frame, if the connection is still open.
    pub async fn try_send_raw(&mut self, frame: Message) -> Result<(), Error> {
        self.socket.send(frame).await
    }

    /// Skips frames until the server has closed the connection.
    pub async fn frame_until_closed(&mut self) -> bool {
        let closed =
            tokio::time::timeout(PATIENCE, async { while self.frame().await.is_some() {} });
        closed.await.is_ok()
    }
}
