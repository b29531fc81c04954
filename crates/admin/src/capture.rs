//! Captures of a PeerConnection's packets, inside the configured folder.

use std::path::{Component, Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use portunus_media::{CaptureError, CaptureFormat, CaptureOptions};

use portunus_core::{ApiError, Fields, Gateway, Handle, Object};
use tokio::task::spawn_blocking;

/// The longest file name that file systems allow.
const MAX_NAME: usize = 255;

pub(super) async fn start(
    gateway: &Gateway,
    handle: &Handle,
    allowed: Option<PathBuf>,
    format: CaptureFormat,
    fields: Fields<'_>,
) -> Result<Object, ApiError> {
    let folder = fields.text("folder")?.map(PathBuf::from);
    let name = fields.text("filename")?;
    let truncate = fields.positive("truncate")?.unwrap_or(0);
    let what = word(format);
    let failed = |why: String| ApiError::Unknown(format!("Error starting {what} dump: {why}"));
    let peer = handle
        .peer()
        .ok_or_else(|| failed("there is no PeerConnection".to_owned()))?;
    let allowed = allowed.ok_or_else(|| {
        failed("admin.capture_folder of the configuration names no folder".to_owned())
    })?;
    let name = match name {
        Some(name) => name.to_owned(),
        None => default_name(handle, format),
    };
    let placed = spawn_blocking(move || place(&allowed, folder.as_deref(), &name)).await;
    let path = placed.map_err(|error| failed(error.to_string()))?;
    let path = path.map_err(failed)?;
    let options = CaptureOptions {
        truncate: usize::try_from(truncate).ok().filter(|bytes| *bytes > 0),
        ..CaptureOptions::new(path, format)
    };
    match gateway.media().capture(peer, options).await {
        Ok(()) => Ok(Object::new()),
        Err(CaptureError::AlreadyStarted { .. }) => {
            Err(ApiError::Unknown(format!("{what} already started")))
        }
        Err(error) => Err(failed(error.to_string())),
    }
}

pub(super) async fn stop(gateway: &Gateway, handle: &Handle) -> Result<Object, ApiError> {
    let none = || ApiError::Unknown("Capture not started".to_owned());
    let peer = handle.peer().ok_or_else(none)?;
    match gateway.media().stop_capture(peer).await {
        Ok(_) => Ok(Object::new()),
        Err(CaptureError::NotStarted | CaptureError::NoPeer) => Err(none()),
        Err(error) => Err(ApiError::Unknown(error.to_string())),
    }
}

const fn word(format: CaptureFormat) -> &'static str {
    match format {
        CaptureFormat::Pcap => "pcap",
        CaptureFormat::Text2pcap => "text2pcap",
    }
}

fn default_name(handle: &Handle, format: CaptureFormat) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.unwrap_or_default().as_micros();
    let ending = match format {
        CaptureFormat::Pcap => "pcap",
        CaptureFormat::Text2pcap => "txt",
    };
    format!("{}-{}-{now}.{ending}", handle.session_id(), handle.id())
}

/// Returns the path of a file in `folder`, which must be `allowed` or below it after all links are
/// resolved.
fn place(allowed: &Path, folder: Option<&Path>, name: &str) -> Result<PathBuf, String> {
    let mut parts = Path::new(name).components();
    let is_name = matches!(
        (parts.next(), parts.next()),
        (Some(Component::Normal(_)), None)
    );
    if !is_name || name.len() > MAX_NAME || name.ends_with('/') {
        return Err("filename is not the name of a file".to_owned());
    }
    let outside = || "the folder is not within admin.capture_folder".to_owned();
    let joined = folder.map_or_else(|| allowed.to_owned(), |folder| allowed.join(folder));
    // Nothing outside is examined, so that requests cannot probe the disk.
    let climbs = joined.components().any(|part| part == Component::ParentDir);
    if climbs || !joined.starts_with(allowed) {
        return Err(outside());
    }
    let real = |path: &Path| {
        let real = path.canonicalize();
        real.map_err(|error| format!("the folder {}: {error}", path.display()))
    };
    let (allowed, folder) = (real(allowed)?, real(&joined)?);
    match folder.starts_with(&allowed) {
        true => Ok(folder.join(name)),
        false => Err(outside()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn files_stay_within_the_folder() {
        let root = tempfile::tempdir().unwrap();
        let allowed = root.path().join("captures");
        std::fs::create_dir_all(allowed.join("inner")).unwrap();
        std::fs::create_dir(root.path().join("secret")).unwrap();
        symlink(root.path().join("secret"), allowed.join("out")).unwrap();
        symlink(allowed.join("inner"), allowed.join("in")).unwrap();
        let place =
            |folder: Option<&str>, name: &str| super::place(&allowed, folder.map(Path::new), name);
        let real = allowed.canonicalize().unwrap();
        assert_eq!(place(None, "a.pcap"), Ok(real.join("a.pcap")));
        let inner = Ok(real.join("inner/a"));
        assert_eq!(place(Some("inner"), "a"), inner);
        assert_eq!(place(Some("in"), "a"), inner);
        let absolute = allowed.join("inner");
        assert_eq!(place(absolute.to_str(), "a"), inner);
        for folder in [
            "..",
            "inner/../..",
            "/",
            "/etc",
            "out",
            "missing",
            "../captures",
        ] {
            assert!(place(Some(folder), "a").is_err(), "{folder}");
        }
        let long = "a".repeat(256);
        for name in ["..", ".", "a/b", "/a", "a/", &long] {
            assert!(place(None, name).is_err(), "{name}");
        }
        // The error reveals nothing about files outside.
        let (there, missing) = (place(Some("/etc"), "a"), place(Some("/nowhere"), "a"));
        assert_eq!(there, missing);
    }
}
