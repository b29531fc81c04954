//! Applies rules to files, and collects the results.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use toml::Value as Toml;

use super::convert::{convert, split};
use super::draft::{Draft, Key, Section};
use super::folder::{ConfigFile, Folder};
use super::remark::{Remark, Weight};
use super::rules::{Fate, Rule, UNKNOWN};
use crate::{Location, Setting};

/// A translation in progress.
#[derive(Debug)]
pub(super) struct Translator<'f> {
    folder: &'f Folder,
    draft: Draft,
    /// The files that were read.
    seen: BTreeSet<&'static str>,
}

impl<'f> Translator<'f> {
    pub(super) fn new(folder: &'f Folder) -> Self {
        Translator {
            folder,
            draft: Draft::new(folder.path().display().to_string()),
            seen: BTreeSet::new(),
        }
    }

    /// Returns the file for a subject, such as `janus.plugin.sip`.
    pub(super) fn file(&mut self, subject: &'static str) -> Option<&'f ConfigFile> {
        self.seen.insert(subject);
        self.folder.file(subject)
    }

    /// Returns whether the list `disable` in `group` of `janus.jcfg` contains a module.
    pub(super) fn is_disabled(&self, group: &str, module: &str) -> bool {
        let list = self.folder.file("janus").map(|file| file.group(group));
        let list = list.and_then(|group| group.text("disable"));
        let is_it = |name: &str| name == module || name == format!("libjanus_{module}.so");
        list.is_some_and(|list| split(&list).any(is_it))
    }

    /// Translates all settings of a file by rules.
    pub(super) fn apply(&mut self, file: &ConfigFile, rules: &[Rule]) {
        for group in file.root.settings() {
            let is_known = rules.iter().any(|rule| rule.group() == group.name);
            match group.group().filter(|_| is_known) {
                Some(settings) => {
                    for setting in settings.settings() {
                        self.setting(&group.name, setting, rules);
                    }
                }
                None => self.missing(group, "", UNKNOWN),
            }
        }
    }

    /// Translates one setting by rules.
    pub(super) fn setting(&mut self, group: &str, setting: &Setting, rules: &[Rule]) {
        let name = full_name(group, &setting.name);
        let rule = rules.iter().find(|rule| rule.from == name);
        match rule.map(|rule| rule.fate) {
            None => self.missing(setting, group, UNKNOWN),
            Some(Fate::Elsewhere) => {}
            Some(Fate::Left(weight, harmless, reason)) => {
                let text = setting.value.text().unwrap_or_default();
                let is_it = |value: &&str| value.eq_ignore_ascii_case(&text);
                let flag = setting.value.flag().map(|flag| flag.to_string());
                let is_flag = |value: &&str| flag.as_deref() == Some(*value);
                let mut harmless = harmless.iter();
                if !harmless.any(|value| is_it(value) || is_flag(value)) {
                    self.remark(&setting.at, name, weight, reason);
                }
            }
            Some(Fate::Key(to, kind)) => match convert(kind, &setting.value) {
                Ok(value) => self.put(group, setting, to, value),
                Err(reason) => self.missing(setting, group, &reason),
            },
        }
    }

    /// Makes a key, named with its section, from a setting. A key that has another value already
    /// keeps that.
    pub(super) fn put(&mut self, group: &str, setting: &Setting, to: &str, value: Toml) {
        let (section, name) = to.rsplit_once('.').unwrap_or_default();
        if let Some(earlier) = self.draft.key(section, name) {
            if earlier.value != value {
                let Location { file, line, .. } = &earlier.at;
                let reason = format!(
                    "{to} has another value from {}:{line} already, and there is one for both",
                    file.display()
                );
                self.missing(setting, group, &reason);
            }
            return;
        }
        let key = Key {
            name: name.to_owned(),
            value,
            comments: setting.comments.clone(),
            at: setting.at.clone(),
            from: full_name(group, &setting.name),
        };
        self.draft.put(section, key);
    }

    /// Sets a key that no single setting corresponds to. The comment gives the reason.
    pub(super) fn set(&mut self, at: &Location, to: &str, value: impl Into<Toml>, comment: &str) {
        let (section, name) = to.rsplit_once('.').unwrap_or_default();
        if self.draft.key(section, name).is_none() {
            let key = Key {
                name: name.to_owned(),
                value: value.into(),
                comments: vec![comment.to_owned()],
                at: at.clone(),
                from: String::new(),
            };
            self.draft.put(section, key);
        }
    }

    /// Adds a section of a list.
    pub(super) fn push(&mut self, section: Section) {
        self.draft.sections.push(section);
    }

    /// Permits rooms to record to the same folders as with Janus, which does not restrict the
    /// folders of recordings.
    pub(super) fn allow_recordings(&mut self) {
        let keys = self.draft.sections.iter().filter(|it| it.is_listed);
        let keys = keys.flat_map(|section| &section.keys);
        let folders = keys.filter_map(|key| Some((recording_folder(key)?, key.at.clone())));
        let folders: BTreeMap<String, Location> = folders.collect();
        if let Some(at) = folders.values().next().cloned() {
            let folders: Vec<String> = folders.into_keys().collect();
            let comment = "Rooms record there.";
            self.set(&at, "recording.folders", folders, comment);
        }
    }

    /// Adds a remark that a setting was not taken.
    pub(super) fn left(&mut self, setting: &Setting, group: &str, weight: Weight, reason: &str) {
        let key = full_name(group, &setting.name);
        self.remark(&setting.at, key, weight, reason);
    }

    /// Adds a remark on a setting that was not taken and needs attention.
    pub(super) fn missing(&mut self, setting: &Setting, group: &str, reason: &str) {
        self.left(setting, group, Weight::Attention, reason);
    }

    /// Adds a remark that a setting has no meaning here.
    pub(super) fn not_needed(&mut self, setting: &Setting, group: &str, reason: &str) {
        self.left(setting, group, Weight::NotNeeded, reason);
    }

    /// Adds a remark that the file of a transport is skipped, since `janus.jcfg` disables the
    /// transport.
    pub(super) fn disabled(&mut self, file: &ConfigFile) {
        let reason = "transports.disable of janus.jcfg has this off";
        self.about(&file.start(), Weight::NotNeeded, reason);
    }

    /// Adds a remark on a whole file.
    pub(super) fn about(&mut self, at: &Location, weight: Weight, reason: &str) {
        self.remark(at, String::new(), weight, reason);
    }

    fn remark(&mut self, at: &Location, key: String, weight: Weight, reason: &str) {
        self.draft.remarks.push(Remark {
            at: at.clone(),
            key,
            weight,
            reason: reason.to_owned(),
        });
    }

    /// Returns the draft. Files that were not read get a remark.
    pub(super) fn finish(mut self) -> Draft {
        let folder = self.folder;
        for (subject, file) in folder.files() {
            if !self.seen.contains(subject) {
                let reason = "this is no file of Janus 1.4: nothing in it was taken";
                self.about(&file.start(), Weight::Attention, reason);
            }
        }
        for error in folder.broken() {
            let reason = format!(
                "broken at column {}: {}. Nothing of the file was taken, as Janus takes nothing of it",
                error.at.column, error.problem
            );
            self.about(&error.at, Weight::Attention, &reason);
        }
        self.draft.broken = folder.broken().len();
        for path in folder.shadowed() {
            let reason = "the .jcfg of the same name takes its place, as with Janus";
            self.about(&Location::start(path), Weight::NotNeeded, reason);
        }
        self.draft.sort();
        self.draft
    }
}

/// Returns the absolute folder in a room's key for recordings.
fn recording_folder(key: &Key) -> Option<String> {
    let path = Path::new(key.value.as_str()?);
    let folder = match key.name.as_str() {
        "rec_dir" | "record_dir" | "mjrs_dir" => path,
        "record_file" => path.parent()?,
        _ => return None,
    };
    let folder = Some(folder).filter(|it| it.is_absolute())?;
    folder.to_str().map(str::to_owned)
}

/// Returns the name of a setting with its group.
fn full_name(group: &str, name: &str) -> String {
    match group.is_empty() {
        true => name.to_owned(),
        false => format!("{group}.{name}"),
    }
}
