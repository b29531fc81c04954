//! Rooms of another node: two servers, and a network in memory between them.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use portunus_audio::{AudioConfig, AudioThreads};
use portunus_audiobridge::{AudioBridge, AudioBridgeConfig, ClusterRooms, OtherNodes};
use portunus_core::events::EventBus;
use portunus_core::media::{
    Event, IngestFeed, IngestId, IngestOptions, MediaPlane, PeerId, SourceRef,
};
use portunus_core::record::Recorder;
use portunus_core::sdp::Codec;
use portunus_core::testing::{TestClient, TestServer, everywhere};
use portunus_core::{ConfiguredPlugin, CoreConfig, Plugin, PluginContext, Services};
use portunus_relay::{Offer, SourceDescription, SourceId, Sources};
use portunus_telephony::Telephony;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::world::{PACKAGE, ROOM, ask, code, merge, offer};

/// The names of the nodes.
const NAMES: [&str; 2] = ["a", "b"];

/// The network as one node sees it.
#[derive(Debug)]
struct Network {
    node: usize,
    frames: mpsc::UnboundedSender<(usize, Vec<u8>)>,
    is_cut: Arc<AtomicBool>,
    offered: AtomicU64,
    withdrawn: AtomicU64,
    media: MediaPlane,
}

impl OtherNodes for Network {
    fn send(&self, _: &str, message: Vec<u8>) {
        if !self.is_cut.load(Ordering::Relaxed) {
            let _ = self.frames.send((self.node, message));
        }
    }

    fn offer(&self, _: SourceRef, mut description: SourceDescription) -> Offer {
        description.worker = 0;
        let id = SourceId(self.offered.fetch_add(1, Ordering::Relaxed));
        Offer { id, description }
    }

    fn withdraw(&self, _: SourceId) {
        self.withdrawn.fetch_add(1, Ordering::Relaxed);
    }

    fn sources(&self, _: &str) -> Arc<dyn Sources> {
        Arc::new(Taken(self.media.clone()))
    }
}

/// The sources of the other node.
#[derive(Debug)]
struct Taken(MediaPlane);

impl Sources for Taken {
    fn take(&self, _: &Offer) -> Option<IngestId> {
        let options = IngestOptions::rtp(Codec::Opus, 48_000, IngestFeed::Thread);
        Some(self.0.add_ingest(options).id)
    }

    fn release(&self, ingest: IngestId) {
        let _ = self.0.remove_ingest(ingest);
    }
}

/// A node.
struct Node {
    server: TestServer,
    rooms: ClusterRooms,
    network: Arc<Network>,
}

/// Two nodes.
struct Pair {
    nodes: [Node; 2],
    is_cut: Arc<AtomicBool>,
}

impl Node {
    async fn start(
        node: usize,
        frames: mpsc::UnboundedSender<(usize, Vec<u8>)>,
        is_cut: Arc<AtomicBool>,
    ) -> Self {
        let rooms = ClusterRooms::default();
        let network = OnceLock::new();
        let (of, made) = (&rooms, &network);
        let server = TestServer::with_media(CoreConfig::default(), |media| async move {
            let recorder = Recorder::default();
            let audio = AudioThreads::new(AudioConfig::default(), media.clone(), recorder.clone());
            let _ = made.set(Arc::new(Network {
                node,
                frames,
                is_cut,
                offered: AtomicU64::new(1),
                withdrawn: AtomicU64::new(0),
                media: media.clone(),
            }));
            let context = PluginContext {
                media,
                recorder,
                outgoing: everywhere(),
                events: EventBus::default(),
                services: Services::default()
                    .with(audio)
                    .with(Telephony::default())
                    .with(of.clone()),
            };
            let plugin = AudioBridge::from_config(AudioBridgeConfig::default(), context);
            vec![Arc::new(plugin.await.unwrap()) as Arc<dyn Plugin>]
        });
        let server = server.await;
        let network = network.into_inner().unwrap();
        rooms.join_cluster(NAMES[node], network.clone());
        Node {
            server,
            rooms,
            network,
        }
    }

    async fn attach(&self) -> TestClient {
        self.server.attach(PACKAGE).await
    }

    /// Joins as `id`.
    async fn join(&self, id: u64, members: Value) -> (TestClient, Value) {
        let mut client = self.attach().await;
        let mut join = json!({ "request": "join", "room": ROOM, "id": id });
        merge(&mut join, members);
        let joined = ask(&mut client, join).await;
        (client, joined)
    }

    /// Joins as `id`, with a PeerConnection that is up.
    async fn talker(&self, id: u64) -> (TestClient, PeerId) {
        let mut client = self.attach().await;
        let join = json!({ "request": "join", "room": ROOM, "id": id });
        let (joined, answer) = offer(&mut client, join).await;
        assert_eq!(joined["audiobridge"], "joined", "{joined}");
        assert!(answer.is_some());
        let peer = *self.server.peers().last().unwrap();
        let srtp_profile = "SRTP_AEAD_AES_128_GCM";
        let up = Event::Connected { srtp_profile };
        self.server.happen(peer, up).await;
        assert_eq!(client.next().await["janus"], "webrtcup");
        (client, peer)
    }
}

impl Pair {
    /// Two nodes, of which the first has the room with these options.
    async fn new(options: Value) -> Self {
        let (frames, mut sent) = mpsc::unbounded_channel();
        let is_cut = Arc::<AtomicBool>::default();
        let mut nodes = Vec::new();
        for node in 0..2 {
            nodes.push(Node::start(node, frames.clone(), is_cut.clone()).await);
        }
        let rooms: Vec<ClusterRooms> = nodes.iter().map(|node| node.rooms.clone()).collect();
        tokio::spawn(async move {
            while let Some((from, frame)) = sent.recv().await {
                rooms[1 - from].take(NAMES[from], &frame);
            }
        });
        let nodes: [Node; 2] = nodes.try_into().ok().unwrap();
        let pair = Pair { nodes, is_cut };
        for (node, other) in [(0, 1), (1, 0)] {
            let run = pair.nodes[node].rooms.run();
            pair.nodes[other].rooms.node_is_there(NAMES[node], run);
        }
        let mut create = json!({ "request": "create", "room": ROOM });
        merge(&mut create, options);
        let created = pair.a().attach().await.request(create).await;
        assert_eq!(created["audiobridge"], "created", "{created}");
        pair.tell();
        pair
    }

    fn a(&self) -> &Node {
        &self.nodes[0]
    }

    fn b(&self) -> &Node {
        &self.nodes[1]
    }

    /// Lets each node know the rooms of the other one.
    fn tell(&self) {
        for (node, other) in [(0, 1), (1, 0)] {
            for room in self.nodes[node].rooms.own() {
                let rooms = &self.nodes[other].rooms;
                rooms.set(NAMES[node], &room.id, room.record);
            }
        }
    }
}

#[tokio::test]
async fn a_room_of_another_node_is_there_and_its_home_checks_who_asks() {
    let pair = Pair::new(json!({ "pin": "p", "secret": "s", "description": "Hall" })).await;
    let mut eve = pair.b().attach().await;
    let list = eve.request(json!({ "request": "list" })).await;
    let entry = &list["list"][0];
    assert_eq!(
        (&entry["room"], &entry["node"], &entry["description"]),
        (&json!(ROOM), &json!("a"), &json!("Hall"))
    );
    let exists = eve.request(json!({ "request": "exists", "room": ROOM }));
    assert_eq!(exists.await["exists"], true);
    let create = eve.request(json!({ "request": "create", "room": ROOM }));
    assert_eq!(code(&create.await), 486);
    let (mut bob, refused) = pair.b().join(2, json!({ "pin": "q" })).await;
    assert_eq!(code(&refused), 489);
    let (_, refused) = pair.b().join(2, json!({})).await;
    assert_eq!(code(&refused), 483);
    let by_rtp = json!({ "pin": "p", "rtp": { "ip": "127.0.0.1", "port": 5_004 } });
    let (_, refused) = pair.b().join(2, by_rtp).await;
    assert_eq!(code(&refused), 499);
    let join = json!({ "request": "join", "room": ROOM, "id": 2, "pin": "p" });
    let joined = ask(&mut bob, join.clone()).await;
    assert_eq!(joined["audiobridge"], "joined", "{joined}");
    assert_eq!(code(&ask(&mut bob, join).await), 491);
    let (_, refused) = pair.a().join(2, json!({ "pin": "p" })).await;
    assert_eq!(code(&refused), 490);
    for (secret, expected) in [(json!("t"), json!(489)), (json!("s"), json!(492))] {
        let kick = json!({ "request": "kick", "room": ROOM, "id": 9, "secret": secret });
        assert_eq!(eve.request(kick).await["error_code"], expected);
    }
    let participants = json!({ "request": "listparticipants", "room": ROOM });
    let participants = eve.request(participants).await;
    assert_eq!(participants["participants"][0]["id"], 2);
}

#[tokio::test]
async fn participants_of_both_nodes_are_told_of_each_other() {
    let pair = Pair::new(json!({ "secret": "s" })).await;
    let (mut ann, _) = pair.a().join(1, json!({ "display": "Ann" })).await;
    let (mut bob, joined) = pair.b().join(2, json!({ "display": "Bob" })).await;
    assert_eq!(joined["participants"][0]["display"], "Ann", "{joined}");
    let told = ann.event().await;
    assert_eq!(
        (&told["audiobridge"], &told["participants"][0]["display"]),
        (&json!("joined"), &json!("Bob"))
    );
    let configured = ask(&mut bob, json!({ "request": "configure", "muted": true })).await;
    assert_eq!(configured["result"], "ok", "{configured}");
    assert_eq!(ann.event().await["participants"][0]["muted"], true);
    let refused = ask(&mut bob, json!({ "request": "configure", "quality": 11 })).await;
    assert_eq!(code(&refused), 484);
    let mute = json!({ "request": "mute", "room": ROOM, "id": 1, "secret": "s" });
    assert_eq!(bob.request(mute).await["audiobridge"], "success");
    for client in [&mut ann, &mut bob] {
        let told = client.event().await;
        assert_eq!(told["participants"][0]["id"], 1);
        assert_eq!(told["participants"][0]["muted"], true);
    }
    // Oneself needs no secret.
    let suspend = json!({ "request": "suspend", "room": ROOM, "id": 2 });
    assert_eq!(bob.request(suspend).await["audiobridge"], "success");
    for client in [&mut ann, &mut bob] {
        assert_eq!(client.event().await["suspended"], 2);
    }
    let left = ask(&mut bob, json!({ "request": "leave" })).await;
    assert_eq!(
        left,
        json!({ "audiobridge": "left", "room": ROOM, "id": 2 })
    );
    assert_eq!(ann.event().await["leaving"], 2);
    bob.expect_silence().await;
    // Those who are kicked are told, and those who come after the end are refused.
    let (mut cleo, _) = pair.b().join(3, json!({})).await;
    assert_eq!(ann.event().await["audiobridge"], "joined");
    let kick = json!({ "request": "kick", "room": ROOM, "id": 3, "secret": "s" });
    assert_eq!(ann.request(kick).await["audiobridge"], "success");
    assert_eq!(cleo.event().await["kicked"], 3);
    assert_eq!(ann.event().await["kicked"], 3);
    assert_eq!(ann.event().await["leaving"], 3);
    let refused = ask(&mut cleo, json!({ "request": "configure" })).await;
    assert_eq!(code(&refused), 487);
    let (mut dora, _) = pair.b().join(4, json!({})).await;
    assert_eq!(ann.event().await["audiobridge"], "joined");
    let destroy = json!({ "request": "destroy", "room": ROOM, "secret": "s" });
    assert_eq!(bob.request(destroy).await["audiobridge"], "destroyed");
    assert_eq!(dora.event().await["audiobridge"], "destroyed");
    assert_eq!(ann.event().await["audiobridge"], "destroyed");
}

#[tokio::test]
async fn a_talker_is_relayed_to_the_home_and_its_mix_back() {
    let pair = Pair::new(json!({})).await;
    let (mut bob, peer) = pair.b().talker(2).await;
    let routes = || pair.b().server.requested().routes;
    let has_mix = || routes().iter().any(|route| route.to.peer == peer);
    let is_mixed = || {
        let participants = pair.a().server.requested().outlets;
        !participants.is_empty()
    };
    until("the mix comes back, and the source is mixed", &|| {
        has_mix() && is_mixed()
    })
    .await;
    let offered = |node: &Node| node.network.offered.load(Ordering::Relaxed) - 1;
    assert_eq!((offered(pair.a()), offered(pair.b())), (1, 1));
    // A new link carries new sources.
    let before = routes();
    pair.a().rooms.linked("b");
    pair.b().rooms.linked("a");
    until("it hears the new one", &|| {
        routes().last().map(|route| route.from) != before.last().map(|route| route.from)
    })
    .await;
    assert_eq!(ask(&mut bob, json!({ "request": "leave" })).await["id"], 2);
    let withdrawn = |node: &Node| node.network.withdrawn.load(Ordering::Relaxed);
    until("all is withdrawn", &|| {
        (withdrawn(pair.a()), withdrawn(pair.b())) == (1, 1)
    })
    .await;
    until("nothing is left of it", &|| {
        pair.a().server.requested().outlets.is_empty()
    })
    .await;
}

#[tokio::test]
async fn listeners_of_a_node_share_a_mix() {
    let pair = Pair::new(json!({})).await;
    let mut listeners = Vec::new();
    for _ in 0..3 {
        let mut listener = pair.b().attach().await;
        let listen = json!({ "request": "listen", "room": ROOM });
        let (listening, answer) = offer(&mut listener, listen).await;
        assert_eq!(
            listening,
            json!({ "audiobridge": "listening", "room": ROOM })
        );
        assert!(answer.is_some());
        listeners.push(listener);
    }
    let routes = || pair.b().server.requested().routes;
    until("all hear it", &|| routes().len() == 3).await;
    let routes = routes();
    assert!(routes.iter().all(|route| route.from == routes[0].from));
    assert_eq!(pair.a().network.offered.load(Ordering::Relaxed) - 1, 1);
    let list = pair
        .a()
        .attach()
        .await
        .request(json!({ "request": "list" }))
        .await;
    assert_eq!(list["list"][0]["num_listeners"], 3);
    let join = json!({ "request": "join", "room": ROOM });
    assert_eq!(code(&ask(&mut listeners[0], join).await), 491);
    for listener in &mut listeners {
        let left = ask(listener, json!({ "request": "leave" })).await;
        assert_eq!(left, json!({ "audiobridge": "left", "room": ROOM }));
    }
    let withdrawn = &pair.a().network.withdrawn;
    until("the mix ends", &|| withdrawn.load(Ordering::Relaxed) == 1).await;
}

#[tokio::test]
async fn what_gets_lost_between_the_nodes_comes_later() {
    let pair = Pair::new(json!({})).await;
    let (mut ann, _) = pair.a().join(1, json!({})).await;
    let (mut bob, _) = pair.b().join(2, json!({})).await;
    assert_eq!(ann.event().await["audiobridge"], "joined");
    pair.is_cut.store(true, Ordering::Relaxed);
    let named = |name: &str| json!({ "request": "configure", "display": name });
    for name in ["one", "two"] {
        assert_eq!(ask(&mut ann, named(name)).await["result"], "ok");
    }
    bob.expect_silence().await;
    pair.is_cut.store(false, Ordering::Relaxed);
    assert_eq!(ask(&mut ann, named("three")).await["result"], "ok");
    for name in ["one", "two", "three"] {
        assert_eq!(bob.event().await["participants"][0]["display"], name);
    }
}

#[tokio::test]
async fn the_end_of_a_node_ends_what_was_agreed_with_it() {
    let pair = Pair::new(json!({})).await;
    let (mut ann, _) = pair.a().join(1, json!({})).await;
    let (mut bob, _) = pair.b().join(2, json!({})).await;
    assert_eq!(ann.event().await["audiobridge"], "joined");
    pair.a().rooms.node_lost("b");
    assert_eq!(ann.event().await["leaving"], 2);
    pair.b().rooms.node_lost("a");
    let told = bob.event().await;
    assert_eq!(told, json!({ "audiobridge": "destroyed", "room": ROOM }));
    pair.b().rooms.remove("a", &ROOM.to_string());
    let (mut bob, refused) = pair.b().join(2, json!({})).await;
    assert_eq!(code(&refused), 485);
    // It comes back.
    pair.tell();
    let join = json!({ "request": "join", "room": ROOM, "id": 2 });
    let joined = ask(&mut bob, join).await;
    assert_eq!(joined["participants"][0]["id"], 1, "{joined}");
    assert_eq!(ann.event().await["audiobridge"], "joined");
}

#[tokio::test]
async fn who_moves_between_rooms_of_two_nodes_is_in_one_at_a_time() {
    let pair = Pair::new(json!({})).await;
    let create = json!({ "request": "create", "room": 5 });
    pair.b().attach().await.request(create).await;
    let (mut ann, _) = pair.a().join(1, json!({})).await;
    let (mut bob, joined) = pair.b().join(2, json!({ "room": 5 })).await;
    assert_eq!(joined["room"], 5);
    let moved = |room: u64| json!({ "request": "changeroom", "room": room, "id": 2 });
    let changed = ask(&mut bob, moved(ROOM)).await;
    assert_eq!(
        (
            &changed["audiobridge"],
            &changed["room"],
            &changed["participants"][0]["id"]
        ),
        (&json!("roomchanged"), &json!(ROOM), &json!(1))
    );
    assert_eq!(ann.event().await["audiobridge"], "joined");
    assert_eq!(code(&ask(&mut bob, moved(ROOM)).await), 491);
    let changed = ask(&mut bob, moved(5)).await;
    assert_eq!(changed["audiobridge"], "roomchanged", "{changed}");
    assert_eq!(ann.event().await["leaving"], 2);
    let refused = ask(&mut bob, moved(77)).await;
    assert_eq!(code(&refused), 485);
}

#[tokio::test]
async fn an_unused_room_gives_way_to_that_of_another_node() {
    let pair = Pair::new(json!({ "description": "of a" })).await;
    // The second node has the room, too, and has not heard of the first one's.
    pair.b().rooms.remove("a", &ROOM.to_string());
    let create = json!({ "request": "create", "room": ROOM, "description": "of b" });
    let mut eve = pair.b().attach().await;
    assert_eq!(eve.request(create).await["audiobridge"], "created");
    let (mut ann, _) = pair.b().join(1, json!({})).await;
    pair.tell();
    // Somebody is in the room of the second node.
    let (_bob, joined) = pair.a().join(2, json!({})).await;
    assert_eq!(joined["participants"][0]["id"], 1, "{joined}");
    assert_eq!(ann.event().await["audiobridge"], "joined");
    let mut dora = pair.a().attach().await;
    let list = dora.request(json!({ "request": "list" })).await;
    assert_eq!(list["list"].as_array().unwrap().len(), 1);
    assert_eq!(
        (&list["list"][0]["node"], &list["list"][0]["description"]),
        (&json!("b"), &json!("of b"))
    );
}

/// Waits until something is the case.
async fn until(what: &str, is: &dyn Fn() -> bool) {
    for _ in 0..2_000 {
        if is() {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    panic!("{what}");
}
