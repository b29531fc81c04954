//! The options of a room, in `create`, `edit` and the configuration.

use portunus_core::Fields;
use portunus_resources::{Access, Id, Options, place};
use url::Url;

use crate::post;
use crate::refusal::Refusal;

/// The limit of messages in a room's history. Their bytes are limited too.
const MAX_HISTORY: usize = 10_000;

/// The options of a room, as `create` and the configuration have them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RoomOptions {
    pub(crate) description: String,
    /// Its secret and its pin, and whether it is listed.
    pub(crate) access: Access,
    /// The number of messages in the history for later members.
    pub(crate) history: usize,
    /// The address of the back-end.
    pub(crate) post: Option<Url>,
}

impl RoomOptions {
    /// Sets the default description, if there is none.
    pub(crate) fn described(mut self, room: &Id) -> Self {
        if self.description.is_empty() {
            self.description = format!("Room {room}");
        }
        self
    }
}

type Opt = portunus_resources::Opt<RoomOptions, Refusal>;

/// Their names.
pub(crate) const OPTIONS: Options<RoomOptions, Refusal> = Options(&[
    Opt::new("description", place!(description))
        .edited_as("new_description")
        .listed(),
    Opt::new(
        "history",
        place!(history, history, |history| (*history).into()),
    )
    .listed(),
    Opt::new("is_private", place!(access.is_private)).edited_as("new_is_private"),
    Opt::new("secret", place!(access.secret)).edited_as("new_secret"),
    Opt::new("pin", place!(access.pin)).edited_as("new_pin"),
    Opt::new("post", place!(post, back_end, address)).edited_as("new_post"),
]);

fn history(fields: Fields<'_>, name: &'static str) -> Result<Option<usize>, Refusal> {
    let history = fields.member::<u64>(name)?.map(usize::try_from).transpose();
    let history = history
        .ok()
        .filter(|it| it.is_none_or(|it| it <= MAX_HISTORY));
    history.ok_or(Refusal::value(name, "10000 at most"))
}

/// Reads the address of a back-end. An empty text changes nothing.
fn back_end(fields: Fields<'_>, name: &'static str) -> Result<Option<Option<Url>>, Refusal> {
    let address = |text| post::address(text).ok_or(Refusal::value(name, post::EXPECTED));
    let address = fields.text(name)?.map(address).transpose();
    address.map(|address| address.map(Some))
}

fn address(post: &Option<Url>) -> serde_json::Value {
    post.as_ref().map(Url::as_str).into()
}
