#![no_main]

use std::cell::RefCell;

use libfuzzer_sys::fuzz_target;
use portunus_rtc::testing::{Link, Pair};
use portunus_rtc::{stun_answer, stun_username};

/// Datagrams after which a transport is replaced, so that no input depends on too long a past.
const FRESH: u32 = 10_000;

fn waiting() -> Pair {
    Pair::new(1, Link::GOOD)
}

fn connected() -> Pair {
    let mut pair = waiting();
    assert!(pair.connect());
    pair
}

thread_local! {
    static PAIRS: RefCell<Option<(u32, Pair, Pair)>> = const { RefCell::new(None) };
}

// A fresh transport and a connected one both accept any input. The connected one stays connected,
// since nothing here can be authentic.
fuzz_target!(|datagram: &[u8]| {
    let _ = (stun_username(datagram), stun_answer(datagram));
    PAIRS.with_borrow_mut(|state| {
        let (used, waiting, connected) = state.get_or_insert_with(|| (0, waiting(), connected()));
        for pair in [waiting, &mut *connected] {
            let (local, remote) = match pair.left.transport.selected_pair() {
                Some(selected) => (selected.local, selected.remote),
                None => (([10, 0, 0, 1], 1_001).into(), ([10, 0, 0, 2], 1_002).into()),
            };
            let mut bytes = datagram.to_vec();
            let _ = pair
                .left
                .transport
                .receive(pair.now, local, remote, &mut bytes);
            pair.flush();
        }
        assert!(connected.left.transport.is_connected());
        *used += 1;
        if *used > FRESH {
            *state = None;
        }
    });
});
