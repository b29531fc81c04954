//! The bus of a cluster: how much is written to it, and three NATS servers whose leader dies again and
//! again. Processes, real nats-servers, and clients with real media. Skipped with a message where no
//! nats-server of 2.11 or newer is installed.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

mod nodes;
mod server;

use std::time::{Duration, Instant};

use nodes::bus::Bus;
use nodes::guests::Guest;
use nodes::{Node, Site, home_of, links_up, nats_server};
use portunus_tests::free_port;
use serde_json::{Value, json};
use server::PATIENCE;

const ROOM: u64 = 1234;

/// Returns the numbers of writes to both buckets.
fn writes(bus: &Bus) -> [u64; 2] {
    ["portunus_nodes", "portunus_homes"].map(|bucket| bus.writes(bucket))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_writes_every_three_seconds_and_a_room_twice_in_its_life() {
    let Some(site) = Site::start(&["a", "b", "c"]) else {
        return;
    };
    let apis: Vec<String> = site
        .nodes
        .iter()
        .map(|node| node.api().to_owned())
        .collect();
    let before = writes(site.bus());
    let begin = Instant::now();
    let rooms = 5;
    for room in 1..=rooms {
        let mut guests = Vec::new();
        let creator = Guest::idle(&apis[0]).await;
        let created = creator.ask(json!({ "request": "create", "room": room, "publishers": 10 }));
        assert_eq!(created["videoroom"], "created", "{created}");
        // Six people at three nodes, two of whom publish.
        for (index, api) in apis.iter().chain(&apis).enumerate() {
            let id = 10 + u64::try_from(index).unwrap();
            let join = json!({ "request": "join", "ptype": "publisher", "room": room, "id": id });
            guests.push(Guest::joined(api, join).await.0);
        }
        guests.push(Guest::publisher(&apis[1], room, 90).await);
        for guest in &guests {
            guest.send(json!({ "request": "leave" }), None);
        }
        let destroyed = creator.ask(json!({ "request": "destroy", "room": room }));
        assert_eq!(destroyed["videoroom"], "destroyed", "{destroyed}");
        for node in &site.nodes {
            let name = room.to_string();
            node.until("no home", |status| home_of(status, &name).is_none());
        }
    }
    // So many that a write more or less counts for little.
    let mut after = writes(site.bus());
    while after[0] < before[0] + 12 {
        assert!(begin.elapsed() < PATIENCE, "{after:?}");
        tokio::time::sleep(Duration::from_millis(100)).await;
        after = writes(site.bus());
    }
    let took = begin.elapsed();
    let [nodes, homes] = [after[0] - before[0], after[1] - before[1]];
    println!("{nodes} writes of nodes and {homes} of {rooms} rooms in {took:?}");
    assert_eq!(homes, 2 * rooms);
    let beats = 3 * (took.as_secs() / 3 + 1);
    assert!(nodes <= beats && nodes + 6 >= beats, "{nodes} of {beats}");
}

/// Three NATS servers.
struct Quorum {
    program: std::path::PathBuf,
    folder: tempfile::TempDir,
    ports: [u16; 3],
    routes: [u16; 3],
    servers: [Option<Bus>; 3],
}

impl Quorum {
    fn start(program: std::path::PathBuf) -> Self {
        let mut quorum = Quorum {
            program,
            folder: tempfile::tempdir().unwrap(),
            ports: [(); 3].map(|()| free_port()),
            routes: [(); 3].map(|()| free_port()),
            servers: [None, None, None],
        };
        for index in 0..3 {
            quorum.run(index);
        }
        quorum
    }

    fn run(&mut self, index: usize) {
        let folder = self.folder.path().join(format!("n{index}"));
        let own = (index, self.ports[index]);
        let server = Bus::of_cluster(&self.program, &folder, own, &self.routes);
        server.until_up();
        self.servers[index] = Some(server);
    }

    /// The value of `cluster.bus`.
    fn addresses(&self) -> String {
        let all = self.ports.map(|port| format!("nats://127.0.0.1:{port}"));
        all.join(",")
    }

    /// Waits for the leader of the bucket of homes.
    fn leader(&self) -> usize {
        let begin = Instant::now();
        loop {
            for server in self.servers.iter().flatten() {
                let leader = server.bucket("portunus_homes")["cluster"]["leader"].clone();
                let number = leader
                    .as_str()
                    .and_then(|name| name.strip_prefix('n')?.parse().ok());
                let runs = number.filter(|number: &usize| self.servers[*number].is_some());
                if let Some(number) = runs {
                    return number;
                }
            }
            assert!(begin.elapsed() < PATIENCE, "no leader");
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

fn homes(status: &Value) -> Vec<(Value, Value, Value)> {
    let homes = status["homes"].as_array().unwrap().iter();
    let homes = homes.map(|it| {
        (
            it["what"].clone(),
            it["node"].clone(),
            it["revision"].clone(),
        )
    });
    homes.collect()
}

/// Kills the leader of the bus so many times, and starts it again after `away`, each `every`.
async fn leaders_die(times: u64, every: Duration, away: Duration) {
    let Some(program) = nats_server() else {
        return;
    };
    let mut quorum = Quorum::start(program);
    let folder = tempfile::tempdir().unwrap();
    let mut nodes =
        ["a", "b", "c"].map(|name| Node::of_bus(folder.path(), name, &quorum.addresses()));
    nodes[0].says(&["init"]);
    nodes[0].start();
    let address = format!("127.0.0.1:{}", nodes[0].port);
    for index in [1, 2] {
        let name = nodes[index].name.clone();
        let invitation = nodes[0].says(&["invite", &name, "--address", &address]);
        nodes[index].says(&["join", &invitation]);
        nodes[index].start();
    }
    for node in &nodes {
        node.until("links", |status| {
            links_up(status) == 2 && status["confirmed"] == true
        });
    }
    let [a, b, c] = [0, 1, 2].map(|index| nodes[index].api().to_owned());
    let mut ada = Guest::publisher(&a, ROOM, 11).await;
    let (mut bob, _) = Guest::listener(&b, ROOM, 22).await;
    let mut viewer = Guest::viewer_soon(&b, ROOM, 11).await;
    viewer.watch(&mut ada, 0).await;
    nodes[2].until("a home", |status| home_of(status, "1234").is_some());
    bob.untold();
    viewer.peer.packets.clear();
    let mut mark = 1;
    for round in 0..times {
        let leader = quorum.leader();
        quorum.servers[leader] = None;
        let begin = Instant::now();
        mark = viewer
            .flow(&mut ada, mark, Duration::from_millis(300))
            .await;
        // A known room, at once.
        let (cleo, joined) = Guest::listener(&c, ROOM, 100 + round).await;
        assert_eq!(joined["publishers"][0]["id"], 11, "{joined}");
        cleo.send(json!({ "request": "leave" }), None);
        // A new room, which takes the bus: two servers of three suffice, once they have a leader.
        // Until then it is refused with the reason.
        let room = 5_000 + round;
        let dan = Guest::idle(&c).await;
        loop {
            let created = dan.ask(json!({ "request": "create", "room": room }));
            if created["videoroom"] == "created" {
                break;
            }
            assert_eq!(created["error_code"], 499, "{created}");
            assert!(begin.elapsed() < Duration::from_secs(30), "{created}");
        }
        for node in &nodes {
            node.until("the home of a new room", |status| {
                home_of(status, &room.to_string()).is_some_and(|home| home["node"] == "c")
            });
        }
        println!(
            "leader n{leader} died; a new room had its home everywhere after {:?}",
            begin.elapsed()
        );
        while begin.elapsed() < away {
            mark = viewer
                .flow(&mut ada, mark, Duration::from_millis(300))
                .await;
        }
        quorum.run(leader);
        while begin.elapsed() < every {
            mark = viewer
                .flow(&mut ada, mark, Duration::from_millis(300))
                .await;
        }
    }
    for node in &nodes {
        node.until("nothing that disagrees, and the same homes", |status| {
            links_up(status) == 2
                && status["confirmed"] == true
                && status["disagreements"] == json!([])
                && homes(status) == homes(&nodes[0].status())
        });
    }
    viewer.peer.run_for(Duration::from_millis(300)).await;
    let marks = viewer.marks();
    let broken = marks.windows(2).find(|pair| pair[1] != (pair[0] + 1) % 250);
    assert_eq!(broken, None, "{marks:?}");
    let told = bob.untold();
    assert!(told.iter().all(|data| data["leaving"] != 11), "{told:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_leader_of_three_nats_servers_dies_and_nobody_notices() {
    leaders_die(1, Duration::from_secs(12), Duration::from_secs(5)).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes a minute and more"]
async fn the_leader_of_three_nats_servers_dies_each_twenty_seconds() {
    leaders_die(4, Duration::from_secs(20), Duration::from_secs(10)).await;
}
