//! What volumes are made of: the rules of each source, for volumes of pods and for persistent volumes.

use concord_meta::names;

use crate::{
    node::Node,
    rules::{local_descending_path, local_non_reserved_path, no_backsteps, range},
};

/// A rule for the source that stands at a node.
pub(crate) type Rule = fn(Node<'_>);

/// What says all there is to say about a source that is checked elsewhere.
pub(crate) fn nothing(_: Node<'_>) {}

/// A source of which a volume can have one.
pub(crate) struct Source {
    /// The member's name.
    pub(crate) name: &'static str,
    /// What it is called where it is one source too many.
    pub(crate) outer: &'static str,
    /// What it is called in errors about its own members.
    pub(crate) inner: &'static str,
    /// What holds for it.
    pub(crate) rule: Rule,
    /// Whether upstream lets it stand beside others.
    pub(crate) beside: bool,
}

/// A source whose errors have its name.
pub(crate) const fn source(name: &'static str, rule: Rule) -> Source {
    Source { name, outer: name, inner: name, rule, beside: false }
}

pub(crate) const MORE_THAN_ONE: &str = "may not specify more than 1 volume type";

/// Checks the source that is given first and refuses all others. `also` is told of each that is given, in its turn, and
/// whether it is the first. Whether there is one at all.
pub(crate) fn exactly_one<'v>(
    volume: Node<'v>,
    sources: &[Source],
    mut also: impl FnMut(&'static str, bool),
) -> bool {
    let mut found = false;
    for source in sources.iter().filter(|source| volume.has(source.name)) {
        match found && !source.beside {
            false => (source.rule)(volume.get_as(source.name, source.inner)),
            true => volume.child(source.outer).forbidden(MORE_THAN_ONE),
        }
        also(source.name, !found);
        found = true;
    }
    found
}

pub(crate) fn host_path(node: Node<'_>) {
    const TYPES: [&str; 8] =
        ["", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"];
    let path = node.get("path");
    if path.text().is_empty() {
        return path.required("");
    }
    no_backsteps(path, path.text());
    node.get("type").optional_one_of(&TYPES);
}

pub(crate) fn git_repo(node: Node<'_>) {
    node.need(&["repository"]);
    let directory = node.get("directory");
    local_descending_path(directory, directory.text());
}

pub(crate) fn gce_persistent_disk(node: Node<'_>) {
    node.need(&["pdName"]);
    partition(node);
}

pub(crate) fn aws_elastic_block_store(node: Node<'_>) {
    node.need(&["volumeID"]);
    partition(node);
}

fn partition(node: Node<'_>) {
    let partition = node.get("partition");
    if let Some(number) = partition.int()
        && !(0..=255).contains(&number)
    {
        partition.invalid(number, range(1, 255));
    }
}

pub(crate) fn secret(node: Node<'_>) {
    node.need(&["secretName"]);
    files(node);
}

pub(crate) fn config_map(node: Node<'_>) {
    node.need(&["name"]);
    files(node);
}

fn files(node: Node<'_>) {
    node.get("defaultMode").file_mode();
    node.get("items").items().for_each(key_to_path);
}

/// A key of a ConfigMap or Secret as a file.
pub(crate) fn key_to_path(item: Node<'_>) {
    item.need(&["key", "path"]);
    local_non_reserved_path(item.child("path"), item.str("path"));
    item.get("mode").file_mode();
}

pub(crate) fn nfs(node: Node<'_>) {
    node.need(&["server", "path"]);
    let path = node.get("path");
    if !path.text().starts_with('/') {
        path.invalid(path.text(), "must be an absolute path");
    }
}

pub(crate) fn glusterfs(node: Node<'_>) {
    node.need(&["endpoints", "path"]);
}

pub(crate) fn flocker(node: Node<'_>) {
    let (name, uuid) = (node.str("datasetName"), node.str("datasetUUID"));
    if name.is_empty() && uuid.is_empty() {
        node.required("one of datasetName and datasetUUID is required");
    }
    if !name.is_empty() && !uuid.is_empty() {
        node.invalid("resource", "datasetName and datasetUUID can not be specified simultaneously");
    }
    if name.contains('/') {
        node.child("datasetName").invalid(name, "must not contain '/'");
    }
}

pub(crate) fn persistent_volume_claim(node: Node<'_>) {
    node.need(&["claimName"]);
}

pub(crate) fn rbd(node: Node<'_>) {
    node.need(&["monitors", "image"]);
}

pub(crate) fn cephfs(node: Node<'_>) {
    node.need(&["monitors"]);
}

pub(crate) fn cinder(node: Node<'_>) {
    node.need(&["volumeID"]);
    secret_name(node);
}

fn secret_name(node: Node<'_>) {
    if node.has("secretRef") {
        node.get("secretRef").need(&["name"]);
    }
}

pub(crate) fn quobyte(node: Node<'_>) {
    const PAIRS: &str = "must be a host:port pair or multiple pairs separated by commas";
    let registry = node.get("registry");
    if registry.text().is_empty() {
        registry.required(PAIRS);
    } else if node.str("tenant").len() >= 65 {
        node.child("tenant").required("must be a UUID and may not exceed a length of 64 characters");
    } else {
        let wrong = registry.text().split(',').filter(|pair| !is_host_and_port(pair)).count();
        (0..wrong).for_each(|_| registry.invalid(registry.text(), PAIRS));
    }
    node.need(&["volume"]);
}

/// What Go's `net.SplitHostPort` takes.
fn is_host_and_port(pair: &str) -> bool {
    let Some((host, port)) = pair.rsplit_once(':') else { return false };
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let inner = bare.unwrap_or(host);
    !inner.contains(['[', ']']) && !port.contains(['[', ']']) && (bare.is_some() || !host.contains(':'))
}

pub(crate) fn fc(node: Node<'_>) {
    let (targets, ids, lun) = (node.get("targetWWNs"), node.get("wwids"), node.get("lun"));
    if targets.is_empty() && ids.is_empty() {
        targets.required("must specify either targetWWNs or wwids, but not both");
    }
    if !targets.is_empty() && !ids.is_empty() {
        targets.wrong("targetWWNs and wwids can not be specified simultaneously");
    }
    if !targets.is_empty() {
        match lun.is_set() {
            true => lun.within(0, 255),
            false => lun.required("lun is required if targetWWNs is specified"),
        }
    }
}

pub(crate) fn flex_volume(node: Node<'_>) {
    node.need(&["driver"]);
    for (key, option) in node.get("options").entries() {
        let namespace = key.split_once('/').map_or(key, |(namespace, _)| namespace);
        let normalized = format!(".{}", namespace.to_lowercase());
        if normalized.ends_with(".kubernetes.io") || normalized.ends_with(".k8s.io") {
            option.invalid(key, "kubernetes.io and k8s.io namespaces are reserved");
        }
    }
}

pub(crate) fn azure_file(node: Node<'_>) {
    node.need(&["secretName", "shareName"]);
}

pub(crate) fn azure_disk(node: Node<'_>) {
    const MANAGED: &str =
        "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}";
    const BLOB: &str = "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd";
    node.need(&["diskName", "diskURI"]);
    node.get("cachingMode").optional_one_of(&["None", "ReadOnly", "ReadWrite"]);
    let kind = node.get("kind");
    kind.optional_one_of(&["Dedicated", "Managed", "Shared"]);
    let uri = node.get("diskURI");
    if kind.is_set() && kind.text() == "Managed" && !uri.text().starts_with("/subscriptions/") {
        uri.not_supported(uri.text(), &[MANAGED]);
    }
    if kind.is_set() && kind.text() != "Managed" && !uri.text().starts_with("https://") {
        uri.not_supported(uri.text(), &[BLOB]);
    }
}

pub(crate) fn vsphere_volume(node: Node<'_>) {
    node.need(&["volumePath"]);
}

pub(crate) fn photon_persistent_disk(node: Node<'_>) {
    node.need(&["pdID"]);
}

pub(crate) fn portworx_volume(node: Node<'_>) {
    node.need(&["volumeID"]);
}

pub(crate) fn scale_io(node: Node<'_>) {
    node.need(&["gateway", "system", "volumeName"]);
}

pub(crate) fn storageos(node: Node<'_>) {
    node.get("volumeName").required_and(names::dns1123_label);
    node.get("volumeNamespace").optional_and(names::dns1123_label);
    secret_name(node);
}

/// What an iSCSI name must begin with is said in two ways.
pub(crate) struct Iscsi {
    pub(crate) unknown_form: &'static str,
}

impl Iscsi {
    pub(crate) fn check(&self, node: Node<'_>, name: &str) {
        let known = ["iqn", "eui", "naa"].iter().any(|form| name.starts_with(form));
        if !known {
            node.invalid(name, self.unknown_form);
        } else if !is_iscsi_name(name) {
            node.invalid(name, "must be valid format");
        }
    }

    pub(crate) fn members(&self, node: Node<'_>) {
        let iqn = node.get("iqn");
        match iqn.text() {
            "" => iqn.required(""),
            name => self.check(iqn, name),
        }
        node.get("lun").within(0, 255);
        if (node.flag("chapAuthDiscovery") || node.flag("chapAuthSession")) && !node.has("secretRef") {
            node.child("secretRef").required("");
        }
    }
}

/// Upstream's three forms: only the ends of the second and third are fixed, and the first may stand anywhere at the end.
fn is_iscsi_name(name: &str) -> bool {
    let tail = |form: &str, length: usize| {
        let rest =
            name.strip_prefix(form).and_then(|rest| rest.char_indices().nth(1).map(|(at, _)| &rest[at..]));
        rest.is_some_and(|rest| rest.len() == length && rest.bytes().all(|b| b.is_ascii_alphanumeric()))
    };
    match name.get(..3) {
        Some("iqn") => name.match_indices("iqn.").any(|(at, _)| is_iqn_rest(&name[at + 4..])),
        Some("eui") => tail("eui", 16),
        Some("naa") => tail("naa", 32),
        _ => false,
    }
}

/// `yyyy-mm.name:rest` after `iqn.`
fn is_iqn_rest(rest: &str) -> bool {
    let Some((date, rest)) = rest.split_at_checked(8) else { return false };
    let date_matches = date.bytes().zip(*b"dddd-dd.").all(|(b, form)| match form {
        b'd' => b.is_ascii_digit(),
        form => b == form,
    });
    let Some((name, tail)) = rest.split_once(':') else { return false };
    let tail_matches =
        !tail.is_empty() && !tail.contains(|c: char| ",;*&$|".contains(c) || c.is_ascii_whitespace());
    date_matches
        && tail_matches
        && !name.is_empty()
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'.')
}

pub(crate) fn iscsi(node: Node<'_>) {
    let rule = Iscsi { unknown_form: "must be valid format starting with iqn, eui, or naa" };
    node.need(&["targetPortal"]);
    rule.members(node);
    let initiator = node.get_as("initiatorName", "initiatorname");
    if initiator.is_set() {
        rule.check(initiator, initiator.text());
    }
}

/// The name of a CSI driver.
pub(crate) fn csi_driver_name(driver: Node<'_>, name: &str) {
    if name.is_empty() {
        return driver.required("");
    }
    if name.len() > 63 {
        driver.too_long(63);
    }
    for problem in names::dns1123_subdomain(&name.to_lowercase()) {
        driver.invalid(name, problem);
    }
}

pub(crate) fn csi(node: Node<'_>) {
    csi_driver_name(node.get("driver"), node.str("driver"));
    let secret = node.get("nodePublishSecretRef");
    match secret.str("name") {
        _ if !secret.is_set() => {}
        "" => secret.child("name").required(""),
        name => node.child("name").check_text(name, names::dns1123_subdomain),
    }
}

/// A reference to a secret in some namespace.
pub(crate) fn secret_reference(node: Node<'_>) {
    if node.is_set() {
        node.get("name").required_and(names::dns1123_subdomain);
        node.get("namespace").required_and(names::dns1123_label);
    }
}

/// An image pull policy.
pub(crate) fn pull_policy(node: Node<'_>) {
    node.required_one_of(&["Always", "IfNotPresent", "Never"]);
}
