//! The bytes of a file, with known length and bounded reads.

use std::io::{BufReader, ErrorKind, Read, Seek, SeekFrom};

use crate::FileError;

/// A source of bytes.
pub(crate) trait ReadSeek: Read + Seek + Send {}

impl<T: Read + Seek + Send> ReadSeek for T {}

pub(crate) struct Input {
    reader: BufReader<Box<dyn ReadSeek>>,
    position: u64,
    len: u64,
}

impl Input {
    pub fn new(mut reader: Box<dyn ReadSeek>) -> Result<Self, FileError> {
        let len = reader.seek(SeekFrom::End(0))?;
        reader.seek(SeekFrom::Start(0))?;
        Ok(Self {
            reader: BufReader::with_capacity(64 << 10, reader),
            position: 0,
            len,
        })
    }

    pub fn len(&self) -> u64 {
        self.len
    }

    pub fn position(&self) -> u64 {
        self.position
    }

    /// Whether everything was read.
    pub fn is_at_end(&self) -> bool {
        self.position >= self.len
    }

    pub fn seek(&mut self, to: u64) -> Result<(), FileError> {
        if to > self.len {
            return Err(FileError::Truncated(self.len));
        }
        // A relative seek keeps the buffer.
        match i64::try_from(i128::from(to) - i128::from(self.position)) {
            Ok(by) => self.reader.seek_relative(by)?,
            Err(_) => drop(self.reader.seek(SeekFrom::Start(to))?),
        }
        self.position = to;
        Ok(())
    }

    pub fn skip(&mut self, bytes: u64) -> Result<(), FileError> {
        self.seek(self.position.saturating_add(bytes))
    }

    /// Fills `buffer` as far as there are bytes.
    pub fn read_up_to(&mut self, buffer: &mut [u8]) -> Result<usize, FileError> {
        let mut filled = 0;
        while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match self.read(rest) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(filled)
    }

    /// Replaces the content of `buffer` by the next `len` bytes. `what` is for errors.
    pub fn read_into(
        &mut self,
        buffer: &mut Vec<u8>,
        len: u64,
        max: u64,
        what: &'static str,
    ) -> Result<(), FileError> {
        if len > max {
            return Err(FileError::TooLong { what, len, max });
        }
        if len > self.len.saturating_sub(self.position) {
            return Err(FileError::Truncated(self.len));
        }
        buffer.clear();
        // `Read::take` instead of `resize`, so that bytes are written once.
        let read = Read::take(&mut *self, len).read_to_end(buffer)?;
        if read as u64 != len {
            return Err(FileError::Truncated(self.position));
        }
        Ok(())
    }
}

impl Read for Input {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.reader.read(buffer)?;
        self.position += read as u64;
        Ok(read)
    }
}

impl std::fmt::Debug for Input {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Input({} of {})", self.position, self.len)
    }
}
