use super::*;

fn why(text: &'static str) -> &'static str {
    table(&[text]).expect_err(text).why
}

#[test]
fn kinds_are_found_by_version_and_name() {
    let table = table(&["A.b in x/{v1,v2}\n  *c = 1\nD\n  drop e\nA in v1\n  f -> D\n"]).expect("good");
    assert_eq!(table.kind("x/v1", "A"), Some(TypeId(0)));
    assert_eq!(table.kind("x/v2", "A"), Some(TypeId(0)));
    assert_eq!(table.kind("v1", "A"), Some(TypeId(2)));
    assert_eq!(table.kind("v1", "D"), None);
}

#[test]
fn conditions_are_read() {
    let table = table(&["A\n  b = [\"c\"] if *d.e is unset, f is \"g\" or true\n"]).expect("good");
    let rule = &table.types[0][0];
    let [first, second] = &rule.conditions[..] else { panic!("two conditions") };
    assert!(first.field.pointer && matches!(first.test, Test::Unset));
    assert_eq!((&*first.field.parents, first.field.name), (&["d"][..], "e"));
    assert!(matches!(&second.test, Test::Is(values) if values.len() == 2));
}

#[test]
fn what_is_malformed_is_told() {
    assert_eq!(why("A\n  b = c"), "not JSON");
    assert_eq!(why("A\n  b = 1 if c"), "a condition needs a test");
    assert_eq!(why("A\n  b -> C"), "no such type");
    assert_eq!(why("A\n  b[ -> A"), "brackets that mean nothing");
    assert_eq!(why("A\n  b[].c = 1"), "a rule about many things: give them a type");
    assert_eq!(why("A\n  b. = 1"), "a field without a name");
    assert_eq!(why("A\n  b..c -> A"), "a field without a name");
    assert_eq!(why("A\n  do what"), "no such code");
    assert_eq!(why("A\n  b ~ 1"), "neither of the kinds of rules");
    assert_eq!(why("A\n  drop b\nA\n  drop c"), "a type of that name exists");
    assert_eq!(why("  drop b\nA"), "a rule of no type");
}
