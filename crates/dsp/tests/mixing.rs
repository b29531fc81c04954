//! Who hears whom.
#![allow(clippy::expect_used, clippy::indexing_slicing, missing_docs)]

mod rig;

use rig::{Rig, participant};

#[test]
fn each_of_three_hears_the_other_two() {
    let mut rig = Rig::mono(0);
    for id in 1..=4 {
        rig.join(id, participant());
    }
    for _ in 0..100 {
        rig.send_tone(1, 400.0, 0.2);
        rig.send_tone(2, 700.0, 0.2);
        rig.send_tone(3, 1_100.0, 0.2);
        rig.tick();
    }
    for (listener, tones) in [
        (1, [false, true, true]),
        (2, [true, false, true]),
        (3, [true, true, false]),
        (4, [true, true, true]),
    ] {
        for (hertz, heard) in [400.0, 700.0, 1_100.0].into_iter().zip(tones) {
            let amount = rig.hears(listener, hertz);
            if heard {
                assert!(
                    (0.15..0.25).contains(&amount),
                    "{listener}: {amount} of {hertz}"
                );
            } else {
                assert!(amount < 0.01, "{listener}: {amount} of {hertz}");
            }
        }
    }
}
