//! The layout of all crates: imports run downwards, files are short, modules and arguments look
//! alike, exceptions from lints have reasons.
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

use std::iter;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex};
use std::thread::{self, available_parallelism};

use modules::Modules;

/// The most lines of a file.
const LONGEST: usize = 600;

/// Files that are longer and must be split. No other file may be.
const LONGER: [&str; 0] = [];

/// Files in rings of imports, to be opened. A crate that is not listed may have none.
const IN_RINGS: [(&str, usize); 0] = [];

/// Tuples of three or more values in parameters. A crate that is not listed may have none.
const TUPLES: [(&str, usize); 0] = [];

/// The modules of all crates. Each file is parsed once for all tests.
static CRATES: LazyLock<Vec<Crate>> = LazyLock::new(Crate::read_all);

/// A crate, by its folder. A program with a library has two roots.
struct Crate {
    folder: PathBuf,
    roots: Vec<Modules>,
}

impl Crate {
    /// Reads all crates, in a thread for each core.
    fn read_all() -> Vec<Self> {
        let folders = Mutex::new(crates());
        let read = || {
            let next = || folders.lock().unwrap().pop();
            let read = iter::from_fn(next).map(Crate::read);
            read.collect::<Vec<Crate>>()
        };
        let threads = available_parallelism().map_or(1, usize::from);
        thread::scope(|scope| {
            let readers = (0..threads).map(|_| scope.spawn(read));
            let readers: Vec<_> = readers.collect();
            let read = readers
                .into_iter()
                .flat_map(|reader| reader.join().unwrap());
            read.collect()
        })
    }

    fn read(folder: PathBuf) -> Self {
        let roots = roots(&folder);
        let roots = roots.iter().map(|root| Modules::read(root)).collect();
        Crate { folder, roots }
    }
}

#[test]
fn files_import_each_other_in_one_direction() {
    let faults = CRATES.iter().filter_map(|it| {
        let found = it.roots.iter().map(rings::find);
        let (numbers, rings): (Vec<usize>, Vec<String>) = found.unzip();
        over(&it.folder, &IN_RINGS, numbers.iter().sum(), &rings.concat())
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
    let faults = CRATES.iter().filter_map(|it| {
        let found = it.roots.iter().flat_map(|root| &root.with_tuples);
        let described =
            |(file, name): &(PathBuf, String)| format!("  {}: fn {name}\n", short(file));
        let found: Vec<String> = found.map(described).collect();
        over(&it.folder, &TUPLES, found.len(), &found.concat())
    });
    check(
        faults,
        "Functions take tuples of three or more values. Take separate arguments, \
         or a struct whose fields have names.",
    );
}

#[test]
fn exceptions_from_lints_have_reasons() {
    let files = crates().into_iter().flat_map(|folder| sources(&folder));
    let faults = files.flat_map(|file| {
        let text = std::fs::read_to_string(&file).unwrap();
        let found = ["[allow(", "[expect("].map(|start| without_reason(&text, start));
        let lines = found.into_iter().flatten();
        let lines = lines.map(|line| format!("  {}:{line}\n", short(&file)));
        lines.collect::<Vec<String>>()
    });
    check(
        faults,
        "Each `allow` and `expect` of a lint has a `reason`, or goes.",
    );
}

/// Returns the lines of the attributes that begin with `start` and give no reason.
fn without_reason(text: &str, start: &str) -> Vec<usize> {
    let found = text.match_indices(start).filter(|(at, _)| {
        let before = text.get(..*at).unwrap_or_default();
        let is_attribute = before.ends_with('#') || before.ends_with("#!");
        let attribute = text.get(*at..).and_then(|rest| rest.split(")]").next());
        is_attribute && !attribute.is_some_and(|it| it.contains("reason ="))
    });
    let line = |at| text.get(..at).map_or(0, |before| before.lines().count());
    found.map(|(at, _)| line(at)).collect()
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
    // An example may be in another language.
    folders.retain(|folder| folder.join("Cargo.toml").exists());
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
