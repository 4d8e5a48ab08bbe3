//! The volumes of a pod.

use concord_meta::{field::BadValue, names};
use serde_json::Value;

use super::{Options, env, projected::projected, sources::*};
use crate::{internal, node::Node, persistence, resources};

/// The volumes that containers can mount: those without errors, by name.
#[derive(Default)]
pub(crate) struct Volumes<'v>(Vec<(&'v str, Option<&'v Value>)>);

impl<'v> Volumes<'v> {
    pub(crate) fn has(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    fn find(&self, name: &str) -> Option<Option<&'v Value>> {
        self.0.iter().find(|(known, _)| *known == name).map(|(_, volume)| *volume)
    }

    /// Whether the volume can be a device; none if there is no such volume. What has no value stands for a claim.
    pub(crate) fn is_claim(&self, name: &str) -> Option<bool> {
        let is_claim = |volume: &Value| {
            ["persistentVolumeClaim", "ephemeral"].iter().any(|name| volume.get(name).is_some())
        };
        self.find(name).map(|volume| volume.is_none_or(is_claim))
    }
}

/// Sources whose rules need nothing but themselves, and those that need more (`projected` and after), in upstream's order.
const SOURCES: [Source; 29] = [
    source("emptyDir", empty_dir),
    source("hostPath", host_path),
    source("gitRepo", git_repo),
    Source { inner: "persistentDisk", ..source("gcePersistentDisk", gce_persistent_disk) },
    source("awsElasticBlockStore", aws_elastic_block_store),
    source("secret", secret),
    source("nfs", nfs),
    source("iscsi", iscsi),
    source("glusterfs", glusterfs),
    source("flocker", flocker),
    source("persistentVolumeClaim", persistent_volume_claim),
    source("rbd", rbd),
    source("cinder", cinder),
    Source { outer: "cephFS", ..source("cephfs", cephfs) },
    source("quobyte", quobyte),
    Source { outer: "downwarAPI", ..source("downwardAPI", downward_api) },
    source("fc", fc),
    source("flexVolume", flex_volume),
    source("configMap", config_map),
    source("azureFile", azure_file),
    source("vsphereVolume", vsphere_volume),
    source("photonPersistentDisk", photon_persistent_disk),
    source("portworxVolume", portworx_volume),
    source("azureDisk", azure_disk),
    source("storageos", storageos),
    source("projected", nothing),
    source("scaleIO", scale_io),
    source("csi", csi),
    source("ephemeral", ephemeral),
];

/// The volumes, and which of them can be mounted. `pod` is the pod's name, if it is known.
pub(super) fn volumes<'v>(volumes: Node<'v>, pod: Option<&str>, options: &Options<'v>) -> Volumes<'v> {
    let mut known = Volumes::default();
    // Claims of a StatefulSet take the place of volumes with their names.
    for (index, claim) in options.claims.iter().enumerate() {
        let before = volumes.errors();
        name(volumes.at(index).child("name"), claim, &known);
        if volumes.errors() == before {
            known.0.push((claim, None));
        }
    }
    let created: Vec<&str> = match pod {
        Some(_) => ephemeral_names(volumes),
        None => Vec::new(),
    };
    let mut index = options.claims.len();
    for volume in volumes.items() {
        let volume =
            if options.claims.is_empty() { volume } else { volumes.at(index).holding(volume.value()) };
        if options.claims.contains(&volume.str("name")) {
            continue;
        }
        index += 1;
        let before = volumes.errors();
        one(volume, pod, options);
        name(volume.get("name"), volume.str("name"), &known);
        if volumes.errors() == before {
            known.0.push((volume.str("name"), volume.value()));
        }
        if let Some(pod) = pod {
            not_created(volume, pod, &created);
        }
    }
    known
}

fn name<'v>(node: Node<'v>, name: &str, known: &Volumes<'v>) {
    match name {
        "" => node.required(""),
        name => node.check_text(name, names::dns1123_label),
    }
    if known.has(name) {
        node.duplicate(name);
    }
}

fn ephemeral_names(volumes: Node<'_>) -> Vec<&str> {
    let is_ephemeral = |volume: &&Value| volume.get("ephemeral").is_some_and(|source| !source.is_null());
    let name = |volume| Value::get(volume, "name").and_then(Value::as_str).unwrap_or_default();
    volumes.list().iter().filter(is_ephemeral).map(name).collect()
}

/// A claim that the pod itself creates cannot be used by name.
fn not_created(volume: Node<'_>, pod: &str, created: &[&str]) {
    let Some(claim) = volume.raw("persistentVolumeClaim") else { return };
    let claim = claim.get("claimName").and_then(Value::as_str).unwrap_or_default();
    let suffix = claim.strip_prefix(pod).and_then(|rest| rest.strip_prefix('-'));
    if suffix.is_some_and(|name| created.contains(&name)) {
        volume
            .get2("persistentVolumeClaim", "claimName")
            .invalid(claim, "must not reference a PVC that gets created for an ephemeral volume");
    }
}

fn one<'v>(volume: Node<'v>, pod: Option<&str>, options: &Options<'v>) {
    let found = exactly_one(volume, &SOURCES, |name, first| match name {
        "projected" if first => projected(volume.get("projected"), options),
        "iscsi" => iscsi_name_length(volume),
        "ephemeral" if first => claim_name(volume, pod),
        _ => {}
    });
    match (found, volume.has("image")) {
        (true, true) => volume.child("image").forbidden(MORE_THAN_ONE),
        (false, true) => {
            let image = volume.get("image");
            if options.resource_is_pod {
                image.need(&["reference"]);
            }
            pull_policy(image.get("pullPolicy"));
        }
        (false, false) => volume.required("must specify a volume type"),
        (true, false) => {}
    }
}

fn iscsi_name_length(volume: Node<'_>) {
    let iscsi = volume.get("iscsi");
    let name = volume.str("name");
    if iscsi.has("initiatorName") && name.len() + 1 + iscsi.str("targetPortal").len() > 64 {
        let detail = "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName is specified.";
        volume.child("name").invalid(name, detail);
    }
}

fn claim_name(volume: Node<'_>, pod: Option<&str>) {
    let (Some(pod), name) = (pod, volume.str("name")) else { return };
    if !name.is_empty() {
        let claim = format!("{pod}-{name}");
        for problem in names::dns1123_subdomain(&claim) {
            volume.child("name").invalid(name, format!("PVC name \"{claim}\": {problem}"));
        }
    }
}

fn empty_dir(node: Node<'_>) {
    let limit = node.get("sizeLimit");
    if limit.quantity().is_some_and(|limit| resources::is_negative(&limit)) {
        limit.forbidden("SizeLimit field must be a valid resource quantity");
    }
}

fn downward_api(node: Node<'_>) {
    node.get("defaultMode").file_mode();
    // Errors name the volume, not the file.
    node.get("items").items().for_each(|file| downward_api_file(file, node));
}

/// A file that tells something about the pod; errors stand at `at`.
pub(super) fn downward_api_file<'v>(file: Node<'v>, at: Node<'v>) {
    let path = at.child("path");
    if file.str("path").is_empty() {
        path.required("");
    }
    crate::rules::local_non_reserved_path(path, file.str("path"));
    let field = at.child("fieldRef").holding(file.raw("fieldRef"));
    let resource = at.child("resourceFieldRef").holding(file.raw("resourceFieldRef"));
    if field.is_set() {
        env::field_selector(field, &env::VOLUME_FIELDS);
        if resource.is_set() {
            at.invalid("resource", "fieldRef and resourceFieldRef can not be specified simultaneously");
        }
    } else if resource.is_set() {
        env::resource_field_selector(resource, true);
    } else {
        at.required("one of fieldRef and resourceFieldRef is required");
    }
    at.child("mode").holding(file.raw("mode")).file_mode();
}

/// Metadata that claims get from elsewhere, and what errors call it: as the fields are called in Go, with a small letter.
const NOT_IN_TEMPLATES: [(&str, &str); 13] = [
    ("name", "name"),
    ("generateName", "generateName"),
    ("namespace", "namespace"),
    ("selfLink", "selfLink"),
    ("uid", "uID"),
    ("resourceVersion", "resourceVersion"),
    ("generation", "generation"),
    ("creationTimestamp", "creationTimestamp"),
    ("deletionTimestamp", "deletionTimestamp"),
    ("deletionGracePeriodSeconds", "deletionGracePeriodSeconds"),
    ("ownerReferences", "ownerReferences"),
    ("finalizers", "finalizers"),
    ("managedFields", "managedFields"),
];

fn ephemeral(node: Node<'_>) {
    let template = node.get("volumeClaimTemplate");
    if !template.is_set() {
        return template.required("");
    }
    let metadata = template.get("metadata");
    crate::labels::annotations(metadata.get("annotations"));
    crate::labels::labels(metadata.get("labels"));
    for (name, called) in NOT_IN_TEMPLATES {
        let is_zero = |value: &Value| value == "" || (name == "generation" && value == 0);
        if metadata.raw(name).is_some_and(|value| !is_zero(value)) {
            metadata.child(called).forbidden("cannot be set");
        }
    }
    persistence::claim_spec(
        template.get("spec"),
        &persistence::ClaimOptions { keeps_source: true, ..Default::default() },
    );
}

/// The claims for resources of a pod.
pub(super) fn resource_claims(claims: Node<'_>, is_mirror: bool) {
    let mut seen: Vec<&str> = Vec::new();
    for claim in claims.items() {
        if is_mirror {
            claims.nowhere().forbidden("static pods do not support resource claims");
            continue;
        }
        let name = claim.get("name");
        match name.text() {
            "" => name.required(""),
            text if seen.contains(&text) => name.duplicate(text),
            text => {
                name.check(names::dns1123_label);
                seen.push(text);
            }
        }
        let (direct, template) = (claim.get("resourceClaimName"), claim.get("resourceClaimTemplateName"));
        let shown = || -> BadValue { internal::shown("PodResourceClaim", claim.value()) };
        match (direct.is_set(), template.is_set()) {
            (true, true) => claim.invalid(
                shown(),
                "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified",
            ),
            (false, false) => {
                claim.invalid(
                    shown(),
                    "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`",
                );
            }
            _ => {}
        }
        for reference in [direct, template].into_iter().filter(|reference| reference.is_set()) {
            reference.check(names::dns1123_subdomain);
        }
    }
}
