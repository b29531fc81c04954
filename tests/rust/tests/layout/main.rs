//! Imports run downwards inside of crates, too, and no file is longer than a reader can hold.
#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot read the sources has failed"
)]

mod modules;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use modules::Modules;

/// Lines of a file.
const LONGEST: usize = 600;

/// Files that are longer, and wait for somebody who finds their seam. No other may become so.
const LONGER: [&str; 14] = [
    "crates/core/src/handle/connection.rs",
    "crates/core/tests/gateway/events.rs",
    "crates/files/tests/lipsync/sender.rs",
    "crates/media/src/plane.rs",
    "crates/media/src/testing/simulation/mod.rs",
    "crates/portunus/src/config/tests.rs",
    "crates/record/tests/recorder/joint.rs",
    "crates/rtc/src/data/mod.rs",
    "crates/rtc/src/ice/mod.rs",
    "crates/rtp/src/depacketize/tests.rs",
    "crates/rtsp/tests/servers.rs",
    "crates/sdp/src/plain/session.rs",
    "crates/sdp/tests/answers.rs",
    "crates/udp/src/send.rs",
];

/// How many files of a crate are in rings, which wait to be opened. No other crate may have one, and none may have more.
const IN_RINGS: [(&str, usize); 22] = [
    ("crates/audio", 10),
    ("crates/brokers", 2),
    ("crates/core", 34),
    ("crates/files", 17),
    ("crates/media", 84),
    ("crates/portunus", 20),
    ("crates/record", 20),
    ("crates/resources", 4),
    ("crates/room", 20),
    ("crates/rtc", 16),
    ("crates/rtsp", 4),
    ("crates/sdp", 5),
    ("crates/srtp", 2),
    ("crates/turn-client", 2),
    ("crates/udp", 2),
    ("plugins/audiobridge", 11),
    ("plugins/recordplay", 5),
    ("plugins/streaming", 19),
    ("plugins/textroom", 4),
    ("plugins/videoroom", 3),
    ("plugins/voicemail", 3),
    ("tests/rust", 2),
];

/// Which files a file's code depends on.
type Imports<'a> = BTreeMap<&'a Path, BTreeSet<&'a Path>>;

#[test]
fn files_import_each_other_in_one_direction() {
    for folder in crates() {
        let mut number = 0;
        let mut described = String::new();
        for root in roots(&folder) {
            let modules = Modules::read(&root);
            let imports = modules.imports();
            for ring in rings(&imports) {
                if !is_one_module(&modules, &ring) {
                    number += ring.len();
                    described += &describe(&imports, &ring);
                }
            }
        }
        let name = short(&folder);
        let known = IN_RINGS.iter().find(|(known, _)| *known == name);
        let known = known.map_or(0, |(_, files)| *files);
        assert!(
            number <= known,
            "{name}: {number} files in rings, {known} were known\n{described}"
        );
    }
}

#[test]
fn files_are_short() {
    let long = crates().into_iter().flat_map(|folder| sources(&folder));
    let long = long.filter_map(|file| {
        let lines = std::fs::read_to_string(&file).unwrap().lines().count();
        let is_known = LONGER.contains(&short(&file).as_str());
        (lines > LONGEST && !is_known).then(|| format!("{}: {lines} lines\n", short(&file)))
    });
    let long: Vec<String> = long.collect();
    assert!(long.is_empty(), "longer than {LONGEST}:\n{}", long.concat());
}

fn workspace() -> PathBuf {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    workspace.canonicalize().unwrap()
}

/// A path in the workspace.
fn short(path: &Path) -> String {
    let path = path.strip_prefix(workspace()).unwrap_or(path);
    path.display().to_string()
}

/// The folders of all crates.
fn crates() -> Vec<PathBuf> {
    let workspace = workspace();
    let groups = ["crates", "plugins", "examples"].map(|group| workspace.join(group));
    let mut folders: Vec<PathBuf> = groups.iter().flat_map(|group| inside(group)).collect();
    folders.push(workspace.join("tests/rust"));
    folders
}

fn inside(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
}

/// The root files of a crate.
fn roots(folder: &Path) -> Vec<PathBuf> {
    let roots = ["src/lib.rs", "src/main.rs"].map(|root| folder.join(root));
    roots.into_iter().filter(|root| root.exists()).collect()
}

/// All Rust files in a folder.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let sources = inside(folder).into_iter().flat_map(|path| {
        if path.is_dir() {
            return sources(&path);
        }
        let is_rust = path.extension().is_some_and(|extension| extension == "rs");
        Vec::from_iter(is_rust.then_some(path))
    });
    sources.collect()
}

/// The groups of files that all depend on each other.
fn rings<'a>(imports: &Imports<'a>) -> Vec<Vec<&'a Path>> {
    let reached: Imports<'a> = imports
        .keys()
        .map(|file| (*file, reach(imports, file)))
        .collect();
    let mut rings = Vec::new();
    let mut seen = BTreeSet::<&Path>::new();
    for (file, to) in &reached {
        if !to.contains(file) || seen.contains(file) {
            continue;
        }
        let back = to
            .iter()
            .filter(|other| reached.get(*other).is_some_and(|to| to.contains(file)));
        let ring: Vec<&Path> = back.copied().collect();
        seen.extend(&ring);
        rings.push(ring);
    }
    rings
}

/// What a file depends on, at any distance.
fn reach<'a>(imports: &Imports<'a>, from: &Path) -> BTreeSet<&'a Path> {
    let mut reached = BTreeSet::new();
    let mut next: Vec<&Path> = vec![from];
    while let Some(file) = next.pop() {
        for to in imports.get(file).into_iter().flatten() {
            if reached.insert(*to) {
                next.push(to);
            }
        }
    }
    reached
}

/// Whether a ring is a module and files of it, without those of modules in it.
fn is_one_module(modules: &Modules, ring: &[&Path]) -> bool {
    let places = ring.iter().map(|file| modules.place(file));
    let Some(shortest) = places.clone().min_by_key(|place| place.len()) else {
        return true;
    };
    let is_child = |place: &[String]| {
        let parent = place.split_last().map_or(&[][..], |(_, parent)| parent);
        !parent.is_empty()
            && (parent == shortest || shortest.split_last().is_some_and(|(_, up)| up == parent))
    };
    let mut others = places.filter(|place| *place != shortest);
    !shortest.is_empty() && others.all(is_child)
}

/// The files of a ring, and what each depends on in it.
fn describe(imports: &Imports<'_>, ring: &[&Path]) -> String {
    let mut text = format!("{} files:\n", ring.len());
    for file in ring {
        let to = imports.get(file).into_iter().flatten();
        let to: Vec<String> = to
            .filter(|to| ring.contains(to))
            .map(|to| short(to))
            .collect();
        text += &format!("  {} -> {}\n", short(file), to.join(", "));
    }
    text
}
