//! Reads keyframe, layers and picture numbers of a packet, once for all sinks.

use portunus_rtp::codec::{VideoCodec, Vp8, Vp9, is_keyframe};
use portunus_rtp::extension::{DependencyReader, MandatoryFields};
use portunus_rtp::{ExtensionKind, ExtensionMap, Header};
use portunus_sdp::negotiated::Codec;

use super::{Inspected, Layers, PictureIds, Targets};

/// Inspects the packets of one encoding. It keeps the structure of the last dependency descriptor.
#[derive(Debug, Default)]
pub struct Inspector {
    dependencies: Option<Box<DependencyReader>>,
    svc: bool,
}

impl Inspector {
    /// Returns the layers of a packet and the numbers of its picture.
    #[inline]
    pub fn inspect(
        &mut self,
        codec: Codec,
        header: &Header,
        packet: &[u8],
        extensions: &ExtensionMap,
    ) -> Inspected {
        let payload = header.payload(packet);
        match codec {
            Codec::Vp8 => vp8(payload),
            Codec::Vp9 => Inspected {
                frame: descriptor(header, packet, extensions).and_then(frame_number),
                ..self.vp9(header, payload)
            },
            Codec::Av1 => self.av1(header, packet, extensions),
            Codec::H264 => plain(VideoCodec::H264, header, payload).into(),
            Codec::H265 => plain(VideoCodec::H265, header, payload).into(),
            Codec::Opus
            | Codec::MultiOpus
            | Codec::G722
            | Codec::Pcmu
            | Codec::Pcma
            | Codec::L16
            | Codec::Isac
            | Codec::Red
            | Codec::TelephoneEvent
            | Codec::ComfortNoise => Layers {
                start: true,
                end: true,
                ..Layers::default()
            }
            .into(),
        }
    }

    fn vp9(&mut self, header: &Header, payload: &[u8]) -> Inspected {
        let Ok(vp9) = Vp9::parse(payload) else {
            return Inspected::default();
        };
        let spatial = vp9.spatial();
        let structure = vp9.scalability_structure(payload);
        self.svc = structure.map_or(self.svc, |s| s.spatial_layers > 1) || spatial > 0;
        let layers = Layers {
            keyframe: vp9.is_keyframe(),
            spatial,
            temporal: vp9.temporal(),
            svc: self.svc,
            switching_point: vp9.layer.is_none_or(|layer| layer.switching_up),
            start: vp9.starts_frame,
            end: vp9.ends_frame || header.marker,
        };
        let ids = vp9.picture_id;
        Inspected {
            ids: ids.map(|id| PictureIds::new(id, vp9.tl0_pic_idx)),
            ..layers.into()
        }
    }

    fn av1(&mut self, header: &Header, packet: &[u8], extensions: &ExtensionMap) -> Inspected {
        let payload = header.payload(packet);
        let Some(value) = descriptor(header, packet, extensions) else {
            return plain(VideoCodec::Av1, header, payload).into();
        };
        let frame = frame_number(value);
        let reader = self.dependencies.get_or_insert_with(Box::default);
        let Ok(descriptor) = reader.read(value) else {
            return Inspected {
                frame,
                ..plain(VideoCodec::Av1, header, payload).into()
            };
        };
        let structure = reader.structure();
        let top = structure.map_or((0, 0), |s| (s.max_spatial(), s.max_temporal()));
        let targets = structure.filter(|_| top != (0, 0));
        let layers = Layers {
            keyframe: descriptor.has_structure,
            spatial: descriptor.spatial,
            temporal: descriptor.temporal,
            svc: top != (0, 0),
            // Browsers use structures (LxTy) whose upper temporal layers depend on lower ones only:
            // any start of a frame is a switching point.
            switching_point: true,
            start: descriptor.fields.start_of_frame,
            end: descriptor.fields.end_of_frame,
        };
        Inspected {
            layers,
            ids: None,
            frame,
            targets: targets.map(|structure| Targets::new(&descriptor, structure)),
        }
    }
}

/// Returns the dependency descriptor, if the packet has one.
fn descriptor<'p>(
    header: &Header,
    packet: &'p [u8],
    extensions: &ExtensionMap,
) -> Option<&'p [u8]> {
    let id = extensions.id(ExtensionKind::DependencyDescriptor)?;
    header.extension(packet, id)
}

fn frame_number(descriptor: &[u8]) -> Option<u16> {
    let fields = MandatoryFields::parse(descriptor).ok();
    fields.map(|fields| fields.frame_number)
}

fn vp8(payload: &[u8]) -> Inspected {
    let Ok(vp8) = Vp8::parse(payload) else {
        return Inspected::default();
    };
    let layers = Layers {
        keyframe: vp8.is_keyframe(payload),
        temporal: vp8.temporal.unwrap_or(0),
        switching_point: vp8.layer_sync,
        start: vp8.starts_frame(),
        ..Layers::default()
    };
    let ids = vp8.picture_id;
    Inspected {
        ids: ids.map(|id| PictureIds::new(id, vp8.tl0_pic_idx)),
        ..layers.into()
    }
}

fn plain(codec: VideoCodec, header: &Header, payload: &[u8]) -> Layers {
    let keyframe = is_keyframe(codec, payload);
    Layers {
        keyframe,
        start: true,
        end: header.marker,
        ..Layers::default()
    }
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::indexing_slicing,
        reason = "a failed test panics"
    )]

    use portunus_rtp::codec::PictureId;
    use portunus_rtp::{Fields, Pt, Ssrc, write_header};

    use super::*;

    /// Looks into a packet with this payload, and this dependency descriptor if it is not empty.
    fn look(
        inspector: &mut Inspector,
        codec: Codec,
        descriptor: &[u8],
        payload: &[u8],
    ) -> Inspected {
        let fields = Fields {
            marker: true,
            padding: false,
            pt: Pt(98),
            sequence: 1,
            timestamp: 2,
            ssrc: Ssrc(3),
        };
        let mut extensions = ExtensionMap::default();
        extensions.set(ExtensionKind::DependencyDescriptor, 5);
        let mut packet = vec![0; 64];
        let own = (!descriptor.is_empty()).then_some((5, descriptor));
        let len = write_header(&mut packet, &fields, own).unwrap();
        packet.truncate(len);
        packet.extend_from_slice(payload);
        let header = Header::parse(&packet).unwrap();
        inspector.inspect(codec, &header, &packet, &extensions)
    }

    #[test]
    fn the_frame_number_of_a_descriptor_is_read_whatever_else_can_be() {
        let descriptor = [0xc0, 0x12, 0x34];
        let frame = |codec| look(&mut Inspector::default(), codec, &descriptor, &[0; 10]).frame;
        // There was no structure yet that the descriptor could refer to.
        assert_eq!(frame(Codec::Av1), Some(0x1234));
        assert_eq!(frame(Codec::Vp9), Some(0x1234));
        assert_eq!(frame(Codec::Vp8), None);
    }

    #[test]
    fn the_layers_of_vp8_are_those_of_its_descriptor() {
        let mut inspector = Inspector::default();
        // X and S; I, L and T; picture 0x1234, TL0PICIDX 7.
        let mut inspect = |layer, frame| {
            let payload = [0x90, 0xe0, 0x92, 0x34, 7, layer, frame];
            let seen = look(&mut inspector, Codec::Vp8, &[], &payload);
            let ids = seen.ids.unwrap();
            assert_eq!((ids.picture, ids.tl0), (0x1234, 7));
            let Layers {
                keyframe,
                temporal,
                switching_point,
                start,
                ..
            } = seen.layers;
            (keyframe, temporal, switching_point, start)
        };
        assert_eq!(inspect(0x00, 0), (true, 0, false, true));
        assert_eq!(inspect(0x80, 1), (false, 2, false, true), "T2");
        assert_eq!(inspect(0x60, 1), (false, 1, true, true), "T1, synced");
    }

    #[test]
    fn the_layers_of_vp9_are_those_of_its_descriptor() {
        let mut inspector = Inspector::default();
        let mut inspect = |payload: &[u8]| {
            let layers = look(&mut inspector, Codec::Vp9, &[], payload).layers;
            let place = (layers.spatial, layers.temporal);
            (layers.keyframe, place, layers.switching_point, layers.svc)
        };
        // I, L, B, E, and V with two spatial layers; picture 1, T0 U S0, TL0PICIDX 7.
        let keyframe = [0xae, 1, 0x10, 7, 0x20];
        assert_eq!(inspect(&keyframe), (true, (0, 0), true, true));
        // The same picture's upper layer, predicted from the lower one.
        assert_eq!(
            inspect(&[0xac, 1, 0x13, 7]),
            (false, (1, 0), true, true),
            "S1"
        );
        assert_eq!(
            inspect(&[0xec, 2, 0x43, 7]),
            (false, (1, 2), false, true),
            "S1T2"
        );
    }

    #[test]
    fn the_picture_numbers_of_vp9_are_those_of_its_descriptor() {
        let ids = |payload: &[u8]| look(&mut Inspector::default(), Codec::Vp9, &[], payload).ids;
        let (short, long) = (PictureId::Short(0x12), PictureId::Long(0x1234));
        assert_eq!(
            ids(&[0xac, 0x92, 0x34, 0x10, 7]),
            Some(PictureIds::new(long, Some(7)))
        );
        assert_eq!(
            ids(&[0xac, 0x12, 0x10, 7]),
            Some(PictureIds::new(short, Some(7)))
        );
        assert_eq!(
            ids(&[0xbc, 0x12, 0x10, 7]),
            Some(PictureIds::new(short, None)),
            "flexible"
        );
        assert_eq!(ids(&[0x2c, 0x10, 7]), None, "without I");
    }

    #[test]
    fn the_layers_of_av1_are_those_of_the_templates() {
        let mut inspector = Inspector::default();
        let mut inspect = |descriptor: &[u8]| {
            let layers = look(&mut inspector, Codec::Av1, descriptor, &[0x10, 0x30]).layers;
            let ends = (layers.start, layers.end);
            (layers.keyframe, layers.temporal, layers.svc, ends)
        };
        let delta = [0xc1, 0, 2];
        assert_eq!(inspect(&delta), (false, 0, false, (true, true)), "unknown");
        // Frame 1 with a structure of two temporal layers: each has a template.
        let keyframe = [0xc0, 0, 1, 0x80, 0x01, 0x7a, 0x14, 0x00];
        assert_eq!(inspect(&keyframe), (true, 0, true, (true, true)));
        assert_eq!(inspect(&delta), (false, 1, true, (true, true)));
        assert_eq!(inspect(&[0x41, 0, 2]), (false, 1, true, (false, true)));
        assert_eq!(inspect(&[0xc0, 0, 3]), (false, 0, true, (true, true)));
    }
}
