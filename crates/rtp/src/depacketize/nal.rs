//! NAL units of H.264 and H.265 with their lengths, assembled from fragments.

/// The units of a frame that is being assembled.
#[derive(Debug, Default)]
pub(super) struct Units {
    /// The place of the length of the open unit.
    open: Option<usize>,
}

impl Units {
    /// Appends a whole unit. Returns `None` if one is open.
    pub(super) fn push(&mut self, unit: &[u8], data: &mut Vec<u8>) -> Option<()> {
        if self.open.is_some() {
            return None;
        }
        // It is the length of a datagram or of a bounded frame.
        data.extend_from_slice(&(unit.len() as u32).to_be_bytes());
        data.extend_from_slice(unit);
        Some(())
    }

    /// Starts a unit with its header. Returns `None` if one is open.
    pub(super) fn begin(&mut self, header: &[u8], data: &mut Vec<u8>) -> Option<()> {
        let at = data.len();
        self.push(header, data)?;
        self.open = Some(at);
        Some(())
    }

    /// Appends to the open unit. Returns `None` if none is open.
    pub(super) fn go_on(&mut self, part: &[u8], ends: bool, data: &mut Vec<u8>) -> Option<()> {
        let at = self.open?;
        data.extend_from_slice(part);
        if ends {
            self.open = None;
            let (length, unit) = data.get_mut(at..)?.split_first_chunk_mut()?;
            *length = (unit.len() as u32).to_be_bytes();
        }
        Some(())
    }

    /// Returns whether a unit is open.
    pub(super) fn is_open(&self) -> bool {
        self.open.is_some()
    }
}

/// Returns the units of an aggregation, without their 16-bit sizes. `None` stands for a malformed
/// one.
pub(super) fn aggregated(mut rest: &[u8]) -> impl Iterator<Item = Option<&[u8]>> {
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let split =
            |rest: &mut &'_ [u8]| Some(usize::from(u16::from_be_bytes(*rest.first_chunk()?)));
        let unit = split(&mut rest).and_then(|size| {
            let (unit, after) = rest.get(2..)?.split_at_checked(size)?;
            Some((unit, after))
        });
        rest = unit.map_or(&[], |(_, after)| after);
        Some(unit.map(|(unit, _)| unit))
    })
}
