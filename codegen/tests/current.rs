//! The checked-in code is what the generator makes.

use concord_codegen::{checked_in, generate, read_all};

#[test]
fn the_generated_code_is_current() {
    let expected = generate().expect("the generator runs");
    let present = read_all(&checked_in()).expect("the code is checked in");
    let names = |files: &[concord_codegen::Generated]| -> Vec<String> {
        files.iter().map(|file| file.name.clone()).collect()
    };
    assert_eq!(names(&present), names(&expected), "run `cargo run -p concord-codegen`");
    for (present, expected) in present.iter().zip(&expected) {
        assert!(present == expected, "{} is stale: run `cargo run -p concord-codegen`", present.name);
    }
}
