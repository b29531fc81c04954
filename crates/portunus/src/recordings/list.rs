//! `portunus recordings list`: the content of a folder.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use portunus_files::manifest::{File, Manifest};
use portunus_files::summary::{Depth, Summary};
use serde_json::{Value, json};

use super::failure::Failure;
use super::{files, text};

#[derive(Debug, Args)]
pub(crate) struct ListOptions {
    /// The folder
    #[arg(default_value = ".")]
    dir: PathBuf,
    /// As JSON
    #[arg(long)]
    json: bool,
}

/// A file as a line, and as JSON.
struct Listed {
    name: String,
    format: String,
    duration: Option<Duration>,
    bytes: Option<u64>,
    codecs: Vec<String>,
    state: String,
}

pub(super) fn run(options: &ListOptions) -> Result<(), Failure> {
    let names = names(&options.dir)?;
    let manifests: Vec<_> = names
        .iter()
        .filter(|path| files::extension(path) == "json")
        .filter_map(|path| Some((path, files::manifest(path).ok()?)))
        .collect();
    let mut known = HashSet::new();
    for file in manifests
        .iter()
        .flat_map(|(_, manifest)| all_files(manifest))
    {
        known.insert(options.dir.join(&file.file));
    }
    let others = names.iter().filter(|path| {
        let complete = files::complete_name(path);
        files::ENDINGS.contains(&files::extension(&complete).as_str()) && !known.contains(&complete)
    });
    let others: Vec<_> = others.map(|path| of_file(path)).collect();
    if options.json {
        let manifests: Vec<_> = manifests
            .iter()
            .map(|it| to_json(&options.dir, it))
            .collect();
        let others: Vec<_> = others.iter().map(Listed::to_json).collect();
        println!("{:#}", json!({ "manifests": manifests, "files": others }));
        return Ok(());
    }
    if manifests.is_empty() && others.is_empty() {
        println!("no recordings in {}", options.dir.display());
    }
    for (path, manifest) in &manifests {
        println!("{}  {}", name_of(path), heading(manifest));
        for participant in &manifest.participants {
            println!("  {}", who(&participant.id, participant.display.as_deref()));
            for file in &participant.files {
                println!("    {}", of_manifest(&options.dir, file).line());
            }
        }
    }
    for file in &others {
        println!("{}", file.line());
    }
    Ok(())
}

/// Returns the regular files of a folder by their names.
fn names(dir: &Path) -> Result<Vec<PathBuf>, Failure> {
    let entries = std::fs::read_dir(dir).map_err(|error| files::failed(dir, error))?;
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|error| files::failed(dir, error))?;
        if entry.file_type().is_ok_and(|kind| kind.is_file()) {
            names.push(dir.join(entry.file_name()));
        }
    }
    names.sort();
    Ok(names)
}

fn all_files(manifest: &Manifest) -> impl Iterator<Item = &File> {
    manifest.participants.iter().flat_map(|it| &it.files)
}

pub(super) fn heading(manifest: &Manifest) -> String {
    let mut line = manifest
        .plugin
        .trim_start_matches("janus.plugin.")
        .to_owned();
    if let Some(room) = &manifest.room {
        line += &format!(" {room}");
    }
    if let Some(description) = &manifest.description {
        line += &format!(" ({description})");
    }
    line += &format!(", from {}", manifest.started);
    match &manifest.ended {
        Some(ended) => line + &format!(" to {ended}"),
        None => line + ", not ended",
    }
}

pub(super) fn who(id: &str, display: Option<&str>) -> String {
    match display {
        Some(display) => format!("{display} ({id})"),
        None => id.to_owned(),
    }
}

fn name_of(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

/// Describes a file by its manifest.
fn of_manifest(dir: &Path, file: &File) -> Listed {
    let state = match (&file.error, file.end) {
        _ if !files::found(&dir.join(&file.file)).exists() => "missing".to_owned(),
        (Some(error), _) => format!("failed: {error}"),
        (None, Some(end)) => end.name().to_owned(),
        (None, None) => "being written, or its server was killed".to_owned(),
    };
    Listed {
        name: file.file.clone(),
        format: file.format.clone(),
        duration: Some(Duration::from_secs_f64(
            (file.duration_ms / 1_000.0).clamp(0.0, 1e9),
        )),
        bytes: Some(file.bytes),
        codecs: file
            .tracks
            .iter()
            .map(|track| track.codec.clone())
            .collect(),
        state,
    }
}

/// Describes any other file by its start and end.
fn of_file(path: &Path) -> Listed {
    match Summary::of(path, Depth::Ends) {
        Ok(summary) => Listed {
            name: name_of(path),
            format: summary.format.to_owned(),
            duration: summary.duration,
            bytes: Some(summary.bytes),
            codecs: summary
                .tracks
                .into_iter()
                .map(|track| track.codec)
                .collect(),
            state: match summary.complete {
                true => "complete".to_owned(),
                false => "being written, or its server was killed".to_owned(),
            },
        },
        Err(error) => Listed {
            name: name_of(path),
            format: files::extension(path),
            duration: None,
            bytes: path.metadata().ok().map(|it| it.len()),
            codecs: Vec::new(),
            state: format!("unreadable: {error}"),
        },
    }
}

impl Listed {
    fn line(&self) -> String {
        let duration = self.duration.map_or("-".to_owned(), text::duration);
        let bytes = self.bytes.map_or("-".to_owned(), text::bytes);
        let codecs = match self.codecs.is_empty() {
            true => "-".to_owned(),
            false => self.codecs.join("+"),
        };
        let name = &self.name;
        format!("{name}  {duration}  {bytes}  {codecs}  {}", self.state)
    }

    fn to_json(&self) -> Value {
        json!({
            "file": self.name,
            "format": self.format,
            "duration_ms": self.duration.map(|it| it.as_secs_f64() * 1_000.0),
            "bytes": self.bytes,
            "codecs": self.codecs,
            "state": self.state,
        })
    }
}

fn to_json(dir: &Path, (path, manifest): &(&PathBuf, Manifest)) -> Value {
    let participants = manifest.participants.iter().map(|participant| {
        let files = participant.files.iter();
        let files: Vec<_> = files.map(|file| of_manifest(dir, file).to_json()).collect();
        json!({ "id": participant.id, "display": participant.display, "files": files })
    });
    json!({
        "manifest": name_of(path),
        "plugin": manifest.plugin,
        "room": manifest.room,
        "description": manifest.description,
        "started": manifest.started,
        "ended": manifest.ended,
        "participants": participants.collect::<Vec<_>>(),
    })
}
