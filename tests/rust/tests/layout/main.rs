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

/// Which files a file's code depends on.
type Imports<'a> = BTreeMap<&'a Path, BTreeSet<&'a Path>>;

#[test]
fn files_import_each_other_in_one_direction() {
    let mut cycles = Vec::new();
    for root in crates().iter().flat_map(|folder| roots(folder)) {
        let modules = Modules::read(&root);
        let imports = modules.imports();
        let rings = rings(&imports);
        let rings = rings.iter().filter(|ring| !is_one_module(&modules, ring));
        cycles.extend(rings.map(|ring| describe(&imports, ring)));
    }
    let number = cycles.len();
    assert!(cycles.is_empty(), "{number} cycles:\n{}", cycles.concat());
}

#[test]
fn files_are_short() {
    let long = crates().into_iter().flat_map(|folder| sources(&folder));
    let long = long.filter_map(|file| {
        let lines = std::fs::read_to_string(&file).unwrap().lines().count();
        (lines > LONGEST).then(|| format!("{}: {lines} lines\n", file.display()))
    });
    let long: Vec<String> = long.collect();
    assert!(long.is_empty(), "longer than {LONGEST}:\n{}", long.concat());
}

/// The folders of all crates.
fn crates() -> Vec<PathBuf> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let workspace = workspace.canonicalize().unwrap();
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
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap();
    let short = |file: &Path| {
        file.strip_prefix(&workspace)
            .unwrap_or(file)
            .display()
            .to_string()
    };
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
