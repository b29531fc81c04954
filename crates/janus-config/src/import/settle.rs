//! Removes mistakes and defaults from a draft.

use std::collections::BTreeSet;

use toml::{Table, Value};

use super::draft::{Draft, Key, Place, Section};
use super::remark::{Remark, Weight};

/// A mistake in a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// The line, counted from 1.
    pub line: usize,
    /// The description.
    pub text: String,
}

/// Mistakes that do not belong to a key of the draft.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.iter().map(|it| it.text.as_str()).collect::<Vec<_>>().join("; "))]
pub struct Unsettled(pub Vec<Mistake>);

impl Draft {
    /// Removes the keys in which `check` finds mistakes, which become remarks, and then those that
    /// change nothing.
    ///
    /// `check` reads a configuration. It returns the complete one with every key, or its mistakes.
    pub fn settle(
        &mut self,
        check: impl Fn(&str) -> Result<Table, Vec<Mistake>>,
    ) -> Result<(), Unsettled> {
        let keys = |draft: &Self| {
            let keys = draft.sections.iter().flat_map(|section| &section.keys);
            keys.filter(|key| !key.from.is_empty()).count()
        };
        let whole = loop {
            let lines = self.lines();
            let mistakes = match check(&lines.text) {
                Ok(whole) => break whole,
                Err(mistakes) => mistakes,
            };
            let mut wrong: Vec<(Place, &Mistake)> = Vec::new();
            for mistake in &mistakes {
                if let Some(place) = lines.place(mistake.line) {
                    let places = self.places(place, &mistake.text).into_iter();
                    wrong.extend(places.map(|place| (place, mistake)));
                }
            }
            if wrong.is_empty() {
                return Err(Unsettled(mistakes));
            }
            // From last to first, so that indices stay valid.
            wrong.sort_by_key(|(place, _)| std::cmp::Reverse(*place));
            wrong.dedup_by_key(|(place, _)| *place);
            for (place, mistake) in wrong {
                self.reject(place, &mistake.text);
            }
        };
        self.taken = keys(self);
        let defaults = check("").map_err(Unsettled)?;
        self.unless_it_changes(&whole, &check, |draft| {
            draft.drop_defaults(&whole, &defaults);
        });
        self.unless_it_changes(&whole, &check, |draft| {
            draft.drop_defaults_of_lists(&whole, &check);
        });
        self.sort();
        Ok(())
    }

    /// Undoes a change of the sections if it changes the configuration.
    fn unless_it_changes(
        &mut self,
        whole: &Table,
        check: &impl Fn(&str) -> Result<Table, Vec<Mistake>>,
        change: impl FnOnce(&mut Self),
    ) {
        let before = self.sections.clone();
        change(self);
        if check(&self.text()).as_ref() != Ok(whole) {
            self.sections = before;
        }
    }

    /// Returns the places of a mistake. One of a whole section belongs to the keys in its text.
    fn places(&self, place: Place, text: &str) -> Vec<Place> {
        let (index, None) = place else {
            return vec![place];
        };
        let section = self.sections.get(index).filter(|it| !it.is_listed);
        let keys = section.map_or(&[][..], |section| &section.keys);
        let is_of_name = |c: char| c.is_alphanumeric() || c == '_';
        let is_named = |key: &Key| text.split(|c| !is_of_name(c)).any(|word| word == key.name);
        let named = keys.iter().enumerate().filter(|(_, key)| is_named(key));
        let named: Vec<Place> = named.map(|(key, _)| (index, Some(key))).collect();
        match named.is_empty() {
            true => vec![place],
            false => named,
        }
    }

    /// Removes a key, or a section with a mistake that belongs to none of its keys.
    fn reject(&mut self, (index, key): Place, reason: &str) {
        let Some(section) = self.sections.get_mut(index) else {
            return;
        };
        let (at, from) = match key.filter(|key| *key < section.keys.len()) {
            Some(key) => {
                let key = section.keys.remove(key);
                (key.at, key.from)
            }
            None => {
                let section = self.sections.remove(index);
                (section.at, section.from)
            }
        };
        self.remarks.push(Remark {
            at,
            key: from,
            weight: Weight::Attention,
            reason: reason.to_owned(),
        });
    }

    fn drop_defaults(&mut self, whole: &Table, defaults: &Table) {
        for section in self.sections.iter_mut().filter(|it| !it.is_listed) {
            let (now, default) = (find(whole, &section.name), find(defaults, &section.name));
            let of = |table: Option<&Table>, name: &str| table.and_then(|it| it.get(name).cloned());
            section.keys.retain(|key| {
                let value = of(now, &key.name);
                value.is_none() || value != of(default, &key.name)
            });
        }
    }

    /// Drops keys of rooms and mountpoints that change nothing. Each name is tried in all sections
    /// of a list at once.
    fn drop_defaults_of_lists(
        &mut self,
        whole: &Table,
        check: &impl Fn(&str) -> Result<Table, Vec<Mistake>>,
    ) {
        let lists: BTreeSet<String> = self.listed().map(|it| it.name.clone()).collect();
        for list in &lists {
            let keys = self.listed().filter(|it| it.name == *list);
            let names: BTreeSet<String> = keys
                .flat_map(|it| it.keys.iter().map(|key| key.name.clone()))
                .collect();
            for name in names {
                let with = std::mem::take(&mut self.sections);
                self.sections = without(&with, list, &name, |_| true);
                let same = check(&self.text()).map(|now| same_entries(whole, &now, list));
                let same = same.unwrap_or_default();
                self.sections = without(&with, list, &name, |n| {
                    same.get(n).copied().unwrap_or(false)
                });
            }
        }
    }

    fn listed(&self) -> impl Iterator<Item = &Section> {
        self.sections.iter().filter(|section| section.is_listed)
    }
}

/// Returns the sections without a key in those of a list for which `is_dropped` is true.
fn without(
    sections: &[Section],
    list: &str,
    name: &str,
    is_dropped: impl Fn(usize) -> bool,
) -> Vec<Section> {
    let mut sections = sections.to_vec();
    let of_list = |section: &&mut Section| section.is_listed && section.name == list;
    for (number, section) in sections.iter_mut().filter(of_list).enumerate() {
        if is_dropped(number) {
            section.keys.retain(|key| key.name != name);
        }
    }
    sections
}

/// Returns which entries of a list are equal in both tables.
fn same_entries(one: &Table, other: &Table, list: &str) -> Vec<bool> {
    let entries = |table| list_of(table, list).cloned().unwrap_or_default();
    let (one, other) = (entries(one), entries(other));
    one.iter().zip(&other).map(|(a, b)| a == b).collect()
}

fn list_of<'t>(table: &'t Table, list: &str) -> Option<&'t Vec<Value>> {
    let (section, name) = list.rsplit_once('.')?;
    find(table, section)?.get(name)?.as_array()
}

/// Returns the section with this name. Dots separate nested sections.
fn find<'t>(table: &'t Table, name: &str) -> Option<&'t Table> {
    name.split('.')
        .try_fold(table, |table, name| table.get(name)?.as_table())
}
