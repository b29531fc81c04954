//! `browsers` against the server that was built beside this test: real browsers meet in a room, and
//! their statistics are in the record.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that cannot be set up has failed"
)]

use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

use portunus_hammer::record::{Report, State};

/// Messages when namespaces cannot be created because of missing rights or programs.
const NO_NAMESPACES: [&str; 2] = [
    "network namespaces cannot be made",
    "the program ip cannot be run",
];

fn is_in_path(name: &str) -> bool {
    let paths = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&paths).any(|folder| folder.join(name).is_file())
}

/// Returns all cores that this process may use, as an option's value.
fn cores() -> String {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let list = status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let ranges = list.unwrap().trim().split(',').flat_map(|range| {
        let (from, to) = range.split_once('-').unwrap_or((range, range));
        from.parse::<usize>().unwrap()..=to.parse().unwrap()
    });
    let cores: Vec<String> = ranges.map(|core| core.to_string()).collect();
    cores.join(",")
}

/// Lets two browsers meet, with some of hammer's viewers besides.
fn meet(kind: &str) {
    let program = Path::new(env!("CARGO_BIN_EXE_portunus-hammer")).with_file_name("portunus");
    if !program.exists() {
        eprintln!("SKIPPED: there is no {}", program.display());
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let server = format!("p={} --config {{dir}}/portunus.toml", program.display());
    let cores = cores();
    let mut command = Command::new(env!("CARGO_BIN_EXE_portunus-hammer"));
    command.args(["lab", "--ceiling", "0", "--out", out, "--server", &server]);
    command.args(["--server-cores", &cores, "--load-cores", &cores, "--"]);
    command.args(["browsers", "--browsers", kind, "--viewers", "2"]);
    command.args(["--patience", "120", "--duration", "3", "--settle", "1"]);
    command.args([
        "--among",
        "streaming --viewers 3 --bitrate 200k --duration 2",
    ]);
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    if NO_NAMESPACES.iter().any(|said| errors.contains(said)) {
        eprintln!("SKIPPED: {errors}");
        return;
    }
    assert!(output.status.success(), "{errors}");
    let report = Report::read(&folder.path().join("report.json")).unwrap();
    let browsers = report.runs[0].browsers.as_ref().unwrap();
    assert_eq!(browsers.versions.len(), 1, "{browsers:?}");
    let states: Vec<State> = browsers.attempts.iter().map(|one| one.state()).collect();
    assert_eq!(states, [State::Connected; 2], "{browsers:?}\n{errors}");
    let names: Vec<&str> = browsers.phases.iter().map(|phase| &*phase.name).collect();
    assert_eq!(names.len(), 2, "{names:?}");
    assert!(
        names[0] == "alone" && names[1].starts_with("streaming"),
        "{names:?}"
    );
    for phase in &browsers.phases {
        assert_eq!((phase.browsers, phase.video_tracks), (2, 2), "{phase:?}");
        assert!(phase.frames_per_s > 0.0, "{phase:?}");
        assert!(phase.server_cpu_cores.is_some(), "{phase:?}");
    }
    let page = fs::read_to_string(folder.path().join("report.html")).unwrap();
    for said in [
        "Connection progression",
        "frames/s of a track",
        "connected from",
    ] {
        assert!(page.contains(said), "{said}");
    }
}

#[test]
fn chromium_meets_chromium() {
    match is_in_path("chromium") {
        true => meet("chromium"),
        false => eprintln!("SKIPPED: there is no chromium in PATH"),
    }
}

#[test]
fn firefox_meets_firefox() {
    match is_in_path("firefox") || is_in_path("firefox-esr") {
        true => meet("firefox"),
        false => eprintln!("SKIPPED: there is no firefox in PATH"),
    }
}
