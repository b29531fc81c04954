//! What H.264 and H.265 have in common: NAL units with their lengths, one behind the other, put together from fragments.

/// The units of a frame that is being put together.
#[derive(Debug, Default)]
pub(super) struct Units {
    /// Where the length of the unit lies whose end has not come.
    open: Option<usize>,
}

impl Units {
    /// Appends a whole unit. Nothing: one is open.
    pub(super) fn push(&mut self, unit: &[u8], data: &mut Vec<u8>) -> Option<()> {
        if self.open.is_some() {
            return None;
        }
        // A datagram's length, or a bounded frame's.
        data.extend_from_slice(&(unit.len() as u32).to_be_bytes());
        data.extend_from_slice(unit);
        Some(())
    }

    /// Begins a unit with its header. Nothing: one is open.
    pub(super) fn begin(&mut self, header: &[u8], data: &mut Vec<u8>) -> Option<()> {
        let at = data.len();
        self.push(header, data)?;
        self.open = Some(at);
        Some(())
    }

    /// Appends to the unit that is open. Nothing: none is.
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

    /// Whether the end of a unit has not come.
    pub(super) fn is_open(&self) -> bool {
        self.open.is_some()
    }
}

/// The units of an aggregation, behind their 16-bit sizes; nothing in place of what is malformed.
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
