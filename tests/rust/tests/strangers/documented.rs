//! The documentation has the rows that are tested, and all requests.

use portunus_core::Needs;

use crate::rows::{PLUGINS, rows};
use crate::world::World;

const PAGE: &str = include_str!("../../../../docs/security.md");

/// The cells of the rows of tables in the section about requests.
fn cells() -> Vec<Vec<String>> {
    let section = PAGE
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
