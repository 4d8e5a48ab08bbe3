//! The document of aggregated discovery, which is no stored kind and has no schema here.

use serde_json::Value;

use crate::{ListMeta, unknown::envelope, write::Writer};

/// An `APIGroupDiscoveryList` of this version of `apidiscovery.k8s.io` in its envelope, from its JSON. What is not of the right
/// kind in it is left out.
pub fn group_discovery_list(api_version: &str, list: &Value) -> Vec<u8> {
    envelope(api_version, "APIGroupDiscoveryList", |writer| {
        each(writer, 2, &list["items"], group);
        writer.message(1, |writer| ListMeta::default().write(writer));
    })
}

/// Writes a message for every element. The writer goes backwards.
fn each(writer: &mut Writer, number: u32, list: &Value, write: fn(&mut Writer, &Value)) {
    for value in list.as_array().into_iter().flatten().rev() {
        writer.message(number, |writer| write(writer, value));
    }
}

fn texts(writer: &mut Writer, number: u32, list: &Value) {
    for value in list.as_array().into_iter().flatten().rev() {
        text(writer, number, value);
    }
}

fn text(writer: &mut Writer, number: u32, value: &Value) {
    writer.bytes(number, value.as_str().unwrap_or_default().as_bytes());
}

fn group(writer: &mut Writer, group: &Value) {
    each(writer, 2, &group["versions"], version);
    writer.message(1, |writer| metadata(writer, &group["metadata"]));
}

/// What of an object's metadata is no pointer in Go is always there.
fn metadata(writer: &mut Writer, metadata: &Value) {
    writer.message(8, |_| {});
    writer.varint(7, 0);
    for number in (2..=6).rev() {
        writer.bytes(number, b"");
    }
    text(writer, 1, &metadata["name"]);
}

fn version(writer: &mut Writer, version: &Value) {
    text(writer, 3, &version["freshness"]);
    each(writer, 2, &version["resources"], resource);
    text(writer, 1, &version["version"]);
}

fn resource(writer: &mut Writer, resource: &Value) {
    each(writer, 8, &resource["subresources"], subresource);
    texts(writer, 7, &resource["categories"]);
    texts(writer, 6, &resource["shortNames"]);
    texts(writer, 5, &resource["verbs"]);
    text(writer, 4, &resource["singularResource"]);
    text(writer, 3, &resource["scope"]);
    response_kind(writer, resource);
    text(writer, 1, &resource["resource"]);
}

fn subresource(writer: &mut Writer, subresource: &Value) {
    texts(writer, 4, &subresource["verbs"]);
    each(writer, 3, &subresource["acceptedTypes"], kind);
    response_kind(writer, subresource);
    text(writer, 1, &subresource["subresource"]);
}

fn response_kind(writer: &mut Writer, of: &Value) {
    if of["responseKind"].is_object() {
        writer.message(2, |writer| kind(writer, &of["responseKind"]));
    }
}

fn kind(writer: &mut Writer, kind: &Value) {
    text(writer, 3, &kind["kind"]);
    text(writer, 2, &kind["version"]);
    text(writer, 1, &kind["group"]);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Unknown;

    fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
        [&[number << 3 | 2, u8::try_from(bytes.len()).expect("short")], bytes].concat()
    }

    #[test]
    fn every_field_is_where_upstream_has_it() {
        let status = json!({"subresource": "s", "responseKind": {"group": "g", "version": "v", "kind": "K"},
            "acceptedTypes": [{"group": "", "version": "w", "kind": "L"}], "verbs": ["get"]});
        let jobs = json!({"resource": "jobs", "scope": "Namespaced", "singularResource": "job", "verbs": ["a", "b"],
            "shortNames": ["j"], "categories": ["all"], "subresources": [status]});
        let list = json!({"items": [{"metadata": {"name": "batch"}, "versions": [
            {"version": "v1", "resources": [jobs], "freshness": "Current"}, {"version": "v2"}]}]});
        let kind = |group: &[u8], version: &[u8], kind: &[u8]| {
            [field(1, group), field(2, version), field(3, kind)].concat()
        };
        let status = [
            field(1, b"s"),
            field(2, &kind(b"g", b"v", b"K")),
            field(3, &kind(b"", b"w", b"L")),
            field(4, b"get"),
        ];
        let jobs = [
            field(1, b"jobs"),
            field(3, b"Namespaced"),
            field(4, b"job"),
            field(5, b"a"),
            field(5, b"b"),
            field(6, b"j"),
            field(7, b"all"),
            field(8, &status.concat()),
        ];
        let first = [field(1, b"v1"), field(2, &jobs.concat()), field(3, b"Current")].concat();
        let second = [field(1, b"v2"), field(3, b"")].concat();
        let metadata = [field(1, b"batch"), b"\x12\0\x1a\0\x22\0\x2a\0\x32\0\x38\0\x42\0".to_vec()].concat();
        let group = [field(1, &metadata), field(2, &first), field(2, &second)].concat();
        let raw = [field(1, b"\x0a\0\x12\0\x1a\0"), field(2, &group)].concat();
        let encoded = group_discovery_list("apidiscovery.k8s.io/v2", &list);
        let unknown = Unknown::read(&encoded).expect("an envelope");
        assert_eq!(
            (unknown.api_version.as_str(), unknown.kind.as_str()),
            ("apidiscovery.k8s.io/v2", "APIGroupDiscoveryList")
        );
        assert_eq!(unknown.raw, raw);
    }
}
