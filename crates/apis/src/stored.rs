use bytes::Bytes;
use concord_codec::encode_object;

/// What everything begins with that is stored in protobuf.
const PROTOBUF: &[u8] = b"k8s\0";

/// What a kube-apiserver stored in protobuf, as JSON. `None` if it is JSON already, or nothing that could be read.
///
/// It ends with a line, as a kube-apiserver's JSON does and what is written here does not. So it is never taken for what
/// this server would write: an update that changes nothing else changes the form.
pub fn as_json(value: &[u8]) -> Option<Bytes> {
    if !value.starts_with(PROTOBUF) {
        return None;
    }
    let object = concord_builtins::read_protobuf(value)?;
    let mut json = Vec::with_capacity(value.len() * 2);
    encode_object(&object, &mut json);
    json.push(b'\n');
    Some(json.into_boxed_slice().into())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn objects_are_read_and_everything_else_is_left_alone() {
        let object = json!({
            "kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a", "namespace": "b"}, "data": {"c": "d"},
        });
        let codec = concord_builtins::protobuf("", "v1", "ConfigMap").expect("a kind");
        let stored = codec.encode("v1", "ConfigMap", object.as_object().expect("an object"));
        let shown = as_json(&stored).expect("readable");
        assert!(shown.starts_with(br#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"#), "{shown:?}");
        assert!(shown.ends_with(b"}\n"));
        assert_eq!(serde_json::from_slice::<serde_json::Value>(&shown).expect("JSON"), object);

        let unknown = codec.encode("v9", "Thing", object.as_object().expect("an object"));
        for other in [&b"{}"[..], b"", b"k8s", b"k8s\0", b"k8s\0\x0a", b"k8s:enc:aescbc:v1:a:", &unknown] {
            assert_eq!(as_json(other), None, "{other:?}");
        }
    }
}
