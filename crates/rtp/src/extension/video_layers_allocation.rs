use crate::RtpError;

/// The active simulcast streams and layers of a sender with their target bitrates
/// (video-layers-allocation00).
///
/// It is sent in the packets of one stream and describes all streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VideoLayersAllocation {
    /// The simulcast stream of the packet, 0 to 3.
    pub stream: u8,
    /// The number of simulcast streams, 1 to 4. 0 if the sender has paused all.
    pub streams: u8,
    layers: [AllocatedLayer; MAX_LAYERS],
    len: u8,
}

/// An active spatial layer of a simulcast stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AllocatedLayer {
    /// The simulcast stream, 0 to 3.
    pub stream: u8,
    /// The spatial layer, 0 to 3.
    pub spatial: u8,
    /// The number of temporal layers, 1 to 4.
    pub temporal_layers: u8,
    /// The target bitrate in kbit/s up to and including each temporal layer.
    pub bitrates: [u32; 4],
    /// Size and rate of the frames, if present.
    pub format: Option<LayerFormat>,
}

/// Size and rate of a spatial layer's frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LayerFormat {
    /// The width in pixels, 1 to 65,536.
    pub width: u32,
    /// The height in pixels, 1 to 65,536.
    pub height: u32,
    /// The most frames per second.
    pub max_framerate: u8,
}

const MAX_LAYERS: usize = 16;
const FORMAT_LEN: usize = 5;

impl VideoLayersAllocation {
    /// The most bytes of an allocation: head, bitmasks, counts, bitrates and formats of 16 layers.
    pub const MAX_LEN: usize = 1 + 2 + 4 + MAX_LAYERS * (4 * 5 + FORMAT_LEN);

    /// Makes an allocation of `layers`, at most 16, sorted by stream and spatial layer.
    pub fn new(stream: u8, streams: u8, layers: &[AllocatedLayer]) -> Option<Self> {
        let mut ordered = [AllocatedLayer::default(); MAX_LAYERS];
        ordered.get_mut(..layers.len())?.copy_from_slice(layers);
        let order = |layer: &AllocatedLayer| (layer.stream, layer.spatial);
        let valid = streams <= 4
            && (stream < streams || (stream == 0 && layers.is_empty()))
            && layers.is_sorted_by(|a, b| order(a) < order(b))
            && layers.iter().all(|layer| {
                layer.stream < streams
                    && layer.spatial < 4
                    && (1..=4).contains(&layer.temporal_layers)
            })
            && layers
                .iter()
                .all(|l| l.format.is_some() == layers.iter().all(|l| l.format.is_some()));
        valid.then_some(Self {
            stream,
            streams,
            layers: ordered,
            len: layers.len() as u8,
        })
    }

    /// Returns the active layers, sorted by stream and spatial layer.
    pub fn layers(&self) -> &[AllocatedLayer] {
        self.layers.get(..usize::from(self.len)).unwrap_or_default()
    }

    /// Parses an element's value.
    pub fn parse(value: &[u8]) -> Result<Self, RtpError> {
        let truncated = RtpError::Truncated {
            expected: value.len() + 1,
            actual: value.len(),
        };
        Self::read(value).ok_or(truncated)?
    }

    fn read(value: &[u8]) -> Option<Result<Self, RtpError>> {
        let (&head, mut rest) = value.split_first()?;
        let mut this = Self {
            stream: 0,
            streams: 0,
            layers: Default::default(),
            len: 0,
        };
        if head == 0 && rest.is_empty() {
            return Some(Ok(this));
        }
        this.stream = head >> 6;
        this.streams = ((head >> 4) & 3) + 1;
        if this.stream >= this.streams {
            return Some(Err(RtpError::Invalid("stream index")));
        }
        // One bitmask of spatial layers for all streams, or four bits for each.
        let mut masks = [head & 0x0f; 4];
        if head & 0x0f == 0 {
            let (bytes, after) = rest.split_at_checked(usize::from(this.streams).div_ceil(2))?;
            rest = after;
            for (mask, nibble) in masks.iter_mut().zip(nibbles(bytes)) {
                *mask = nibble;
            }
        }
        let active = masks
            .iter()
            .zip(0..this.streams)
            .flat_map(|(mask, stream)| {
                (0..4)
                    .filter(move |spatial| mask & (1 << spatial) != 0)
                    .map(move |s| (stream, s))
            });
        for ((stream, spatial), layer) in active.zip(&mut this.layers) {
            *layer = AllocatedLayer {
                stream,
                spatial,
                ..AllocatedLayer::default()
            };
            this.len += 1;
        }
        let layers = this.layers.get_mut(..usize::from(this.len))?;
        let (counts, after) = rest.split_at_checked(layers.len().div_ceil(4))?;
        rest = after;
        for (layer, pair) in layers
            .iter_mut()
            .zip(counts.iter().copied().flat_map(bit_pairs))
        {
            layer.temporal_layers = pair + 1;
        }
        for layer in layers.iter_mut() {
            for bitrate in layer
                .bitrates
                .iter_mut()
                .take(usize::from(layer.temporal_layers))
            {
                *bitrate = read_leb128(&mut rest)?;
            }
        }
        if !rest.is_empty() {
            let (formats, []) = rest.as_chunks::<FORMAT_LEN>() else {
                return Some(Err(RtpError::Invalid("layer formats")));
            };
            if formats.len() != layers.len() {
                return Some(Err(RtpError::Invalid("layer formats")));
            }
            for (layer, &[w0, w1, h0, h1, max_framerate]) in layers.iter_mut().zip(formats) {
                layer.format = Some(LayerFormat {
                    width: u32::from(u16::from_be_bytes([w0, w1])) + 1,
                    height: u32::from(u16::from_be_bytes([h0, h1])) + 1,
                    max_framerate,
                });
            }
        }
        Some(Ok(this))
    }

    /// Writes the element's value. Returns its length, at most [`Self::MAX_LEN`]. Values above 255
    /// bytes do not fit a header extension.
    pub fn write_into(&self, out: &mut [u8]) -> Result<usize, RtpError> {
        let mut whole = [0; Self::MAX_LEN];
        let unused = self
            .write(&mut whole)
            .map_or(Self::MAX_LEN, |rest| rest.len());
        let value = whole.get(..Self::MAX_LEN - unused).unwrap_or_default();
        let no_room = RtpError::NoRoom {
            needed: value.len(),
            available: out.len(),
        };
        out.get_mut(..value.len())
            .ok_or(no_room)?
            .copy_from_slice(value);
        Ok(value.len())
    }

    /// Writes into `out`, which is zeroed. Returns the rest of it.
    fn write<'a>(&self, mut out: &'a mut [u8]) -> Option<&'a mut [u8]> {
        if self.streams == 0 {
            return out.get_mut(1..);
        }
        let mut masks = [0u8; 4];
        for layer in self.layers() {
            *masks.get_mut(usize::from(layer.stream))? |= 1 << layer.spatial;
        }
        let masks = masks.get(..usize::from(self.streams))?;
        let first = *masks.first()?;
        let same = masks.iter().all(|mask| *mask == first);
        let shared = if same { first } else { 0 };
        *out.split_off_first_mut()? = (self.stream << 6) | ((self.streams - 1) << 4) | shared;
        if shared == 0 {
            for pair in masks.chunks(2) {
                let low = pair.get(1).copied().unwrap_or(0);
                *out.split_off_first_mut()? = (pair.first()? << 4) | low;
            }
        }
        for four in self.layers().chunks(4) {
            *out.split_off_first_mut()? =
                four.iter()
                    .zip([6, 4, 2, 0])
                    .fold(0, |byte, (layer, shift)| {
                        byte | ((layer.temporal_layers.saturating_sub(1) & 3) << shift)
                    });
        }
        for layer in self.layers() {
            for bitrate in layer
                .bitrates
                .iter()
                .take(usize::from(layer.temporal_layers))
            {
                write_leb128(*bitrate, &mut out)?;
            }
        }
        for format in self.layers().iter().filter_map(|layer| layer.format) {
            let [w0, w1] = (format.width.saturating_sub(1).min(0xffff) as u16).to_be_bytes();
            let [h0, h1] = (format.height.saturating_sub(1).min(0xffff) as u16).to_be_bytes();
            let bytes = out.split_off_mut(..FORMAT_LEN)?;
            bytes.copy_from_slice(&[w0, w1, h0, h1, format.max_framerate]);
        }
        Some(out)
    }
}

fn nibbles(bytes: &[u8]) -> impl Iterator<Item = u8> + '_ {
    bytes.iter().flat_map(|byte| [byte >> 4, byte & 0x0f])
}

fn bit_pairs(byte: u8) -> [u8; 4] {
    [byte >> 6, (byte >> 4) & 3, (byte >> 2) & 3, byte & 3]
}

/// Reads at most five bytes, and drops bits above 32.
fn read_leb128(bytes: &mut &[u8]) -> Option<u32> {
    let mut value = 0u64;
    for shift in [0, 7, 14, 21, 28] {
        let byte = *bytes.split_off_first()?;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value as u32);
        }
    }
    None
}

fn write_leb128(mut value: u32, out: &mut &mut [u8]) -> Option<()> {
    while value >= 0x80 {
        *out.split_off_first_mut()? = value as u8 | 0x80;
        value >>= 7;
    }
    *out.split_off_first_mut()? = value as u8;
    Some(())
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::indexing_slicing,
        reason = "a test fails by a panic"
    )]

    use super::*;
    use proptest::prelude::*;

    fn layer(stream: u8, spatial: u8, bitrates: &[u32]) -> AllocatedLayer {
        let mut layer = AllocatedLayer {
            stream,
            spatial,
            ..AllocatedLayer::default()
        };
        layer.temporal_layers = bitrates.len() as u8;
        layer.bitrates[..bitrates.len()].copy_from_slice(bitrates);
        layer
    }

    #[test]
    fn three_streams_of_one_spatial_and_two_temporal_layers() {
        let value = [
            0x61,
            0b0101_0100,
            50,
            100,
            0xc8,
            0x01,
            0xac,
            0x02,
            0x84,
            0x07,
            0xe8,
            0x07,
        ];
        let parsed = VideoLayersAllocation::parse(&value).unwrap();
        assert_eq!((parsed.stream, parsed.streams), (1, 3));
        let expected = [
            layer(0, 0, &[50, 100]),
            layer(1, 0, &[200, 300]),
            layer(2, 0, &[900, 1000]),
        ];
        assert_eq!(parsed.layers(), expected);
        assert_eq!(VideoLayersAllocation::new(1, 3, &expected), Some(parsed));
    }

    #[test]
    fn streams_that_differ_in_layers_and_have_formats() {
        let value = [0x10, 0b0011_0000, 0, 5, 6, 0, 9, 0, 7, 30, 0, 19, 0, 15, 60];
        let parsed = VideoLayersAllocation::parse(&value).unwrap();
        assert_eq!((parsed.stream, parsed.streams), (0, 2));
        let format = LayerFormat {
            width: 20,
            height: 16,
            max_framerate: 60,
        };
        assert_eq!(
            parsed.layers()[1],
            AllocatedLayer {
                format: Some(format),
                ..layer(0, 1, &[6])
            }
        );
        let mut out = [0; 64];
        let len = parsed.write_into(&mut out).unwrap();
        assert_eq!(out[..len], value);
        assert!(parsed.write_into(&mut out[..14]).is_err());
    }

    #[test]
    fn a_single_zero_means_paused() {
        let parsed = VideoLayersAllocation::parse(&[0]).unwrap();
        assert_eq!((parsed.streams, parsed.layers().len()), (0, 0));
        assert_eq!(parsed.write_into(&mut [0; 1]), Ok(1));
    }

    #[test]
    fn malformed_values_are_refused() {
        assert!(matches!(
            VideoLayersAllocation::parse(&[]),
            Err(RtpError::Truncated { .. })
        ));
        assert!(matches!(
            VideoLayersAllocation::parse(&[0x41, 0]),
            Err(RtpError::Invalid(_))
        ));
        let odd = VideoLayersAllocation::parse(&[0x01, 0, 1, 9, 9]);
        assert_eq!(odd, Err(RtpError::Invalid("layer formats")));
        let endless = VideoLayersAllocation::parse(&[0x01, 0, 255, 255, 255, 255, 255, 255]);
        assert!(matches!(endless, Err(RtpError::Truncated { .. })));
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic_and_round_trip(
            value in proptest::collection::vec(any::<u8>(), 0..100),
        ) {
            if let Ok(parsed) = VideoLayersAllocation::parse(&value) {
                let mut out = [0; VideoLayersAllocation::MAX_LEN];
                let len = parsed.write_into(&mut out).unwrap();
                prop_assert_eq!(VideoLayersAllocation::parse(&out[..len]), Ok(parsed));
            }
        }
    }
}
