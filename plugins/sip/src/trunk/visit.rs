//! A caller in an audio room: the pin, the stay, the keys.

use std::sync::Arc;
use std::time::Duration;

use portunus_audio::AudioCodec;
use portunus_telephony::{Caller, CallerNews, DialId, Entrance, EntranceError, Stay};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::prompts::{Lobby, Prompt};
use super::talk::{Deed, Talk};

/// The maximum number of wrong pins in a call.
const ATTEMPTS: usize = 3;
/// The maximum number of digits of a pin.
const MAX_PIN: usize = 32;
/// The time limit of the first digit.
const FIRST_DIGIT: Duration = Duration::from_secs(12);
/// The time limit of each further digit, after which the pin is complete.
const NEXT_DIGIT: Duration = Duration::from_secs(4);
/// The time for the goodbye.
const GOODBYE: Duration = Duration::from_secs(3);
/// The maximum number of the room's events that wait.
const NEWS: usize = 8;

/// The end of a visit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Farewell {
    /// The call has ended.
    Ended { code: u16, reason: String },
    /// This side has to end it.
    HangUp,
}

impl Talk {
    /// Asks for the pin of a room, if it has one, until it is right.
    pub(super) async fn ask_pin(
        &mut self,
        entrance: &dyn Entrance,
        codec: AudioCodec,
    ) -> Result<Option<String>, Farewell> {
        if !entrance.wants_pin() {
            return Ok(None);
        }
        let office = Arc::clone(&self.office);
        let lobby = Lobby::open(
            &office.audio,
            &office.call.media,
            &self.media,
            codec,
            &office.prompts,
        );
        let mut lobby = lobby.map_err(|error| {
            tracing::warn!("a caller cannot be asked for a pin: {error}");
            Farewell::HangUp
        })?;
        let (room, now) = (entrance.room(), std::time::Instant::now);
        for attempt in 0..ATTEMPTS {
            let prompt = if attempt == 0 {
                Prompt::Pin
            } else {
                Prompt::WrongPin
            };
            lobby.say(prompt).await;
            let pin = self.digits().await?;
            // Others may have tried meanwhile.
            let waits = || office.pins.waits(&room, now()).is_some();
            if waits() {
                break;
            }
            if entrance.takes_pin(&pin) {
                return Ok(Some(pin));
            }
            office.pins.note(&room, now());
            if waits() {
                break;
            }
        }
        lobby.say(Prompt::Goodbye).await;
        let until = Instant::now() + GOODBYE;
        loop {
            match self.next(Some(until)).await {
                Deed::Nothing | Deed::Gone => return Err(Farewell::HangUp),
                Deed::End { code, reason } => return Err(Farewell::Ended { code, reason }),
                _ => {}
            }
        }
    }

    /// Returns the caller's digits up to the pound key, or up to the time limit.
    async fn digits(&mut self) -> Result<String, Farewell> {
        let mut digits = String::new();
        let mut until = Instant::now() + FIRST_DIGIT;
        loop {
            match self.next(Some(until)).await {
                Deed::Key('#') => return Ok(digits),
                // The star restarts the input.
                Deed::Key('*') => digits.clear(),
                Deed::Key(digit) if digits.len() < MAX_PIN => digits.push(digit),
                Deed::Key(_) => {}
                Deed::Nothing => return Ok(digits),
                Deed::Gone => return Err(Farewell::HangUp),
                Deed::End { code, reason } => return Err(Farewell::Ended { code, reason }),
                Deed::Progress | Deed::Answer(_) | Deed::Acknowledge(_) | Deed::Change => continue,
            }
            until = Instant::now() + NEXT_DIGIT;
        }
    }

    /// Enters the caller into a room.
    pub(super) fn enter(
        &self,
        entrance: &dyn Entrance,
        display: Option<String>,
        codec: AudioCodec,
        pin: Pin,
    ) -> Result<Visit, EntranceError> {
        let (tell, news) = mpsc::channel(NEWS);
        let stay = entrance.enter(Caller {
            call: DialId(self.call.get()),
            display,
            leg: Arc::clone(self.media.leg()),
            codec,
            is_invited: pin == Pin::Waived,
            pin: match pin {
                Pin::Shown(pin) => pin,
                Pin::Waived => None,
            },
            tell,
        })?;
        Ok(Visit { stay, codec, news })
    }

    /// Stays until the call ends or the room removes the caller. `*6` toggles the mute.
    pub(super) async fn stay(&mut self, mut visit: Visit) -> Farewell {
        let mut after_star = false;
        loop {
            let deed = tokio::select! {
                deed = self.next(None) => deed,
                news = visit.news.recv() => match news {
                    Some(CallerNews::Muted(_)) => continue,
                    Some(CallerNews::Out(why)) => {
                        tracing::info!(call = %self.call, "a caller is out: {why}");
                        return Farewell::HangUp;
                    }
                    None => return Farewell::HangUp,
                },
            };
            if let Deed::Key(key) = deed {
                visit.stay.key(key);
            }
            match deed {
                Deed::Key('6') if after_star => {
                    visit.stay.toggle_mute();
                }
                Deed::End { code, reason } => return Farewell::Ended { code, reason },
                Deed::Gone => return Farewell::HangUp,
                Deed::Change => {
                    let codec = self.media.codec().filter(|codec| *codec != visit.codec);
                    if let Some(codec) = codec {
                        visit.codec = codec;
                        visit.stay.set_codec(codec);
                    }
                }
                Deed::Key(_)
                | Deed::Nothing
                | Deed::Progress
                | Deed::Answer(_)
                | Deed::Acknowledge(_) => {}
            }
            after_star = matches!(deed, Deed::Key('*'));
        }
    }
}

/// The pin of a caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Pin {
    /// The pin that the caller entered, if it was asked.
    Shown(Option<String>),
    /// Not needed, because the room has called.
    Waived,
}

/// A caller's stay, with the events of the room.
pub(super) struct Visit {
    pub(super) stay: Stay,
    /// Its codec.
    codec: AudioCodec,
    news: mpsc::Receiver<CallerNews>,
}
