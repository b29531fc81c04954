//! The negotiation with a far end, over all its offers and answers.

use portunus_rtp::Mid;

use crate::codecs::CodecSpec;
use crate::description::{Attribute, Description, Direction, Extmap, Media, Origin};
use crate::negotiated::{Codec, Kind};

use super::agree::{self, PlainCodec, PlainMedia};
use super::crypto::{CryptoLine, SdesKey, SrtpPolicy, Suite};
use super::ends::{Accepted, LocalEnd, SrtpUse};
use super::error::{PlainError, kind_name};
use super::layout::Layout;
use super::remote::{self, FarMedia, FarSession};
use super::to_browser;
use super::transcode;
use super::write::{self, ActiveText, LineText, Text};

/// The `s=` line when the browser's is empty.
const NAME: &str = "-";

/// Both kinds of media.
const KINDS: [Kind; 2] = [Kind::Audio, Kind::Video];

/// The negotiation with one far end; see the [module](super).
///
/// An error leaves everything as it was.
#[derive(Debug, Clone, Default)]
pub struct PlainSession {
    /// Answers have one payload type of each codec, instead of all that the browser answered.
    one_of_each: bool,
    transcodes: bool,
    pub(super) origin: Option<Origin>,
    pub(super) name: String,
    version: u64,
    /// What was written last, as it is with version 0.
    written: Option<String>,
    policy: SrtpPolicy,
    /// The direction in which this side holds the call.
    pub(super) held: Option<Direction>,
    /// This side's keys, which stay.
    keys: Vec<(Kind, SdesKey)>,
    pub(super) layout: Layout,
    pub(super) pending: Pending,
    pub(super) agreed: Vec<PlainMedia>,
    /// Something was agreed on once: what follows may take all of it away.
    had_media: bool,
}

#[derive(Debug, Clone, Default)]
pub(super) enum Pending {
    #[default]
    None,
    Offered(Box<Offered>),
    Taken(Box<Taken>),
}

/// An offer to the far end.
#[derive(Debug, Clone)]
pub(super) struct Offered {
    layout: Layout,
    media: Vec<OfferedMedia>,
    is_mandatory: bool,
}

#[derive(Debug, Clone)]
struct OfferedMedia {
    /// Its index among the lines.
    index: usize,
    kind: Kind,
    media: Media,
    direction: Direction,
    key: Option<SdesKey>,
}

/// An offer of the far end.
#[derive(Debug, Clone)]
pub(super) struct Taken {
    pub(super) layout: Layout,
    far: FarSession,
    media: Vec<TakenMedia>,
}

#[derive(Debug, Clone)]
struct TakenMedia {
    index: usize,
    kind: Kind,
    mid: Mid,
    key: Option<CryptoLine>,
}

/// The tag of the key that is offered.
const TAG: u32 = 1;

impl PlainSession {
    /// A session without m-lines. Answers have one payload type of each codec if `one_of_each`; with `transcodes`, audio codecs are
    /// agreed on that have to be transcoded if there are no others.
    pub fn new(one_of_each: bool, transcodes: bool) -> Self {
        PlainSession {
            one_of_each,
            transcodes,
            ..PlainSession::default()
        }
    }

    /// What the last completed exchange agreed on: at most one of each kind.
    pub fn agreed(&self) -> &[PlainMedia] {
        &self.agreed
    }

    /// The same for one kind of media.
    pub fn agreed_on(&self, kind: Kind) -> Option<&PlainMedia> {
        self.agreed.iter().find(|media| media.kind == kind)
    }

    /// The policy that the last description asked for.
    pub const fn policy(&self) -> SrtpPolicy {
        self.policy
    }

    /// Whether an offer of the far end waits for its answer.
    pub const fn has_taken_offer(&self) -> bool {
        matches!(self.pending, Pending::Taken(_))
    }

    /// Whether the waiting offer of the far end has keys that can be used for all that it is about.
    pub fn is_srtp_offered(&self) -> bool {
        match &self.pending {
            Pending::Taken(taken) => taken.media.iter().all(|media| media.key.is_some()),
            Pending::None | Pending::Offered(_) => false,
        }
    }

    /// The kinds of media that a browser's description is about.
    pub fn kinds(browser: &Description) -> impl Iterator<Item = Kind> {
        KINDS
            .into_iter()
            .filter(|kind| browser.active(*kind).any(to_browser::has_media))
    }

    /// Holds the call in a direction, or no more: what is offered and answered from now on says so.
    pub fn set_held(&mut self, held: Option<Direction>) {
        self.held = held;
    }

    /// Forgets an offer that is not answered, of either side.
    pub fn discard(&mut self) {
        self.pending = Pending::None;
    }

    /// Makes a browser's offer, or a description that goes on from one, an offer to the far end. `srtp` stays for later offers that do not
    /// say it. `fill` makes up keys, see [`SdesKey::generate`].
    pub fn offer(
        &mut self,
        browser: &Description,
        local: &LocalEnd,
        srtp: Option<SrtpPolicy>,
        fill: &mut dyn FnMut(&mut [u8]),
    ) -> Result<String, PlainError> {
        self.check(browser)?;
        let policy = srtp.unwrap_or(self.policy);
        let mut layout = self.layout.clone();
        layout.take(browser);
        let mut keys = self.keys.clone();
        let mut media = Vec::new();
        let mut lines = Vec::with_capacity(layout.lines.len());
        let chosen = KINDS.map(|kind| browser.active(kind).find(|it| to_browser::has_media(it)));
        for (index, line) in layout.lines.iter().enumerate() {
            let of_line = |media: &&Media| Some(media.mid) == line.mid;
            let Some(said) = chosen.iter().copied().flatten().find(of_line) else {
                lines.push(LineText::unused(&line.name));
                continue;
            };
            let kind = said.kind;
            let ports = local.ports.of(kind);
            let ports = ports.ok_or(PlainError::NoPort(kind_name(kind)))?;
            let key = policy
                .suite()
                .map(|suite| key(&mut keys, kind, suite, fill));
            let mut codecs = to_browser::to_far(said);
            if self.transcodes && kind == Kind::Audio {
                codecs.extend(transcode::offered_beyond(&codecs));
            }
            let proto = match policy.is_mandatory() {
                true => "RTP/SAVP",
                false => "RTP/AVP",
            };
            let proto = proto.to_owned();
            lines.push(LineText::Active(Box::new(ActiveText {
                kind,
                ports,
                proto,
                direction: self.held(said.direction),
                codecs,
                extensions: self.extensions_to_far(said),
                bandwidth: said.bandwidth.clone(),
                attributes: passed_attributes(said),
                key: key.clone().map(|key| (TAG, key)),
                rtcp_mux: false,
            })));
            media.push(OfferedMedia {
                index,
                kind,
                media: said.clone(),
                direction: self.held(said.direction),
                key,
            });
        }
        self.keys = keys;
        self.policy = policy;
        self.pending = Pending::Offered(Box::new(Offered {
            layout,
            media,
            is_mandatory: policy.is_mandatory(),
        }));
        Ok(self.write(browser, local, lines))
    }

    /// Takes the far end's answer; gives what answers the browser's offer. It may come again as long as no other offer is made. `srtp` counts if
    /// it is mandatory, beyond what was offered.
    pub fn accept_answer(
        &mut self,
        text: &str,
        srtp: Option<SrtpPolicy>,
    ) -> Result<Accepted, PlainError> {
        let Pending::Offered(offered) = &self.pending else {
            return Err(PlainError::NoOffer);
        };
        let far = FarSession::parse(text)?;
        far.check(self.had_media)?;
        let lines = &offered.layout.lines;
        // A line that is not in use takes nothing from the call, whatever it is called, and be it one more than was offered.
        let differs = |(index, media): (usize, &FarMedia)| {
            let is_same = lines.get(index).is_some_and(|line| line.name == media.name);
            (media.port != 0 && !is_same).then_some(index)
        };
        if let Some(index) = far.media.iter().enumerate().find_map(differs) {
            return Err(PlainError::Mismatch(index));
        }
        let is_mandatory = offered.is_mandatory || srtp.is_some_and(SrtpPolicy::is_mandatory);
        let mut agreed = Vec::new();
        let mut answers: Vec<(Mid, Media)> = Vec::new();
        let mut srtp_use = None;
        for offered in &offered.media {
            let Some(far) = far.media.get(offered.index).filter(|it| it.is_usable()) else {
                continue;
            };
            let suite = offered.key.as_ref().map(SdesKey::suite);
            let fits = |line: &CryptoLine| line.tag == TAG && Some(line.key.suite()) == suite;
            let (key, refusals) = far.key(fits);
            if key.is_none() && (is_mandatory || far.is_secure()) {
                return Err(PlainError::no_key(offered.kind, &refusals));
            }
            srtp_use = srtp_use.max(used(key.is_some(), is_mandatory || far.is_secure()));
            let ours = OurMedia {
                mid: offered.media.mid,
                direction: offered.direction,
                codecs: &to_browser::to_far(&offered.media),
                extensions: &offered.media.extensions,
            };
            let key = key.map(|line| line.key);
            let local_key = offered.key.clone().filter(|_| key.is_some());
            let Some(media) = self.agree(&ours, far, (local_key, key), false) else {
                continue;
            };
            let answer = to_browser::answered(&offered.media, &media, far);
            answers.push((media.mid, answer));
            agreed.push(media);
        }
        self.layout = offered.layout.clone();
        self.had_media |= !agreed.is_empty();
        self.agreed = agreed;
        Ok(Accepted {
            description: self.describe(&far.name, answers),
            srtp: srtp_use,
        })
    }

    /// Takes an offer of the far end; gives what the browser is to be offered.
    pub fn take_offer(
        &mut self,
        text: &str,
        srtp: Option<SrtpPolicy>,
    ) -> Result<Accepted, PlainError> {
        self.take_parsed_offer(FarSession::parse(text)?, srtp)
    }

    /// Takes an offer of the far end that was parsed before.
    pub fn take_parsed_offer(
        &mut self,
        far: FarSession,
        srtp: Option<SrtpPolicy>,
    ) -> Result<Accepted, PlainError> {
        far.check(self.had_media)?;
        let is_mandatory = srtp.is_some_and(SrtpPolicy::is_mandatory);
        let mut layout = self.layout.clone();
        layout.follow(&far);
        let mut media = Vec::new();
        let mut offers = Vec::new();
        let mut srtp_use = None;
        for kind in KINDS {
            let Some(index) = far.first(kind) else {
                continue;
            };
            let Some(line) = far.media.get(index) else {
                continue;
            };
            let (key, refusals) = line.key(|_| true);
            if key.is_none() && (is_mandatory || line.is_secure()) {
                return Err(PlainError::no_key(kind, &refusals));
            }
            srtp_use = srtp_use.max(used(key.is_some(), is_mandatory || line.is_secure()));
            let Some(mid) = layout.mid(index, kind) else {
                continue;
            };
            let numbers = &mut layout.numbers;
            let offer = to_browser::offered(mid, line, kind, self.transcodes, numbers);
            offers.push((mid, offer));
            media.push(TakenMedia {
                index,
                kind,
                mid,
                key,
            });
        }
        let description = layout.describe(&far.name, offers);
        self.pending = Pending::Taken(Box::new(Taken { layout, far, media }));
        Ok(Accepted {
            description,
            srtp: srtp_use,
        })
    }

    /// Answers the far end's offer as the browser answered it. Media of another family of addresses than `local` are refused.
    pub fn answer(
        &mut self,
        browser: &Description,
        local: &LocalEnd,
        srtp: Option<SrtpPolicy>,
        fill: &mut dyn FnMut(&mut [u8]),
    ) -> Result<String, PlainError> {
        let Pending::Taken(taken) = &self.pending else {
            return Err(PlainError::NoOffer);
        };
        let taken = taken.clone();
        let policy = srtp.unwrap_or(SrtpPolicy::None);
        let mut layout = taken.layout.clone();
        layout.take(browser);
        let mut keys = self.keys.clone();
        let mut agreed = Vec::new();
        let mut lines: Vec<LineText> = taken.far.media.iter().map(refused).collect();
        for media in &taken.media {
            let said = browser.media_by_mid(media.mid).filter(|it| !it.rejected);
            let Some((said, far)) = said.zip(taken.far.media.get(media.index)) else {
                continue;
            };
            // Who sends from the other family could not send here (RFC 6157).
            if far
                .rtp
                .is_some_and(|rtp| rtp.is_ipv4() != local.address.is_ipv4())
            {
                continue;
            }
            if policy.is_mandatory() && media.key.is_none() {
                return Err(PlainError::no_key(media.kind, &[]));
            }
            let ours = OurMedia {
                mid: media.mid,
                direction: self.held(said.direction),
                codecs: &to_browser::to_far(said),
                extensions: &said.extensions,
            };
            let remote_key = media.key.as_ref().map(|line| line.key.clone());
            let local_key = remote_key
                .as_ref()
                .map(|it| key(&mut keys, media.kind, it.suite(), fill));
            let mux = local.rtcp_mux && far.rtcp_mux;
            let pair = (local_key.clone(), remote_key);
            let Some(mut both) = self.agree(&ours, far, pair, mux) else {
                continue;
            };
            if self.one_of_each {
                agree::one_of_each(&mut both.codecs, &mut both.events);
            }
            let ports = local.ports.of(media.kind);
            let ports = ports.ok_or(PlainError::NoPort(kind_name(media.kind)))?;
            let tag = media.key.as_ref().map_or(TAG, |line| line.tag);
            let text = ActiveText {
                kind: media.kind,
                ports,
                proto: far.proto.clone(),
                direction: far.direction.answer(both.direction),
                codecs: answered_codecs(&both),
                extensions: both.extensions.clone(),
                bandwidth: said.bandwidth.clone(),
                attributes: passed_attributes(said),
                key: local_key.map(|key| (tag, key)),
                rtcp_mux: mux,
            };
            if let Some(line) = lines.get_mut(media.index) {
                *line = LineText::Active(Box::new(text));
            }
            agreed.push(both);
        }
        // Later offers of this side are protected as this answer is.
        let is_mandatory = policy.is_mandatory() || taken.far.media.iter().any(FarMedia::is_secure);
        let secured = agreed.iter().find_map(|media| media.remote_key.as_ref());
        self.policy = match secured.map(SdesKey::suite) {
            Some(suite) if is_mandatory => SrtpPolicy::Mandatory(suite),
            Some(suite) => SrtpPolicy::Optional(suite),
            None => SrtpPolicy::None,
        };
        self.keys = keys;
        self.layout = layout;
        self.had_media |= !agreed.is_empty();
        self.agreed = agreed;
        self.pending = Pending::None;
        Ok(self.write(browser, local, lines))
    }

    /// Checks that there is something to talk about.
    fn check(&self, browser: &Description) -> Result<(), PlainError> {
        if browser.active(Kind::Data).next().is_some() {
            return Err(PlainError::Data);
        }
        match Self::kinds(browser).next().is_some() || self.had_media {
            true => Ok(()),
            false => Err(PlainError::NoMedia),
        }
    }

    /// The header extensions that far ends are told of, with the numbers that they know them by.
    fn extensions_to_far(&self, said: &Media) -> Vec<Extmap> {
        let mut extensions = to_browser::passed(&said.extensions);
        if let Some(agreed) = self.agreed_on(said.kind) {
            for extmap in &mut extensions {
                let known = agreed.extensions.iter().find(|it| it.uri == extmap.uri);
                extmap.id = known.map_or(extmap.id, |known| known.id);
            }
        }
        extensions
    }

    /// The direction that far ends are told of an m-line that has this one.
    fn held(&self, direction: Direction) -> Direction {
        match (self.held, direction) {
            (None, _) => direction,
            (Some(held), Direction::SendRecv) => held,
            (Some(_), _) => Direction::Inactive,
        }
    }

    /// What both sides have in common of an m-line; none if that is no codec.
    fn agree(
        &self,
        ours: &OurMedia<'_>,
        far: &FarMedia,
        (local_key, remote_key): (Option<SdesKey>, Option<SdesKey>),
        rtcp_mux: bool,
    ) -> Option<PlainMedia> {
        let kind = far.kind()?;
        let mut codecs = Vec::new();
        let mut events = Vec::new();
        // An answer of the far end says what it takes; what it sends has this side's numbers. In answers of this side all numbers are the
        // far end's.
        let is_offerer = matches!(self.pending, Pending::Offered(_));
        for (our, far, codec) in agree::matched(ours.codecs, &far.codecs) {
            let agreed = PlainCodec {
                spec: our.clone(),
                codec,
                send: far.pt,
                recv: if is_offerer { our.pt } else { far.pt },
                far_fmtp: far.fmtp.clone(),
            };
            match agree::is_event(our) {
                true => events.push(agreed),
                false => codecs.push(agreed),
            }
        }
        // Noise alone is no call.
        codecs.sort_by_key(|codec| codec.codec == Codec::ComfortNoise);
        if codecs
            .first()
            .is_some_and(|codec| codec.codec == Codec::ComfortNoise)
        {
            codecs.clear();
        }
        let transcoding = match codecs.is_empty() && self.transcodes && kind == Kind::Audio {
            true => transcode::agree(ours.codecs, &far.codecs),
            false => None,
        };
        if codecs.is_empty() && transcoding.is_none() {
            return None;
        }
        let clock_rate = match &transcoding {
            Some(transcoding) => Some(transcoding.far.spec.clock_rate),
            None => codecs.first().map(|codec| codec.spec.clock_rate),
        };
        agree::sort_events(clock_rate, &mut events);
        let mut extensions = to_browser::passed(&far.extensions);
        let is_ours = |extmap: &Extmap| ours.extensions.iter().any(|it| it.uri == extmap.uri);
        extensions.retain(is_ours);
        Some(PlainMedia {
            kind,
            mid: ours.mid,
            direction: ours.direction,
            far_direction: far.direction,
            rtp: far.rtp,
            rtcp: match rtcp_mux {
                true => far.rtp,
                false => far.rtcp,
            },
            rtcp_mux,
            unanswered: match is_offerer {
                true => agree::unanswered(ours.codecs, &codecs),
                false => Vec::new(),
            },
            codecs,
            events,
            transcoding,
            extensions,
            local_key,
            remote_key,
            pli: far.takes_pli(),
        })
    }

    fn describe(&self, name: &str, media: Vec<(Mid, Media)>) -> Description {
        self.layout.describe(name, media)
    }

    /// Writes a description. Its version grows whenever it differs from the one before (RFC 3264 section 8).
    fn write(&mut self, browser: &Description, local: &LocalEnd, lines: Vec<LineText>) -> String {
        if self.origin.is_none() {
            let mut origin = browser.origin.clone();
            if origin.session_id.is_empty() {
                origin.session_id = "1".to_owned();
            }
            self.version = origin.version.min(u64::from(u32::MAX));
            self.origin = Some(origin);
            self.name = match browser.name.trim() {
                "" => NAME.to_owned(),
                name => name.to_owned(),
            };
        }
        let origin = self.origin.clone().unwrap_or_default();
        let text = Text {
            origin: &origin,
            name: &self.name,
            address: local.address,
            lines,
        };
        let body = write::write(&text, 0);
        if self.written.as_ref().is_some_and(|last| *last != body) {
            self.version = self.version.saturating_add(1);
        }
        self.written = Some(body);
        write::write(&text, self.version)
    }
}

/// What this side brings to an m-line.
struct OurMedia<'a> {
    mid: Mid,
    direction: Direction,
    codecs: &'a [CodecSpec],
    extensions: &'a [Extmap],
}

/// This side's key of a kind of media for a suite.
fn key(
    keys: &mut Vec<(Kind, SdesKey)>,
    kind: Kind,
    suite: Suite,
    fill: &mut dyn FnMut(&mut [u8]),
) -> SdesKey {
    let is = |(of, key): &&(Kind, SdesKey)| *of == kind && key.suite() == suite;
    if let Some((_, key)) = keys.iter().find(is) {
        return key.clone();
    }
    let key = SdesKey::generate(suite, fill);
    keys.push((kind, key.clone()));
    key
}

const fn used(is_used: bool, is_mandatory: bool) -> Option<SrtpUse> {
    match (is_used, is_mandatory) {
        (false, _) => None,
        (true, true) => Some(SrtpUse::Mandatory),
        (true, false) => Some(SrtpUse::Optional),
    }
}

fn passed_attributes(media: &Media) -> Vec<Attribute> {
    let attributes = media.attributes.iter();
    let attributes = attributes.filter(|attribute| remote::passes(&attribute.name));
    attributes.cloned().collect()
}

fn refused(far: &FarMedia) -> LineText {
    LineText::Refused {
        media: far.name.clone(),
        proto: far.proto.clone(),
        formats: far.formats.clone(),
    }
}

/// The codecs of an answer to a far end, with its numbers.
fn answered_codecs(agreed: &PlainMedia) -> Vec<CodecSpec> {
    let direct = agreed.codecs.iter();
    let far = agreed.transcoding.iter().map(|it| &it.far);
    let all = direct.chain(far).chain(&agreed.events);
    all.map(|codec| CodecSpec {
        pt: codec.recv,
        ..codec.spec.clone()
    })
    .collect()
}
