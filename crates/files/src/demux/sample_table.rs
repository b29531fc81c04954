//! The positions and times of the samples of an MP4 track (ISO/IEC 14496-12 section 8.6 and 8.7).
//!
//! The boxes are run-length coded, and are not expanded. So a file that claims 2^32 samples in a
//! few bytes costs nothing.

use mp4_atom::{Stbl, StszSamples};

use crate::FileError;

/// A sample, in units of the track's timescale.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sample {
    pub offset: u64,
    pub size: u32,
    pub decoded: i64,
    pub presented: i64,
    pub duration: u32,
    pub keyframe: bool,
}

/// Iterates over the samples of a table.
#[derive(Debug, Clone, Default)]
pub(super) struct Cursor {
    /// The index of the next sample.
    index: u32,
    decoded: i64,
    durations: Run,
    offsets: Run,
    /// The index of the first sync sample that is not past.
    sync: usize,
    /// The index of the next sample's chunk, the samples left in it, and the offset of the next
    /// sample.
    chunk: usize,
    left_in_chunk: u32,
    offset: u64,
    /// The run of equal chunks that the chunk is in.
    chunk_run: usize,
}

/// A position in a list of runs.
#[derive(Debug, Clone, Copy, Default)]
struct Run {
    entry: usize,
    /// The past samples of the entry.
    used: u32,
}

impl Cursor {
    /// Returns the next sample, or `None` at the end.
    pub fn next(&mut self, table: &Stbl) -> Result<Option<Sample>, FileError> {
        let size = match &table.stsz.samples {
            StszSamples::Identical { count, size } => (self.index < *count).then_some(*size),
            StszSamples::Different { sizes } => sizes.get(self.index as usize).copied(),
        };
        let Some(size) = size else {
            return Ok(None);
        };
        let short = |name| FileError::corrupt(format!("{name} has too few samples"));
        let duration = {
            let pairs = &table.stts.entries;
            let entry = self.durations.entry_of(pairs, |entry| entry.sample_count);
            entry.ok_or_else(|| short("stts"))?.sample_delta
        };
        let shift = match &table.ctts {
            Some(ctts) => {
                let entry = self
                    .offsets
                    .entry_of(&ctts.entries, |entry| entry.sample_count);
                entry.ok_or_else(|| short("ctts"))?.sample_offset
            }
            None => 0,
        };
        self.enter_chunk(table)?;
        let sample = Sample {
            offset: self.offset,
            size,
            decoded: self.decoded,
            presented: self.decoded.saturating_add(shift),
            duration,
            keyframe: self.is_sync(table),
        };
        self.left_in_chunk = self.left_in_chunk.saturating_sub(1);
        self.offset = self.offset.saturating_add(u64::from(size));
        self.decoded = self.decoded.saturating_add(i64::from(duration));
        self.index = self.index.saturating_add(1);
        Ok(Some(sample))
    }

    /// Goes to the first sample of the next chunk if the last one is done.
    fn enter_chunk(&mut self, table: &Stbl) -> Result<(), FileError> {
        while self.left_in_chunk == 0 {
            let offset = match (&table.stco, &table.co64) {
                (Some(stco), _) => stco.entries.get(self.chunk).copied().map(u64::from),
                (None, Some(co64)) => co64.entries.get(self.chunk).copied(),
                (None, None) => None,
            };
            self.offset = offset.ok_or_else(|| FileError::corrupt("too few chunks"))?;
            // Chunks are numbered from 1.
            let number = u32::try_from(self.chunk + 1).unwrap_or(u32::MAX);
            let runs = &table.stsc.entries;
            while runs
                .get(self.chunk_run + 1)
                .is_some_and(|next| next.first_chunk <= number)
            {
                self.chunk_run += 1;
            }
            let run = runs
                .get(self.chunk_run)
                .filter(|run| run.first_chunk <= number)
                .ok_or_else(|| FileError::corrupt("stsc does not name all chunks"))?;
            if run.sample_description_index > 1 {
                return Err(FileError::Unsupported(
                    "an MP4 track that changes its codec midway: encode it anew",
                ));
            }
            self.left_in_chunk = run.samples_per_chunk;
            self.chunk += 1;
        }
        Ok(())
    }

    fn is_sync(&mut self, table: &Stbl) -> bool {
        let Some(stss) = &table.stss else {
            return true;
        };
        // Samples are numbered from 1.
        let number = self.index.saturating_add(1);
        while stss
            .entries
            .get(self.sync)
            .is_some_and(|sync| *sync < number)
        {
            self.sync += 1;
        }
        stss.entries.get(self.sync) == Some(&number)
    }
}

impl Run {
    /// Returns the entry of the next sample, and goes one sample on.
    fn entry_of<'a, T>(&mut self, entries: &'a [T], count: impl Fn(&T) -> u32) -> Option<&'a T> {
        loop {
            let entry = entries.get(self.entry)?;
            if self.used < count(entry) {
                self.used += 1;
                return Some(entry);
            }
            self.entry += 1;
            self.used = 0;
        }
    }
}
