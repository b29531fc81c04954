//! The counters of the plugin.

use portunus_core::{Count, PluginCounter};

/// All counts since the start.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) messages: Count,
    pub(crate) whispers: Count,
    pub(crate) announcements: Count,
    pub(crate) too_fast: Count,
    pub(crate) too_long: Count,
    pub(crate) ignored: Count,
    pub(crate) posted: Count,
    pub(crate) posts_failed: Count,
    pub(crate) posts_lost: Count,
}

impl Tally {
    pub(crate) fn counters(&self) -> Vec<PluginCounter> {
        let counter = PluginCounter::of;
        vec![
            counter(
                "messages",
                "Messages that went to all members of a room",
                &self.messages,
            ),
            counter(
                "whispers",
                "Messages that went to some members of a room",
                &self.whispers,
            ),
            counter(
                "announcements",
                "Announcements to the members of a room",
                &self.announcements,
            ),
            counter(
                "refused_too_fast",
                "Messages of data channels that were refused because their senders sent too much at once",
                &self.too_fast,
            ),
            counter(
                "refused_too_long",
                "Messages of data channels that were refused because they are too long",
                &self.too_long,
            ),
            counter(
                "ignored_messages",
                "Messages of data channels that are binary or no JSON",
                &self.ignored,
            ),
            counter(
                "posted",
                "Messages that HTTP back-ends have taken",
                &self.posted,
            ),
            counter(
                "posts_failed",
                "Attempts to post a message that failed",
                &self.posts_failed,
            ),
            counter(
                "posts_lost",
                "Messages that were not posted, since their back-end refused them, failed too often or was too slow",
                &self.posts_lost,
            ),
        ]
    }
}
