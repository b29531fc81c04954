//! Values that several sections have, and their checks.

use std::net::IpAddr;
use std::path::Path;

use portunus_config::Probe;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The permission bits of a file. As text in octal, such as `660`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileMode(pub u32);

impl<'de> Deserialize<'de> for FileMode {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        const FORM: &str = "octal permissions in quotes such as \"660\"";
        portunus_config::text(from, FORM, |text| {
            let mode = u32::from_str_radix(text, 8).ok();
            let mode = mode.filter(|mode| *mode <= 0o777).map(FileMode);
            mode.ok_or_else(|| format!("expected {FORM}, got {text:?}"))
        })
    }
}

impl Serialize for FileMode {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&format_args!("{:o}", self.0))
    }
}

/// Refuses an invalid path of an API.
pub(crate) fn base_path(path: &str) -> Result<(), String> {
    let segment = |s: &str| {
        !s.is_empty()
            && s.bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"-_.~".contains(&b))
    };
    match path.strip_prefix('/') {
        // These paths are the server's own.
        Some("whip" | "whep" | "healthz" | "livez" | "readyz" | "metrics") => {
            Err(format!("{path:?} is taken"))
        }
        Some(rest) if rest.split('/').all(segment) => Ok(()),
        _ => Err(format!(
            "expected a path such as \"/janus\" (no slash at its end), got {path:?}"
        )),
    }
}

/// Whether the text is valid in a header.
pub(super) fn visible(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_graphic())
}

/// Checks the addresses in the key `bind` of a section.
pub(crate) fn addresses(probe: &mut Probe, bind: &[IpAddr]) {
    for address in bind {
        probe.address("bind", *address);
    }
}

/// Checks whether a Unix socket can be made at a path.
pub(crate) fn socket(probe: &mut Probe, key: &str, path: &Path) {
    let folder = path.parent().filter(|it| !it.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    match folder.exists() {
        true => probe.written_folder(key, folder),
        false => probe.error(key, format!("there is no folder {}", folder.display())),
    }
}
