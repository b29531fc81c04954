//! The elements of a header extension, in both forms of RFC 8285.

/// The layout of the elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExtensionForm {
    /// A nibble for the id (1 to 14) and one for the length (1 to 16).
    OneByte,
    /// A byte for the id (1 to 255) and one for the length (0 to 255).
    TwoByte,
}

impl ExtensionForm {
    /// Returns the form of the header extension's profile.
    pub const fn from_profile(profile: u16) -> Option<Self> {
        match profile {
            0xbede => Some(ExtensionForm::OneByte),
            // The low four bits are "appbits", which are ignored (section 4.3).
            0x1000..=0x100f => Some(ExtensionForm::TwoByte),
            _ => None,
        }
    }

    /// Returns the profile of the form.
    pub const fn profile(self) -> u16 {
        match self {
            ExtensionForm::OneByte => 0xbede,
            ExtensionForm::TwoByte => 0x1000,
        }
    }

    /// Returns the bytes before each element's value.
    pub const fn element_header_len(self) -> usize {
        match self {
            ExtensionForm::OneByte => 1,
            ExtensionForm::TwoByte => 2,
        }
    }
}

/// Iterates over the elements: id and value. Skips padding, and ends at a malformed element.
#[derive(Debug, Clone)]
pub struct Extensions<'a> {
    form: ExtensionForm,
    rest: &'a [u8],
}

impl<'a> Extensions<'a> {
    /// Iterates over `elements`, the bytes after the header extension's profile and length.
    pub fn new(form: ExtensionForm, elements: &'a [u8]) -> Self {
        Self {
            form,
            rest: elements,
        }
    }

    /// Returns the bytes not read yet.
    pub(crate) fn remaining(&self) -> usize {
        self.rest.len()
    }

    fn step(&mut self) -> Option<(u8, &'a [u8])> {
        loop {
            let (&first, mut rest) = self.rest.split_first()?;
            if first == 0 {
                self.rest = rest;
                continue;
            }
            let (id, len) = match self.form {
                // Id 0 with a length, and id 15, end the extension (section 4.2).
                ExtensionForm::OneByte => match first >> 4 {
                    0 | 15 => return None,
                    id => (id, usize::from(first & 0x0f) + 1),
                },
                ExtensionForm::TwoByte => {
                    let (&len, after) = rest.split_first()?;
                    rest = after;
                    (first, usize::from(len))
                }
            };
            let (value, rest) = rest.split_at_checked(len)?;
            self.rest = rest;
            return Some((id, value));
        }
    }
}

impl Default for Extensions<'_> {
    /// Iterates over no elements.
    fn default() -> Self {
        Self {
            form: ExtensionForm::OneByte,
            rest: &[],
        }
    }
}

impl<'a> Iterator for Extensions<'a> {
    type Item = (u8, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let element = self.step();
        if element.is_none() {
            self.rest = &[];
        }
        element
    }
}

impl std::iter::FusedIterator for Extensions<'_> {}
