//! The layout of all crates: imports run downwards, files are short, modules and arguments look
//! alike.
//!
//! The tables list the crates and files that do not follow a rule yet. Rows are removed, and none
//! is added.
#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot read the sources has failed"
)]

mod modules;
mod rings;
mod tuples;

use std::path::{Path, PathBuf};

/// The most lines of a file.
const LONGEST: usize = 600;

/// Files that are longer and must be split. No other file may be.
const LONGER: [&str; 0] = [];

/// Files in rings of imports, to be opened. A crate that is not listed may have none.
const IN_RINGS: [(&str, usize); 0] = [];

/// Tuples of three or more values in parameters. A crate that is not listed may have none.
const TUPLES: [(&str, usize); 10] = [
    ("crates/call", 1),
    ("crates/core", 1),
    ("crates/files", 3),
    ("crates/media", 3),
    ("crates/portunus", 1),
    ("crates/record", 1),
    ("crates/sip", 2),
    ("plugins/audiobridge", 3),
    ("plugins/sip", 2),
    ("plugins/voicemail", 1),
];

#[test]
fn files_import_each_other_in_one_direction() {
    let faults = crates().into_iter().filter_map(|folder| {
        let found = roots(&folder).into_iter().map(|root| rings::find(&root));
        let (numbers, rings): (Vec<usize>, Vec<String>) = found.unzip();
        over(&folder, &IN_RINGS, numbers.iter().sum(), &rings.concat())
    });
    check(
        faults,
        "Files import each other in rings. Only a module and its direct children may.\n\
         Break one of the arrows below: move the shared type down into a file that both import, \
         move the function up to its caller, or pass the value as an argument.",
    );
}

#[test]
fn files_are_short() {
    let files = crates().into_iter().flat_map(|folder| sources(&folder));
    let faults = files.filter_map(|file| {
        let lines = std::fs::read_to_string(&file).unwrap().lines().count();
        let is_known = LONGER.contains(&short(&file).as_str());
        (lines > LONGEST && !is_known).then(|| format!("  {}: {lines} lines\n", short(&file)))
    });
    check(
        faults,
        "Files are too long: at most 600 lines. Split each by subject into a folder: \
         `x/mod.rs` and files beside it, each with one noun for a name.",
    );
}

#[test]
fn modules_have_one_layout() {
    let files = crates().into_iter().flat_map(|folder| sources(&folder));
    let faults = files.filter_map(|file| {
        let children = file.with_extension("");
        let has_children = children.is_dir() && !sources(&children).is_empty();
        has_children.then(|| format!("  {}\n", short(&file)))
    });
    check(
        faults,
        "Modules with children live in their folder: move each `x.rs` to `x/mod.rs`.",
    );
}

#[test]
fn arguments_have_names() {
    let faults = crates().into_iter().filter_map(|folder| {
        let found = roots(&folder)
            .into_iter()
            .flat_map(|root| tuples::find(&root));
        let found: Vec<String> = found.collect();
        over(&folder, &TUPLES, found.len(), &found.concat())
    });
    check(
        faults,
        "Functions take tuples of three or more values. Take separate arguments, \
         or a struct whose fields have names.",
    );
}

/// Describes the faults of a crate if there are more of them than `table` allows.
fn over(folder: &Path, table: &[(&str, usize)], found: usize, faults: &str) -> Option<String> {
    let name = short(folder);
    let row = table.iter().find(|(known, _)| *known == name);
    let allowed = row.map_or(0, |(_, number)| *number);
    (found > allowed).then(|| format!("{name}: {found} found, {allowed} allowed\n{faults}"))
}

/// Fails if there are faults, and prints what to do about them.
fn check(faults: impl Iterator<Item = String>, advice: &str) {
    let faults: String = faults.collect();
    assert!(faults.is_empty(), "\n{advice}\n\n{faults}");
}

fn workspace() -> PathBuf {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    workspace.canonicalize().unwrap()
}

/// Returns the path relative to the workspace.
fn short(path: &Path) -> String {
    let path = path.strip_prefix(workspace()).unwrap_or(path);
    path.display().to_string()
}

/// Returns the folders of all crates.
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

/// Returns the root files of a crate.
fn roots(folder: &Path) -> Vec<PathBuf> {
    let roots = ["src/lib.rs", "src/main.rs"].map(|root| folder.join(root));
    roots.into_iter().filter(|root| root.exists()).collect()
}

/// Returns all Rust files in a folder.
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
