//! The options of `portunus recordings compose`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

#[derive(Debug, Args)]
#[command(after_help = COMPOSE_HELP)]
pub(crate) struct ComposeOptions {
    /// Manifests of a room or call; the last name is that of the new file. Its ending says what it
    /// is: mp4, webm, mkv; opus or wav for sound alone
    #[arg(required = true, num_args = 2.., value_names = ["MANIFEST", "OUT"])]
    pub(super) files: Vec<PathBuf>,
    /// How people are shown
    #[arg(long, value_enum, default_value_t = Layout::Grid)]
    pub(super) layout: Layout,
    /// Pixels of the film
    #[arg(long, value_name = "WIDTHxHEIGHT", default_value = "1280x720", value_parser = size)]
    pub(super) size: (u32, u32),
    /// Pictures a second
    #[arg(long, default_value_t = 25, value_parser = clap::value_parser!(u32).range(1..=120))]
    pub(super) fps: u32,
    /// Write over a file that is there
    #[arg(long)]
    pub(super) force: bool,
}

const COMPOSE_HELP: &str = "\
Several manifests are shown one after the other, without the time between them.
ffmpeg decodes and encodes; it has to be installed (apt install ffmpeg). Without it the exit status is 3.";

/// How people are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Layout {
    /// All beside each other
    Grid,
    /// Whoever talks, alone
    Speaker,
}

/// Parses a size in pixels, such as `1280x720`. Both numbers are even, as most encoders require.
fn size(text: &str) -> Result<(u32, u32), String> {
    let parse = |text: &str| {
        text.parse()
            .ok()
            .filter(|it| (16..=7_680).contains(it) && it % 2 == 0)
    };
    let (width, height) = text
        .split_once('x')
        .ok_or("WIDTHxHEIGHT, such as 1280x720")?;
    match (parse(width), parse(height)) {
        (Some(width), Some(height)) => Ok((width, height)),
        _ => Err("both have to be even, from 16 to 7680".to_owned()),
    }
}
