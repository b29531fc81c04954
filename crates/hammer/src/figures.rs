//! Figures for people: three significant digits and a unit.

/// Formats bits per second.
pub fn bits_per_s(bps: f64) -> String {
    scaled(bps, 1e3, &["bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"])
}

/// Formats bytes, in units of 1,024.
pub fn bytes(bytes: f64) -> String {
    scaled(bytes, 1_024.0, &["B", "KiB", "MiB", "GiB", "TiB"])
}

/// Formats a time in microseconds.
pub fn time_us(us: f64) -> String {
    if us.abs() < 1e6 {
        scaled(us, 1e3, &["us", "ms"])
    } else {
        format!("{} s", digits(us / 1e6))
    }
}

/// Formats a share of 1 in percent.
pub fn percent(share: f64) -> String {
    let percent = share * 100.0;
    // 99.996 must not be shown as 100.
    if (99.0..100.0).contains(&percent) {
        return format!("{:.2} %", (percent * 100.0).floor() / 100.0);
    }
    format!("{} %", digits(percent))
}

/// Formats a whole number, in groups of three digits.
pub fn count(number: f64) -> String {
    let text = format!("{:.0}", number.abs());
    let mut grouped = String::new();
    for (at, digit) in text.chars().enumerate() {
        if at > 0 && (text.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    if number <= -0.5 {
        grouped.insert(0, '-');
    }
    grouped
}

/// Formats a ratio, such as `25.3x`.
pub fn ratio(ratio: f64) -> String {
    format!("{}x", digits(ratio))
}

/// Formats up to three significant digits.
pub fn digits(number: f64) -> String {
    match number.abs() {
        n if n >= 99.95 => count(number),
        n if n >= 9.995 => format!("{number:.1}"),
        0.0 => "0".to_owned(),
        _ => format!("{number:.2}"),
    }
}

fn scaled(mut number: f64, base: f64, units: &[&str]) -> String {
    let mut units = units.iter();
    let mut unit = units.next().copied().unwrap_or_default();
    // 999.6 would be rounded to 1,000.
    while number.abs() >= base - base / 2_000.0 {
        let Some(next) = units.next() else {
            break;
        };
        number /= base;
        unit = next;
    }
    format!("{} {unit}", digits(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_and_a_unit() {
        assert_eq!(bits_per_s(19_693_000_000.0), "19.7 Gbit/s");
        assert_eq!(bits_per_s(999_960.0), "1.00 Mbit/s");
        assert_eq!(bits_per_s(0.0), "0 bit/s");
        assert_eq!(bytes(17_400.0), "17.0 KiB");
        assert_eq!(time_us(85.0), "85.0 us");
        assert_eq!(time_us(1_234.0), "1.23 ms");
        assert_eq!(time_us(2_500_000.0), "2.50 s");
        assert_eq!(percent(0.99996), "99.99 %");
        assert_eq!(percent(1.0), "100 %");
        assert_eq!(percent(0.7031), "70.3 %");
        assert_eq!(count(1_234_567.0), "1,234,567");
        assert_eq!(count(-12.0), "-12");
        assert_eq!(ratio(25.31), "25.3x");
    }
}
