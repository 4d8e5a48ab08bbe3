//! Files of a volume that would stand at the same place.

use concord_meta::go;
use serde_json::Value;

use crate::node::Node;

struct File<'v> {
    path: &'v str,
    source: String,
}

impl File<'_> {
    fn shown(&self) -> String {
        let path = go::quote(self.path);
        if self.source.is_empty() { path } else { format!("{path} ({})", self.source) }
    }

    /// Whether one is the other, or a directory above it.
    fn overlaps(&self, other: &Self) -> bool {
        let above =
            |a: &str, b: &str| b.strip_prefix(a).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        !self.path.is_empty()
            && !other.path.is_empty()
            && (above(self.path, other.path) || above(other.path, self.path))
    }
}

pub(super) fn warnings(volumes: Node<'_>) {
    for volume in volumes.items() {
        for (member, name, kind) in [
            ("configMap", "name", "ConfigMap"),
            ("secret", "secretName", "Secret"),
            ("downwardAPI", "", "DownwardAPI"),
        ] {
            let Some(source) = volume.raw(member) else { continue };
            let what = if name.is_empty() { kind.to_owned() } else { named(kind, source, name) };
            add(volume, &what, items(source, ""), &mut Vec::new());
        }
        if volume.has("projected") {
            projected(volume);
        }
    }
}

fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn named(kind: &str, source: &Value, name: &str) -> String {
    format!("{kind} {}", go::quote(text(source, name)))
}

fn items<'v>(source: &'v Value, of: &str) -> Vec<File<'v>> {
    let items = source.get("items").and_then(Value::as_array).into_iter().flatten();
    items.map(|item| File { path: text(item, "path"), source: of.to_owned() }).collect()
}

fn projected(volume: Node<'_>) {
    let mut seen = Vec::new();
    for source in volume.get2("projected", "sources").list() {
        if source.as_object().is_none_or(serde_json::Map::is_empty) {
            let name = go::quote(volume.str("name"));
            volume.warn_plainly(format!("volume {name} (Projected) has no sources provided"));
            continue;
        }
        add(volume, "Projected", of_source(source), &mut seen);
    }
}

fn of_source(source: &Value) -> Vec<File<'_>> {
    let one = |path, source: &str| File { path, source: source.to_owned() };
    if let Some(files) = source.get("configMap").filter(|files| files.get("items").is_some()) {
        return items(files, &named("ConfigMap", files, "name"));
    }
    if let Some(files) = source.get("secret").filter(|files| files.get("items").is_some()) {
        return items(files, &named("Secret", files, "name"));
    }
    if let Some(files) = source.get("downwardAPI").filter(|files| files.get("items").is_some()) {
        return items(files, "DownwardAPI");
    }
    if let Some(token) = source.get("serviceAccountToken") {
        return vec![one(text(token, "path"), "ServiceAccountToken")];
    }
    if let Some(bundle) = source.get("clusterTrustBundle") {
        let name = if bundle.get("name").is_some() { "name" } else { "signerName" };
        return vec![one(text(bundle, "path"), &named("ClusterTrustBundle", bundle, name))];
    }
    let Some(certificate) = source.get("podCertificate") else { return Vec::new() };
    let parts = [
        ("certificateChainPath", "PodCertificate chain"),
        ("keyPath", "PodCertificate key"),
        ("credentialBundlePath", "PodCertificate credential bundle"),
    ];
    let given = parts.into_iter().map(|(member, what)| one(text(certificate, member), what));
    given.filter(|file| !file.path.is_empty()).collect()
}

fn add<'v>(volume: Node<'v>, what: &str, files: Vec<File<'v>>, seen: &mut Vec<File<'v>>) {
    for mut file in files {
        file.path = file.path.trim_end_matches('/');
        for other in seen.iter().filter(|other| other.overlaps(&file)) {
            let name = go::quote(volume.str("name"));
            let (file, other) = (file.shown(), other.shown());
            volume.warn_plainly(format!("volume {name} ({what}): overlapping paths: {file} with {other}"));
        }
        seen.push(file);
    }
}
