//! A video room whose publishers are all recorded, while others watch them.

mod files;

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use clap::Args;
use serde_json::{Map, Value, json};
use tempfile::TempDir;
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use super::ScenarioError;
use super::crowd::{Act, Audience, Feed, Form};
use super::load::{self, given};
use super::run::{self, Acts};
use super::stage::Stage;
use crate::machine::wall_clock;
use crate::progress::Progress;
use crate::record::{Recorded, RunRecord};
use crate::traffic::Topology;
use files::Found;

/// The time between two stalls of the disk.
const BETWEEN: Duration = Duration::from_secs(4);
/// The longest time until the server has completed its files, after all have left.
const END: Duration = Duration::from_secs(30);
/// The time without changes in the folder after which the files are complete.
const QUIET: Duration = Duration::from_secs(2);

/// Some participants publish in a room and are recorded. Each other one watches one of them.
#[derive(Debug, Clone, Args)]
#[group(id = "record")]
pub struct Options {
    /// What all scenarios ask; participants watch
    #[command(flatten)]
    pub load: load::Options,
    /// What is sent
    #[command(flatten)]
    pub media: load::Media,
    /// How many publish and are recorded
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub publishers: u32,
    /// A folder that the server can write to, and hammer can read: each run has one of its own in
    /// it, which is removed at the end
    #[arg(long, value_name = "FOLDER", required_unless_present = "not_recorded")]
    pub folder: Option<PathBuf>,
    /// What files are like, for servers whose rooms have such an option (record_format) [default:
    /// the server's]
    #[arg(long, value_name = "FORMAT")]
    pub record_format: Option<String>,
    /// The same without recording, to compare with
    #[arg(long)]
    pub not_recorded: bool,
    /// The file system of --folder stands still for so many seconds again and again (fsfreeze): it
    /// has to be one of its own
    #[arg(long, value_name = "SECONDS", value_parser = load::seconds, requires = "folder", conflicts_with = "not_recorded")]
    pub stall: Option<f64>,
    /// The video room plugin's admin key
    #[arg(long, value_name = "KEY")]
    pub admin_key: Option<String>,
}

pub(super) async fn measure(
    options: &Options,
    progress: &Progress,
) -> Result<RunRecord, ScenarioError> {
    let Options { load, media, .. } = options;
    let folder = options.make_folder()?;
    media.traffic.check()?;
    let stage = Stage::new(load).await?;
    let (since, crowd) = (wall_clock(), stage.crowd(false, None)?);
    let members = options.members(folder.as_ref().map(TempDir::path));
    let (member, feeds) = crowd
        .convene(options.publishers, &media.source(), &members)
        .await?;
    let act = |feed: &Feed| {
        Act::Subscribe(Arc::new(Audience {
            room: member.room_id(),
            feeds: vec![feed.clone()],
            form: Form::PerFeed,
        }))
    };
    let acts = Acts::Each(feeds.iter().map(act).collect());
    let stalls = Stalls::default();
    let flow = media.flow("record");
    let running = run::run(stage, crowd.clone(), &flow, acts, progress);
    let record = match (options.stall, &folder) {
        (Some(length), Some(folder)) => tokio::select! {
            record = running => record,
            error = stalls.go_on(folder.path(), Duration::from_secs_f64(length)) => Err(error),
        },
        _ => running.await,
    };
    crowd.end(vec![member]).await;
    let mut record = record?;
    record.scenario.options.extend(options.by_name());
    if let Some(folder) = folder {
        progress.note("what was recorded is read");
        let found = read(folder.path(), since).await?;
        for reason in &found.unreadable {
            progress.keep(reason);
        }
        let recorded = Recorded {
            files: found.files,
            bytes: found.bytes,
            sent_packets: feeds.iter().map(Feed::packets).sum(),
            found_packets: found.packets,
            unreadable_files: found.unreadable.len() as u32,
            stalls: stalls.0.load(Ordering::Relaxed),
        };
        record.summary.warnings.extend(recorded.doubts());
        progress.keep(&recorded.to_text());
        record.summary.recorded = Some(recorded);
    }
    Ok(record)
}

impl Options {
    /// Returns who receives what.
    pub(crate) fn topology(&self) -> Topology {
        Topology::Streaming {
            sources: self.publishers,
        }
    }

    /// Creates a folder that any user can write to.
    fn make_folder(&self) -> Result<Option<TempDir>, ScenarioError> {
        let Some(folder) = self.folder.as_ref().filter(|_| !self.not_recorded) else {
            return Ok(None);
        };
        let made = tempfile::Builder::new()
            .prefix("hammer-")
            .permissions(Permissions::from_mode(0o777))
            .tempdir_in(folder);
        made.map(Some).map_err(|source| ScenarioError::Recordings {
            folder: folder.display().to_string(),
            source,
        })
    }

    /// Returns further members of the request that creates the room.
    fn members(&self, folder: Option<&Path>) -> Map<String, Value> {
        let mut members = Map::new();
        let mut add = |name: &str, value: Value| members.insert(name.to_owned(), value);
        if let Some(key) = &self.admin_key {
            add("admin_key", key.as_str().into());
        }
        if let Some(folder) = folder {
            add("record", true.into());
            add("rec_dir", folder.display().to_string().into());
            if let Some(format) = &self.record_format {
                add("record_format", format.as_str().into());
            }
        }
        members
    }

    fn by_name(&self) -> BTreeMap<String, Value> {
        let format = self.record_format.as_ref().filter(|_| !self.not_recorded);
        given([
            ("publishers", json!(self.publishers)),
            ("not-recorded", json!(self.not_recorded)),
            ("record-format", json!(format)),
            ("stall", json!(self.stall)),
        ])
    }
}

/// Counts the stalls of the disk.
#[derive(Debug, Default)]
struct Stalls(AtomicU32);

impl Stalls {
    /// Stalls the disk repeatedly. Returns only if that fails.
    async fn go_on(&self, folder: &Path, length: Duration) -> ScenarioError {
        loop {
            sleep(BETWEEN).await;
            let folder = folder.to_owned();
            let shown = folder.display().to_string();
            let stalled = spawn_blocking(move || stall(&folder, length)).await;
            let reason = match stalled {
                Ok(Ok(())) => {
                    self.0.fetch_add(1, Ordering::Relaxed);
                    continue;
                }
                Ok(Err(reason)) => reason,
                Err(error) => error.to_string(),
            };
            return ScenarioError::Stall {
                folder: shown,
                reason,
            };
        }
    }
}

/// Stalls the file system that contains `folder` for `length`. A separate process does it, which
/// ends the stall even if hammer is killed meanwhile.
fn stall(folder: &Path, length: Duration) -> Result<(), String> {
    const SCRIPT: &str = "fsfreeze -f \"$1\" && { sleep \"$2\"; fsfreeze -u \"$1\"; }";
    let device = |path: &Path| Ok(fs::metadata(path)?.dev());
    let failed = |error: io::Error| error.to_string();
    let own = device(folder).map_err(failed)?;
    // fsfreeze requires the mount point.
    let same = |path: &&Path| device(path).is_ok_and(|it: u64| it == own);
    let mount = folder.ancestors().take_while(same).last();
    let mount = mount.filter(|mount| mount.parent().is_some());
    let mount = mount.ok_or("it is on the root file system")?;
    let mut command = Command::new("sh");
    command.args(["-c", SCRIPT, "sh"]).arg(mount);
    command.arg(length.as_secs_f64().to_string());
    let output = command.stdin(Stdio::null()).output().map_err(failed)?;
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
    }
}

/// Waits until the server has completed its files, and reads them.
async fn read(folder: &Path, since: Duration) -> Result<Found, ScenarioError> {
    let failed = |source| ScenarioError::Recordings {
        folder: folder.display().to_string(),
        source,
    };
    let (mut last, mut quiet, mut waited) = (0, Duration::ZERO, Duration::ZERO);
    /// The interval of looking whether they grow.
    const TRY: Duration = Duration::from_millis(250);
    while quiet < QUIET && waited < END {
        sleep(TRY).await;
        waited += TRY;
        let bytes = files::bytes(folder).map_err(failed)?;
        quiet = match bytes == last {
            true => quiet + TRY,
            false => Duration::ZERO,
        };
        last = bytes;
    }
    files::look(folder, since).map_err(failed)
}
