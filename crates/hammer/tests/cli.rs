//! Tests of the program's command line.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot be set up has failed"
)]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use portunus_hammer::record::{Ceiling, Report};

/// Messages when namespaces cannot be created because of missing rights or programs.
const NO_NAMESPACES: [&str; 2] = [
    "network namespaces cannot be made",
    "the program ip cannot be run",
];

fn hammer(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_portunus-hammer"));
    command.args(arguments).output().unwrap()
}

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

/// Measures briefly over `extra`. Returns `None` if that is not allowed here.
fn ceiling(extra: &[&str]) -> Option<Ceiling> {
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("ceiling.json");
    let (first, last) = cores();
    let mut arguments = vec!["ceiling", "--duration", "0.05", "--batch", "65536"];
    arguments.extend([
        "--server-core",
        &first,
        "--load-core",
        &last,
        "--json",
        json.to_str().unwrap(),
    ]);
    arguments.extend(extra);
    let output = hammer(&arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    if NO_NAMESPACES.iter().any(|said| errors.contains(said)) {
        eprintln!("SKIPPED: {errors}");
        return None;
    }
    assert!(output.status.success(), "{errors}");
    Some(serde_json::from_str(&fs::read_to_string(json).unwrap()).unwrap())
}

#[test]
fn a_ceiling_is_measured_on_the_loopback_interface() {
    for traffic in [
        &["--profile", "gcm", "--sizes", "equal"][..],
        &[
            "--profile",
            "cm",
            "--sizes",
            "almost-equal",
            "--packets-per-frame",
            "8",
        ],
        &[
            "--profile",
            "gcm",
            "--sizes",
            "varied",
            "--audio-bitrate",
            "64k",
        ],
        &["--profile", "gcm", "--no-gso"],
    ] {
        let mut arguments = vec!["--loopback"];
        arguments.extend(traffic);
        is_sound(&ceiling(&arguments).unwrap());
    }
}

/// Checks that there are two ceilings, and that the one at all is not the lower one.
fn is_sound(ceiling: &Ceiling) {
    let in_time = &ceiling.in_time;
    let at_all = ceiling.at_all.as_ref().unwrap();
    for bare in [in_time, at_all] {
        assert!(bare.delivered_pps > 0.0 && bare.crypto_ns > 0.0 && bare.send_ns > 0.0);
        assert!((0.01..=1.0).contains(&bare.delivered_share), "{bare:?}");
        assert!(bare.addresses > 0 && bare.participants.unwrap() > 0.0);
    }
    assert_eq!(in_time.frames_joined, 1, "each frame by itself");
    assert!(at_all.delivered_pps >= in_time.delivered_pps, "{ceiling:?}");
}

#[test]
fn a_ceiling_is_measured_between_namespaces() {
    for arguments in [&[][..], &["--own-sockets", "--bitrate", "6M"]] {
        if let Some(ceiling) = ceiling(arguments) {
            is_sound(&ceiling);
        }
    }
}

#[test]
fn a_ceiling_is_that_of_a_scenario() {
    let bare = |scenario: &[&str]| {
        let arguments = [&["--loopback", "--"], scenario].concat();
        let ceiling = ceiling(&arguments).unwrap();
        is_sound(&ceiling);
        ceiling.in_time
    };
    let room = ["room", "--publishers", "3", "--bitrate", "500k"];
    let each = bare(&room);
    // A connection for each feed of each participant: about as many as the rate suffices for.
    assert_eq!(each.addresses % 3, 0, "{each:?}");
    assert!((each.participants.unwrap() * 3.0 - each.viewers).abs() < 1e-6);
    let star = bare(&["star", "--multistream", "--bitrate", "500k"]);
    let endpoints = star.participants.unwrap();
    assert!((endpoints * (endpoints - 1.0) - star.viewers).abs() < 1e-3);
}

#[test]
fn what_the_loop_needs_for_some_viewers_is_measured_as_well() {
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("ceiling.json");
    let (first, last) = cores();
    let mut arguments = vec!["ceiling", "--loopback", "--duration", "0.2"];
    arguments.extend(["--batch", "65536", "--viewers", "5,20"]);
    arguments.extend(["--server-core", &first, "--load-core", &last]);
    arguments.extend(["--json", json.to_str().unwrap()]);
    let output = hammer(&arguments);
    let text = String::from_utf8_lossy(&output.stdout);
    for said in ["  in time ", "  at all ", "  20 participants "] {
        assert!(text.contains(said), "{text}");
    }
    let value: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(json).unwrap()).unwrap();
    for (load, participants) in value["loads"].as_array().unwrap().iter().zip([5, 20]) {
        assert_eq!(load["participants"], participants);
        assert!(load["cpu_ns_per_packet"].as_f64().unwrap() > 0.0, "{load}");
        // It sends what is due, and sleeps.
        assert!(load["cpu_cores"].as_f64().unwrap() < 1.0, "{load}");
    }
}

#[test]
fn traffic_that_cannot_be_made_is_explained() {
    let output = hammer(&[
        "ceiling",
        "--loopback",
        "--bitrate",
        "8M",
        "--packets-per-frame",
        "2",
    ]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && errors.contains("change --bitrate"),
        "{errors}"
    );
}

#[test]
fn a_server_that_ends_at_once_is_shown_with_its_log() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let server = "x=sh -c 'echo core {core} of {ip}; exit 3'";
    let output = hammer(&[
        "lab",
        "--ceiling",
        "0",
        "--out",
        out,
        "--server",
        server,
        "--",
        "streaming",
    ]);
    let errors = String::from_utf8_lossy(&output.stderr);
    if NO_NAMESPACES.iter().any(|said| errors.contains(said)) {
        eprintln!("SKIPPED: {errors}");
        return;
    }
    assert!(errors.contains("x ended with exit status: 3"), "{errors}");
    assert!(errors.contains("core 0 of 10.99.0.1"), "{errors}");
    assert!(folder.path().join("logs/x-1.log").exists());
}

#[test]
fn a_lab_starts_the_server_loads_it_and_reports() {
    let program = Path::new(env!("CARGO_BIN_EXE_portunus-hammer")).with_file_name("portunus");
    if !program.exists() {
        eprintln!("SKIPPED: there is no {}", program.display());
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let server = format!("p={} --config {{dir}}/portunus.toml", program.display());
    let (first, last) = cores();
    let mut arguments = vec!["lab", "--ceiling", "0.05", "--efficiency", "0.2"];
    arguments.extend(["--out", out, "--server", &server]);
    arguments.extend(["--server-cores", &first, "--load-cores", &last]);
    arguments.extend(["--", "streaming", "--viewers", "5", "--bitrate", "500k"]);
    // Independent of the machine's other load.
    arguments.extend(["--duration", "2", "--settle", "0.5", "--max-delay", "60000"]);
    let output = hammer(&arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    if NO_NAMESPACES.iter().any(|said| errors.contains(said)) {
        eprintln!("SKIPPED: {errors}");
        return;
    }
    assert!(output.status.success(), "{errors}");
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    let report: Report = serde_json::from_str(&read("report.json")).unwrap();
    let [run] = report.runs.as_slice() else {
        panic!("{} runs", report.runs.len());
    };
    let step = run.steps.first().unwrap();
    assert_eq!((step.participants, run.summary.failed_joins), (5, 0));
    // On a machine that also runs other tests, some packets may be late, and then count for the
    // next second.
    assert!(step.delivered_share > 0.7, "{step:?}");
    let page = read("report.html");
    let text = String::from_utf8_lossy(&output.stdout);
    for said in ["ceiling in time", "of ceiling"] {
        assert!(page.contains(said), "{said}: {page}");
    }
    assert!(
        text.contains("100 % in time") && text.contains("100 % at all"),
        "{text}"
    );
    if step.in_time {
        assert!(step.efficiency_share().unwrap() > 0.0, "{step:?}");
        assert!(run.summary.ceiling_share.is_some() && run.summary.efficiency_share.is_some());
    }
    assert!(folder.path().join("logs/p-1.log").exists());
}

#[test]
fn what_is_no_scenario_is_refused_before_anything_starts() {
    for (scenario, said) in [
        ("ceiling", "has to be a scenario"),
        ("nothing", "unrecognized subcommand"),
        ("streaming and ceiling", "has to be a scenario"),
        ("streaming --sizes equal,strange", "invalid value 'strange'"),
    ] {
        let mut arguments = vec!["lab", "--server", "x=false", "--"];
        arguments.extend(scenario.split(' '));
        let output = hammer(&arguments);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(
            !output.status.success() && errors.contains(said),
            "{errors}"
        );
    }
}

/// The form of the records may only grow. This file was written by an earlier version.
#[test]
fn an_old_report_is_read_and_written_as_it_was() {
    let old = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/report.json");
    let folder = tempfile::tempdir().unwrap();
    let new = folder.path().join("new.json");
    Report::read(&old).unwrap().write(&new).unwrap();
    let value = |path: &Path| -> serde_json::Value {
        serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
    };
    let lost = missing(&value(&old), &value(&new), "");
    assert_eq!(lost, Vec::<String>::new());
}

#[test]
fn reports_are_made_of_an_old_report() {
    let old = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/report.json");
    let folder = tempfile::tempdir().unwrap();
    let html = folder.path().join("page.html");
    let output = hammer(&[
        "report",
        old.to_str().unwrap(),
        "--table",
        "--html",
        html.to_str().unwrap(),
    ]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("vs janus"),
        "{text}"
    );
    assert!(fs::read_to_string(html).unwrap().contains("<svg "));
}

/// Returns the paths in `old` that `new` lacks, or has with other values.
fn missing(old: &serde_json::Value, new: &serde_json::Value, path: &str) -> Vec<String> {
    use serde_json::Value::{Array, Object};
    match (old, new) {
        (Object(old), Object(new)) => {
            let members = old.iter().flat_map(|(name, value)| {
                let path = format!("{path}/{name}");
                match new.get(name) {
                    Some(new) => missing(value, new, &path),
                    None => vec![path],
                }
            });
            members.collect()
        }
        (Array(old), Array(new)) if old.len() == new.len() => {
            let pairs = old.iter().zip(new).enumerate();
            pairs
                .flat_map(|(at, (old, new))| missing(old, new, &format!("{path}/{at}")))
                .collect()
        }
        _ if old == new => Vec::new(),
        _ => vec![path.to_owned()],
    }
}
