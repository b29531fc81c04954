//! The end of a drain: clients are sent elsewhere, one after another.

use std::time::Duration;

/// How long before the deadline of a drain the first client is sent elsewhere.
const SPREAD: Duration = Duration::from_secs(10);

/// The interval in which some of the clients are sent.
pub(crate) const TURN: Duration = Duration::from_millis(100);

/// Returns the probability, 0 to 1, with which a client that is still there is sent in this turn,
/// so that all go evenly until the deadline. `left` is the time until then, or `None` for never.
pub(crate) fn chance(left: Option<Duration>) -> f64 {
    let Some(left) = left.filter(|left| *left <= SPREAD) else {
        return 0.0;
    };
    // The last turn is before the deadline, at which the server ends all that is left.
    let left = left.saturating_sub(TURN);
    match left <= TURN {
        true => 1.0,
        false => TURN.div_duration_f64(left),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_go_evenly_and_all_before_the_deadline() {
        let (mut present, mut gone) = (1_000.0, Vec::new());
        for turn in 0..110_u32 {
            let left = Duration::from_secs(11) - turn * TURN;
            let going = present * chance(Some(left));
            present -= going;
            gone.push(going);
        }
        assert_eq!(present, 0.0);
        let of_second = |second: usize| gone.iter().skip(second * 10).take(10).sum::<f64>();
        assert_eq!(of_second(0), 0.0);
        for second in 1..10 {
            let count = of_second(second);
            assert!((90.0..115.0).contains(&count), "{count} in second {second}");
        }
    }

    #[test]
    fn without_a_deadline_nobody_goes() {
        assert_eq!(chance(None), 0.0);
    }
}
