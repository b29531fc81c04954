//! The descriptions of the forks of a call before one of them accepts. A proxy may ring several
//! telephones, and each may send early media (RFC 3261 section 13.2.2.4).

use portunus_sip::dialog::DialogId;

/// The maximum number of forks of one call: that of the SIP stack.
const MOST: usize = 12;

/// The descriptions by the tags of the forks. The fork that is heard is last.
#[derive(Debug, Default)]
pub(crate) struct Forks(Vec<(String, String)>);

impl Forks {
    /// Notes the description of a fork, which is heard from now on.
    pub(crate) fn note(&mut self, dialog: &DialogId, sdp: &str) {
        self.0.retain(|(tag, _)| *tag != dialog.remote_tag);
        if self.0.len() >= MOST {
            self.0.remove(0);
        }
        self.0.push((dialog.remote_tag.clone(), sdp.to_owned()));
    }

    /// Returns the description of a fork that has accepted without one, if another fork is heard
    /// now: the media have to return to it. A fork that never sent one has to be the one that is
    /// heard, behind a gateway that gave it a new tag.
    pub(crate) fn unheard(&self, dialog: &DialogId) -> Option<&str> {
        let (_, others) = self.0.split_last()?;
        let found = others.iter().find(|(tag, _)| *tag == dialog.remote_tag);
        found.map(|(_, sdp)| sdp.as_str())
    }

    /// Returns the description of a fork that has accepted without one, or else that of the fork
    /// that is heard.
    pub(crate) fn accepted(&self, dialog: &DialogId) -> Option<&str> {
        let heard = || self.0.last().map(|(_, sdp)| sdp.as_str());
        self.unheard(dialog).or_else(heard)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dialog(tag: &str) -> DialogId {
        DialogId {
            call_id: "c".to_owned(),
            local_tag: "l".to_owned(),
            remote_tag: tag.to_owned(),
        }
    }

    #[test]
    fn who_accepts_is_heard() {
        let mut forks = Forks::default();
        assert_eq!(forks.accepted(&dialog("a")), None);
        forks.note(&dialog("a"), "at a");
        assert_eq!(forks.unheard(&dialog("a")), None);
        assert_eq!(forks.accepted(&dialog("a")), Some("at a"));
        forks.note(&dialog("b"), "at b");
        assert_eq!(forks.unheard(&dialog("a")), Some("at a"));
        assert_eq!(forks.unheard(&dialog("c")), None);
        assert_eq!(forks.accepted(&dialog("c")), Some("at b"));
        forks.note(&dialog("a"), "again at a");
        assert_eq!(forks.unheard(&dialog("b")), Some("at b"));
        assert_eq!(forks.accepted(&dialog("a")), Some("again at a"));
    }

    #[test]
    fn forks_are_bounded() {
        let mut forks = Forks::default();
        for number in 0..100 {
            forks.note(&dialog(&number.to_string()), "sdp");
        }
        assert_eq!(forks.0.len(), MOST);
    }
}
