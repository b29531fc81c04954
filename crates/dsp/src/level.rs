//! Audio levels as in RFC 6464.

/// The level of digital silence, in -dBov.
pub const SILENCE: u8 = 127;

/// Returns the level of `samples` in -dBov: 0 is a square wave of full scale, 127 silence.
///
/// Channels may be interleaved: the level is that of all samples together.
pub fn level(samples: &[f32]) -> u8 {
    if samples.is_empty() {
        return SILENCE;
    }
    let energy = samples.iter().map(|sample| sample * sample).sum::<f32>() / samples.len() as f32;
    // `as` turns NaN and levels above full scale into 0.
    ((-10.0 * energy.log10()).round() as u8).min(SILENCE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_those_of_rfc_6464() {
        let square: Vec<f32> = (0..320)
            .map(|index| if index % 2 == 0 { 1.0 } else { -1.0 })
            .collect();
        assert_eq!(level(&square), 0);
        let sine: Vec<f32> = (0..320)
            .map(|index| (index as f32 * std::f32::consts::TAU / 32.0).sin())
            .collect();
        assert_eq!(level(&sine), 3);
        let quiet: Vec<f32> = square.iter().map(|sample| sample / 1_000.0).collect();
        assert_eq!(level(&quiet), 60);
        assert_eq!(level(&[0.0; 320]), SILENCE);
        assert_eq!(level(&[1e-9; 320]), SILENCE);
        assert_eq!(level(&[]), SILENCE);
        assert_eq!(level(&[4.0; 320]), 0);
    }
}
