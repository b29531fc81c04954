//! The disk of a path, found without asking the disk.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// Returns the number of the disk that is mounted at this path, without following links. 0 means
/// unknown.
pub(super) fn number(path: &Path) -> u64 {
    let mounts = std::fs::read("/proc/self/mountinfo").unwrap_or_default();
    find(&mounts, path).unwrap_or(0)
}

/// See proc_pid_mountinfo(5).
fn find(mounts: &[u8], path: &Path) -> Option<u64> {
    let lines = mounts.split(|byte| *byte == b'\n');
    let found = lines.filter_map(|line| {
        let mut fields = line.split(|byte| *byte == b' ');
        let (device, at) = (fields.nth(2)?, fields.nth(1)?);
        let (major, minor) = std::str::from_utf8(device).ok()?.split_once(':')?;
        let at = PathBuf::from(OsString::from_vec(unescaped(at)));
        let number = rustix::fs::makedev(major.parse().ok()?, minor.parse().ok()?);
        let depth = at.components().count();
        path.starts_with(at).then_some((depth, number))
    });
    // The last mount at a place hides earlier ones.
    found.max_by_key(|(depth, _)| *depth).map(|it| it.1)
}

/// Replaces escapes: blanks and the like are `\` and three octal digits.
fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, behind)) = rest.split_first() {
        let digits = behind.get(..3).filter(|_| *first == b'\\');
        let code = digits.and_then(|it| u8::from_str_radix(std::str::from_utf8(it).ok()?, 8).ok());
        plain.push(code.unwrap_or(*first));
        rest = behind
            .get(if code.is_some() { 3 } else { 0 }..)
            .unwrap_or_default();
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deepest_mount_that_was_made_last_counts() {
        let mounts = b"22 1 8:1 / / rw - ext4 /dev/sda1 rw\n\
            30 22 8:17 / /rec rw shared:1 - ext4 /dev/sdb1 rw\n\
            31 22 0:40 / /my\\040disk rw - nfs host:/a rw\n\
            32 30 0:41 / /rec rw - tmpfs tmpfs rw\nnonsense\n";
        for (path, number) in [
            ("/home/a", (8, 1)),
            ("/rec/a", (0, 41)),
            ("/recordings", (8, 1)),
            ("/my disk/a/b", (0, 40)),
        ] {
            let (major, minor) = number;
            let number = rustix::fs::makedev(major, minor);
            assert_eq!(find(mounts, Path::new(path)), Some(number), "{path}");
        }
        assert_eq!(find(b"", Path::new("/")), None);
    }

    #[test]
    fn the_system_tells_it() {
        use std::os::unix::fs::MetadataExt;
        let root = Path::new("/proc").metadata();
        assert_eq!(
            root.map(|it| it.dev()).ok(),
            Some(number(Path::new("/proc/self")))
        );
    }
}
