//! Hostile patterns: bounded time and memory, never a panic.

use std::time::{Duration, Instant};

use concord_re2::{Code, MAX_PATTERN, check, compile};
use proptest::prelude::*;

fn code(pattern: &str) -> Option<Code> {
    compile(pattern).err().map(|error| error.code)
}

#[test]
fn nesting_up_to_the_limit_compiles_on_a_small_stack() {
    let nested = |depth: usize| format!("{}a{}", "(".repeat(depth), ")".repeat(depth));
    let check = move || {
        assert_eq!(code(&nested(98)), None);
        assert_eq!(code(&nested(101)), Some(Code::NestingDepth));
        assert_eq!(code(&"(".repeat(MAX_PATTERN)), Some(Code::NestingDepth));
        assert_eq!(code(&format!("{}a{}", "(?:".repeat(98), ")*".repeat(98))), None);
    };
    let thread = std::thread::Builder::new().stack_size(2 << 20).spawn(check).expect("a thread");
    thread.join().expect("no stack overflow");
}

#[test]
fn expressions_that_would_be_too_large_are_refused_quickly() {
    let started = Instant::now();
    assert_eq!(code(&"a".repeat(MAX_PATTERN + 1)), Some(Code::Large));
    assert_eq!(code(&format!("({}){{1000}}", "x".repeat(4000))), Some(Code::Large));
    let different: String =
        (0..300).map(|n| format!(r"[\pL{}]", char::from_u32(0x3400 + n).expect("a character"))).collect();
    assert_eq!(code(&different), Some(Code::Large));
    assert!(started.elapsed() < Duration::from_secs(5), "took {:?}", started.elapsed());
}

/// What takes `regex` up to hundreds of megabytes and seconds.
const LARGE: [&str; 4] = [r"^\pL{200}$", r"(\pL{100}){10}", r"(?i)[A-\x{1e943}]{500}", r"^[^a]{1000}$"];

#[test]
fn large_expressions_are_checked_and_compiled_quickly() {
    let started = Instant::now();
    for _ in 0..250 {
        assert!(LARGE.iter().all(|pattern| check(pattern).is_ok()));
    }
    assert!(started.elapsed() < Duration::from_secs(1), "took {:?}", started.elapsed());
    for pattern in LARGE {
        assert!(compile(pattern).expect("a pattern").footprint() < 128 << 10, "{pattern}");
    }
    assert_eq!(code(&r"\pL".repeat(20_000)), None);
    assert_eq!(code(&"(?i)[A-\\x{1e943}]".repeat(3500)), None);
    assert!(started.elapsed() < Duration::from_secs(10), "took {:?}", started.elapsed());
}

#[test]
fn what_is_large_but_usual_compiles() {
    assert_eq!(code(r"^[^\n]{1,1000}$"), None);
    assert_eq!(code(r"^(\w{1,63}\.){1,10}\w{2,63}$"), None);
    assert_eq!(code(&vec!["[a-z]{1,8}"; 500].join("|")), None);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn random_text_never_panics(pattern in ".{0,40}") {
        let _ignored = compile(&pattern).is_ok();
    }

    #[test]
    fn random_syntax_never_panics(pieces in proptest::collection::vec(
        prop::sample::select(vec!["a", "(", ")", "[", "]", "^", "-", "|", "*", "{2}", "{", "?", "\\", "(?i)", "\\p{L}", "x", "é"]),
        0..24,
    )) {
        let _ignored = compile(&pieces.concat()).is_ok();
    }

    /// Escaped text matches itself and nothing is lost.
    #[test]
    fn quoted_text_matches_itself(text in "[^\\\\]{0,30}") {
        let regex = compile(&format!(r"^\Q{text}\E$")).expect("quoted text is a pattern");
        prop_assert!(regex.is_match(&text));
    }
}
