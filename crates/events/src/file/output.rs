//! The file: opened again after it was moved away, and rotated when it is large.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The time without progress after which the data for a pipe is dropped.
const PIPE_PATIENCE: Duration = Duration::from_secs(1);

/// The interval of attempts at a full pipe.
const PIPE_PAUSE: Duration = Duration::from_millis(5);

/// The file that is appended to.
#[derive(Debug)]
pub(super) struct Output {
    path: PathBuf,
    /// The size from which on the file is rotated. 0 means never.
    rotate: u64,
    keep: u32,
    open: Option<Open>,
}

#[derive(Debug)]
struct Open {
    file: fs::File,
    /// The file's device and inode.
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

    /// Writes all bytes, or gives up if the reader makes no progress: a pipe must not delay the end
    /// of the server.
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

    /// Opens the file, if it is not open or not at its path any more.
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
        // Opening a pipe without a reader would block.
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

    /// Returns whether a later attempt to open the file can succeed after `error`.
    pub(super) fn may_open_later(&self, error: &io::Error) -> bool {
        let is_pipe = || {
            let there = fs::metadata(&self.path);
            there.is_ok_and(|there| there.file_type().is_fifo())
        };
        // There may be room, or a reader of the pipe.
        error.kind() == io::ErrorKind::StorageFull
            || (error.raw_os_error() == Some(libc::ENXIO) && is_pipe())
    }

    /// Appends whole lines, or none after an error. On success, returns the error of a failed
    /// rotation, which leaves the file too large.
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
                // A part of a line would spoil the next one too.
                if open.is_regular {
                    open.file.set_len(open.length)?;
                }
                Err(error)
            }
        }
    }

    /// Renames `events.jsonl` to `events.jsonl.1`, this to `events.jsonl.2`, and so on, and deletes
    /// the last one. Files after a gap stay, so that repeated failures drop none.
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
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
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
        // A folder that is not empty is in the place of the oldest file.
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
