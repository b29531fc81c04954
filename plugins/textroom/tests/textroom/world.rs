//! A server with the plugin, and who is in its rooms.

use std::sync::Arc;

use portunus_core::media::{DataMessage, DataPayload, Event, PeerId};
use portunus_core::testing::{Line, TestClient, TestServer, everywhere, jsep};
use portunus_core::{CoreConfig, HandleId, Requester, SessionId};
use portunus_textroom::{TextRoom, TextRoomConfig, TextRooms};
use serde_json::{Value, json};

pub const PACKAGE: &str = "janus.plugin.textroom";
pub const ROOM: u64 = 1234;
/// The channel that the server sends on.
pub const LABEL: &str = "JanusDataChannel";

/// A server with the plugin.
pub struct World {
    pub server: TestServer,
}

/// Someone with a PeerConnection.
pub struct Guest {
    pub client: TestClient,
    pub peer: PeerId,
    /// The number of messages that it has read.
    read: usize,
}

impl World {
    /// A server without rooms.
    pub fn empty(config: TextRoomConfig) -> Self {
        // Hosts of tests are not public ones.
        let outgoing = match config.outgoing.0.is_empty() {
            true => everywhere(),
            false => config.outgoing,
        };
        Self::exactly(TextRoomConfig { outgoing, ..config })
    }

    /// Starts a server with exactly this configuration.
    pub fn exactly(config: TextRoomConfig) -> Self {
        let core = CoreConfig {
            session_timeout: 0,
            ..CoreConfig::default()
        };
        let plugin = TextRoom::new(config).unwrap();
        World {
            server: TestServer::new(core, vec![Arc::new(plugin)]),
        }
    }

    /// A server without rooms that is a node of a cluster.
    pub fn of_cluster(rooms: TextRooms) -> Self {
        let config = TextRoomConfig {
            outgoing: everywhere(),
            ..TextRoomConfig::default()
        };
        let core = CoreConfig {
            session_timeout: 0,
            ..CoreConfig::default()
        };
        let plugin = TextRoom::clustered(config, rooms).unwrap();
        World {
            server: TestServer::new(core, vec![Arc::new(plugin)]),
        }
    }

    /// A server with a room that was created with `options`.
    pub async fn new(options: Value) -> Self {
        let world = Self::empty(TextRoomConfig::default());
        world.create(options).await;
        world
    }

    pub async fn create(&self, options: Value) {
        let mut create = json!({ "request": "create", "room": ROOM });
        merge(&mut create, options);
        let created = self.attach().await.request(create).await;
        assert_eq!(created["textroom"], "created", "{created}");
    }

    pub async fn attach(&self) -> TestClient {
        self.server.attach(PACKAGE).await
    }

    /// Returns a guest on this machine whose data channel is up.
    pub async fn guest(&self) -> Guest {
        self.guest_from(Requester::unix()).await
    }

    /// Returns a guest with this requester whose data channel is up.
    pub async fn guest_from(&self, requester: Requester) -> Guest {
        let client = self.server.attach_from(requester, PACKAGE).await;
        self.connect(client).await
    }

    /// Sets up a client's PeerConnection.
    pub async fn connect(&self, mut client: TestClient) -> Guest {
        client.message(json!({ "request": "setup" }), None).await;
        let (event, offer) = client.event_with_jsep().await;
        assert_eq!(event, json!({ "textroom": "event", "result": "ok" }));
        assert_eq!(offer.unwrap()["type"], "offer");
        let answer = jsep("answer", "view", &[Line::Data]);
        client
            .message(json!({ "request": "ack" }), Some(answer))
            .await;
        let event = client.event().await;
        assert_eq!(event, json!({ "textroom": "event", "result": "ok" }));
        let peer = *self.server.peers().last().unwrap();
        let srtp_profile = "";
        self.server
            .happen(peer, Event::Connected { srtp_profile })
            .await;
        assert_eq!(client.next().await["janus"], "webrtcup");
        Guest {
            client,
            peer,
            read: 0,
        }
    }

    /// Returns a guest that has joined the room with this name.
    pub async fn member(&self, username: &str) -> Guest {
        self.member_with(json!({ "username": username })).await
    }

    /// Returns a guest that has joined the room with these members of the request, and has read the
    /// answer.
    pub async fn member_with(&self, members: Value) -> Guest {
        let mut guest = self.guest().await;
        let answer = guest.join(self, members).await;
        assert_eq!(answer["textroom"], "success", "{answer}");
        guest
    }

    pub async fn state(&self, client: &TestClient) -> Value {
        let (session, handle) = (SessionId(client.session), HandleId(client.handle));
        self.server.gateway.query(session, handle).await.unwrap()
    }

    /// Sends any message on a data channel.
    pub async fn write(&self, guest: &Guest, payload: DataPayload) {
        let message = DataMessage {
            label: "any".to_owned(),
            protocol: String::new(),
            payload,
        };
        self.server.happen(guest.peer, Event::Data(message)).await;
    }

    /// Returns the messages to a guest on data channels.
    fn sent(&self, guest: &Guest) -> Vec<Value> {
        let sent = self.server.requested().data.into_iter();
        let own = sent.filter(|(peer, _)| *peer == guest.peer);
        let parsed = own.map(|(_, message)| {
            assert_eq!(message.label, LABEL);
            let DataPayload::Text(text) = message.payload else {
                panic!("not a text: {message:?}");
            };
            serde_json::from_str(&text).unwrap()
        });
        parsed.collect()
    }
}

impl Guest {
    /// The next message on the data channel.
    pub async fn next(&mut self, world: &World) -> Value {
        for _ in 0..10_000 {
            if let Some(next) = world.sent(self).get(self.read) {
                self.read += 1;
                return next.clone();
            }
            tokio::task::yield_now().await;
        }
        panic!("no message came");
    }

    /// Returns the next message, and waits for the disk.
    pub async fn next_in_time(&mut self, world: &World) -> Value {
        let comes = async {
            while world.sent(self).len() <= self.read {
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
        };
        let came = tokio::time::timeout(std::time::Duration::from_secs(20), comes).await;
        came.expect("a message in time");
        self.next(world).await
    }

    /// Sends a request. Returns the next message.
    pub async fn tell(&mut self, world: &World, request: Value) -> Value {
        world
            .write(self, DataPayload::Text(request.to_string()))
            .await;
        self.next(world).await
    }

    /// Sends a request about the room. Returns its answer, and the messages before it.
    pub async fn ask(&mut self, world: &World, name: &str, members: Value) -> (Value, Vec<Value>) {
        let mut request = json!({ "textroom": name, "transaction": name, "room": ROOM });
        merge(&mut request, members);
        let mut next = self.tell(world, request).await;
        let mut before = Vec::new();
        while next["transaction"] != name {
            before.push(next);
            next = self.next(world).await;
        }
        (next, before)
    }

    /// Joins the room. Returns the answer.
    pub async fn join(&mut self, world: &World, members: Value) -> Value {
        self.ask(world, "join", members).await.0
    }

    /// Sends a message to all. Returns the answer.
    pub async fn say(&mut self, world: &World, text: &str) -> Value {
        self.ask(world, "message", json!({ "text": text })).await.0
    }

    /// Fails if another message comes once all tasks have run.
    pub async fn expect_silence(&mut self, world: &World) {
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        let sent = world.sent(self);
        assert_eq!(sent.get(self.read), None);
    }

    /// Reads all that there is.
    pub async fn skip(&mut self, world: &World) {
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        self.read = world.sent(self).len();
    }
}

/// A message without its time, which is checked.
pub fn timeless(mut message: Value) -> Value {
    let date = message["date"].take();
    let date = date.as_str().unwrap();
    let form = "0000-00-00T00:00:00+0000";
    let fits = |(c, f): (char, char)| match f {
        '0' => c.is_ascii_digit(),
        '+' => c == '+' || c == '-',
        f => c == f,
    };
    assert_eq!(date.len(), form.len(), "{date}");
    assert!(date.chars().zip(form.chars()).all(fits), "{date}");
    message.as_object_mut().unwrap().shift_remove("date");
    message
}

pub fn merge(target: &mut Value, members: Value) {
    let members = members.as_object().unwrap().clone();
    target.as_object_mut().unwrap().extend(members);
}

/// The code of an answer that refuses.
pub fn code(answer: &Value) -> u64 {
    assert_eq!(answer["textroom"], "error", "{answer}");
    assert!(answer["error"].is_string(), "{answer}");
    answer["error_code"].as_u64().unwrap()
}
