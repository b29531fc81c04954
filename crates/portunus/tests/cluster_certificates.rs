//! Stolen certificates of nodes, their revocation and their renewal: processes and a real nats-server.
//! Skipped with a message where none of 2.11 or newer is installed.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

mod nodes;
mod server;

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use nodes::guests::Guest;
use nodes::{Node, Site, links_up};
use serde_json::{Value, json};
use server::{PATIENCE, metric};

const ROOM: u64 = 1234;

/// Copies the files of a node's certificate, as a thief does.
fn steal(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for name in ["ca.pem", "node.pem", "node.key"] {
        fs::copy(from.join(name), to.join(name)).unwrap();
    }
}

/// Returns what a node has refused for this reason.
fn refused(node: &Node, what: &str) -> u64 {
    let name = format!("portunus_cluster_refused_total{{what=\"{what}\"}}");
    metric(node.api(), &name)
}

/// Waits until a node has a link to each of these, and to no other one.
fn linked_to(node: &Node, others: &[&str]) -> Value {
    node.until("links to some", |status| {
        let links = status["links"].as_array().unwrap().iter();
        let up = links.filter(|link| link["state"] == "up");
        let mut names: Vec<&str> = up.filter_map(|link| link["node"].as_str()).collect();
        names.sort_unstable();
        names == others
    })
}

/// Returns the fingerprint of a node's certificate, as its entry on the bus has it.
fn shown(status: &Value, name: &str) -> Option<String> {
    let mut nodes = status["nodes"].as_array()?.iter();
    let entry = nodes.find(|it| it["node"] == name)?;
    Some(entry["fingerprint"].as_str()?.to_owned())
}

/// Renews the certificate of a node, and waits until all nodes see the new one in its entry.
fn renew(site: &Site, index: usize, options: &[&str]) -> String {
    let name = site.nodes[index].name.clone();
    let old = shown(&site.nodes[index].status(), &name).unwrap();
    let arguments: Vec<&str> = [&["renew"], options].concat();
    let said = site.nodes[index].says(&arguments);
    assert!(said.contains("has a new certificate"), "{said}");
    for node in &site.nodes {
        node.until("the new certificate", |status| {
            shown(status, &name).is_some_and(|now| now != old)
        });
    }
    said
}

/// Returns the days that a node's certificate is valid.
fn days(node: &Node) -> i64 {
    node.status()["certificate_days"].as_i64().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stolen_certificate_is_revoked_and_its_node_joins_anew() {
    let Some(mut site) = Site::start(&["a", "b", "c"]) else {
        return;
    };
    assert!((820..=825).contains(&days(&site.nodes[1])));
    let mut ada = Guest::publisher(site.nodes[0].api(), ROOM, 11).await;
    let mut viewer = Guest::viewer_soon(site.nodes[2].api(), ROOM, 11).await;
    viewer.watch(&mut ada, 1).await;
    viewer.untold();
    // Who has the certificate and can write to the bus takes the node over: the later start wins.
    let thief = site.folder().join("thief");
    let mut intruder = Node::new(
        &{
            fs::create_dir(&thief).unwrap();
            thief
        },
        "b",
        site.bus_port(),
    );
    steal(&site.nodes[1].certificates(), &intruder.certificates());
    intruder.start();
    site.nodes[1].until("an end", |status| status["outside"] == true);
    linked_to(&intruder, &["a", "c"]);
    linked_to(&site.nodes[0], &["b", "c"]);

    let said = site.nodes[0].says(&["revoke", "b"]);
    assert!(said.contains("certificates of b are revoked"), "{said}");
    let begin = Instant::now();
    linked_to(&site.nodes[0], &["c"]);
    linked_to(&site.nodes[2], &["a"]);
    println!("the intruder is without links after {:?}", begin.elapsed());
    linked_to(&intruder, &[]);
    // It tries again and again, and each time it is refused.
    for node in [&site.nodes[0], &site.nodes[2]] {
        let begin = Instant::now();
        while refused(node, "revoked") == 0 {
            assert!(begin.elapsed() < PATIENCE, "nothing is counted");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
    // With the stolen certificate nobody gets a new one.
    fs::copy(
        site.nodes[1].certificates().join("issuer"),
        intruder.certificates().join("issuer"),
    )
    .unwrap();
    let renewed = intruder.command(&["renew"]);
    let error = String::from_utf8_lossy(&renewed.stderr).into_owned();
    assert!(
        !renewed.status.success() && error.contains("revoked"),
        "{error}"
    );
    // Nobody else was disturbed.
    viewer.watch(&mut ada, 2).await;
    assert_eq!(viewer.untold(), Vec::<Value>::new());

    // The node itself joins by a new invitation, while the intruder still runs.
    site.nodes[1].running = None;
    fs::remove_dir_all(site.nodes[1].certificates()).unwrap();
    site.invite(&site.nodes[1]);
    site.nodes[1].start();
    site.until_linked();
    intruder.until("an end", |status| status["outside"] == true);
    let mut at_b = Guest::viewer_soon(site.nodes[1].api(), ROOM, 11).await;
    at_b.watch(&mut ada, 3).await;
    assert_eq!(viewer.untold(), Vec::<Value>::new());
}

#[test]
fn a_revocation_reaches_all_nodes_without_the_bus_and_stays() {
    let Some(mut site) = Site::start(&["a", "b", "c", "d"]) else {
        return;
    };
    site.stop_bus();
    site.nodes[0].until("no bus", |status| status["bus_connected"] == false);
    site.nodes[0].says(&["revoke", "c"]);
    let begin = Instant::now();
    linked_to(&site.nodes[0], &["b", "d"]);
    linked_to(&site.nodes[1], &["a", "d"]);
    linked_to(&site.nodes[3], &["a", "b"]);
    println!("all nodes know of it after {:?}", begin.elapsed());
    linked_to(&site.nodes[2], &[]);
    // A node that was started again knows of it before it hears from the others.
    site.nodes[1].running = None;
    site.start_bus();
    site.nodes[1].start();
    linked_to(&site.nodes[1], &["a", "d"]);
    let nodes = site.nodes[1].until("the others only", |status| {
        status["confirmed"] == true && status["nodes"].as_array().unwrap().len() == 3
    });
    let nodes = nodes["nodes"].as_array().unwrap().iter();
    let names: Vec<&Value> = nodes.map(|node| &node["node"]).collect();
    assert_eq!(names, ["a", "b", "d"]);
}

#[test]
fn a_node_renews_its_certificate_by_the_present_one() {
    let Some(mut site) = Site::start(&["a", "b"]) else {
        return;
    };
    let certificate = |node: &Node| fs::read(node.certificates().join("node.pem")).unwrap();
    for index in [1, 0] {
        let before = certificate(&site.nodes[index]);
        renew(&site, index, &[]);
        assert_ne!(before, certificate(&site.nodes[index]));
        // The running servers have kept their link.
        for node in &site.nodes {
            assert_eq!(links_up(&node.status()), 1);
        }
        let disagreements = &site.nodes[index].status()["disagreements"];
        assert_eq!(*disagreements, json!([]));
        // The others take it.
        let other = 1 - index;
        site.nodes[other].running = None;
        site.nodes[other].start();
        site.until_linked();
    }
    // The certificates before are revoked by the name, the present ones of other nodes as well.
    let said = site.nodes[0].says(&["revoke", "a"]);
    assert!(said.starts_with("1 certificate"), "{said}");
    site.until_linked();
    let unknown = site.nodes[0].command(&["revoke", "x"]);
    assert!(!unknown.status.success());
    let elsewhere = site.nodes[1].command(&["revoke", "a"]);
    assert!(!elsewhere.status.success());
}

#[test]
fn the_authority_is_renewed_while_nodes_trust_both() {
    let Some(mut site) = Site::start(&["a", "b", "c"]) else {
        return;
    };
    let restart = |site: &mut Site, index: usize| {
        site.nodes[index].running = None;
        site.nodes[index].start();
        site.until_linked();
        site.nodes[index].until("no disagreement", |status| {
            status["disagreements"] == json!([])
        });
    };
    let authorities = |site: &Site, index: usize| {
        let pem = site.nodes[index].certificates().join("ca.pem");
        let pem = fs::read_to_string(pem).unwrap();
        pem.matches("BEGIN CERTIFICATE").count()
    };
    let said = renew(&site, 0, &["--authority"]);
    assert!(said.contains("--forget-authority"), "{said}");
    let again = site.nodes[0].command(&["renew", "--authority"]);
    assert!(!again.status.success());
    // Nobody has left, and new links between nodes of both authorities come up.
    for index in [0, 1] {
        restart(&mut site, index);
    }
    renew(&site, 1, &[]);
    assert_eq!([0, 1, 2].map(|index| authorities(&site, index)), [2, 2, 1]);
    for index in [1, 2] {
        restart(&mut site, index);
    }
    // Node c, which knows only the authority before, takes a list that the new one has signed.
    site.nodes[0].says(&["revoke", "x", "--fingerprint", &"0".repeat(64)]);
    let list = |index: usize| site.nodes[index].certificates().join("revoked.json");
    let begin = Instant::now();
    while !(list(1).exists() && list(2).exists()) {
        assert!(begin.elapsed() < PATIENCE, "the list does not come");
        std::thread::sleep(Duration::from_millis(20));
    }
    renew(&site, 2, &[]);
    renew(&site, 0, &["--forget-authority"]);
    for index in [1, 2] {
        renew(&site, index, &[]);
    }
    assert_eq!([0, 1, 2].map(|index| authorities(&site, index)), [1, 1, 1]);
    for index in 0..3 {
        restart(&mut site, index);
    }
    let other = site.nodes[1].command(&["renew", "--authority"]);
    assert!(!other.status.success());
}
