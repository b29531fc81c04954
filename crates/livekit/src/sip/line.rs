//! A telephone in a room: a guest that publishes what the telephone says, and a mix of the room for
//! the telephone.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use livekit_protocol::{SipDtmf, TrackSource, data_packet};
use portunus_audio::{
    AudioCodec, AudioEvent, AudioRoom, AudioThreads, Channels, Encoding, Format, MixSource,
    Mixture, Out, ParticipantId, ParticipantOptions, RoomOptions, RtpLeg, SampleRate,
};
use portunus_media::{MediaPlane, SourceRef};
use portunus_room::{PersonId, State};
use portunus_sdp::{CodecName, Kind};
use portunus_telephony::{Caller, CallerNews, DialId, Staying};
use prost::Message;
use tokio::sync::{mpsc, watch};

use super::Sip;
use crate::guest::{Guest, GuestNews, GuestTrack};
use crate::hall::{Packet, RELIABLE};

/// The telephone among the participants of the mix. The tracks of the room follow.
const TELEPHONE: ParticipantId = ParticipantId(0);

/// The group of the telephone, and that of the room.
const NEAR: usize = 0;
const FAR: usize = 1;

/// The complexity of Opus encoders, 1 to 10.
const COMPLEXITY: u8 = 4;

/// A telephone in a room. Dropping it takes it out.
#[derive(Debug)]
pub(super) struct Line {
    guest: Arc<Guest>,
    room: Arc<AudioRoom>,
    codec: Mutex<AudioCodec>,
    call: DialId,
    calls: Sip,
    /// Ends the task that follows the room.
    _end: watch::Sender<()>,
    /// What the telephone says, for the room.
    _voice: MixSource,
    _events: mpsc::Receiver<AudioEvent>,
}

/// The reason why a telephone has no line.
#[derive(Debug, thiserror::Error)]
pub(super) enum LineError {
    #[error(transparent)]
    Audio(#[from] portunus_audio::AudioError),
    #[error(transparent)]
    Room(#[from] portunus_room::Refusal),
}

impl Line {
    /// Connects a telephone with the room of its guest.
    pub(super) fn connect(
        caller: Caller,
        (guest, news): (Guest, mpsc::Receiver<GuestNews>),
        audio: &AudioThreads,
        media: &MediaPlane,
        calls: Sip,
    ) -> Result<Self, LineError> {
        let (room, events) = audio.open(RoomOptions {
            format: Format {
                rate: SampleRate::Hz16000,
                channels: Channels::Mono,
            },
            loudest: 0,
            groups: 2,
        })?;
        let leg = Arc::new(RtpLeg::of(media, caller.leg));
        let options = options(caller.codec, NEAR, false);
        let source = leg.source();
        room.join(TELEPHONE, options, Some(source), Some(Out::Leg(leg)));
        room.connect(TELEPHONE, true);
        let voice = room.mix(Mixture::Group(NEAR), encoding(AudioCodec::Opus), true);
        if let SourceRef::Ingest(ingest) = voice.source() {
            guest.publish(&[GuestTrack {
                codec: CodecName::Opus,
                source: TrackSource::Microphone,
                name: String::new(),
                ingest,
            }])?;
        }
        let (guest, room) = (Arc::new(guest), Arc::new(room));
        let (end, ends) = watch::channel(());
        let listener = Listener {
            guest: guest.clone(),
            room: room.clone(),
            heard: HashMap::new(),
            next: 1,
        };
        tokio::spawn(listener.run(news, caller.tell, ends));
        Ok(Line {
            guest,
            room,
            codec: Mutex::new(caller.codec),
            call: caller.call,
            calls,
            _end: end,
            _voice: voice,
            _events: events,
        })
    }

    fn codec(&self) -> MutexGuard<'_, AudioCodec> {
        self.codec.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Staying for Line {
    fn id(&self) -> String {
        self.guest.id().to_string()
    }

    fn toggle_mute(&self) -> Option<bool> {
        self.guest.toggle_mute()
    }

    fn set_codec(&self, codec: AudioCodec) {
        *self.codec() = codec;
        self.room.set(TELEPHONE, options(codec, NEAR, false));
    }

    fn key(&self, key: char) {
        let code = match key {
            '0'..='9' => key.to_digit(10).unwrap_or_default(),
            '*' => 10,
            '#' => 11,
            'A'..='D' => u32::from(key) - u32::from('A') + 12,
            _ => return,
        };
        send_key(&self.guest, key, code);
    }
}

/// Sends a key of a telephone to the clients of all nodes.
fn send_key(guest: &Guest, key: char, code: u32) {
    let packet = livekit_protocol::DataPacket {
        participant_identity: guest.identity(),
        participant_sid: guest.sid().to_owned(),
        value: Some(data_packet::Value::SipDtmf(SipDtmf {
            code,
            digit: key.to_string(),
        })),
        ..livekit_protocol::DataPacket::default()
    };
    let packet = Packet {
        at: tokio::time::Instant::now(),
        from: guest.sid().to_owned(),
        sequence: 0,
        to: Vec::new(),
        nonce: None,
        bytes: packet.encode_to_vec().into(),
    };
    guest.hall().send(RELIABLE, packet);
}

impl Drop for Line {
    fn drop(&mut self) {
        self.calls.ended(self.call);
    }
}

/// Has the telephone hear the tracks of its room.
struct Listener {
    guest: Arc<Guest>,
    room: Arc<AudioRoom>,
    heard: HashMap<Heard, Input>,
    next: u64,
}

/// A track that is heard.
type Heard = (PersonId, String);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Input {
    participant: ParticipantId,
    source: SourceRef,
    codec: AudioCodec,
    open: bool,
}

impl Listener {
    async fn run(
        mut self,
        mut news: mpsc::Receiver<GuestNews>,
        tell: mpsc::Sender<CallerNews>,
        mut ends: watch::Receiver<()>,
    ) {
        let mut changes = self.guest.hall().room.lock().changes();
        loop {
            self.follow();
            tokio::select! {
                changed = changes.changed() => {
                    if changed.is_err() {
                        return;
                    }
                }
                news = news.recv() => match news {
                    Some(GuestNews::Out(_)) => {
                        // The call may have ended meanwhile.
                        let _ = tell.try_send(CallerNews::Out("it was removed from the room"));
                        return;
                    }
                    Some(GuestNews::Muted(muted)) => {
                        let _ = tell.try_send(CallerNews::Muted(muted));
                    }
                    None => return,
                },
                _ = ends.changed() => return,
            }
        }
    }

    /// Has the telephone hear the tracks that there are now, and no others.
    fn follow(&mut self) {
        let present = {
            let state = self.guest.hall().room.lock();
            sounds(&state, self.guest.id())
        };
        let room = &self.room;
        self.heard.retain(|key, input| {
            let stays = present.iter().any(|sound| {
                let is_same = sound.source == input.source && sound.codec == input.codec;
                sound.key == *key && is_same
            });
            if !stays {
                room.leave(input.participant);
            }
            stays
        });
        for sound in present {
            let Sound {
                key,
                source,
                codec,
                open,
            } = sound;
            if let Some(input) = self.heard.get_mut(&key) {
                if input.open != open {
                    input.open = open;
                    room.set(input.participant, options(codec, FAR, !open));
                }
                continue;
            }
            let participant = ParticipantId(self.next);
            self.next = self.next.wrapping_add(1);
            let options = options(codec, FAR, !open);
            room.join(participant, options, Some(source), None);
            room.connect(participant, true);
            let input = Input {
                participant,
                source,
                codec,
                open,
            };
            self.heard.insert(key, input);
        }
    }
}

/// The sound of a participant.
#[derive(Debug)]
struct Sound {
    key: Heard,
    source: SourceRef,
    codec: AudioCodec,
    open: bool,
}

/// Returns the sound of all but one participant.
fn sounds(state: &State, own: &PersonId) -> Vec<Sound> {
    let mut sounds = Vec::new();
    for feed in state.feeds().filter(|feed| *feed != own) {
        let Some(publication) = state.published(feed).filter(|it| !it.e2ee) else {
            continue;
        };
        for stream in publication.streams() {
            let codec = match stream.format.codec {
                Some(CodecName::Opus) => AudioCodec::Opus,
                Some(CodecName::Pcmu) => AudioCodec::Pcmu,
                Some(CodecName::Pcma) => AudioCodec::Pcma,
                Some(CodecName::G722) => AudioCodec::G722,
                _ => continue,
            };
            let track = publication.track(stream);
            if let Some(track) = track.filter(|_| stream.kind == Kind::Audio) {
                sounds.push(Sound {
                    key: (feed.clone(), track.key),
                    source: track.from,
                    codec,
                    open: track.open,
                });
            }
        }
    }
    sounds
}

fn encoding(codec: AudioCodec) -> Encoding {
    Encoding {
        codec,
        bitrate: None,
        complexity: COMPLEXITY,
        fec: false,
        expected_loss: 0,
    }
}

fn options(codec: AudioCodec, group: usize, muted: bool) -> ParticipantOptions {
    ParticipantOptions {
        codec,
        muted,
        suspended: false,
        immune: false,
        gain: 1.0,
        position: 0.5,
        group: Some(group),
        denoise: false,
        levels: false,
        talk: None,
        encoding: encoding(codec),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

    use livekit_protocol::participant_info;

    use super::*;
    use crate::guest::GuestProfile;
    use crate::hall::room_of_cluster;

    #[tokio::test]
    async fn keys_reach_the_other_nodes() {
        let (media, _events, _) = MediaPlane::detached();
        let (hall, others) = room_of_cluster(&media);
        let profile = GuestProfile {
            identity: "sip_1".to_owned(),
            name: String::new(),
            metadata: String::new(),
            attributes: HashMap::new(),
            kind: participant_info::Kind::Sip,
        };
        let (guest, _news) = Guest::enter(&hall, &media, profile).unwrap();
        send_key(&guest, '#', 11);
        let sent = others.packets();
        let [sent] = sent.as_slice() else {
            unreachable!("one packet is sent: {sent:?}")
        };
        assert_eq!(sent.participant_identity, "sip_1");
        let expected = SipDtmf {
            code: 11,
            digit: "#".to_owned(),
        };
        assert_eq!(sent.value, Some(data_packet::Value::SipDtmf(expected)));
    }
}
