//! `cluster`, with a tiny load of the server that was built beside this test: the record is
//! complete, and what happens by script is seen. What it says about speed is not looked at.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that cannot be set up has failed"
)]

use std::fs;
use std::path::Path;
use std::process::Command;

use portunus_hammer::record::{Cluster, News, Report};

/// Messages when something is missing here: rights, or programs.
const MISSING: [&str; 4] = [
    "network namespaces cannot be made",
    "the program ip cannot be run",
    "there is no nats-server",
    "a link that delays or loses packets cannot be made",
];

/// Returns the first and the last core that this process may use.
fn cores() -> (String, String) {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let list = status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let list = list.unwrap().trim();
    let first = list.split([',', '-']).next().unwrap();
    let last = list.rsplit([',', '-']).next().unwrap();
    (first.to_owned(), last.to_owned())
}

/// Runs a cluster. Returns its record, or `None` if that is not possible here.
fn cluster(more: &[&str]) -> Option<Cluster> {
    let program = Path::new(env!("CARGO_BIN_EXE_portunus-hammer"));
    if !program.with_file_name("portunus").exists() {
        eprintln!("SKIPPED: there is no portunus beside hammer");
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("cluster.json");
    let (first, last) = cores();
    let mut command = Command::new(program);
    command.arg("cluster").arg("--out").arg(folder.path());
    command.arg("--json").arg(&json);
    command.args(["--server-cores", &first, "--load-cores", &last]);
    command.args(["--bitrate", "200k", "--duration", "0.5", "--settle", "0.3"]);
    let output = command.args(more).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() && MISSING.iter().any(|said| errors.contains(said)) {
        eprintln!("SKIPPED: {errors}");
        return None;
    }
    assert!(output.status.success(), "{errors}");
    let text = String::from_utf8_lossy(&output.stdout);
    println!("{text}");
    assert!(text.contains("one server alone") || more.contains(&"--script-only"));
    let mut report = Report::read(&json).unwrap();
    report.runs.swap_remove(0).cluster
}

#[test]
fn nodes_relays_and_hops_are_measured() {
    let more = ["--nodes", "2", "--viewers", "3", "--sources", "2"];
    let more = [&more[..], &["--no-script"]].concat();
    let Some(cluster) = cluster(&more) else {
        return;
    };
    assert!(cluster.alone_cpu_cores.unwrap() > 0.0);
    assert!(cluster.times_one.unwrap() > 0.0);
    assert_eq!(cluster.each.len(), 2);
    for node in &cluster.each {
        assert_eq!(node.viewers, 3, "{node:?}");
        assert!(node.delivered_share > 0.5, "{node:?}");
    }
    assert!(cluster.each[1].hop.unwrap().count > 0);
    assert!(cluster.each[0].hop.is_none());
    let relay = cluster.relay.unwrap();
    assert_eq!(relay.sources, 2);
    assert!(relay.first_packet_there.unwrap().min_us > 0.0);
}

#[test]
fn a_hop_takes_as_long_as_its_link() {
    let more = ["--nodes", "2", "--viewers", "1", "--sources", "0"];
    let more = [&more[..], &["--delay", "20ms", "--no-script"]].concat();
    let Some(cluster) = cluster(&more) else {
        return;
    };
    let hop = cluster.each[1].hop.unwrap();
    assert!(hop.min_us > 19_000.0, "{hop:?}");
}

#[test]
fn a_script_says_who_lost_packets_and_who_was_told() {
    // Node A, where the first publisher is, is the home of the room.
    let script = "1 cut B-C 6 heal B-C 14 stop-bus 18 start-bus 22 kill C";
    let more = ["--nodes", "3", "--script-only", "--after", "8", "--at"];
    let words: Vec<&str> = script.split(' ').collect();
    let mut arguments = more.to_vec();
    arguments.extend(&words[..3]);
    for event in [&words[3..6], &words[6..8], &words[8..10], &words[10..13]] {
        arguments.push("--at");
        arguments.extend(event);
    }
    let Some(cluster) = cluster(&arguments) else {
        return;
    };
    let names: Vec<&str> = cluster.acts.iter().map(|act| &*act.event).collect();
    let expected = [
        "start",
        "cut B-C",
        "heal B-C",
        "stop-bus",
        "start-bus",
        "kill C",
    ];
    assert_eq!(names, expected);
    for act in &cluster.acts {
        assert_eq!(act.failure, None, "{act:?}");
        assert_eq!(act.viewers, 12, "{act:?}");
    }
    let of = |event: &str| cluster.acts.iter().find(|act| act.event == event).unwrap();
    // Those between B and C see nothing of each other for seconds. A sees both all the time: a busy
    // machine delays packets, and loses none.
    let cut = of("cut B-C");
    for (node, watched) in [("B", "C's publisher"), ("C", "B's publisher")] {
        let mut losses = cut.losses.iter();
        let losses = losses.find(|it| it.node == node && it.watched == watched);
        assert!(losses.unwrap().longest_gap_ms > 1_000.0, "{cut:?}");
    }
    let mut at_a = cut.losses.iter().filter(|it| it.node == "A");
    assert!(at_a.all(|it| it.lost_packets == 0), "{cut:?}");
    // Nobody misses anything because of the bus.
    for event in ["stop-bus", "start-bus"] {
        for losses in &of(event).losses {
            assert_eq!(losses.lost_packets, 0, "{event}: {losses:?}");
            assert!(losses.longest_gap_ms < 2_000.0, "{event}: {losses:?}");
        }
        assert!(of(event).notices.is_empty(), "{:?}", of(event));
    }
    // Both others learn that the people of the dead node are gone.
    let gone = of("kill C").notices.iter();
    let gone = gone.filter(|it| it.of == "C" && it.news == News::Left);
    let mut at: Vec<&str> = gone.map(|it| &*it.node).collect();
    at.sort_unstable();
    assert_eq!(at, ["A", "B"], "{:?}", of("kill C"));
    assert!(cluster.gone_s().all(|after| after < 10.0));
}

#[test]
fn people_watch_through_a_cut_of_media_between_two_nodes() {
    let script = "--nodes 3 --script-only --after 10 --at 3 cut-media B-C --at 13 heal-media B-C";
    let arguments: Vec<&str> = script.split(' ').collect();
    let Some(cluster) = cluster(&arguments) else {
        return;
    };
    let of = |event: &str| cluster.acts.iter().find(|act| act.event == event).unwrap();
    let (cut, heal) = (of("cut-media B-C"), of("heal-media B-C"));
    for act in [cut, heal] {
        assert_eq!(act.failure, None, "{act:?}");
        assert!(act.notices.is_empty(), "nobody has left: {act:?}");
    }
    assert!(cut.losses.iter().any(|it| it.node == "C"), "{cut:?}");
    for losses in &cut.losses {
        // A busy machine makes gaps, and loses nothing.
        assert!(losses.node != "A" || losses.lost_packets == 0, "{losses:?}");
        assert!(losses.longest_gap_ms < 5_000.0, "{losses:?}");
    }
    for losses in &heal.losses {
        assert!(losses.longest_gap_ms < 2_000.0, "{losses:?}");
    }
}
