//! Laws that hold for every value.

use concord_codec::{
    List, ListOrder, Options, Splice, TypeFields, decode, decode_yaml, encode, encode_body, encode_yaml,
};
use proptest::{collection, prelude::*};
use serde_json::{Map, Value, json};

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => "[a-z]{0,6}",
        2 => "[ -~]{0,12}",
        1 => any::<String>(),
        1 => "[a-z :#'\"\\\\\n-]{0,12}",
        1 => "([a-z]{1,9} ){20,40}[a-z]",
        1 => "(true|no|~|1|0x1f|1e3|2026-11-15|1:30|<<|null|\\.inf)",
    ]
}

fn value() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_filter("JSON has no others", |float| float.is_finite()).prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    scalar.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            object_of(inner).prop_map(Value::Object),
        ]
    })
}

fn object_of(value: impl Strategy<Value = Value>) -> impl Strategy<Value = Map<String, Value>> {
    collection::btree_map(text(), value, 0..6).prop_map(|members| members.into_iter().collect())
}

/// An object as stored: metadata with or without an empty resource version.
fn stored() -> impl Strategy<Value = Map<String, Value>> {
    let version = prop_oneof![Just(None), Just(Some(json!(""))), Just(Some(json!("7")))];
    let parts = (object_of(value()), object_of(value()), version, any::<[bool; 2]>());
    parts.prop_map(|(mut object, mut metadata, version, types)| {
        metadata.remove("resourceVersion");
        metadata.extend(version.map(|version| ("resourceVersion".to_owned(), version)));
        object.insert("metadata".into(), metadata.into());
        for (there, name) in types.into_iter().zip(["kind", "apiVersion"]) {
            object.remove(name);
            object.extend(there.then(|| (name.to_owned(), json!("x"))));
        }
        object
    })
}

fn with_version(mut object: Map<String, Value>, version: u64) -> Value {
    object["metadata"]["resourceVersion"] = version.to_string().into();
    Value::Object(object)
}

/// Numbers that JSON spells as integers are read as such.
fn read_again(object: &Map<String, Value>) -> Map<String, Value> {
    decode(&encode(&Value::Object(object.clone())), &Options::default()).expect("what was written").object
}

/// Any other spelling of the same document: each character escaped, spaces everywhere.
fn respelled(value: &Value) -> String {
    let escaped = |text: &str| text.encode_utf16().map(|unit| format!("\\u{unit:04X}")).collect::<String>();
    match value {
        Value::String(text) => format!(" \"{}\"\n", escaped(text)),
        Value::Array(items) => {
            format!("[ {}\t]", items.iter().map(respelled).collect::<Vec<_>>().join(" , "))
        }
        Value::Object(members) => {
            let members = members.iter().rev().map(|(k, v)| format!("\"{}\" :{}", escaped(k), respelled(v)));
            format!("\r{{ {} }}", members.collect::<Vec<_>>().join(" , "))
        }
        scalar => format!(" {} ", String::from_utf8_lossy(&encode(scalar))),
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(object in object_of(value())) {
        let once = read_again(&object);
        prop_assert_eq!(&read_again(&once), &once);
        let mut pretty = Vec::new();
        encode_body(&Value::Object(once.clone()), true, &mut pretty);
        prop_assert_eq!(&decode(&pretty, &Options::default()).expect("what was written").object, &once);
        let respelled = respelled(&Value::Object(once.clone()));
        prop_assert_eq!(&decode(respelled.as_bytes(), &Options::default()).expect("JSON").object, &once);
        // Another reader takes it for JSON too; its floats are less exact.
        prop_assert!(serde_json::from_slice::<Value>(&pretty).is_ok());
    }

    #[test]
    fn bytes_that_are_no_json_are_refused_as_another_reader_does(bytes in "[\\[\\]{}\",:0-9a-z\\\\ .-]{0,24}") {
        let ours = decode(bytes.as_bytes(), &Options::default());
        let others = serde_json::from_str::<Value>(&bytes);
        if ours.is_ok() {
            prop_assert!(others.is_ok());
        }
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(bytes in collection::vec(any::<u8>(), 0..64)) {
        // The outcome is not the point here.
        drop(decode(&bytes, &Options::default()));
        drop(decode_yaml(&bytes, &Options::default()));
        drop(Splice::find(&bytes).map(|splice| format!("{splice:?}")));
    }

    #[test]
    fn splicing_is_the_same_as_changing_the_object(object in stored(), version in any::<u64>()) {
        let bytes = encode(&Value::Object(object.clone()));
        let splice = Splice::find(&bytes).expect("an object with metadata");
        let mut out = Vec::new();
        splice.write(&bytes, version, TypeFields::Keep, &mut out);
        let expected = encode(&with_version(object.clone(), version));
        prop_assert_eq!(String::from_utf8_lossy(&out), String::from_utf8_lossy(&expected));

        let mut bare = object;
        bare.remove("kind");
        bare.remove("apiVersion");
        out.clear();
        splice.write(&bytes, version, TypeFields::Omit, &mut out);
        let expected = encode(&with_version(bare, version));
        prop_assert_eq!(String::from_utf8_lossy(&out), String::from_utf8_lossy(&expected));
    }

    #[test]
    fn splicing_does_not_depend_on_the_spelling(object in stored(), version in any::<u64>()) {
        let object = read_again(&object);
        let bytes = respelled(&Value::Object(object.clone()));
        let splice = Splice::find(bytes.as_bytes()).expect("an object with metadata");
        for type_fields in [TypeFields::Keep, TypeFields::Omit] {
            let mut object = object.clone();
            if type_fields == TypeFields::Omit {
                object.remove("kind");
                object.remove("apiVersion");
            }
            let mut out = Vec::new();
            splice.write(bytes.as_bytes(), version, type_fields, &mut out);
            let read = decode(&out, &Options::default()).expect("JSON").object;
            prop_assert_eq!(Value::Object(read), with_version(object, version));
        }
    }

    #[test]
    fn lists_hold_what_was_put_in(objects in collection::vec(stored(), 0..4)) {
        for order in [ListOrder::Typed, ListOrder::Sorted] {
            let mut list = List::new("XList", "v1", 9, order);
            let mut out = Vec::new();
            list.begin(&mut out);
            for object in &objects {
                let bytes = encode(&Value::Object(object.clone()));
                list.item(&bytes, &Splice::find(&bytes).expect("an object"), 5, &mut out);
            }
            list.end(&mut out);
            let read = decode(&out, &Options::default()).expect("JSON").object;
            let expected: Vec<Value> = objects
                .iter()
                .map(|object| {
                    let mut object = read_again(object);
                    if order == ListOrder::Typed {
                        object.remove("kind");
                        object.remove("apiVersion");
                    }
                    with_version(object, 5)
                })
                .collect();
            prop_assert_eq!(&read["items"], &Value::from(expected));
        }
    }

    #[test]
    fn yaml_is_read_back(object in object_of(value())) {
        let object = read_again(&object);
        let mut yaml = Vec::new();
        encode_yaml(&Value::Object(object.clone()), &mut yaml);
        let read = decode_yaml(&yaml, &Options::default());
        prop_assert_eq!(read.map(|decoded| decoded.object), Ok(object), "{}", String::from_utf8_lossy(&yaml));
    }

    #[test]
    fn json_is_yaml(object in object_of(value())) {
        let object = read_again(&object);
        let json = encode(&Value::Object(object.clone()));
        let read = decode_yaml(&json, &Options::default());
        prop_assert_eq!(read.map(|decoded| decoded.object), Ok(object), "{}", String::from_utf8_lossy(&json));
    }
}
