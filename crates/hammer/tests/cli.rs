//! The program, as it is called.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot be set up has failed"
)]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use portunus_hammer::record::{Ceiling, Report};

/// What is said where namespaces cannot be made: there is no right to, or no program for it.
const NO_NAMESPACES: [&str; 2] = [
    "network namespaces cannot be made",
    "the program ip cannot be run",
];

fn hammer(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_portunus-hammer"));
    command.args(arguments).output().unwrap()
}

/// The first and the last core that this process may use.
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

/// A short measurement over `extra`; none if it may not be made here.
fn ceiling(extra: &[&str]) -> Option<Ceiling> {
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("ceiling.json");
    let (first, last) = cores();
    let mut arguments = vec![
        "ceiling",
        "--duration",
        "0.05",
        "--viewers",
        "10",
        "--batch",
        "65536",
    ];
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
        let ceiling = ceiling(&arguments).unwrap();
        assert!(ceiling.delivered_pps > 0.0 && ceiling.crypto_ns > 0.0 && ceiling.send_ns > 0.0);
        assert!(
            (0.01..=1.0).contains(&ceiling.delivered_share),
            "{ceiling:?}"
        );
    }
}

#[test]
fn a_ceiling_is_measured_between_namespaces() {
    if let Some(ceiling) = ceiling(&[]) {
        assert!(
            ceiling.delivered_pps > 0.0 && ceiling.delivered_share > 0.01,
            "{ceiling:?}"
        );
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
    let mut arguments = vec!["lab", "--ceiling", "0", "--out", out, "--server", &server];
    arguments.extend(["--server-cores", &first, "--load-cores", &last]);
    arguments.extend(["--", "streaming", "--viewers", "5", "--bitrate", "500k"]);
    arguments.extend(["--duration", "2", "--settle", "0.5"]);
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
    // On a machine that runs other tests beside some may be late, and then counts for the next second.
    assert!(step.delivered_share > 0.7, "{step:?}");
    assert!(read("report.html").contains("<html"), "no page");
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

/// The form of the records may only grow: this file was written by an earlier version.
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

/// Paths of what `old` has and `new` has not, or has otherwise.
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
