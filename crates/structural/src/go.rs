//! Floats as Go's `%v` prints them.

/// The shortest digits; an exponent below 1e-4 and from 1e6 on, which has two digits at least.
pub(crate) fn float(float: f64) -> String {
    let text = format!("{float:e}");
    let Some((mantissa, exponent)) = text.split_once('e') else { return text };
    match exponent.parse::<i32>() {
        Ok(exponent) if !(-4..6).contains(&exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{mantissa}e{sign}{:02}", exponent.unsigned_abs())
        }
        _ => float.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::float;

    #[test]
    fn floats_are_printed_as_go_prints_them() {
        let table = [
            (0.0, "0"),
            (1.5, "1.5"),
            (-100_000.0, "-100000"),
            (1e6, "1e+06"),
            (2_500_000.5, "2.5000005e+06"),
            (123_456_789.0, "1.23456789e+08"),
            (1e21, "1e+21"),
            (0.0001, "0.0001"),
            (0.000_01, "1e-05"),
            (1e300, "1e+300"),
        ];
        for (value, text) in table {
            assert_eq!(float(value), text);
        }
    }
}
