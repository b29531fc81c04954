//! `figures`, with tiny loads of the server that was built beside this test: the report is complete.
//! What it says about speed is not looked at.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that cannot be set up has failed"
)]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

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

/// Measures figures into `out`. Returns the standard error, or `None` if that is not allowed here.
fn figures(names: &[&str], out: &Path, more: &[&str]) -> Option<String> {
    let program = Path::new(env!("CARGO_BIN_EXE_portunus-hammer")).with_file_name("portunus");
    if !program.exists() {
        eprintln!("SKIPPED: there is no {}", program.display());
        return None;
    }
    let (first, last) = cores();
    let mut arguments = vec!["figures", "--quick", "--scale", "0.03", "--no-install"];
    arguments.extend(["--peers", "portunus", "--out", out.to_str().unwrap()]);
    arguments.extend(["--server-cores", &first, "--load-cores", &last]);
    arguments.extend(more);
    arguments.extend(names);
    let output = hammer(&arguments);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    if NO_NAMESPACES.iter().any(|said| errors.contains(said)) {
        eprintln!("SKIPPED: {errors}");
        return None;
    }
    assert!(output.status.success(), "{errors}");
    Some(errors)
}

#[test]
fn the_report_of_two_figures_is_complete_and_an_interrupted_call_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let (out, page) = (folder.path().join("out"), folder.path().join("page.md"));
    fs::write(
        &page,
        "# Page\n<!-- figures: janus-5 -->\nbefore\n<!-- /figures -->\nafter\n",
    )
    .unwrap();
    let into = ["--into", page.to_str().unwrap()];
    let names = ["janus-5", "streamer-quality"];
    let Some(_) = figures(&names, &out, &into) else {
        return;
    };
    let read = |name: &str| fs::read_to_string(out.join(name)).unwrap();
    let report: Value = serde_json::from_str(&read("figures.json")).unwrap();
    let shown = report["figures"].as_array().unwrap();
    assert_eq!(shown.len(), 2);
    for (figure, plots) in shown.iter().zip([2, 3]) {
        assert_eq!(figure["missing"].as_array().unwrap().len(), 0, "{figure}");
        assert_eq!(figure["commands"].as_array().unwrap().len(), 1, "{figure}");
        let drawn = figure["plots"].as_array().unwrap();
        assert_eq!(drawn.len(), plots, "{figure}");
        for plot in drawn {
            let ours = &plot["lines"][0];
            assert_eq!(ours["name"], "Portunus", "{plot}");
            assert!(!ours["points"].as_array().unwrap().is_empty(), "{plot}");
            let file = format!(
                "pictures/{}-{}.svg",
                figure["name"].as_str().unwrap(),
                plot["name"].as_str().unwrap()
            );
            assert!(read(&file).ends_with("</svg>\n"), "{file}");
        }
    }
    for has in ["machine", "hammer", "setting", "versions", "headlines"] {
        assert!(!report[has].is_null(), "{has}");
    }
    // What was published is there, as such.
    let csv = read("figures.csv");
    assert!(
        csv.contains(",published,participants,200,CPU cores,11.68"),
        "{csv}"
    );
    let html = read("figures.html");
    for said in [
        "Janus WebRTC gateway",
        "AWeS 2015",
        "<svg ",
        "11.7 of 16 cores",
    ] {
        assert!(html.contains(said), "{said}");
    }
    let page = fs::read_to_string(page).unwrap();
    assert!(
        page.contains("](page/janus-5-cpu.svg)") && page.ends_with("after\n"),
        "{page}"
    );
    assert!(!page.contains("before") && folder.path().join("page/janus-5-cpu.svg").exists());
    // One of the two runs is lost, and the same call measures it alone.
    fs::remove_file(out.join("runs/audiobridge-portunus.json")).unwrap();
    let again = figures(&names, &out, &[]).unwrap();
    assert!(again.contains("1 of 2 are measured already"), "{again}");
    assert!(out.join("runs/audiobridge-portunus.json").exists());
    // The report of what is there needs no measuring, and other settings no mixture.
    let last = figures(&names, &out, &[]).unwrap();
    assert!(last.contains("2 of 2 are measured already"), "{last}");
    let other = hammer(&["figures", "janus-5", "--out", out.to_str().unwrap()]);
    let errors = String::from_utf8_lossy(&other.stderr);
    assert!(
        !other.status.success() && errors.contains("--fresh"),
        "{errors}"
    );
}

#[test]
fn what_cannot_be_measured_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    // A cluster needs a bus, and here is none.
    let mut command = Command::new(env!("CARGO_BIN_EXE_portunus-hammer"));
    command.args(["figures", "cluster", "--out", out, "--no-install"]);
    command.args(["--peers", "portunus", "--peer", "portunus=portunus"]);
    command.env("PATH", out).env("XDG_CACHE_HOME", out);
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && errors.contains("there is no nats-server"),
        "{errors}"
    );
    let output = hammer(&["figures", "janus-99"]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && errors.contains("--list"),
        "{errors}"
    );
    let listed = hammer(&["figures", "--list"]);
    let text = String::from_utf8_lossy(&listed.stdout);
    for name in [
        "janus-3 ",
        "janus-14 ",
        "streamer-cores ",
        "openvidu-progression ",
        "cluster ",
    ] {
        assert!(text.contains(name), "{name}: {text}");
    }
}

#[test]
fn thresholds_decide_the_status() {
    let old = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/report.json");
    let report = |threshold: &str| {
        let output = hammer(&["report", old.to_str().unwrap(), "--require", threshold]);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), errors)
    };
    assert_eq!(report("loss<50%").0, Some(0));
    let (status, errors) = report("participants>=1M");
    assert_eq!(status, Some(3), "{errors}");
    assert!(
        errors.contains("NOT MET") && errors.contains("participants>=1M"),
        "{errors}"
    );
    assert_eq!(report("taste>1").0, Some(2));
}
