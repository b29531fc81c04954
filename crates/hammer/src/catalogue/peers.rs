//! The servers that figures are about: where they are, and how they are installed.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::ValueEnum;

/// A server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ValueEnum)]
pub enum Peer {
    /// Portunus
    Portunus,
    /// Janus, as Debian has it
    Janus,
    /// mediasoup, with a small program that speaks the Janus API for it
    Mediasoup,
    /// livekit-server
    #[value(name = "livekit")]
    LiveKit,
    /// Jitsi Videobridge
    Jvb,
}

/// The release that is installed by the Go proxy.
const LIVEKIT: &str = "github.com/livekit/livekit-server/cmd/server@v1.13.5";
/// The files of the program that speaks for mediasoup.
const MEDIASOUP: [(&str, &str); 4] = [
    (
        "package.json",
        include_str!("../../peers/mediasoup/package.json"),
    ),
    (
        "server.mjs",
        include_str!("../../peers/mediasoup/server.mjs"),
    ),
    ("room.mjs", include_str!("../../peers/mediasoup/room.mjs")),
    ("sdp.mjs", include_str!("../../peers/mediasoup/sdp.mjs")),
];

/// A server that can be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    /// The command of `hammer lab --server`.
    pub(super) command: String,
    /// Its version, as its program says.
    pub(super) version: String,
}

impl Peer {
    /// All, in the order of legends.
    pub(super) const ALL: [Self; 5] = [
        Self::Portunus,
        Self::Janus,
        Self::Mediasoup,
        Self::LiveKit,
        Self::Jvb,
    ];

    /// Returns its name on the command line and in files.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Portunus => "portunus",
            Self::Janus => "janus",
            Self::Mediasoup => "mediasoup",
            Self::LiveKit => "livekit",
            Self::Jvb => "jvb",
        }
    }

    /// Returns its name in texts.
    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::Portunus => "Portunus",
            Self::Janus => "Janus",
            Self::Mediasoup => "mediasoup",
            Self::LiveKit => "LiveKit",
            Self::Jvb => "Jitsi Videobridge",
        }
    }

    /// Returns its place among the colours of plots.
    pub(super) fn colour(self) -> usize {
        Self::ALL.iter().position(|peer| *peer == self).unwrap_or(0)
    }

    /// Returns by how much its ramps are smaller than those of Portunus, which would overload it with
    /// their first step.
    pub(super) const fn smaller_by(self) -> u32 {
        match self {
            Self::Portunus => 1,
            Self::Janus | Self::Mediasoup | Self::LiveKit | Self::Jvb => 8,
        }
    }

    /// Finds it, or installs it if that is allowed. The error says why it is not to be had.
    pub(super) fn find(self, install: bool) -> Result<Found, String> {
        match self {
            Self::Portunus => portunus(),
            Self::Janus => janus(install),
            Self::LiveKit => livekit(install),
            Self::Mediasoup => mediasoup(install),
            Self::Jvb => Err(
                "Jitsi Videobridge is in none of Debian, npm and Maven Central, and is driven by Colibri, which hammer does not speak: \
                 only its published figures are drawn"
                    .to_owned(),
            ),
        }
    }
}

/// Returns the folder of installed peers.
fn cache() -> Result<PathBuf, String> {
    let home = env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
    let cache = env::var_os("XDG_CACHE_HOME").map(PathBuf::from).or(home);
    let folder = cache
        .ok_or("neither XDG_CACHE_HOME nor HOME says where to install")?
        .join("portunus-hammer");
    let made = fs::create_dir_all(&folder);
    made.map_err(|error| format!("{}: {error}", folder.display()))?;
    Ok(folder)
}

fn in_path(name: &str) -> Option<PathBuf> {
    let paths = env::var_os("PATH")?;
    let mut candidates = env::split_paths(&paths).map(|folder| folder.join(name));
    candidates.find(|path| path.is_file())
}

/// Runs a command. Returns its output, or why it failed.
fn output(program: &Path, arguments: &[&str]) -> Result<String, String> {
    let mut command = Command::new(program);
    run(command.args(arguments))
}

fn run(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let ran = command.stdin(Stdio::null()).output();
    let ran = ran.map_err(|error: io::Error| format!("{name}: {error}"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    match ran.status.success() {
        true => Ok(text(&ran.stdout)),
        false => {
            let errors = text(&ran.stderr);
            // Node ends with its version; the error stands above.
            let error = errors.lines().find(|line| line.contains("Error"));
            let said = error.or(errors.lines().next_back()).unwrap_or_default();
            Err(format!("{name} ended with {}: {}", ran.status, said.trim()))
        }
    }
}

/// Quotes a path for `--server`.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    shlex::try_quote(&text).map_or_else(|_| text.clone(), |quoted| quoted.into_owned())
}

/// The program beside this one goes before those in `PATH`.
fn portunus() -> Result<Found, String> {
    let beside = env::current_exe().ok();
    let beside = beside.map(|path| path.with_file_name("portunus"));
    let path = beside
        .filter(|path| path.is_file())
        .or_else(|| in_path("portunus"));
    let path = path.ok_or("there is no program portunus beside portunus-hammer or in PATH")?;
    Ok(Found {
        version: output(&path, &["--version"])?,
        command: quoted(&path),
    })
}

fn janus(install: bool) -> Result<Found, String> {
    if in_path("janus").is_none() && install {
        eprintln!("janus: apt-get install janus");
        let mut command = Command::new("apt-get");
        command.args(["install", "-y", "--no-install-recommends", "janus"]);
        run(command.env("DEBIAN_FRONTEND", "noninteractive"))?;
        // Debian starts it, and it would take time from the measurements.
        let _ = run(Command::new("systemctl").args(["stop", "janus"]));
    }
    let path =
        in_path("janus").ok_or("there is no program janus in PATH: apt-get install janus")?;
    // It ends with status 1 after it has said its version.
    let said = Command::new(&path).arg("--version").output();
    let said = said.map_err(|error| format!("{}: {error}", path.display()))?;
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    Ok(Found {
        command: format!("{} --configs-folder {{dir}}/janus", quoted(&path)),
        version: said.lines().next().unwrap_or_default().to_owned(),
    })
}

fn livekit(install: bool) -> Result<Found, String> {
    let installed = cache()?.join("livekit-server");
    let found =
        || in_path("livekit-server").or_else(|| installed.is_file().then(|| installed.clone()));
    if found().is_none() && install {
        eprintln!("livekit: go install {LIVEKIT}");
        let folder = cache()?;
        run(Command::new("go")
            .args(["install", LIVEKIT])
            .env("GOBIN", &folder))?;
        fs::rename(folder.join("server"), &installed).map_err(|error| error.to_string())?;
    }
    let path = found().ok_or_else(|| {
        format!("there is no program livekit-server in PATH: go install {LIVEKIT}")
    })?;
    Ok(Found {
        version: output(&path, &["--version"])?,
        command: format!("{} --config {{dir}}/livekit.yaml", quoted(&path)),
    })
}

fn mediasoup(install: bool) -> Result<Found, String> {
    let node = in_path("node").ok_or("there is no program node in PATH, which mediasoup needs")?;
    let folder = cache()?.join("mediasoup");
    fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    for (name, text) in MEDIASOUP {
        fs::write(folder.join(name), text).map_err(|error| error.to_string())?;
    }
    if !folder.join("node_modules/mediasoup").is_dir() && install {
        eprintln!("mediasoup: npm install");
        let mut command = Command::new("npm");
        command.args(["install", "--no-audit", "--no-fund"]);
        run(command.current_dir(&folder))
            .map_err(|error| format!("{error}; npm downloads its worker, or builds it"))?;
    }
    let server = folder.join("server.mjs");
    let mut command = Command::new(&node);
    let version = run(command.arg(&server).arg("--version"))?;
    Ok(Found {
        command: format!("{} {} --ip {{ip}}", quoted(&node), quoted(&server)),
        version,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_with_spaces_are_one_word() {
        let words = shlex::split(&quoted(Path::new("/a b/portunus")));
        assert_eq!(words, Some(vec!["/a b/portunus".to_owned()]));
    }
}
