//! The same as upstream, byte for byte: what kubectl made of these documents is kept beside them.
//!
//! `strings` and `shapes` went in as JSON and came out as YAML, `scalars` the other way:
//! `kubectl label --local -f IN x=y --overwrite -o yaml|json`.

use concord_codec::{Options, decode, decode_yaml, encode, encode_yaml};
use serde_json::Value;

fn read_json(json: &str) -> Value {
    Value::Object(decode(json.as_bytes(), &Options::default()).expect("JSON").object)
}

fn check_yaml(json: &str, yaml: &str) {
    let value = read_json(json);
    let mut written = Vec::new();
    encode_yaml(&value, &mut written);
    let written = String::from_utf8(written).expect("text");
    for (ours, theirs) in written.lines().zip(yaml.lines()) {
        assert_eq!(ours, theirs);
    }
    assert_eq!(written, yaml);
    let read = decode_yaml(yaml.as_bytes(), &Options::default()).expect("YAML").object;
    // A negative zero loses its sign on the way through YAML, as it does upstream.
    let again = read_json(&String::from_utf8(encode(&value)).expect("text"));
    assert_eq!(Value::Object(read), again);
}

#[test]
fn strings_are_written_in_upstreams_styles() {
    check_yaml(include_str!("golden/strings.json"), include_str!("golden/strings.yaml"));
}

#[test]
fn shapes_keys_and_numbers_are_laid_out_as_upstream_does() {
    check_yaml(include_str!("golden/shapes.json"), include_str!("golden/shapes.yaml"));
}

#[test]
fn scalars_blocks_and_merges_are_read_as_upstream_does() {
    let read = decode_yaml(include_bytes!("golden/scalars.yaml"), &Options::default()).expect("YAML").object;
    let expected = read_json(include_str!("golden/scalars.json"));
    let values = |value: &Value| value["values"].as_array().expect("a list").clone();
    let read = Value::Object(read);
    for (n, (ours, theirs)) in values(&read).iter().zip(values(&expected)).enumerate() {
        assert_eq!(*ours, theirs, "value {n}");
    }
    assert_eq!(read, expected);
}
