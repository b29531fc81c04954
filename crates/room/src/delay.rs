//! Playout delays.

/// The longest delay of the header extension, in 10 ms (12 bits).
const LONGEST: u16 = 4_095;

/// The least and the greatest playout delay, in 10 ms. They apply once both are set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Delay {
    min: Option<u16>,
    max: Option<u16>,
}

impl Delay {
    /// Sets one or both. The other one follows where they would cross. A negative one removes both.
    pub(crate) fn set(&mut self, min: Option<i64>, max: Option<i64>) {
        let delays = [min, max];
        if delays.iter().flatten().any(|delay| *delay < 0) {
            *self = Delay::default();
            return;
        }
        let delay = |asked: i64| u16::try_from(asked).unwrap_or(LONGEST).min(LONGEST);
        if let Some(min) = min.map(delay) {
            self.min = Some(min);
            self.max = Some(self.max.unwrap_or(min).max(min));
        }
        if let Some(max) = max.map(delay) {
            self.max = Some(max);
            self.min = Some(self.min.unwrap_or(max).min(max));
        }
    }

    /// Returns both, if they are set.
    pub(crate) fn range(self) -> Option<(u16, u16)> {
        self.min.zip(self.max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_end_drags_the_other_along() {
        let mut delay = Delay::default();
        assert_eq!(delay.range(), None);
        delay.set(Some(10), None);
        assert_eq!(delay.range(), Some((10, 10)));
        delay.set(None, Some(5));
        assert_eq!(delay.range(), Some((5, 5)));
        delay.set(Some(1), Some(90_000));
        assert_eq!(delay.range(), Some((1, 4_095)));
        delay.set(None, Some(-1));
        assert_eq!(delay.range(), None);
    }
}
