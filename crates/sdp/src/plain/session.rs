//! The negotiation with a far end over all its offers and answers.

use portunus_rtp::Mid;

use crate::codecs::CodecSpec;
use crate::description::{Attribute, Description, Direction, Extmap, Media, Origin};
use crate::negotiated::Kind;

use super::agreement::{self, OurMedia};
use super::crypto::{CryptoLine, SdesKey, SrtpPolicy, Suite};
use super::ends::{Accepted, LocalEnd, SrtpUse};
use super::error::{PlainError, kind_name};
use super::layout::Layout;
use super::media::PlainMedia;
use super::pending::{Offered, OfferedMedia, Pending, Taken, TakenMedia};
use super::remote::{self, FarMedia, FarSession};
use super::writer::{self, ActiveText, LineText, Text};
use super::{browser_side, transcoding};

/// The `s=` line if the browser's is empty.
const NAME: &str = "-";

/// Both kinds of media.
const KINDS: [Kind; 2] = [Kind::Audio, Kind::Video];

/// The negotiation with one far end; see the [module](super).
///
/// An error leaves the state unchanged.
#[derive(Debug, Clone, Default)]
pub struct PlainSession {
    /// Whether answers have one payload type per codec, instead of all that the browser answered.
    one_of_each: bool,
    transcodes: bool,
    pub(super) origin: Option<Origin>,
    pub(super) name: String,
    version: u64,
    /// The last written text, with version 0.
    written: Option<String>,
    policy: SrtpPolicy,
    /// The direction with which this side holds the call.
    pub(super) held: Option<Direction>,
    /// This side's keys, which do not change.
    keys: Vec<(Kind, SdesKey)>,
    pub(super) layout: Layout,
    pub(super) pending: Pending,
    pub(super) agreed: Vec<PlainMedia>,
    /// Whether media was agreed on before, so that a later exchange may remove all of it.
    had_media: bool,
}

/// The tag of the offered key.
const TAG: u32 = 1;

impl PlainSession {
    /// Makes a session without m-lines. Answers have one payload type per codec if `one_of_each`.
    /// With `transcodes`, audio codecs that need transcoding are agreed on if there are no others.
    pub fn new(one_of_each: bool, transcodes: bool) -> Self {
        PlainSession {
            one_of_each,
            transcodes,
            ..PlainSession::default()
        }
    }

    /// Returns the result of the last complete exchange: at most one per kind.
    pub fn agreed(&self) -> &[PlainMedia] {
        &self.agreed
    }

    /// Returns the result for one kind of media.
    pub fn agreed_on(&self, kind: Kind) -> Option<&PlainMedia> {
        self.agreed.iter().find(|media| media.kind == kind)
    }

    /// Returns the policy of the last description.
    pub const fn policy(&self) -> SrtpPolicy {
        self.policy
    }

    /// Returns whether an offer of the far end waits for its answer.
    pub const fn has_taken_offer(&self) -> bool {
        matches!(self.pending, Pending::Taken(_))
    }

    /// Returns whether the pending offer of the far end has usable keys for all its media.
    pub fn is_srtp_offered(&self) -> bool {
        match &self.pending {
            Pending::Taken(taken) => taken.media.iter().all(|media| media.key.is_some()),
            Pending::None | Pending::Offered(_) => false,
        }
    }

    /// Returns the kinds of media in a browser's description.
    pub fn kinds(browser: &Description) -> impl Iterator<Item = Kind> {
        KINDS
            .into_iter()
            .filter(|kind| browser.active(*kind).any(browser_side::has_media))
    }

    /// Holds the call with a direction, or resumes it. Takes effect with the next offer or answer.
    pub fn set_held(&mut self, held: Option<Direction>) {
        self.held = held;
    }

    /// Discards an unanswered offer of either side.
    pub fn discard(&mut self) {
        self.pending = Pending::None;
    }

    /// Makes an offer to the far end from a browser's offer, or from a later description. `srtp`
    /// stays for later offers without one. `fill` generates keys, see [`SdesKey::generate`].
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
        let chosen = KINDS.map(|kind| browser.active(kind).find(|it| browser_side::has_media(it)));
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
            let mut codecs = browser_side::to_far(said);
            if self.transcodes && kind == Kind::Audio {
                codecs.extend(transcoding::offered_beyond(&codecs));
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

    /// Takes the far end's answer. Returns the answer to the browser's offer. It may be repeated
    /// until the next offer. `srtp` counts if it is mandatory, even if the offer was not.
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
        // An inactive line changes nothing in the call, whatever its type, even if it was not
        // offered.
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
                codecs: &browser_side::to_far(&offered.media),
                extensions: &offered.media.extensions,
                is_offerer: true,
                transcodes: self.transcodes,
                rtcp_mux: false,
                local_key: offered.key.clone().filter(|_| key.is_some()),
                remote_key: key.map(|line| line.key),
            };
            let Some(media) = ours.agree(far) else {
                continue;
            };
            let answer = browser_side::answered(&offered.media, &media, far);
            answers.push((media.mid, answer));
            agreed.push(media);
        }
        self.layout = offered.layout.clone();
        self.had_media |= !agreed.is_empty();
        self.agreed = agreed;
        Ok(Accepted {
            description: self.layout.describe(&far.name, answers),
            srtp: srtp_use,
        })
    }

    /// Takes an offer of the far end. Returns the offer for the browser.
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
            let offer = browser_side::offered(mid, line, kind, self.transcodes, numbers);
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

    /// Answers the far end's offer with the browser's answer. Refuses media of another address
    /// family than `local`.
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
            // A far end that sends from the other family could not send here (RFC 6157).
            if far
                .rtp
                .is_some_and(|rtp| rtp.is_ipv4() != local.address.is_ipv4())
            {
                continue;
            }
            if policy.is_mandatory() && media.key.is_none() {
                return Err(PlainError::no_key(media.kind, &[]));
            }
            let remote_key = media.key.as_ref().map(|line| line.key.clone());
            let local_key = remote_key
                .as_ref()
                .map(|it| key(&mut keys, media.kind, it.suite(), fill));
            let mux = local.rtcp_mux && far.rtcp_mux;
            let ours = OurMedia {
                mid: media.mid,
                direction: self.held(said.direction),
                codecs: &browser_side::to_far(said),
                extensions: &said.extensions,
                is_offerer: false,
                transcodes: self.transcodes,
                rtcp_mux: mux,
                local_key: local_key.clone(),
                remote_key,
            };
            let Some(mut both) = ours.agree(far) else {
                continue;
            };
            if self.one_of_each {
                agreement::one_of_each(&mut both.codecs, &mut both.events);
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
        // Later offers of this side have the same protection as this answer.
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

    /// Checks that there is media.
    fn check(&self, browser: &Description) -> Result<(), PlainError> {
        if browser.active(Kind::Data).next().is_some() {
            return Err(PlainError::Data);
        }
        match Self::kinds(browser).next().is_some() || self.had_media {
            true => Ok(()),
            false => Err(PlainError::NoMedia),
        }
    }

    /// Returns the header extensions for far ends, with their ids.
    fn extensions_to_far(&self, said: &Media) -> Vec<Extmap> {
        let mut extensions = browser_side::passed(&said.extensions);
        if let Some(agreed) = self.agreed_on(said.kind) {
            for extmap in &mut extensions {
                let known = agreed.extensions.iter().find(|it| it.uri == extmap.uri);
                extmap.id = known.map_or(extmap.id, |known| known.id);
            }
        }
        extensions
    }

    /// Returns the direction for far ends of an m-line with this one.
    fn held(&self, direction: Direction) -> Direction {
        match (self.held, direction) {
            (None, _) => direction,
            (Some(held), Direction::SendRecv) => held,
            (Some(_), _) => Direction::Inactive,
        }
    }

    /// Writes a description. Its version grows with each change (RFC 3264 section 8).
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
        let body = writer::write(&text, 0);
        if self.written.as_ref().is_some_and(|last| *last != body) {
            self.version = self.version.saturating_add(1);
        }
        self.written = Some(body);
        writer::write(&text, self.version)
    }
}

/// Returns this side's key for a kind of media and a suite.
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

/// Returns the codecs of an answer to a far end, with its payload types.
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
