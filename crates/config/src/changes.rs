//! The differences between two configurations, and which of them can take effect at run time.

use std::sync::LazyLock;

use serde::de::DeserializeOwned;

use crate::{Configuration, PrintError, Printed, Table, keys_of};

/// All sections of a configuration with their values, and the keys that can change at run time.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sections(Vec<SectionKeys>);

#[derive(Debug, Clone, PartialEq)]
struct SectionKeys {
    /// With dots, such as `events.file`.
    name: String,
    keys: Table,
    live: Vec<&'static str>,
}

/// The keys that differ between two configurations, with their sections, such as `http.port`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    /// Changed keys that take effect while the server runs.
    pub live: Vec<String>,
    /// Changed keys that need a restart.
    pub restart: Vec<String>,
}

impl Sections {
    /// Adds keys of a section, of which `live` can change at run time. A section can be added in
    /// several parts.
    pub fn add(&mut self, name: &str, keys: Table, live: &[&'static str]) {
        if let Some(known) = self.0.iter_mut().find(|known| known.name == name) {
            known.keys.extend(keys);
            known.live.extend(live);
            return;
        }
        self.0.push(SectionKeys {
            name: name.to_owned(),
            keys,
            live: live.to_vec(),
        });
    }

    /// Adds all keys of a part of the server.
    pub fn add_part<C: Configuration>(&mut self, name: &str, part: &C) -> Result<(), PrintError> {
        self.add(name, keys_of(part)?, C::LIVE);
        Ok(())
    }

    /// Returns the keys that can change at run time, with their sections. Omits sections without
    /// such keys.
    pub fn live(&self) -> Vec<(&str, &[&'static str])> {
        let sections = self.0.iter().filter(|section| !section.live.is_empty());
        let live = sections.map(|section| (section.name.as_str(), section.live.as_slice()));
        live.collect()
    }

    /// Returns the sections as a file.
    pub fn into_text(self) -> Result<String, PrintError> {
        let mut printed = Printed::default();
        for section in self.0 {
            printed.section(&section.name, section.keys);
        }
        printed.into_text()
    }

    /// Returns the differences to `new`. A key in only one of them counts.
    pub fn changes(&self, new: &Sections) -> Changes {
        let mut changes = Changes::default();
        for (section, before, after) in self.pairs(new) {
            for key in different(before, after) {
                let list = match section.live.contains(&key.as_str()) {
                    true => &mut changes.live,
                    false => &mut changes.restart,
                };
                list.push(format!("{}.{key}", section.name));
            }
        }
        changes
    }

    /// Takes over the values of `new` that can change while the server runs.
    pub fn take_live(&mut self, new: &Sections) {
        let mut merged = Vec::new();
        for (section, before, after) in self.pairs(new) {
            merged.push(SectionKeys {
                keys: with_live_keys(before, after, &section.live),
                ..section.clone()
            });
        }
        self.0 = merged;
    }

    /// Returns the sections of both, with their keys in each.
    fn pairs<'a>(
        &'a self,
        new: &'a Sections,
    ) -> impl Iterator<Item = (&'a SectionKeys, &'a Table, &'a Table)> {
        static NONE: LazyLock<Table> = LazyLock::new(Table::new);
        let find = |in_: &'a Sections, name: &str| {
            let found = in_.0.iter().find(|section| section.name == name);
            found.map_or(&*NONE, |section| &section.keys)
        };
        let gone = self.0.iter().map(move |section| {
            let after = find(new, &section.name);
            (section, &section.keys, after)
        });
        let is_new = |section: &&SectionKeys| self.0.iter().all(|it| it.name != section.name);
        let added = new.0.iter().filter(is_new);
        gone.chain(added.map(|section| (section, &*NONE, &section.keys)))
    }
}

/// Returns the names of the keys that differ.
fn different(before: &Table, after: &Table) -> Vec<String> {
    let changed = before
        .iter()
        .filter(|(key, value)| after.get(*key) != Some(value));
    let added = after.keys().filter(|key| !before.contains_key(*key));
    let changed = changed.map(|(key, _)| key);
    changed.chain(added).cloned().collect()
}

fn with_live_keys(before: &Table, after: &Table, live: &[&'static str]) -> Table {
    let is_live = |key: &str| live.contains(&key);
    let kept = before.iter().filter(|(key, _)| !is_live(key));
    let taken = after.iter().filter(|(key, _)| is_live(key));
    let all = kept.chain(taken);
    all.map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

/// Returns `running` with the values of `new` for the keys that can change at run time.
pub fn with_live<C: Configuration + DeserializeOwned>(
    running: &C,
    new: &C,
) -> Result<C, PrintError> {
    let merged = with_live_keys(&keys_of(running)?, &keys_of(new)?, C::LIVE);
    merged
        .try_into()
        .map_err(|error: toml::de::Error| PrintError::new(error.message()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use serde::{Deserialize, Serialize};

    use super::*;
    use crate::Section;

    #[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
    #[serde(default)]
    struct Door {
        port: u16,
        limit: u16,
        #[serde(with = "crate::optional")]
        secret: Option<String>,
    }

    impl Configuration for Door {
        const LIVE: &'static [&'static str] = &["limit", "secret"];

        fn read(section: &mut Section<'_>) -> Self {
            section.keys()
        }
    }

    fn door(port: u16, limit: u16, secret: Option<&str>) -> Door {
        Door {
            port,
            limit,
            secret: secret.map(str::to_owned),
        }
    }

    fn sections(door: &Door) -> Sections {
        let mut sections = Sections::default();
        sections.add_part("door", door).unwrap();
        sections
    }

    #[test]
    fn a_key_that_does_not_say_that_it_can_change_needs_a_restart() {
        let mut running = sections(&door(1, 2, None));
        let mut new = sections(&door(7, 8, Some("s")));
        let mut odd = Table::new();
        odd.insert("unheard_of".to_owned(), 1.into());
        new.add("door", odd, &[]);
        let changes = running.changes(&new);
        assert_eq!(changes.live, ["door.limit", "door.secret"]);
        assert_eq!(changes.restart, ["door.port", "door.unheard_of"]);
        running.take_live(&new);
        // A change that needs a restart is reported until there was one.
        let again = running.changes(&new);
        assert_eq!((again.live.len(), again.restart), (0, changes.restart));
        let back = running.changes(&sections(&door(1, 2, None)));
        assert_eq!(back.live, ["door.limit", "door.secret"]);
        assert_eq!(back.restart.len(), 0);
    }

    #[test]
    fn sections_that_come_or_go_have_changed() {
        let (none, some) = (Sections::default(), sections(&door(1, 2, Some("s"))));
        for changes in [none.changes(&some), some.changes(&none)] {
            assert_eq!(changes.live, ["door.limit", "door.secret"]);
            assert_eq!(changes.restart, ["door.port"]);
        }
        assert_eq!(some.changes(&some), Changes::default());
    }

    #[test]
    fn a_running_part_takes_what_can_change_and_nothing_else() {
        let merged = with_live(&door(1, 2, Some("s")), &door(7, 8, None)).unwrap();
        assert_eq!(merged, door(1, 8, None));
    }
}
