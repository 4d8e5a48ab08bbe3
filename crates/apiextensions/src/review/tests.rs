use super::*;

fn objects(names: &[&str]) -> Vec<Object> {
    let object = |name: &&str| {
        let object = json!({
            "apiVersion": "g.io/v1", "kind": "Foo",
            "metadata": {"name": name, "namespace": "ns", "uid": "u", "generation": 3, "labels": {"a": "b"}},
            "spec": {"size": 1},
        });
        object.as_object().expect("an object").clone()
    };
    names.iter().map(object).collect()
}

/// What becomes of an answer that is right but for what `spoil` does to it.
fn read(names: &[&str], spoil: impl Fn(&mut Value)) -> Result<Vec<Object>, String> {
    let objects = objects(names);
    let review = Review { version: "v1", uid: "x", objects: &objects, to: &GroupVersion::new("g.io", "v2") };
    let mut converted = json!(objects);
    for object in converted.as_array_mut().expect("a list") {
        object["apiVersion"] = json!("g.io/v2");
    }
    let mut answer = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
        "response": {"uid": "x", "result": {"status": "Success"}, "convertedObjects": converted},
    });
    spoil(&mut answer);
    review.read(answer.to_string().as_bytes())
}

#[test]
fn what_is_asked() {
    let objects = objects(&["a"]);
    let review = Review { version: "v1", uid: "x", objects: &objects, to: &GroupVersion::new("g.io", "v2") };
    let body = review.body();
    assert_eq!(body["request"]["desiredAPIVersion"], "g.io/v2");
    assert_eq!(body["request"]["objects"], json!(objects));
    assert_eq!(version(&["v2".to_owned(), "v1beta1".to_owned(), "v1".to_owned()]), Ok("v1beta1"));
    assert_eq!(version(&["v2".to_owned()]), Err("no supported conversion review versions".to_owned()));
}

#[test]
fn labels_and_annotations_are_all_of_the_metadata_that_changes() {
    let read = read(&["a"], |answer| {
        let metadata = &mut answer["response"]["convertedObjects"][0]["metadata"];
        *metadata =
            json!({"name": "a", "namespace": "ns", "uid": "u", "generation": 9, "annotations": {"c": "d"}});
    });
    let metadata = &read.expect("converted")[0]["metadata"];
    assert_eq!(metadata["generation"], 3);
    assert_eq!((metadata.get("labels"), &metadata["annotations"]), (None, &json!({"c": "d"})));
}

#[test]
fn wrong_answers_are_refused_in_upstream_s_words() {
    type Spoil = fn(&mut Value);
    let object = |answer: &mut Value, name: &str, value: Value| {
        answer["response"]["convertedObjects"][0][name] = value;
    };
    let table: [(Spoil, &str); 13] = [
        (|answer| answer["response"]["uid"] = json!("y"), "failed: expected response.uid=\"x\", got \"y\""),
        (|answer| answer["response"] = json!(null), "failed: no response provided"),
        (
            |answer| answer["kind"] = json!("Other"),
            "failed: expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got \
             apiextensions.k8s.io/v1, Kind=Other",
        ),
        (
            |answer| answer["response"]["result"] = json!({"status": "Failure", "message": "cannot"}),
            "failed: cannot",
        ),
        (
            |answer| answer["response"]["result"] = json!({"status": "Failure"}),
            "failed: response.result.status was 'Failure', not 'Success'",
        ),
        (
            |answer| answer["response"]["result"] = json!({}),
            "failed: response.result.status was '', not 'Success'",
        ),
        (|answer| answer["response"]["convertedObjects"] = json!([]), "returned 0 objects, expected 1"),
        (
            |answer| answer["response"]["convertedObjects"][0]["apiVersion"] = json!("g.io/v1"),
            "returned invalid object at index 0: invalid groupVersion (expected g.io/v2, received g.io/v1)",
        ),
        (
            |answer| answer["response"]["convertedObjects"][0]["kind"] = json!("Bar"),
            "returned invalid object at index 0: invalid kind (expected Foo, received Bar)",
        ),
        (
            |answer| answer["response"]["convertedObjects"][0]["metadata"]["name"] = json!("b"),
            "returned invalid object: must have the same name: a != b",
        ),
        (
            |answer| answer["response"]["convertedObjects"][0]["metadata"]["namespace"] = json!("other"),
            "returned invalid object: must have the same namespace: ns != other",
        ),
        (
            |answer| answer["response"]["convertedObjects"][0]["metadata"]["uid"] = json!("v"),
            "returned invalid object: must have the same UID: u != v",
        ),
        (
            |answer| answer["response"]["convertedObjects"][0]["metadata"]["labels"] = json!({"a": 1}),
            "returned invalid metadata: metadata.labels[a] must be a string, but is int64 in converted object",
        ),
    ];
    for (spoil, expected) in table {
        assert_eq!(read(&["a"], spoil).err().as_deref(), Some(expected));
    }
    let second = read(&["a", "b"], |answer| answer["response"]["convertedObjects"][1]["kind"] = json!("Bar"));
    let text = "returned invalid converted object at index 1: invalid kind (expected Foo, received Bar)";
    assert_eq!(second.err().as_deref(), Some(text));
    let labels = read(&["a"], |answer| {
        object(
            answer,
            "metadata",
            json!({"name": "a", "namespace": "ns", "uid": "u", "labels": {"a b": "c"}}),
        )
    });
    assert!(labels.is_err_and(|text| {
        text.starts_with("returned invalid metadata: metadata.labels: Invalid value: \"a b\"")
    }));
}
