//! Workers of agents with the door: agents that stay when their dispatch has ended.

use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use portunus_livekit::protocol::{ServerMessage, SignalRequest, signal_request, signal_response};
use prost::Message as _;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use crate::services::call;
use crate::world::{World, token};

/// The connection of a worker.
struct Worker(WebSocketStream<MaybeTlsStream<TcpStream>>);

impl Worker {
    /// Registers a worker for rooms.
    async fn register(world: &World, name: &str) -> Self {
        let token = token("", "", json!({ "agent": true }));
        let url = format!("ws://{}/agent?access_token={token}", world.address);
        let (socket, _) = connect_async(url).await.unwrap();
        let mut worker = Worker(socket);
        let request = json!({ "register": { "type": "JT_ROOM", "agentName": name } });
        worker.send(request).await;
        worker.next("register").await;
        worker
    }

    async fn send(&mut self, message: Value) {
        let frame = Message::text(message.to_string());
        self.0.send(frame).await.unwrap();
    }

    /// Returns the content of the next message, which has to be of this kind.
    async fn next(&mut self, kind: &str) -> Value {
        let next = tokio::time::timeout(Duration::from_secs(5), self.0.next());
        let text = match next.await.unwrap().unwrap().unwrap() {
            Message::Text(text) => text.to_string(),
            Message::Binary(bytes) => {
                serde_json::to_string(&ServerMessage::decode(bytes).unwrap()).unwrap()
            }
            other => panic!("{other:?}"),
        };
        let mut message: Value = serde_json::from_str(&text).unwrap();
        assert!(message.get(kind).is_some(), "no {kind}: {message}");
        message[kind].take()
    }

    /// Takes the next job as this participant. Returns the id of the job.
    async fn takes(&mut self, identity: &str) -> String {
        let offered = self.next("availability").await;
        let id = offered["job"]["id"].as_str().unwrap().to_owned();
        let answer = json!({ "jobId": id, "available": true, "participantIdentity": identity });
        self.send(json!({ "availability": answer })).await;
        self.next("assignment").await;
        id
    }
}

#[tokio::test]
async fn an_agent_that_stays_is_removed_when_its_dispatch_has_ended() {
    let world = World::new().await;
    let mut worker = Worker::register(&world, "bot").await;
    let new = json!({ "room": "demo", "agent_name": "bot" });
    let made = call(&world, "AgentDispatchService/CreateDispatch", "demo", new).await;
    assert_eq!(made.status, 200, "{made:?}");
    let job = worker.takes("agent-1").await;
    let mut agent = world
        .join_with("agent-1", "demo", json!({ "agent": true }), "")
        .await;
    let mut guest = world.join("al", "demo").await;
    world.all_up().await;

    let ended = json!({ "room": "demo", "dispatch_id": made.json()["id"] });
    let ended = call(&world, "AgentDispatchService/DeleteDispatch", "demo", ended).await;
    assert_eq!(ended.status, 200, "{ended:?}");
    assert_eq!(worker.next("termination").await["jobId"], job);
    // It hears of that by its worker, and does not leave.
    let left = agent.expect("leave", |message| match message {
        signal_response::Message::Leave(leave) => Some(leave.reason().as_str_name()),
        _ => None,
    });
    assert_eq!(left.await, "PARTICIPANT_REMOVED");
    let ping = SignalRequest {
        message: Some(signal_request::Message::Ping(1)),
    };
    guest.send(ping.message.unwrap()).await;
    let stays = guest.expect("pong", |message| match message {
        signal_response::Message::Pong(_) => Some(()),
        _ => None,
    });
    stays.await;
}
