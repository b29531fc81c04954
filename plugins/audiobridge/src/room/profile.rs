//! The identity and the options of a room, and who may enter it.

use portunus_core::{Fields, Object};
use portunus_dsp::SampleRate;
use portunus_resources::{AllowedTokens, Asker, Id};

use crate::config::RoomSetup;
use crate::forwarder_options::StaticForwarder;
use crate::options::RoomOptions;
use crate::refusal::Refusal;

/// The identity and the options of a room.
#[derive(Debug)]
pub(crate) struct Profile {
    id: Id,
    options: RoomOptions,
    /// The tokens with which one may join.
    allowed: AllowedTokens,
    has_ended: bool,
    /// The forwarder of the configuration, to be saved with the room.
    forwarder: Option<StaticForwarder>,
}

impl Profile {
    pub(super) fn new(id: Id, setup: RoomSetup, allowed: AllowedTokens) -> Self {
        Profile {
            options: setup.options.described(&id),
            id,
            allowed,
            has_ended: false,
            forwarder: setup.forwarder,
        }
    }

    /// Returns what negotiations need of a room of another node.
    pub(crate) fn elsewhere(id: Id, rate: SampleRate, spatial: bool) -> Self {
        Profile {
            id,
            options: RoomOptions {
                rate,
                spatial,
                ..RoomOptions::default()
            },
            allowed: AllowedTokens::default(),
            has_ended: false,
            forwarder: None,
        }
    }

    pub(crate) fn id(&self) -> &Id {
        &self.id
    }

    pub(crate) fn options(&self) -> &RoomOptions {
        &self.options
    }

    pub(super) fn options_mut(&mut self) -> &mut RoomOptions {
        &mut self.options
    }

    pub(crate) fn set_options(&mut self, options: RoomOptions) {
        self.options = options;
    }

    /// The forwarder of the configuration.
    pub(crate) fn forwarder(&self) -> Option<&StaticForwarder> {
        self.forwarder.as_ref()
    }

    /// The options as they are saved.
    pub(super) fn setup(&self) -> RoomSetup {
        RoomSetup {
            options: self.options.clone(),
            forwarder: self.forwarder.clone(),
        }
    }

    /// Takes the options of a configuration that was read again.
    pub(super) fn apply(&mut self, setup: RoomSetup) {
        self.options = setup.options.described(&self.id);
    }

    pub(super) fn allowed_mut(&mut self) -> &mut AllowedTokens {
        &mut self.allowed
    }

    pub(crate) const fn has_ended(&self) -> bool {
        self.has_ended
    }

    pub(super) fn end(&mut self) {
        self.has_ended = true;
    }

    /// Checks that the room has not ended.
    pub(crate) fn check_there(&self) -> Result<(), Refusal> {
        match self.has_ended {
            true => Err(Refusal::NoSuchRoom(self.id.clone())),
            false => Ok(()),
        }
    }

    /// Checks that a request of a participant or listener opens the room. Returns whether it
    /// shows the room's secret.
    pub(crate) fn admit(
        &self,
        fields: Fields<'_>,
        token: Option<&str>,
        asker: &Asker,
    ) -> Result<bool, Refusal> {
        self.check_there()?;
        self.check_signed_token(&self.options, asker, token)?;
        self.options.access.check_pin(fields)?;
        self.check_token(token)?;
        let shows_secret = fields.has("secret");
        if shows_secret {
            self.options.access.check_secret(fields)?;
        }
        Ok(shows_secret)
    }

    /// Checks a token against the room's list.
    pub(super) fn check_token(&self, token: Option<&str>) -> Result<(), Refusal> {
        let allowed = self.allowed.check(token);
        allowed.map(drop).map_err(|_| Refusal::NotAllowed)
    }

    /// Checks that `asker` shows a token signed for the room, if `options` require one.
    pub(crate) fn check_signed_token(
        &self,
        options: &RoomOptions,
        asker: &Asker,
        token: Option<&str>,
    ) -> Result<(), Refusal> {
        match options.signed_tokens && !asker.shows_signed_token(&self.id, token) {
            true => Err(Refusal::NotSigned),
            false => Ok(()),
        }
    }

    /// Checks that a participant may use plain RTP, if it does.
    pub(crate) fn check_rtp(&self, by_rtp: bool) -> Result<(), Refusal> {
        match by_rtp && !self.options.allow_rtp {
            true => Err(Refusal::Unauthorized(
                "no plain RTP in this room, see allow_rtp_participants",
            )),
            false => Ok(()),
        }
    }

    /// A message of the room called `event`, without its content.
    pub(super) fn event(&self) -> Object {
        Object::new()
            .with("audiobridge", "event")
            .with("room", self.id.to_json())
    }
}
