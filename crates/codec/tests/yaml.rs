//! YAML in and out, as text in and text out.

use concord_codec::{
    FieldTree, FieldValidation, Options, decode_yaml, encode, encode_yaml, strict_decoding_error,
};
use serde_json::{Value, json};

/// What a body reads as in JSON, or the error.
fn read(body: &str) -> String {
    match decode_yaml(body.as_bytes(), &Options::default()) {
        Ok(decoded) => String::from_utf8(encode(&Value::Object(decoded.object))).expect("JSON is text"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn documents_become_the_json_upstream_makes_of_them() {
    let cases = [
        ("", "{}"),
        ("a: 1", r#"{"a":1}"#),
        ("a:\n- b: x\n- [1, {c: d}]\n", r#"{"a":[{"b":"x"},[1,{"c":"d"}]]}"#),
        (
            "a: 1.0\nb: 1e3\nc: 1.5\nd: 010\ne: 18446744073709551615",
            r#"{"a":1,"b":1000,"c":1.5,"d":8,"e":18446744073709552000}"#,
        ),
        (
            "a: yes\nb: 'yes'\nc: ~\nd:\ne: \"1\"\nf: 2026-11-15",
            r#"{"a":true,"b":"yes","c":null,"d":null,"e":"1","f":"2026-11-15"}"#,
        ),
        (
            "1: a\ntrue: b\n1.5: c\n2026-11-15: d\n'x': e",
            r#"{"1":"a","1.5":"c","2026-11-15":"d","true":"b","x":"e"}"#,
        ),
        ("a: !!str 1\nb: !!float 1\nc: !local 1\nd: ! x", r#"{"a":"1","b":1,"c":"1","d":"x"}"#),
        ("a: |\n  x\n   y\nb: >-\n  x\n  y\n", r#"{"a":"x\n y\n","b":"x y"}"#),
        ("a: &x {b: 1}\nc: *x\n", r#"{"a":{"b":1},"c":{"b":1}}"#),
        ("a: &x {b: 1, c: 2}\nd:\n  <<: *x\n  b: 3\n", r#"{"a":{"b":1,"c":2},"d":{"b":3,"c":2}}"#),
        ("&k a: 1\nb: *k\n", r#"{"a":1,"b":"a"}"#),
        ("d:\n  <<: [{a: 1}, {a: 2, b: 2}]\n", r#"{"d":{"a":1,"b":2}}"#),
        ("---\na: 1\n---\nb: 2\n", r#"{"a":1}"#),
        ("a: 1\n...\n[: not looked at", r#"{"a":1}"#),
        ("# comment\na: 1 # more\n", r#"{"a":1}"#),
        (r#"{"a": "\u00e9\n", "b": [1, -0]}"#, r#"{"a":"é\n","b":[1,0]}"#),
        ("a: 1\na: 2\n", r#"{"a":2}"#),
    ];
    for (body, expected) in cases {
        assert_eq!(read(body), expected, "{body}");
    }
}

#[test]
fn what_json_cannot_hold_is_refused() {
    let cases = [
        ("a: .inf", "json: unsupported value: +Inf"),
        ("a: -.inf", "json: unsupported value: -Inf"),
        ("a: .nan", "json: unsupported value: NaN"),
        ("~: 1", "unsupported map key of type: null"),
        ("[a]: 1", "yaml: invalid map key: a map or a list"),
        ("a: !!int x", "yaml: cannot decode !!str `x` as a !!int"),
        ("a: !!binary aGk=", "yaml: !!binary is not supported"),
        ("a: &x [*x]", "yaml: anchor value contains itself"),
        ("<<: 1", "yaml: map merge requires map or sequence of maps as the value"),
    ];
    for (body, expected) in cases {
        assert_eq!(read(body), expected, "{body}");
    }
    assert!(read("- a").starts_with("json: cannot unmarshal array into Go value"));
    for broken in ["a: [", "a: b: c", "a: *x", "a: \"", "{"] {
        assert!(read(broken).starts_with("yaml: line "), "{broken}: {}", read(broken));
    }
    assert_eq!(
        decode_yaml(b"a: \xff", &Options::default()).expect_err("no text").to_string(),
        "yaml: invalid UTF-8"
    );
}

#[test]
fn repeated_keys_are_reported_with_their_lines() {
    let options = Options { validation: FieldValidation::Strict, ..Options::default() };
    let decoded = decode_yaml(b"a: 1\nb:\n  x: 1\n  x: 2\na: 3\n1: 1\n1: 2\n", &options).expect("YAML");
    assert_eq!(
        strict_decoding_error(&decoded.violations),
        "strict decoding error: yaml: unmarshal errors:\n  line 4: key \"x\" already set in map\n  \
         line 5: key \"a\" already set in map\n  line 7: key 1 already set in map"
    );
    let options = Options { validation: FieldValidation::Ignore, ..Options::default() };
    assert!(decode_yaml(b"a: 1\na: 2\n", &options).expect("YAML").violations.is_empty());
}

#[test]
fn unknown_fields_are_reported_in_sorted_order() {
    let fields = FieldTree::object([("a", FieldTree::Opaque)]);
    let options =
        Options { validation: FieldValidation::Strict, fields: Some(&fields), ..Options::default() };
    let decoded = decode_yaml(b"z: 1\nb: 2\na: 3\n", &options).expect("YAML");
    assert_eq!(
        strict_decoding_error(&decoded.violations),
        "strict decoding error: unknown field \"b\", unknown field \"z\""
    );
    assert_eq!(decoded.object.len(), 1);
}

#[test]
fn explosions_and_depth_are_bounded() {
    let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for n in 1..12 {
        let aliases = vec![format!("*a{}", n - 1); 10].join(", ");
        bomb.push_str(&format!("a{n}: &a{n} [{aliases}]\n"));
    }
    assert_eq!(read(&bomb), "yaml: document contains excessive aliasing");

    let big = format!("a: &a \"{}\"\nb: [{}]\n", "x".repeat(1_000_000), vec!["*a"; 100].join(", "));
    assert_eq!(read(&big), "yaml: document contains excessive aliasing");

    let depth = |levels: usize| read(&format!("a: {}{}", "[".repeat(levels), "]".repeat(levels)));
    assert!(depth(499).starts_with("{\"a\":[["));
    for levels in [500, 10_000, 100_000] {
        assert!(depth(levels).starts_with("yaml: "), "{levels}");
    }
    let blocks: String = (0..1_000).map(|level| format!("{}a:\n", " ".repeat(level))).collect();
    assert!(read(&blocks).starts_with("yaml: "));

    let mut nested = String::from("a0: &a0 [x]\n");
    for n in 1..600 {
        nested.push_str(&format!("a{n}: &a{n} [*a{}]\n", n - 1));
    }
    assert_eq!(read(&nested), "yaml: exceeded max depth of 500");
}

#[test]
fn values_are_written_as_upstream_writes_them() {
    let value = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "a", "creationTimestamp": "2026-11-15T22:04:45Z", "labels": {}, "finalizers": []},
        "data": {
            "text": "line one\nline two\n",
            "cut": "no newline\nat the end",
            "indented": "  x\ny\n",
            "tab": "a\tb",
            "bool": "true",
            "number": "12",
            "empty": "",
            "colon": "a: b",
            "key10": "x", "key9": "y",
            "emoji": "😀",
            "a\nb": "multi",
        },
        "list": [1, "two", [3, [4]], {"b": [5], "a": {"c": null}}, {}, []],
        "floats": [1.5, 1e21, 1e6, 0.1],
    });
    let expected = r#"apiVersion: v1
data:
  ? |-
    a
    b
  : multi
  bool: "true"
  colon: 'a: b'
  cut: |-
    no newline
    at the end
  emoji: "\U0001F600"
  empty: ""
  indented: |2
      x
    y
  key9: "y"
  key10: x
  number: "12"
  tab: "a\tb"
  text: |
    line one
    line two
floats:
- 1.5
- 1e+21
- 1000000
- 0.1
kind: ConfigMap
list:
- 1
- two
- - 3
  - - 4
- a:
    c: null
  b:
  - 5
- {}
- []
metadata:
  creationTimestamp: "2026-11-15T22:04:45Z"
  finalizers: []
  labels: {}
  name: a
"#;
    let mut out = Vec::new();
    encode_yaml(&value, &mut out);
    assert_eq!(String::from_utf8(out).expect("text"), expected);
}

#[test]
fn long_lines_and_long_keys_are_broken_as_upstream_breaks_them() {
    let words = "word ".repeat(20);
    let value =
        json!({"a": words.trim_end(), "b": format!("{}: x", words.trim_end()), "k".repeat(130): {"x": [1]}});
    let mut out = Vec::new();
    encode_yaml(&value, &mut out);
    let line = "word ".repeat(15);
    let expected = format!(
        "a: {line}word\n  word word word word\nb: '{line}word\n  word word word word: x'\n? {}\n: x:\n  - 1\n",
        "k".repeat(130)
    );
    assert_eq!(String::from_utf8(out).expect("text"), expected);
}
