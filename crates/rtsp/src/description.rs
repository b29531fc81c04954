//! The description of a server: SDP (RFC 4566), with the URLs of its streams (RFC 2326 appendix C).

use std::sync::Arc;

use sdp_types::{Attribute, Media};
use url::Url;

use crate::RtspError;

/// Sound or picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MediumKind {
    /// Sound.
    Audio,
    /// Picture.
    Video,
}

impl MediumKind {
    /// Returns its name in SDP.
    pub const fn name(self) -> &'static str {
        match self {
            MediumKind::Audio => "audio",
            MediumKind::Video => "video",
        }
    }
}

/// A stream in the server's description.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Medium {
    /// Sound or picture.
    pub kind: MediumKind,
    /// The codec's name, as it is written in the SDP.
    pub encoding: String,
    /// Units of RTP timestamps a second.
    pub clock_rate: u32,
    /// The number of audio channels, if the SDP has it.
    pub channels: Option<u8>,
    /// The payload type of its packets.
    pub pt: u8,
    /// Format parameters.
    pub fmtp: Option<String>,
    /// The URL (or path) of its SETUP.
    pub control: String,
}

/// A test whether the caller can use a medium.
#[derive(Clone)]
pub struct Usable(Arc<dyn Fn(&Medium) -> bool + Send + Sync>);

impl Usable {
    /// Returns the test `is_usable`.
    pub fn by(is_usable: impl Fn(&Medium) -> bool + Send + Sync + 'static) -> Self {
        Usable(Arc::new(is_usable))
    }

    pub(crate) fn takes(&self, medium: &Medium) -> bool {
        (self.0)(medium)
    }
}

impl std::fmt::Debug for Usable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Usable")
    }
}

/// The media of one kind, of which one is chosen: the first one to which the server agrees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice(Vec<Medium>);

impl Choice {
    /// The most media of a kind that are tried.
    const MAX: usize = 8;

    /// Returns the media, at least one.
    pub fn media(&self) -> &[Medium] {
        &self.0
    }

    pub(crate) fn into_media(self) -> impl Iterator<Item = Medium> {
        self.0.into_iter()
    }

    /// Moves the usable media to the front.
    pub(crate) fn prefer(&mut self, usable: &Usable) {
        self.0.sort_by_key(|medium| !usable.takes(medium));
    }
}

/// The kinds of media to receive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WantedMedia {
    /// Whether audio is wanted.
    pub audio: bool,
    /// Whether video is wanted.
    pub video: bool,
}

/// Returns the wanted media of a description, a choice for each kind, audio first, and the URL of
/// PLAY. `base` is the base of their URLs.
pub fn parse_description(
    sdp: &[u8],
    base: &str,
    wanted: WantedMedia,
) -> Result<(Vec<Choice>, String), RtspError> {
    // Other lines are not needed, and cameras write them in strange ways.
    let is_read = |line: &&[u8]| matches!(line, [b'v' | b'm' | b'a', b'=', ..]);
    let lines = sdp.split(|byte| *byte == b'\n').filter(is_read);
    let lines: Vec<&[u8]> = lines.map(<[u8]>::trim_ascii_end).collect();
    let session = sdp_types::Session::parse(&lines.join(&b'\n'))
        .map_err(|error| RtspError::Description(error.to_string()))?;
    let attribute = |name: &str| {
        let found = session.attributes.iter().find(|it| it.attribute == name);
        found.and_then(|it| it.value.as_deref())
    };
    let whole = resolve(base, attribute("control"))?;
    let of_session = direction(&session.attributes).unwrap_or(MediumDirection::Receive);
    let directed = session.medias.iter().map(|media| {
        let own = direction(&media.attributes).unwrap_or(of_session);
        (media, own)
    });
    let coming = coming(directed.collect());
    let mut choices = Vec::new();
    let mut kinds = Vec::new();
    let mut refusal = None;
    for (kind, takes) in [
        (MediumKind::Audio, wanted.audio),
        (MediumKind::Video, wanted.video),
    ] {
        if !takes {
            continue;
        }
        kinds.push(kind.name());
        let mut media = Vec::new();
        for each in coming.iter().filter(|media| media.media == kind.name()) {
            match medium(each, kind, &whole) {
                Ok(found) => media.extend(found),
                // Other media may still be good.
                Err(error) => refusal = refusal.or(Some(error)),
            }
        }
        media.truncate(Choice::MAX);
        if !media.is_empty() {
            choices.push(Choice(media));
        }
    }
    if choices.is_empty() {
        let nothing = RtspError::NoMedia(match kinds.as_slice() {
            ["audio"] => "audio",
            ["video"] => "video",
            _ => "audio or video",
        });
        return Err(refusal.unwrap_or(nothing));
    }
    Ok((choices, whole))
}

/// The direction of packets from the receiver's view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MediumDirection {
    /// To us, perhaps in both directions.
    Receive,
    /// From us: a loudspeaker.
    Send,
    Inactive,
}

/// Returns the direction in attributes (RFC 4566 section 6), if there is one.
fn direction(attributes: &[Attribute]) -> Option<MediumDirection> {
    let mut told = attributes
        .iter()
        .filter_map(|it| match it.attribute.as_str() {
            "recvonly" | "sendrecv" => Some(MediumDirection::Receive),
            "sendonly" => Some(MediumDirection::Send),
            "inactive" => Some(MediumDirection::Inactive),
            _ => None,
        });
    told.next()
}

/// Returns the m-lines that send to us. If all say that they receive, the server wrote its own
/// view.
fn coming(media: Vec<(&Media, MediumDirection)>) -> Vec<&Media> {
    let any = |wanted| media.iter().any(|(_, direction)| *direction == wanted);
    let wanted = match any(MediumDirection::Receive) {
        true => MediumDirection::Receive,
        false => MediumDirection::Send,
    };
    let media = media.iter().filter(|(_, direction)| *direction == wanted);
    media.map(|(media, _)| *media).collect()
}

/// Returns the medium of an m-line, if its packets are plain RTP and its codec is known.
fn medium(media: &Media, kind: MediumKind, base: &str) -> Result<Option<Medium>, RtspError> {
    if !["RTP/AVP", "RTP/AVPF"].contains(&media.proto.as_str()) {
        return Ok(None);
    }
    let first = media.fmt.split_ascii_whitespace().next();
    let Some(pt) = first.and_then(|pt| pt.parse().ok()).filter(|pt| *pt < 128) else {
        return Ok(None);
    };
    // `rtpmap:96 H264/90000`, `fmtp:96 …`.
    let of_pt = |name: &str| {
        let values = media
            .attributes
            .iter()
            .filter(move |it| it.attribute == name);
        let mut values = values.filter_map(|it| it.value.as_deref()?.split_once(' '));
        let found = values.find(|(of, _)| of.parse() == Ok(pt))?;
        Some(found.1.trim())
    };
    let (encoding, clock_rate, channels) = match of_pt("rtpmap") {
        Some(map) => {
            let mut parts = map.split('/');
            let encoding = parts.next().unwrap_or_default();
            let rate = parts.next().and_then(|rate| rate.parse().ok());
            let Some(rate) = rate.filter(|rate| *rate > 0 && is_token(encoding)) else {
                return Ok(None);
            };
            let channels = parts.next().and_then(|channels| channels.parse().ok());
            (encoding, rate, channels)
        }
        None => match pt {
            0 => ("PCMU", 8_000, None),
            8 => ("PCMA", 8_000, None),
            9 => ("G722", 8_000, None),
            _ => return Ok(None),
        },
    };
    let control = media.attributes.iter().find(|it| it.attribute == "control");
    Ok(Some(Medium {
        kind,
        encoding: encoding.to_owned(),
        clock_rate,
        channels,
        pt,
        fmtp: of_pt("fmtp").map(str::to_owned),
        control: resolve(base, control.and_then(|it| it.value.as_deref()))?,
    }))
}

fn is_token(name: &str) -> bool {
    !name.is_empty() && name.len() <= 64 && name.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Returns the URL of `control`. Servers expect it after the base and a slash, not resolved as a
/// relative URL.
fn resolve(base: &str, control: Option<&str>) -> Result<String, RtspError> {
    let control = control.map_or("*", str::trim);
    let whole = match control {
        "" | "*" => base.to_owned(),
        _ if control.to_ascii_lowercase().starts_with("rtsp://") => control.to_owned(),
        _ if control.starts_with('/') => match Url::parse(base) {
            Ok(url) => {
                let mut url = url;
                let (path, query) = control.split_once('?').unzip();
                url.set_path(path.unwrap_or(control));
                url.set_query(query);
                url.to_string()
            }
            Err(_) => control.to_owned(),
        },
        _ => format!("{}/{control}", base.trim_end_matches('/')),
    };
    // It becomes part of a request line.
    if whole.len() > 2_048 || !whole.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(RtspError::Description("a control URL".to_owned()));
    }
    Ok(whole)
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::indexing_slicing,
        reason = "a test fails by a panic"
    )]

    use super::*;

    const CAMERA: &str = "v=0\r\no=- 1 1 IN IP4 10.0.0.1\r\ns=Camera\r\nc=IN IP4 0.0.0.0\r\nt=0 0\r\n\
        a=control:*\r\n\
        m=video 0 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\n\
        a=fmtp:96 packetization-mode=1;profile-level-id=42e01f\r\na=control:trackID=1\r\n\
        m=audio 0 RTP/AVP 8\r\na=control:trackID=2\r\n\
        m=application 0 RTP/AVP 107\r\na=rtpmap:107 vnd.onvif.metadata/90000\r\na=control:trackID=3\r\n";

    fn parse(sdp: &str, wanted: (bool, bool)) -> Result<(Vec<Choice>, String), RtspError> {
        let (audio, video) = wanted;
        let wanted = WantedMedia { audio, video };
        parse_description(sdp.as_bytes(), "rtsp://10.0.0.1/live/", wanted)
    }

    #[test]
    fn a_camera() {
        let (choices, whole) = parse(CAMERA, (true, true)).unwrap();
        assert_eq!(whole, "rtsp://10.0.0.1/live/");
        let [audio, video] = choices.iter().map(Choice::media).collect::<Vec<_>>()[..] else {
            unreachable!("two media")
        };
        let ([audio], [video]) = (audio, video) else {
            unreachable!("one of each kind")
        };
        assert_eq!(
            (audio.encoding.as_str(), audio.pt, audio.clock_rate),
            ("PCMA", 8, 8_000)
        );
        assert_eq!(audio.control, "rtsp://10.0.0.1/live/trackID=2");
        assert_eq!(
            (video.encoding.as_str(), video.pt, video.clock_rate),
            ("H264", 96, 90_000)
        );
        assert!(video.fmtp.as_deref().unwrap().ends_with("42e01f"));
        let (only, _) = parse(CAMERA, (true, false)).unwrap();
        assert_eq!(only.len(), 1);
    }

    #[test]
    fn what_is_not_looked_at_may_be_written_as_cameras_like() {
        let origin = "o=- 1 1 IN IP4 10.0.0.1";
        for (line, quirk) in [
            // TP-Link's origin has one number more.
            (origin, "o=- 14665860 31787219 1 IN IP4 10.0.0.1"),
            (origin, "o= 1 1 IN IP4 10.0.0.1"),
            (origin, "o=- a1b2 -1 IN IP4"),
            ("t=0 0", "t=now"),
            ("t=0 0", "b=AS:1.5\r\nt=0 0"),
            ("c=IN IP4 0.0.0.0", "c=IN IP4"),
            ("s=Camera", "s=Camera\0"),
            ("s=Camera", "Camera"),
        ] {
            let sdp = CAMERA.replace(line, quirk);
            let (choices, whole) = parse(&sdp, (true, true)).unwrap();
            assert_eq!(choices.len(), 2, "{quirk}");
            assert_eq!(whole, "rtsp://10.0.0.1/live/", "{quirk}");
        }
        let trailing = format!("{CAMERA}\0");
        assert_eq!(parse(&trailing, (true, true)).unwrap().0.len(), 2);
    }

    const MICROPHONE: &str = "m=audio 0 RTP/AVP 8\r\na=control:trackID=2\r\n";

    /// Returns the URLs of SETUP for a camera's audio, in the order of the attempts.
    fn audio_of(lines: &str) -> Vec<String> {
        let sdp = CAMERA.replace(MICROPHONE, lines);
        let (choices, _) = parse(&sdp, (true, false)).unwrap();
        let controls = choices[0].media().iter().map(|it| it.control.clone());
        let name = |url: String| url.rsplit('/').next().unwrap_or_default().to_owned();
        controls.map(name).collect()
    }

    #[test]
    fn a_loudspeaker_before_the_microphone_is_not_taken_for_it() {
        let line = |control: &str, direction: &str| {
            format!("m=audio 0 RTP/AVP 0\r\na=control:{control}\r\na={direction}\r\n")
        };
        let loudspeaker = line("speaker", "sendonly");
        for microphone in ["recvonly", "sendrecv", "x-nothing"] {
            let lines = format!("{loudspeaker}{}", line("microphone", microphone));
            assert_eq!(audio_of(&lines), ["microphone"], "{microphone}");
        }
        let silent = format!("{}{}", line("off", "inactive"), line("on", "recvonly"));
        assert_eq!(audio_of(&silent), ["on"]);
        // With a loudspeaker only, there is no audio to receive.
        let sdp = CAMERA.replace(MICROPHONE, &loudspeaker);
        let none = parse(&sdp, (true, false));
        assert!(matches!(none, Err(RtspError::NoMedia("audio"))), "{none:?}");
        assert_eq!(parse(&sdp, (true, true)).unwrap().0.len(), 1);
    }

    #[test]
    fn a_server_that_calls_all_that_it_sends_sendonly_is_understood() {
        let directed = CAMERA.replace("a=control:trackID", "a=sendonly\r\na=control:trackID");
        assert_eq!(parse(&directed, (true, true)).unwrap().0.len(), 2);
        let of_session = CAMERA.replace("a=control:*", "a=control:*\r\na=sendonly");
        assert_eq!(parse(&of_session, (true, true)).unwrap().0.len(), 2);
    }

    #[test]
    fn a_codec_that_is_of_use_goes_before_one_that_is_not() {
        let other =
            "m=audio 0 RTP/AVP 97\r\na=rtpmap:97 MPEG4-GENERIC/48000/2\r\na=control:aac\r\n";
        let lines = format!("{other}{MICROPHONE}");
        assert_eq!(audio_of(&lines), ["aac", "trackID=2"]);
        let sdp = CAMERA.replace(MICROPHONE, &lines);
        let mut choice = parse(&sdp, (true, false)).unwrap().0.remove(0);
        choice.prefer(&Usable::by(|medium| medium.encoding == "PCMA"));
        assert_eq!(choice.media()[0].encoding, "PCMA");
        choice.prefer(&Usable::by(|_| false));
        assert_eq!(choice.media()[0].encoding, "PCMA", "the order stays");
    }

    #[test]
    fn a_line_that_cannot_be_set_up_costs_no_other() {
        let sdp = CAMERA.replace("trackID=2", "track 2");
        let (choices, _) = parse(&sdp, (true, true)).unwrap();
        assert_eq!(choices.len(), 1);
        assert_eq!(choices[0].media()[0].kind, MediumKind::Video);
    }

    #[test]
    fn urls() {
        let base = "rtsp://h/a?x=1";
        for (control, whole) in [
            ("*", "rtsp://h/a?x=1"),
            ("track1", "rtsp://h/a?x=1/track1"),
            ("/other?y", "rtsp://h/other?y"),
            ("rtsp://h/b/track1", "rtsp://h/b/track1"),
        ] {
            assert_eq!(resolve(base, Some(control)).unwrap(), whole);
        }
        assert_eq!(resolve(base, None).unwrap(), base);
        assert!(resolve(base, Some("a b")).is_err());
        assert!(resolve(base, Some("a\rb")).is_err());
    }

    #[test]
    fn lies() {
        for (sdp, wanted) in [
            ("", (true, true)),
            ("garbage", (true, true)),
            (&CAMERA.replace("RTP/AVP", "RTP/SAVP"), (true, true)),
            (&CAMERA.replace("H264/90000", "H264/0"), (false, true)),
            (&CAMERA.replace("H264/90000", "/90000"), (false, true)),
            (&CAMERA.replace("video 0", "text 0"), (false, true)),
            (&CAMERA.replace("AVP 96", "AVP x"), (false, true)),
            (&CAMERA.replace("trackID=1", "track ID"), (false, true)),
        ] {
            assert!(parse(sdp, wanted).is_err(), "{sdp}");
        }
    }
}
