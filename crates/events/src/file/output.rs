//! The file itself: opened anew when it was moved away, and moved away when it is large.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long the reader of a pipe may take nothing until what waits for it is given up.
const PIPE_PATIENCE: Duration = Duration::from_secs(1);

/// How often a full pipe is tried again.
const PIPE_PAUSE: Duration = Duration::from_millis(5);

/// The file that is appended to.
#[derive(Debug)]
pub(super) struct Output {
    path: PathBuf,
    /// Bytes from which on a new one is begun; 0: never.
    rotate: u64,
    keep: u32,
    open: Option<Open>,
}

#[derive(Debug)]
struct Open {
    file: fs::File,
    /// What the system knows it by.
    identity: (u64, u64),
    length: u64,
    /// A device or a pipe can neither be cut nor moved away.
    is_regular: bool,
    /// A pipe got the beginning of a line, and not its end.
    is_torn: bool,
}

impl Open {
    fn write(&mut self, lines: &[u8]) -> io::Result<()> {
        if self.is_regular {
            return self.file.write_all(lines);
        }
        if self.is_torn {
            self.write_to_pipe(b"\n")?;
            self.is_torn = false;
        }
        self.write_to_pipe(lines)
    }

    /// Writes whole, or until the other side takes nothing for a while: a pipe must not hold up the server's end.
    fn write_to_pipe(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        let mut progress = Instant::now();
        while !bytes.is_empty() {
            match self.file.write(bytes) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => {
                    bytes = bytes.get(written..).unwrap_or_default();
                    self.is_torn = !bytes.is_empty();
                    progress = Instant::now();
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error)
                    if error.kind() == io::ErrorKind::WouldBlock
                        && progress.elapsed() < PIPE_PATIENCE =>
                {
                    sleep(PIPE_PAUSE);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

impl Output {
    pub(super) fn new(path: PathBuf, rotate: u64, keep: u32) -> Self {
        Output {
            path,
            rotate,
            keep,
            open: None,
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the file, if it is not open or no longer at its path.
    pub(super) fn open(&mut self) -> io::Result<()> {
        let there = fs::metadata(&self.path).ok();
        let there = there.map(|metadata| (metadata.dev(), metadata.ino()));
        if self
            .open
            .as_ref()
            .is_some_and(|open| Some(open.identity) == there)
        {
            return Ok(());
        }
        self.open = None;
        let mut options = OpenOptions::new();
        options.append(true).create(true).mode(0o640);
        // Opening a pipe would wait until somebody reads it.
        options.custom_flags(libc::O_NONBLOCK);
        let file = options.open(&self.path)?;
        let metadata = file.metadata()?;
        self.open = Some(Open {
            file,
            identity: (metadata.dev(), metadata.ino()),
            length: metadata.len(),
            is_regular: metadata.is_file(),
            is_torn: false,
        });
        Ok(())
    }

    /// Whether it may be possible later to open the file, which failed with `error`.
    pub(super) fn may_open_later(&self, error: &io::Error) -> bool {
        let is_pipe = || {
            let there = fs::metadata(&self.path);
            there.is_ok_and(|there| there.file_type().is_fifo())
        };
        // There may be room, or a reader of the pipe.
        error.kind() == io::ErrorKind::StorageFull
            || (error.raw_os_error() == Some(libc::ENXIO) && is_pipe())
    }

    /// Adds whole lines: all of them, or none if it fails. What is returned with success is why a file that is too large
    /// stays: that the lines are in it counts for more.
    pub(super) fn append(&mut self, lines: &[u8]) -> io::Result<Option<io::Error>> {
        self.open()?;
        let is_full = |open: &Open| {
            let after = open.length.saturating_add(lines.len() as u64);
            self.rotate > 0 && open.is_regular && open.length > 0 && after > self.rotate
        };
        let mut stays = None;
        if self.open.as_ref().is_some_and(is_full) {
            stays = self.rotate().err();
            self.open()?;
        }
        let Some(open) = &mut self.open else {
            return Err(io::ErrorKind::NotFound.into());
        };
        match open.write(lines) {
            Ok(()) => {
                open.length = open.length.saturating_add(lines.len() as u64);
                Ok(stays)
            }
            Err(error) => {
                // Half a line would spoil the next one too.
                if open.is_regular {
                    open.file.set_len(open.length)?;
                }
                Err(error)
            }
        }
    }

    /// `events.jsonl` becomes `events.jsonl.1`, which becomes `events.jsonl.2`, and so on; the last one is deleted.
    /// What comes after a gap stays, so that a rotation that fails again and again moves nothing out of the row.
    fn rotate(&mut self) -> io::Result<()> {
        self.open = None;
        let is_free = |number: &u32| fs::symlink_metadata(self.numbered(*number)).is_err();
        let last = (1..=self.keep).find(is_free).unwrap_or(self.keep);
        for number in (1..=last).rev() {
            let newer = match number {
                1 => self.path.clone(),
                number => self.numbered(number.saturating_sub(1)),
            };
            match fs::rename(newer, self.numbered(number)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        match self.keep {
            0 => fs::remove_file(&self.path),
            _ => Ok(()),
        }
    }

    fn numbered(&self, number: u32) -> PathBuf {
        let mut path = self.path.clone().into_os_string();
        path.push(format!(".{number}"));
        path.into()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn read(path: &Path, suffix: &str) -> Option<String> {
        let mut path = path.as_os_str().to_owned();
        path.push(suffix);
        fs::read_to_string(path).ok()
    }

    #[test]
    fn large_files_are_moved_away_and_the_oldest_deleted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events.jsonl");
        let mut output = Output::new(path.clone(), 4, 2);
        for line in [
            "1\n",
            "2\n",
            "3\n",
            "4\n",
            "5\n",
            "larger than a file\n",
            "6\n",
        ] {
            output.append(line.as_bytes()).unwrap();
        }
        assert_eq!(read(&path, "").unwrap(), "6\n");
        assert_eq!(read(&path, ".1").unwrap(), "larger than a file\n");
        assert_eq!(read(&path, ".2").unwrap(), "5\n");
        assert_eq!(read(&path, ".3"), None);
        let mut alone = Output::new(path.clone(), 2, 0);
        alone.append(b"7\n").unwrap();
        assert_eq!(read(&path, "").unwrap(), "7\n");
    }

    #[test]
    fn a_file_that_was_moved_away_is_begun_anew() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events.jsonl");
        fs::write(&path, "0\n").unwrap();
        let mut output = Output::new(path.clone(), 0, 0);
        output.append(b"1\n").unwrap();
        fs::rename(&path, folder.path().join("moved")).unwrap();
        output.append(b"2\n").unwrap();
        assert_eq!(read(&path, "").unwrap(), "2\n");
        assert_eq!(read(&folder.path().join("moved"), "").unwrap(), "0\n1\n");
        fs::remove_dir_all(folder.path()).unwrap();
        assert!(output.append(b"3\n").is_err());
        fs::create_dir(folder.path()).unwrap();
        output.append(b"4\n").unwrap();
        assert_eq!(read(&path, "").unwrap(), "4\n");
    }

    #[test]
    fn a_file_that_cannot_be_moved_away_is_written_on() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events.jsonl");
        // Where the oldest file goes is a folder that is not empty: nothing can take its place.
        let blocked = folder.path().join("events.jsonl.2");
        fs::create_dir_all(blocked.join("full")).unwrap();
        fs::write(folder.path().join("events.jsonl.1"), "0\n").unwrap();
        let mut output = Output::new(path.clone(), 2, 2);
        assert!(output.append(b"1\n").unwrap().is_none());
        assert!(output.append(b"2\n").unwrap().is_some());
        assert!(output.append(b"3\n").unwrap().is_some());
        assert_eq!(read(&path, "").unwrap(), "1\n2\n3\n");
        assert_eq!(read(&path, ".1").unwrap(), "0\n");
        fs::remove_dir_all(&blocked).unwrap();
        assert!(output.append(b"4\n").unwrap().is_none());
        assert_eq!(read(&path, "").unwrap(), "4\n");
        assert_eq!(read(&path, ".1").unwrap(), "1\n2\n3\n");
        assert_eq!(read(&path, ".2").unwrap(), "0\n");
    }

    #[test]
    fn files_behind_a_gap_stay() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events.jsonl");
        fs::write(folder.path().join("events.jsonl.3"), "0\n").unwrap();
        let mut output = Output::new(path.clone(), 2, 3);
        for line in ["1\n", "2\n", "3\n"] {
            output.append(line.as_bytes()).unwrap();
        }
        let there = ["", ".1", ".2", ".3"].map(|suffix| read(&path, suffix).unwrap());
        assert_eq!(there, ["3\n", "2\n", "1\n", "0\n"]);
    }

    #[test]
    fn a_full_device_is_an_error() {
        let mut output = Output::new("/dev/full".into(), 1, 1);
        let error = output.append(b"1\n").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert!(Path::new("/dev/full").exists());
    }
}
