use super::FIXED_HEADER_LEN;
use crate::extension::ExtensionForm;
use crate::{Pt, RtpError, Ssrc};

/// The fields of a new header. Contributing sources are not written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fields {
    /// The marker bit.
    pub marker: bool,
    /// Whether the packet ends with padding, see [`super::write_padding`].
    pub padding: bool,
    /// The payload type (7 bits).
    pub pt: Pt,
    /// The sequence number on the wire.
    pub sequence: u16,
    /// The timestamp in units of the codec's clock rate.
    pub timestamp: u32,
    /// The synchronisation source.
    pub ssrc: Ssrc,
}

/// Writes a header at the start of `out`. Returns its length.
///
/// `extensions` yields ids (1 to 255) and values (0 to 255 bytes). They are written in the one-byte
/// form of RFC 8285 if it can hold them all, or else in the two-byte form. Without any, no
/// extension is written. The iterator is used twice, so it should be cheap to clone.
pub fn write_header<'a, E>(
    out: &mut [u8],
    fields: &Fields,
    extensions: E,
) -> Result<usize, RtpError>
where
    E: IntoIterator<Item = (u8, &'a [u8])> + Clone,
{
    let layout = Layout::of(extensions.clone())?;
    let (len, available) = (layout.header_len(), out.len());
    let no_room = RtpError::NoRoom {
        needed: len,
        available,
    };
    let header = out.get_mut(..len).ok_or(no_room)?;
    let (fixed, rest) = header
        .split_first_chunk_mut::<FIXED_HEADER_LEN>()
        .ok_or(no_room)?;
    let [s0, s1] = fields.sequence.to_be_bytes();
    let [t0, t1, t2, t3] = fields.timestamp.to_be_bytes();
    let [i0, i1, i2, i3] = fields.ssrc.0.to_be_bytes();
    let first = 0x80 | (u8::from(fields.padding) << 5) | (u8::from(layout.count > 0) << 4);
    let second = (u8::from(fields.marker) << 7) | (fields.pt.0 & 0x7f);
    *fixed = [first, second, s0, s1, t0, t1, t2, t3, i0, i1, i2, i3];
    if let Some((prefix, elements)) = rest.split_first_chunk_mut::<4>() {
        let [p0, p1] = layout.form.profile().to_be_bytes();
        let [l0, l1] = ((elements.len() / 4) as u16).to_be_bytes();
        *prefix = [p0, p1, l0, l1];
        write_elements(layout.form, elements, extensions).ok_or(no_room)?;
    }
    Ok(len)
}

/// The form of the elements, their number and their size.
struct Layout {
    form: ExtensionForm,
    count: usize,
    value_bytes: usize,
}

impl Layout {
    fn of<'a>(extensions: impl IntoIterator<Item = (u8, &'a [u8])>) -> Result<Self, RtpError> {
        let mut layout = Layout {
            form: ExtensionForm::OneByte,
            count: 0,
            value_bytes: 0,
        };
        for (id, value) in extensions {
            if id == 0 {
                return Err(RtpError::OutOfRange("extension id"));
            }
            if value.len() > 255 {
                return Err(RtpError::OutOfRange("extension value"));
            }
            if id > 14 || value.is_empty() || value.len() > 16 {
                layout.form = ExtensionForm::TwoByte;
            }
            layout.count += 1;
            layout.value_bytes += value.len();
        }
        if layout.header_len() > usize::from(u16::MAX) {
            return Err(RtpError::OutOfRange("extensions"));
        }
        Ok(layout)
    }

    fn header_len(&self) -> usize {
        if self.count == 0 {
            return FIXED_HEADER_LEN;
        }
        let elements = self.value_bytes + self.count * self.form.element_header_len();
        FIXED_HEADER_LEN + 4 + elements.next_multiple_of(4)
    }
}

fn write_elements<'a>(
    form: ExtensionForm,
    out: &mut [u8],
    extensions: impl IntoIterator<Item = (u8, &'a [u8])>,
) -> Option<()> {
    let mut at = 0;
    for (id, value) in extensions {
        match form {
            ExtensionForm::OneByte => {
                *out.get_mut(at)? = (id << 4) | (value.len().checked_sub(1)? as u8 & 0x0f);
            }
            ExtensionForm::TwoByte => {
                out.get_mut(at..at + 2)?
                    .copy_from_slice(&[id, value.len() as u8]);
            }
        }
        at += form.element_header_len();
        out.get_mut(at..at + value.len())?.copy_from_slice(value);
        at += value.len();
    }
    out.get_mut(at..)?.fill(0);
    Some(())
}
