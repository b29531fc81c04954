//! The documentation has the tested rows, and all requests.

use std::collections::BTreeSet;

use portunus_core::Needs;

use crate::rows::{PLUGINS, rows};
use crate::world::World;

const PAGE: &str = include_str!("../../../../docs/security.md");

/// Returns the cells of the tables in the section about requests.
fn cells() -> Vec<Vec<String>> {
    cells_of(PAGE)
}

fn cells_of(page: &str) -> Vec<Vec<String>> {
    let section = page
        .split("\n## ")
        .find(|part| part.starts_with("Requests"));
    let lines = section.expect("the section").lines();
    let rows = lines.filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"));
    let cells = rows.map(|row| row.split(" | ").map(str::to_owned).collect());
    cells.collect()
}

#[tokio::test]
async fn what_needs_a_right_is_what_the_documentation_says() {
    let plugins = PLUGINS.map(|(plugin, ..)| plugin);
    let cells = cells();
    let documented = cells
        .iter()
        .filter(|row| row.len() == 5 && plugins.contains(&row[0].as_str()));
    let documented: Vec<_> = documented.cloned().collect();
    let tested = rows(&World::new().await);
    let tested = tested.iter().map(|row| {
        let request = match row.request {
            "any" => "any".to_owned(),
            request => format!("`{request}`"),
        };
        let cells = [row.plugin, &request, row.when, row.right.as_str()];
        let mut cells = cells.map(str::to_owned).to_vec();
        cells.push(row.code.to_string());
        cells
    });
    assert_eq!(documented, tested.collect::<Vec<_>>());
}

#[test]
fn what_is_for_everybody_is_what_the_documentation_says() {
    let cells = cells();
    for (plugin, requests, _) in PLUGINS {
        let calls = requests().into_iter();
        let calls = calls.filter(|(_, needs)| matches!(needs, Needs::Nothing));
        let calls: Vec<_> = calls.map(|(name, _)| format!("`{name}`")).collect();
        let of_plugin = |row: &&Vec<String>| row.len() == 2 && row[0] == plugin;
        let listed = cells.iter().find(of_plugin).map(|row| row[1].as_str());
        let listed = listed
            .unwrap_or_default()
            .split(';')
            .next()
            .unwrap_or_default();
        assert_eq!(listed, calls.join(", "), "{plugin}");
    }
}

/// Returns the requests of a page, each with its plugin.
fn on(page: &str) -> BTreeSet<(String, String)> {
    let rows = cells_of(page).into_iter().flat_map(|row| {
        let plugin = row[0].clone();
        let requests: Vec<String> = match row.len() {
            5 if row[1] == "any" => vec!["any".to_owned()],
            5 => quoted(&row[1]),
            2 if plugin.bytes().all(|byte| byte.is_ascii_lowercase()) => {
                quoted(row[1].split(';').next().unwrap_or_default())
            }
            _ => Vec::new(),
        };
        requests
            .into_iter()
            .map(move |request| (plugin.clone(), request))
    });
    rows.collect()
}

fn quoted(cell: &str) -> Vec<String> {
    let parts = cell.split('`').skip(1).step_by(2);
    parts.map(str::to_owned).collect()
}

#[test]
fn the_page_has_all_requests_of_the_types_and_no_others() {
    let types = PLUGINS.into_iter().flat_map(|(plugin, requests, _)| {
        let named = |(name, _): (&'static str, _)| match name {
            "" => "any".to_owned(),
            name => name.to_owned(),
        };
        let requests = requests().into_iter().map(named);
        requests.map(move |request| (plugin.to_owned(), request))
    });
    let types: BTreeSet<_> = types.collect();
    assert_eq!(on(PAGE), types);
    // A missing request, or a surplus one, is detected.
    for (text, other) in [
        ("| `hangup`, `keyframe`;", "| `hangup`;"),
        (
            "| `hangup`, `keyframe`;",
            "| `hangup`, `keyframe`, `steal`;",
        ),
        ("| nosip | `process` | always | forward | 499 |\n", ""),
        ("| nosip | `process` |", "| nosip | `proceed` |"),
        ("| nosip | `process` |", "| nosipp | `process` |"),
        ("| voicemail | `update`", "| voicemails | `update`"),
    ] {
        assert_eq!(PAGE.matches(text).count(), 1, "{text}");
        assert_ne!(on(&PAGE.replace(text, other)), types, "{other}");
    }
}
