//! Simulcast in answers.

use portunus_rtp::Rid;
use portunus_sdp::{Description, RidOrder, SdpType, SimulcastForm};

use crate::support::{answer, answer_with, echo, lines, offer, parse, session};

#[test]
fn rids_are_ordered_as_the_client_says() {
    let rids = |order: RidOrder| {
        let mut session = session();
        let mut remote = session
            .parse(&offer("chromium_simulcast"), SdpType::Offer)
            .unwrap();
        remote.rid_order = order;
        let simulcast = remote.simulcast();
        let answer = Description::answer(&remote.description, &echo(&remote.description));
        session.set_remote_offer(remote).unwrap();
        let (_, negotiated) = session.local_answer(answer).unwrap();
        let rids = negotiated.media.get(1).unwrap().rids.clone();
        assert_eq!(simulcast.first().unwrap().rids, rids);
        rids.iter().map(Rid::to_string).collect::<Vec<_>>()
    };
    assert_eq!(rids(RidOrder::HighestFirst), ["l", "m", "h"]);
    assert_eq!(rids(RidOrder::LowestFirst), ["h", "m", "l"]);
    assert_eq!(RidOrder::from_name("lmh"), Some(RidOrder::LowestFirst));
}

#[test]
fn paused_layers_and_old_forms_are_echoed() {
    let (text, _) = answer(&offer("firefox_simulcast"));
    assert_eq!(lines(&text, 2, "a=simulcast"), ["a=simulcast:recv hi;~lo"]);
    let (text, _) = answer(&offer("firefox_old_simulcast"));
    assert_eq!(
        lines(&text, 2, "a=simulcast"),
        ["a=simulcast: recv rid=h;l"]
    );
    let remote = parse(&offer("firefox_old_simulcast")).unwrap();
    assert_eq!(
        remote.media.get(1).unwrap().simulcast_form,
        Some(SimulcastForm::Legacy)
    );
}

#[test]
fn without_the_rid_extension_there_are_no_layers() {
    let (text, negotiated) = answer_with(&mut session(), &offer("chromium_simulcast"), |options| {
        options
            .extensions
            .retain(|kind| *kind != portunus_rtp::ExtensionKind::Rid);
    });
    assert!(!text.contains("a=rid") && !text.contains("a=simulcast"));
    assert!(negotiated.media.get(1).unwrap().rids.is_empty());
}

#[test]
fn layers_by_ssrc_are_not_answered() {
    let (text, _) = answer(&offer("chromium_sim_group"));
    assert!(!text.contains("simulcast") && !text.contains("SIM"));
    let remote = parse(&offer("chromium_sim_group")).unwrap();
    let simulcast = remote.simulcast();
    assert_eq!(simulcast.len(), 1);
    assert_eq!(simulcast.first().unwrap().ssrcs.len(), 3);
}
