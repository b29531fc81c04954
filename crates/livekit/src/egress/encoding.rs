//! How pictures and sound are encoded for streams and composed films.

use livekit_protocol::{EncodingOptions, EncodingOptionsPreset};

use crate::services::{Answer, Code, ServiceError};

/// The encoding of an output.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Encoding {
    /// The width of the picture in pixels.
    pub(crate) width: u32,
    /// Its height.
    pub(crate) height: u32,
    /// Pictures a second.
    pub(crate) fps: u32,
    /// The bitrate of the picture in kbit/s.
    pub(crate) video_kbps: u32,
    /// The bitrate of the sound in kbit/s.
    pub(crate) audio_kbps: u32,
    /// Seconds between keyframes.
    pub(crate) keyframe_s: f64,
}

impl Encoding {
    const fn preset(width: u32, height: u32, fps: u32, video_kbps: u32) -> Self {
        Encoding {
            width,
            height,
            fps,
            video_kbps,
            audio_kbps: 128,
            keyframe_s: 2.0,
        }
    }

    /// Returns the encoding of a preset.
    pub(crate) fn of_preset(preset: EncodingOptionsPreset) -> Self {
        use EncodingOptionsPreset as Preset;
        match preset {
            Preset::H264720p30 | Preset::Passthrough => Self::preset(1280, 720, 30, 3_000),
            Preset::H264720p60 => Self::preset(1280, 720, 60, 4_500),
            Preset::H2641080p30 => Self::preset(1920, 1080, 30, 4_500),
            Preset::H2641080p60 => Self::preset(1920, 1080, 60, 6_000),
            Preset::PortraitH264720p30 => Self::preset(720, 1280, 30, 3_000),
            Preset::PortraitH264720p60 => Self::preset(720, 1280, 60, 4_500),
            Preset::PortraitH2641080p30 => Self::preset(1080, 1920, 30, 4_500),
            Preset::PortraitH2641080p60 => Self::preset(1080, 1920, 60, 6_000),
        }
    }

    /// Returns the encoding with these options. Numbers that are 0 have LiveKit's defaults.
    pub(crate) fn of_options(options: &EncodingOptions) -> Answer<Self> {
        let number =
            |name: &str, value: i32, default: u32, range: std::ops::RangeInclusive<u32>| {
                let value = match value {
                    0 => default,
                    value => u32::try_from(value).unwrap_or_default(),
                };
                let text = || format!("{name} has to be from {} to {}", range.start(), range.end());
                let wrong = || ServiceError::new(Code::InvalidArgument, text());
                range.contains(&value).then_some(value).ok_or_else(wrong)
            };
        // Encoders need even sizes.
        let even = |size: u32| size & !1;
        let keyframe_s = match options.key_frame_interval {
            interval if interval > 0.0 => interval.clamp(0.5, 60.0),
            _ => 4.0,
        };
        Ok(Encoding {
            width: even(number("width", options.width, 1920, 16..=7_680)?),
            height: even(number("height", options.height, 1080, 16..=4_320)?),
            fps: number("framerate", options.framerate, 30, 1..=120)?,
            video_kbps: number("video_bitrate", options.video_bitrate, 4_500, 50..=100_000)?,
            audio_kbps: number("audio_bitrate", options.audio_bitrate, 128, 8..=510)?,
            keyframe_s,
        })
    }

    /// Returns the number of pictures from one keyframe to the next.
    pub(crate) fn keyframe_interval(&self) -> u32 {
        // At most 120 * 60.
        (f64::from(self.fps) * self.keyframe_s).round().max(1.0) as u32
    }
}

impl Default for Encoding {
    fn default() -> Self {
        Self::of_preset(EncodingOptionsPreset::H264720p30)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_have_defaults_and_limits() {
        let default = Encoding::of_options(&EncodingOptions::default());
        assert_eq!(
            default.map(|it| (it.width, it.height, it.fps, it.keyframe_interval())),
            Ok((1920, 1080, 30, 120))
        );
        let options = EncodingOptions {
            width: 641,
            framerate: 25,
            key_frame_interval: 1.0,
            ..EncodingOptions::default()
        };
        let encoding = Encoding::of_options(&options);
        let got = encoding.map(|it| (it.width, it.keyframe_interval()));
        assert_eq!(got, Ok((640, 25)));
        for wrong in [-1, 8, 10_000] {
            let options = EncodingOptions {
                width: wrong,
                ..EncodingOptions::default()
            };
            assert!(Encoding::of_options(&options).is_err(), "{wrong}");
        }
    }
}
