//! What operations are called.

use concord_meta::GroupVersion;

/// A name without what is neither letter nor digit, with a capital wherever something was left out: `SelfSubject`.
pub(crate) fn camel(name: &str) -> String {
    let words = name.split(|c: char| !c.is_ascii_alphanumeric());
    words.map(capitalised).collect()
}

fn capitalised(word: &str) -> String {
    let mut rest = word.chars();
    rest.next().map_or_else(String::new, |first| first.to_uppercase().chain(rest).collect())
}

/// What a group is called in operations: `RbacAuthorization`.
pub(crate) fn group(name: &str) -> String {
    match name.strip_suffix(".k8s.io").unwrap_or(name) {
        "" => "Core".to_owned(),
        name => camel(name),
    }
}

/// The tag of the operations of a group: `rbacAuthorization`.
pub(crate) fn group_tag(name: &str) -> String {
    let group = group(name);
    let mut rest = group.chars();
    rest.next().map_or_else(String::new, |first| first.to_lowercase().chain(rest).collect())
}

/// The tag of the operations of a version: `rbacAuthorization_v1`.
pub(crate) fn tag(version: &GroupVersion) -> String {
    format!("{}_{}", group_tag(&version.group), version.version)
}

/// What all operations of a version have behind their verb: `RbacAuthorizationV1`.
pub(crate) fn infix(version: &GroupVersion) -> String {
    group(&version.group) + &camel(&version.version)
}

/// What the names of all definitions of a version's custom kinds begin with: `com.example.lab.v1.`.
pub(crate) fn package(version: &GroupVersion) -> String {
    let group: Vec<&str> = version.group.rsplit('.').collect();
    format!("{}.{}.", group.join("."), version.version)
}

/// The name of a custom kind's definition: `com.example.lab.v1.Widget`. One that is taken already is marked.
pub(crate) fn definition(version: &GroupVersion, kind: &str, is_taken: impl Fn(&str) -> bool) -> String {
    let name = package(version) + kind;
    if is_taken(&name) { format!("{name}_v2") } else { name }
}

/// Where the paths of a version begin.
pub(crate) fn root(version: &GroupVersion) -> String {
    match version.group.as_str() {
        "" => format!("/api/{}", version.version),
        group => format!("/apis/{group}/{}", version.version),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_are_called_by_their_group_backwards() {
        let version = GroupVersion::new("lab.example.com", "v1");
        assert_eq!(definition(&version, "Widget", |_| false), "com.example.lab.v1.Widget");
        let version = GroupVersion::new("apps.api.k8s.io", "v1");
        let taken = |name: &str| name == "io.k8s.api.apps.v1.Deployment";
        assert_eq!(definition(&version, "Deployment", taken), "io.k8s.api.apps.v1.Deployment_v2");
    }

    #[test]
    fn groups_and_versions_are_told_in_camel_case() {
        for (name, version, of_tag, of_operations) in [
            ("", "v1", "core_v1", "CoreV1"),
            ("apps", "v1beta1", "apps_v1beta1", "AppsV1beta1"),
            ("rbac.authorization.k8s.io", "v1", "rbacAuthorization_v1", "RbacAuthorizationV1"),
            ("lab-x.example.com", "v1", "labXExampleCom_v1", "LabXExampleComV1"),
        ] {
            let version = GroupVersion::new(name, version);
            assert_eq!((&*tag(&version), &*infix(&version)), (of_tag, of_operations));
        }
    }
}
