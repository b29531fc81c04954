use super::SDES;
use super::frame::{Body, Frame, Out};
use crate::Ssrc;

/// View of a source description (RFC 3550 section 6.5).
#[derive(Debug, Clone, Copy)]
pub struct Sdes<'a> {
    count: u8,
    body: &'a [u8],
}

/// The description of one source.
#[derive(Debug, Clone, Copy)]
pub struct SdesChunk<'a> {
    /// The source.
    pub ssrc: Ssrc,
    items: &'a [u8],
}

/// A property of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SdesItem<'a> {
    /// The kind: [`SdesItem::CNAME`] and others.
    pub kind: u8,
    /// The value: UTF-8 by specification, any bytes in practice.
    pub value: &'a [u8],
}

impl SdesItem<'_> {
    /// The canonical name, which is common to the streams of an endpoint.
    pub const CNAME: u8 = 1;
}

impl<'a> Sdes<'a> {
    pub(super) fn parse(frame: Frame<'a>) -> Self {
        Self {
            count: frame.count,
            body: frame.body,
        }
    }

    /// Returns the described sources. A malformed one ends them.
    pub fn chunks(&self) -> impl Iterator<Item = SdesChunk<'a>> + 'a {
        let mut rest = self.body;
        (0..self.count).map_while(move |_| {
            let (ssrc, items) = rest.split_first_chunk()?;
            // The items end with one to four zeros, up to a multiple of four.
            let mut walk = Items(items);
            while walk.next().is_some() {}
            let len = items.len() - walk.0.len();
            let next = (len + 1).next_multiple_of(4);
            rest = items.get(next..).unwrap_or_default();
            Some(SdesChunk {
                ssrc: Ssrc(u32::from_be_bytes(*ssrc)),
                items: items.get(..len)?,
            })
        })
    }

    /// Returns the canonical name of `ssrc`.
    pub fn cname(&self, ssrc: Ssrc) -> Option<&'a [u8]> {
        self.chunks().find(|chunk| chunk.ssrc == ssrc)?.cname()
    }
}

impl<'a> SdesChunk<'a> {
    /// Returns the properties.
    pub fn items(&self) -> impl Iterator<Item = SdesItem<'a>> + 'a {
        Items(self.items)
    }

    /// Returns the canonical name.
    pub fn cname(&self) -> Option<&'a [u8]> {
        self.items()
            .find(|item| item.kind == SdesItem::CNAME)
            .map(|item| item.value)
    }
}

struct Items<'a>(&'a [u8]);

impl<'a> Iterator for Items<'a> {
    type Item = SdesItem<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        let (&[kind, len], rest) = self.0.split_first_chunk()?;
        if kind == 0 {
            return None;
        }
        let (value, rest) = rest.split_at_checked(usize::from(len))?;
        self.0 = rest;
        Some(SdesItem { kind, value })
    }
}

/// Writes a source description with the canonical name of one source.
#[derive(Debug, Clone, Copy)]
pub struct CnameWriter<'a> {
    /// The source.
    pub ssrc: Ssrc,
    /// The name. Bytes after the first 255 are omitted.
    pub cname: &'a str,
}

impl CnameWriter<'_> {
    fn value(&self) -> &[u8] {
        let name = self.cname.as_bytes();
        name.get(..255).unwrap_or(name)
    }
}

impl Body for CnameWriter<'_> {
    const PACKET_TYPE: u8 = SDES;

    fn count(&self) -> usize {
        1
    }

    fn len(&self) -> usize {
        (4 + 2 + self.value().len() + 1).next_multiple_of(4)
    }

    fn write(&self, mut out: Out<'_>) -> Option<()> {
        out.put_ssrc(self.ssrc)?;
        out.put(&[SdesItem::CNAME, self.value().len() as u8])?;
        out.put(self.value())?;
        out.pad()
    }
}
