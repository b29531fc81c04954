//! Rings of imports: groups of files that all depend on each other.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::modules::Modules;
use crate::short;

/// The files that each file's code depends on.
type Imports<'a> = BTreeMap<&'a Path, BTreeSet<&'a Path>>;

/// Returns the number of files in rings of a crate, and a description of the rings.
pub(crate) fn find(modules: &Modules) -> (usize, String) {
    let imports = modules.imports();
    let mut rings = rings(&imports);
    rings.retain(|ring| !is_one_module(modules, ring));
    let described = rings.iter().map(|ring| describe(&imports, ring)).collect();
    (rings.iter().map(Vec::len).sum(), described)
}

/// Returns the groups of files that all depend on each other.
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

/// Returns the files that `from` depends on, directly or through others.
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

/// Returns whether a ring consists of a module and its direct children only.
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

/// Lists the files of a ring, each with those that it imports within the ring.
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
