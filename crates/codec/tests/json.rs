//! JSON in and out, as text in and text out.

use concord_codec::{
    DecodeError, FieldTree, FieldValidation, Limits, Options, Violation, decode, decode_value, depth_exceeds,
    encode, encode_body,
};
use serde_json::{Value, json};

/// What a body reads as, encoded again, or the error.
fn read(body: &[u8]) -> String {
    match decode(body, &Options::default()) {
        Ok(decoded) => String::from_utf8(encode(&Value::Object(decoded.object))).expect("JSON is text"),
        Err(error) => error.to_string(),
    }
}

fn check_member(value: &str, expected: &str) {
    assert_eq!(read(format!("{{\"a\":{value}}}").as_bytes()), format!("{{\"a\":{expected}}}"), "{value}");
}

#[test]
fn numbers_are_integers_or_floats_as_for_go() {
    let cases = [
        ("0", "0"),
        ("-0", "0"),
        ("-0.0", "-0"),
        ("1.0", "1"),
        ("1e2", "100"),
        ("9223372036854775807", "9223372036854775807"),
        ("-9223372036854775808", "-9223372036854775808"),
        ("9223372036854775808", "9223372036854776000"),
        ("18446744073709551615", "18446744073709552000"),
        ("1e20", "100000000000000000000"),
        ("1e21", "1e+21"),
        ("0.000001", "0.000001"),
        ("1e-7", "1e-7"),
        ("1e-400", "0"),
        ("1.7976931348623157e308", "1.7976931348623157e+308"),
    ];
    for (value, expected) in cases {
        check_member(value, expected);
    }
    let huge = "json: cannot unmarshal number 1e400 into Go value of type float64";
    assert_eq!(read(br#"{"a":1e400,"b":-1e999}"#), huge);
    // The syntax of the whole document comes first.
    assert_eq!(read(br#"{"a":1e400,}"#), "invalid character '}' looking for beginning of object key string");
}

#[test]
fn strings_are_read_and_written_as_go_does() {
    let cases = [
        (r#""\"\\\/\b\f\n\r\t""#, r#""\"\\/\b\f\n\r\t""#),
        (r#""\u003c>&\u0000\u001f\u007f""#, "\"\\u003c\\u003e\\u0026\\u0000\\u001f\u{7f}\""),
        (r#""\u2028\u2029\u202a""#, "\"\\u2028\\u2029\u{202a}\""),
        (r#""\ud83d\ude00""#, "\"😀\""),
        (r#""\ud83d""#, "\"\u{fffd}\""),
        (r#""\ud83d\u0041""#, "\"\u{fffd}A\""),
        (r#""\ude00\ud83d\ude00""#, "\"\u{fffd}😀\""),
        (r#""é日😀""#, "\"é日😀\""),
    ];
    for (value, expected) in cases {
        check_member(value, expected);
    }
    // One replacement for every byte that is not part of a character.
    assert_eq!(read(b"{\"a\":\"x\xff\xe2\x82y\xf0\"}"), "{\"a\":\"x\u{fffd}\u{fffd}\u{fffd}y\u{fffd}\"}");
    assert_eq!(read(b"{\"\xff\":\"\\n\xff\"}"), "{\"\u{fffd}\":\"\\n\u{fffd}\"}");
}

#[test]
fn syntax_errors_are_gos() {
    let cases: [(&[u8], &str); 30] = [
        (b"", "unexpected end of JSON input"),
        (b"  \n", "unexpected end of JSON input"),
        (b"{", "unexpected end of JSON input"),
        (b"{\"a\"", "unexpected end of JSON input"),
        (b"{\"a\":", "unexpected end of JSON input"),
        (b"{\"a\":1", "unexpected end of JSON input"),
        (b"{\"a", "unexpected end of JSON input"),
        (b"{\"a\":[1", "unexpected end of JSON input"),
        (b"{} {}", "invalid character '{' after top-level value"),
        (b"{}x", "invalid character 'x' after top-level value"),
        (b"}", "invalid character '}' looking for beginning of value"),
        (b"\xef\xbb\xbf{}", "invalid character 'ï' looking for beginning of value"),
        (b"{a:1}", "invalid character 'a' looking for beginning of object key string"),
        (b"{\"a\" 1}", "invalid character '1' after object key"),
        (b"{\"a\":1 \"b\":2}", "invalid character '\"' after object key:value pair"),
        (b"{\"a\":[1 2]}", "invalid character '2' after array element"),
        (b"{\"a\":[,]}", "invalid character ',' looking for beginning of value"),
        (b"{\"a\":[1,]}", "invalid character ']' looking for beginning of value"),
        (b"{\"a\":01}", "invalid character '1' after object key:value pair"),
        (b"{\"a\":-}", "invalid character '}' in numeric literal"),
        (b"{\"a\":+1}", "invalid character '+' looking for beginning of value"),
        (b"{\"a\":1.}", "invalid character '}' after decimal point in numeric literal"),
        (b"{\"a\":1e}", "invalid character '}' in exponent of numeric literal"),
        (b"{\"a\":1e+", "invalid character ' ' in exponent of numeric literal"),
        (b"{\"a\":tru", "invalid character ' ' in literal true (expecting 'e')"),
        (b"{\"a\":fake}", "invalid character 'k' in literal false (expecting 'l')"),
        (b"{\"a\":nil}", "invalid character 'i' in literal null (expecting 'u')"),
        (b"{\"a\":\"\n\"}", "invalid character '\\n' in string literal"),
        (b"{\"a\":\"\\x\"}", "invalid character 'x' in string escape code"),
        (b"{\"a\":\"\\u12g4\"}", "invalid character 'g' in \\u hexadecimal character escape"),
    ];
    for (body, expected) in cases {
        assert_eq!(read(body), expected, "{}", String::from_utf8_lossy(body));
    }
}

#[test]
fn only_objects_and_null_are_objects() {
    assert_eq!(read(b"null"), "{}");
    for (body, found) in [("[]", "array"), ("1", "number"), ("\"a\"", "string"), ("true", "bool")] {
        assert!(read(body.as_bytes()).starts_with(&format!("json: cannot unmarshal {found} into Go value")));
    }
}

const POD: &[u8] = br#" {"apiVersion":"v1","kind":"Pod","metadata":{"name":"a\u0062\n","labels":{"x":null}},
    "spec":{"containers":[{"name":"c","ports":[{"containerPort":80}],"on":true,"off":false},{}],"f":-1.5e-3}} "#;

#[test]
fn a_body_cut_or_broken_at_any_byte_is_an_error_or_another_body_and_never_a_panic() {
    let whole = decode(POD, &Options::default()).expect("a good body");
    // The last byte is a space.
    for end in 0..POD.len() - 1 {
        assert!(decode(&POD[..end], &Options::default()).is_err(), "cut at {end}");
    }
    for at in 0..POD.len() {
        for byte in [0, b'"', b'\\', b'{', b'}', b'[', b',', b':', b'9', b'e', b'.', 0x80, 0xff] {
            let mut body = POD.to_vec();
            body[at] = byte;
            if let Ok(decoded) = decode(&body, &Options::default()) {
                assert!(body == POD || decoded != whole || POD[at].is_ascii_whitespace());
            }
        }
    }
}

#[test]
fn depth_is_bounded_for_arrays_and_objects() {
    let limit = Limits::default().max_depth;
    let arrays = |depth: usize| format!("{{\"a\":{}{}}}", "[".repeat(depth - 1), "]".repeat(depth - 1));
    let objects = |depth: usize| format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth));
    for nested in [arrays, objects] {
        let body = nested(limit);
        let decoded = decode(body.as_bytes(), &Options::default()).expect("as deep as allowed");
        let value = Value::Object(decoded.object);
        assert_eq!(encode(&value), body.as_bytes());
        assert!(!depth_exceeds(&value, limit));
        assert!(depth_exceeds(&value, limit - 1));
        for depth in [limit + 1, 10_000, 400_000] {
            let error = decode(nested(depth).as_bytes(), &Options::default()).expect_err("too deep");
            assert!(matches!(
                error,
                DecodeError::Syntax { context: "exceeded max depth", byte: b'[' | b'{', .. }
            ));
        }
    }
}

#[test]
fn what_is_dropped_may_be_as_deep_as_upstream_reads() {
    let fields = FieldTree::object([("a", FieldTree::Opaque)]);
    let options = Options { fields: Some(&fields), validation: FieldValidation::Warn, ..Options::default() };
    let arrays = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let objects = |depth: usize| format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth));
    for nested in [arrays, objects] {
        let decoded = decode(format!("{{\"x\":{},\"a\":7}}", nested(9_999)).as_bytes(), &options);
        let decoded = decoded.expect("as deep as upstream reads");
        assert_eq!(Value::Object(decoded.object), json!({"a": 7}));
        assert_eq!(decoded.violations, [Violation::Unknown("x".to_owned())]);
        for body in [format!("{{\"x\":{}}}", nested(10_000)), format!("{{\"a\":{}}}", nested(500))] {
            let error = decode(body.as_bytes(), &options).expect_err("too deep");
            assert!(matches!(error, DecodeError::Syntax { context: "exceeded max depth", .. }), "{error}");
        }
    }
    // What is no object is of no use, and told so only once it was read.
    let error = decode(arrays(10_000).as_bytes(), &Options::default()).expect_err("no object");
    assert_eq!(error, DecodeError::NotAnObject { found: "array" });
    let error = decode("[".repeat(10_000).as_bytes(), &Options::default()).expect_err("no end");
    assert_eq!(error, DecodeError::UnexpectedEnd);
    assert!(decode_value(arrays(501).as_bytes(), Limits::default()).is_err(), "this would be kept");
}

#[test]
fn values_of_any_depth_are_written() {
    let levels = 100_000;
    let mut deep = (0..levels).fold(json!(1), |inner, _| Value::Array(vec![inner]));
    assert_eq!(encode(&deep).len(), 2 * levels + 1);
    assert!(depth_exceeds(&deep, levels - 1) && !depth_exceeds(&deep, levels));
    // Dropping recurses, so the test takes it apart.
    while let Value::Array(mut items) = deep {
        deep = items.pop().expect("one item");
    }
}

#[test]
fn long_bodies_are_refused() {
    let limits = Limits { max_bytes: 8, ..Limits::default() };
    let options = Options { limits, ..Options::default() };
    assert!(decode(b"{\"a\":10}", &options).is_ok());
    assert_eq!(decode(b"{\"a\":100}", &options), Err(DecodeError::TooLarge { limit: 8 }));
}

#[test]
fn bodies_are_written_compact_or_indented() {
    let value = json!({"b": [1, {"c": "<"}, [], {}], "a": {"x": null, "y": [[true]]}, "": 1.5});
    let body = |pretty| {
        let mut out = Vec::new();
        encode_body(&value, pretty, &mut out);
        String::from_utf8(out).expect("text")
    };
    assert_eq!(
        body(false),
        "{\"\":1.5,\"a\":{\"x\":null,\"y\":[[true]]},\"b\":[1,{\"c\":\"\\u003c\"},[],{}]}\n"
    );
    let pretty = r#"{
  "": 1.5,
  "a": {
    "x": null,
    "y": [
      [
        true
      ]
    ]
  },
  "b": [
    1,
    {
      "c": "\u003c"
    },
    [],
    {}
  ]
}"#;
    assert_eq!(body(true), pretty);
    assert_eq!(encode(&json!("a")), b"\"a\"");
    assert_eq!(encode(&json!(u64::MAX)), b"18446744073709551615");
}

/// The violations of a body, one a line, and what is left of it.
fn strict(body: &str, fields: Option<&FieldTree>) -> (String, String) {
    let options = Options {
        validation: FieldValidation::Strict,
        fields: fields.map(|fields| fields as _),
        ..Options::default()
    };
    let decoded = decode(body.as_bytes(), &options).expect("JSON");
    let violations: Vec<_> = decoded.violations.iter().map(ToString::to_string).collect();
    let object = encode(&Value::Object(decoded.object));
    (violations.join("\n"), String::from_utf8(object).expect("text"))
}

#[test]
fn duplicates_are_found_with_their_paths_and_the_last_one_counts() {
    let body = r#"{"a":1,"b":{"x":[{"y":1,"y":{"z":1,"z":2}}]},"a":{"c":1,"c":2},"A":1,"a\u0022":1,"a\"":2}"#;
    let (violations, object) = strict(body, None);
    assert_eq!(
        violations,
        "duplicate field \"b.x[0].y\"\nduplicate field \"b.x[0].y.z\"\nduplicate field \"a\"\n\
         duplicate field \"a.c\"\nduplicate field \"a\\\"\""
    );
    assert_eq!(object, r#"{"A":1,"a":{"c":2},"a\"":2,"b":{"x":[{"y":{"z":2}}]}}"#);
}

#[test]
fn unknown_fields_are_found_in_document_order_and_dropped() {
    let container = FieldTree::object([("name", FieldTree::Opaque), ("raw", FieldTree::Opaque)]);
    let fields = FieldTree::object([
        ("kind", FieldTree::Opaque),
        ("data", FieldTree::Map(Box::new(FieldTree::Opaque))),
        ("any", FieldTree::Any),
        ("spec", FieldTree::object([("containers", FieldTree::List(Box::new(container)))])),
    ]);
    let body = r#"{"foo":{"x":1,"x":2},"kind":"a","spec":{"Containers":[],"containers":[{"name":"a"},
        {"nam":1,"raw":{"d":1,"d":2},"name":"b","name":"c"}]},"data":{"a":"1","a":"2"},"foo":1,
        "any":{"e":1,"e":2,"unheard":1}}"#;
    let (violations, object) = strict(body, Some(&fields));
    assert_eq!(
        violations,
        "unknown field \"foo\"\nunknown field \"spec.Containers\"\n\
         unknown field \"spec.containers[1].nam\"\nduplicate field \"spec.containers[1].name\"\n\
         duplicate field \"data.a\"\nduplicate field \"any.e\""
    );
    assert_eq!(
        object,
        r#"{"any":{"e":2,"unheard":1},"data":{"a":"2"},"kind":"a","spec":{"containers":[{"name":"a"},{"name":"c","raw":{"d":2}}]}}"#
    );
}

#[test]
fn ignoring_drops_silently_and_warning_collects() {
    let fields = FieldTree::object([("a", FieldTree::Opaque)]);
    for (validation, found) in
        [(FieldValidation::Ignore, 0), (FieldValidation::Warn, 1), (FieldValidation::Strict, 1)]
    {
        let options = Options { validation, fields: Some(&fields), ..Options::default() };
        let decoded = decode(br#"{"a":1,"b":2}"#, &options).expect("JSON");
        assert_eq!(decoded.violations.len(), found, "{validation:?}");
        assert_eq!(decoded.object.len(), 1);
    }
}
