//! Quantities in, canonical quantities out.

use proptest::prelude::*;

use super::*;

fn quantity(text: &str) -> Quantity {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn quantities_have_a_canonical_form() {
    let table = [
        ("0", "0"),
        ("00", "0"),
        ("0Ki", "0"),
        ("0.0", "0"),
        ("-0", "0"),
        ("1", "1"),
        ("100m", "100m"),
        ("1000m", "1"),
        ("0.1", "100m"),
        ("1.5", "1500m"),
        (".5", "500m"),
        ("-1.5", "-1500m"),
        ("1000", "1k"),
        ("1500", "1500"),
        ("10000k", "10M"),
        ("1.1k", "1100"),
        ("1G", "1G"),
        ("1E", "1E"),
        ("1n", "1n"),
        ("0.1n", "1n"),
        ("-0.1n", "-1n"),
        ("1.0000000001", "1000000001n"),
        ("1Ki", "1Ki"),
        ("1024Ki", "1Mi"),
        ("1.5Gi", "1536Mi"),
        ("0.5Ki", "512"),
        ("1.1Ki", "1126400m"),
        ("0.5Mi", "512Ki"),
        ("8Ei", "9223372036854775807"),
        ("100Ei", "9223372036854775807"),
        ("7Ei", "7Ei"),
        ("1e3", "1e3"),
        ("12e5", "1200e3"),
        ("1000e-3", "1"),
        ("1e-20", "1e-9"),
        ("1E6", "1E6"),
        ("2e0", "2e0"),
        // Texts that upstream takes for canonical.
        ("+5", "+5"),
        ("1.", "1."),
        ("1.500", "1.500"),
        ("05", "05"),
        // Upstream reads these as zero.
        ("Ki", "0"),
        ("+", "0"),
        (".Ti", "0"),
    ];
    for (text, canonical) in table {
        assert_eq!(quantity(text).to_string(), canonical, "{text}");
    }
}

#[test]
fn what_is_no_quantity_is_refused() {
    for text in ["", " 1", "1 ", "1.1.M", "1+1.0M", "aoeu", "0.1am", "1,5", "ä", "1e+-3"] {
        assert_eq!(text.parse::<Quantity>(), Err(QuantityError::Format), "{text}");
    }
    for text in [
        "--1",
        "1i",
        ".5i",
        "0.1mi",
        "1K",
        "1ki",
        "1e",
        "1e-",
        "-3.01e-",
        "1Kii",
        "1M3",
        "1e99999999999999999999",
    ] {
        assert_eq!(text.parse::<Quantity>(), Err(QuantityError::Suffix), "{text}");
    }
    for text in ["Ei", ".Pi", "-e-10"] {
        assert_eq!(text.parse::<Quantity>(), Err(QuantityError::Numeric), "{text}");
    }
    let text = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
    assert_eq!(QuantityError::Format.to_string(), text);
}

#[test]
fn quantities_are_compared_by_amount() {
    for (a, b) in [("1", "1000m"), ("1Ki", "1024"), ("1e3", "1k"), ("1.5Gi", "1536Mi"), ("0", "-0")] {
        assert_eq!(quantity(a), quantity(b));
    }
    for (less, greater) in [("1n", "2n"), ("-1", "1m"), ("1G", "1Gi"), ("999m", "1"), ("1E", "1e999")] {
        assert!(quantity(less) < quantity(greater), "{less} {greater}");
    }
}

#[test]
fn quantities_add_up() {
    let table = [
        ("1", "500m", "1500m"),
        ("0", "1Ki", "1Ki"),
        ("1Ki", "1", "1025"),
        ("1Gi", "1Gi", "2Gi"),
        ("1", "-1", "0"),
    ];
    for (a, b, sum) in table {
        let mut quantity_sum = quantity(a);
        quantity_sum += &quantity(b);
        assert_eq!(quantity_sum.to_string(), sum, "{a} + {b}");
        quantity_sum -= &quantity(b);
        assert_eq!(quantity_sum, quantity(a));
    }
    assert_eq!(Quantity::new(2048, QuantityFormat::BinarySi).to_string(), "2Ki");
    assert_eq!(Quantity::new(2048, QuantityFormat::DecimalSi).format(), QuantityFormat::DecimalSi);
}

#[test]
fn values_are_rounded_away_from_zero() {
    for (text, value, milli) in
        [("1.5", 2, 1500), ("-1.5", -2, -1500), ("1n", 1, 1), ("2", 2, 2000), ("0", 0, 0)]
    {
        assert_eq!((quantity(text).value(), quantity(text).milli_value()), (value, milli), "{text}");
    }
    assert_eq!(quantity("1e999").value(), i64::MAX);
    assert_eq!(quantity("-1e999").value(), i64::MIN);
}

proptest! {
    #[test]
    fn the_canonical_form_amounts_to_the_same(text in r"[-+]?[0-9]{0,12}(\.[0-9]{0,12})?(n|u|m||k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|e-?[0-9]{1,2})") {
        if let Ok(read) = text.parse::<Quantity>() {
            let again = quantity(&read.to_string());
            prop_assert_eq!(&again, &read);
            let mut sum = read.clone();
            sum += &Quantity::new(0, QuantityFormat::DecimalSi);
            let canonical = sum.to_string();
            prop_assert_eq!(quantity(&canonical), read);
            let mut twice = quantity(&canonical);
            // A number in powers of 1024 may have none, and then reads as a decimal one.
            if twice.format() == sum.format() {
                twice += &Quantity::new(0, QuantityFormat::DecimalSi);
                prop_assert_eq!(twice.to_string(), canonical);
            }
        }
    }

    #[test]
    fn adding_is_commutative(a in -1_000_000_i64..1_000_000, b in -1_000_000_i64..1_000_000) {
        let quantity_of = |milli: i64| quantity(&format!("{milli}m"));
        let (mut ab, mut ba) = (quantity_of(a), quantity_of(b));
        ab += &quantity_of(b);
        ba += &quantity_of(a);
        prop_assert_eq!(&ab, &ba);
        prop_assert_eq!(ab.milli_value(), a + b);
    }

    #[test]
    fn nothing_panics(text in r"[-+0-9.eEinumkKMGTP]{0,60}") {
        if let Ok(quantity) = text.parse::<Quantity>() {
            prop_assert!(!quantity.to_string().is_empty());
            prop_assert!(quantity.value().unsigned_abs() <= quantity.milli_value().unsigned_abs());
        }
    }
}
