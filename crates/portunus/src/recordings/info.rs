//! `portunus recordings info`: the content of files.

use std::path::{Path, PathBuf};

use clap::Args;
use portunus_files::manifest::Manifest;
use portunus_files::summary::{Depth, Summary, TrackSummary};
use serde_json::{Value, json};

use super::failure::Failure;
use super::{files, list, text};

#[derive(Debug, Args)]
pub(crate) struct InfoOptions {
    /// Recordings or manifests
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// As JSON: a list with an object for each file
    #[arg(long)]
    json: bool,
}

pub(super) fn run(options: &InfoOptions) -> Result<(), Failure> {
    let mut all_told = true;
    let mut objects = Vec::new();
    for path in &options.files {
        let told = match files::extension(path) == "json" {
            true => files::manifest(path).map(|manifest| match options.json {
                true => objects.push(manifest_json(path, &manifest)),
                false => print_manifest(path, &manifest),
            }),
            false => Summary::of(path, Depth::All)
                .map_err(|error| files::failed(path, error))
                .map(|summary| match options.json {
                    true => objects.push(to_json(path, &summary)),
                    false => print(path, &summary),
                }),
        };
        if let Err(failure) = told {
            eprintln!("portunus: {failure}");
            all_told = false;
        }
    }
    if options.json {
        println!("{:#}", Value::from(objects));
    }
    if all_told { Ok(()) } else { Err(Failure::Told) }
}

fn print(path: &Path, summary: &Summary) {
    println!("{}", path.display());
    let duration = summary
        .duration
        .map_or("not known".to_owned(), text::duration);
    println!(
        "  {}, {}, duration {duration}",
        summary.format,
        text::bytes(summary.bytes)
    );
    if !summary.complete {
        let why = summary.problem.as_deref();
        println!(
            "  incomplete: {}",
            why.unwrap_or("its writer did not come to its end")
        );
    }
    if let Some(info) = &summary.info {
        println!("  header: {}", info.to_json());
        for (what, at) in [("made", info.created), ("first frame", info.first_frame)] {
            if let Some(at) = text::time(at) {
                println!("  {what}: {at}");
            }
        }
        if info.encrypted {
            println!("  encrypted end to end: only its receivers can play it");
        }
    }
    for (number, track) in summary.tracks.iter().enumerate() {
        println!("  track {}: {}", number + 1, line(track));
        for (from, to) in &track.gaps {
            println!(
                "    nothing from {} to {}",
                text::duration(*from),
                text::duration(*to)
            );
        }
    }
}

fn line(track: &TrackSummary) -> String {
    let mut line = format!("{} {}", track.kind, track.codec);
    if let Some(picture) = track.picture {
        line += &format!(" {}x{}", picture.width, picture.height);
    }
    if let Some(channels) = track.channels {
        line += &format!(
            ", {channels} channel{}",
            if channels == 1 { "" } else { "s" }
        );
    }
    if track.frames > 0 {
        let what = match track.kind {
            "data" => "messages",
            _ if track.lost.is_some() => "packets",
            _ => "frames",
        };
        line += &format!(", {} {what}", track.frames);
    }
    if let Some(keyframes) = track.keyframes {
        line += &format!(", {keyframes} of them keyframes");
    }
    if let Some(lost) = track.lost {
        line += &format!(", {lost} missing, {} out of order", track.reordered);
    }
    if track.streams > 1 {
        line += &format!(", {} streams", track.streams);
    }
    line
}

fn to_json(path: &Path, summary: &Summary) -> Value {
    let millis = |at: &std::time::Duration| at.as_secs_f64() * 1_000.0;
    let tracks = summary.tracks.iter().map(|track| {
        let gaps = track.gaps.iter();
        let gaps: Vec<_> = gaps
            .map(|(from, to)| json!([millis(from), millis(to)]))
            .collect();
        json!({
            "kind": track.kind,
            "codec": track.codec,
            "width": track.picture.map(|it| it.width),
            "height": track.picture.map(|it| it.height),
            "channels": track.channels,
            "frames": track.frames,
            "keyframes": track.keyframes,
            "lost": track.lost,
            "reordered": track.reordered,
            "streams": track.streams,
            "gaps_ms": gaps,
        })
    });
    let header = summary.info.as_ref();
    let header = header.and_then(|info| serde_json::from_str::<Value>(&info.to_json()).ok());
    json!({
        "file": path.to_string_lossy(),
        "format": summary.format,
        "bytes": summary.bytes,
        "duration_ms": summary.duration.as_ref().map(millis),
        "complete": summary.complete,
        "problem": summary.problem,
        "header": header,
        "tracks": tracks.collect::<Vec<_>>(),
    })
}

fn print_manifest(path: &Path, manifest: &Manifest) {
    println!("{}", path.display());
    println!("  {}, by {}", list::heading(manifest), manifest.server);
    for participant in &manifest.participants {
        println!(
            "  {}",
            list::who(&participant.id, participant.display.as_deref())
        );
        for file in &participant.files {
            let offset = file.offset_ms.map_or("nothing in it".to_owned(), |offset| {
                format!("from {:.3} s on", offset / 1_000.0)
            });
            let state = file.end.map_or("not ended", |end| end.name());
            println!(
                "    {}, {offset}, {:.3} s, {state}",
                file.file,
                file.duration_ms / 1_000.0
            );
            for track in &file.tracks {
                println!(
                    "      {} {}: {} packets, {} lost, {} gaps",
                    track.kind,
                    track.codec,
                    track.packets,
                    track.lost,
                    track.gaps.len()
                );
            }
        }
    }
}

fn manifest_json(path: &Path, manifest: &Manifest) -> Value {
    let manifest = serde_json::to_value(manifest).unwrap_or_default();
    json!({ "file": path.to_string_lossy(), "format": "manifest", "manifest": manifest })
}
