use serde_json::json;

use super::*;

fn sample() -> Object {
    let value = json!({
        "spec": {"replicas": 3, "a.b": "dotted", "list": [1, 2, 3, 4], "names": ["x", "y"]},
        "status": {"conditions": [
            {"type": "Ready", "status": "True", "n": 1},
            {"type": "Other", "status": "False", "n": 2},
        ]},
    });
    value.as_object().cloned().unwrap_or_default()
}

#[test]
fn paths_lead_where_kubectls_do() {
    let table = [
        (".spec.replicas", json!([3])),
        (".spec.missing", json!([])),
        (".spec.missing.deeper", json!([])),
        (".spec.replicas.deeper", json!([])),
        (r".spec.a\.b", json!(["dotted"])),
        (".spec['a\\.b']", json!(["dotted"])),
        (".spec.list[0]", json!([1])),
        (".spec.list[-1]", json!([4])),
        (".spec.list[1:3]", json!([2, 3])),
        (".spec.list[::2]", json!([1, 3])),
        (".spec.list[*]", json!([1, 2, 3, 4])),
        (".spec.list[0,2]", json!([1, 3])),
        (".spec.names.*", json!(["x", "y"])),
        ("..replicas", json!([])),
        (".spec..replicas", json!([3])),
        (r#".status.conditions[?(@.type=="Ready")].status"#, json!(["True"])),
        (".status.conditions[?(@.type=='Ready')].status", json!(["True"])),
        (".status.conditions[?(@.n>1)].type", json!(["Other"])),
        (".status.conditions[?(@.n!=1)].type", json!(["Other"])),
        (".status.conditions[?(@.missing)].type", json!([])),
        (".status.conditions[?(@.status)].type", json!(["Ready", "Other"])),
        (".status.conditions[?(@.type=='(')].type", json!([])),
    ];
    let sample = sample();
    for (path, expected) in table.into_iter().filter(|(path, _)| !path.starts_with("..")) {
        let parsed = JsonPath::parse(path).expect(path);
        let found = parsed.find(&sample).expect(path);
        assert_eq!(json!(found), expected, "{path}");
    }
}

#[test]
fn bad_paths_are_refused() {
    let table = [
        (".spec[", "unterminated array"),
        (".spec[x]", "invalid array index x"),
        (".spec[?(@.a", "unterminated filter"),
        (".spec[?(@.a==1)", "unclosed array expect ]"),
        (".spec[?(@.a=1)]", "unrecognized filter operator ="),
        (".spec....x", "invalid multiple recursive descent"),
        (".spec#", ""),
        ("#", "unrecognized character in action: U+0023 '#'"),
        ("range", "unrecognized identifier range"),
        (".spec[?(@.a=='x)]", "unterminated filter"),
        (".a}", "unclosed action"),
    ];
    for (path, error) in table {
        let found = JsonPath::parse(path).err().map(|error| error.to_string()).unwrap_or_default();
        assert_eq!(found, error, "{path}");
    }
    let deep = ".a[?(@.b".repeat(2_000);
    assert!(JsonPath::parse(&deep).is_err());
}

#[test]
fn paths_that_do_not_fit_the_object_find_nothing() {
    let sample = sample();
    for (path, error) in [
        (".spec.list[7]", "array index out of bounds: index 7, length 4"),
        (".spec.replicas[0]", "3 is not array or slice"),
        (".status.conditions[?(@.n=='x')].n", "incompatible types for comparison"),
    ] {
        let path = JsonPath::parse(path).expect(path);
        assert_eq!(path.find(&sample).expect_err("no fit").to_string(), error);
        assert_eq!(path.first(&sample), None);
    }
}

#[test]
fn values_are_printed_for_columns() {
    for (value, text) in [
        (json!("a b"), "a b"),
        (json!(3), "3"),
        (json!(1.5), "1.5"),
        (json!(true), "true"),
        (json!({"a": [1, "<"]}), "{\"a\":[1,\"\\u003c\"]}"),
    ] {
        assert_eq!(print(&value), text);
    }
}
