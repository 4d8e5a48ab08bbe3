use proptest::prelude::*;

use super::*;
use crate::document::{Kind, Metadata};

/// `group: version[resource(verb,verb)/subresource(verb) resource] version; group: ...`, written short.
fn groups(text: &str) -> Vec<Group> {
    text.split(';').map(str::trim).filter(|group| !group.is_empty()).map(group).collect()
}

fn group(text: &str) -> Group {
    let (name, versions) = text.split_once(':').expect("a name");
    let versions = versions.split(']').map(str::trim).filter(|version| !version.is_empty());
    let versions = versions.map(|text| {
        let (version, resources) = text.split_once('[').expect("resources");
        let freshness = if version.ends_with('~') { "Stale" } else { "Current" };
        let resources = resources.split_whitespace().map(resource).collect();
        Version {
            version: version.trim_end_matches('~').to_owned(),
            resources,
            freshness: freshness.to_owned(),
        }
    });
    Group { metadata: Metadata { name: name.trim().to_owned() }, versions: versions.collect() }
}

/// `plural=Kind(verb,verb)/subresource(verb)`
fn resource(text: &str) -> Resource {
    fn verbs(text: &str) -> (String, Vec<String>) {
        let (name, verbs) = text.trim_end_matches(')').split_once('(').unwrap_or((text, "get"));
        (name.to_owned(), verbs.split(',').map(ToOwned::to_owned).collect())
    }
    let mut parts = text.split('/');
    let (name, own) = verbs(parts.next().expect("a name"));
    let (plural, kind) = name.split_once('=').unwrap_or((&name, "K"));
    let kind = Kind { group: String::new(), version: String::new(), kind: kind.to_owned() };
    Resource {
        resource: plural.to_owned(),
        response_kind: Some(kind),
        scope: "Namespaced".to_owned(),
        singular_resource: String::new(),
        verbs: own,
        short_names: Vec::new(),
        categories: Vec::new(),
        subresources: parts
            .map(|below| {
                let (name, verbs) = verbs(below);
                Subresource { subresource: name, response_kind: None, accepted_types: Vec::new(), verbs }
            })
            .collect(),
    }
}

/// The short form of groups.
fn short(groups: &[Group]) -> String {
    let resource = |resource: &Resource| {
        let kind = resource.response_kind.as_ref().map_or("", |kind| &kind.kind);
        let kind = if kind == "K" { String::new() } else { format!("={kind}") };
        let below = resource.subresources.iter();
        let below: String =
            below.map(|below| format!("/{}({})", below.subresource, below.verbs.join(","))).collect();
        format!("{}{kind}({}){below}", resource.resource, resource.verbs.join(","))
    };
    let version = |version: &Version| {
        let resources: Vec<_> = version.resources.iter().map(resource).collect();
        let stale = if version.is_stale() { "~" } else { "" };
        format!("{}{stale}[{}]", version.version, resources.join(" "))
    };
    let group = |group: &Group| {
        let versions: Vec<_> = group.versions.iter().map(version).collect();
        format!("{}: {}", group.name(), versions.join(" "))
    };
    groups.iter().map(group).collect::<Vec<_>>().join("; ")
}

/// Merges servers a, b, c and so on; one whose text begins with `!` cannot be asked.
fn merged(servers: &[&str]) -> String {
    let parsed: Vec<_> = servers
        .iter()
        .enumerate()
        .map(|(at, text)| {
            let id = char::from(b'a' + u8::try_from(at).expect("few")).to_string();
            (id, groups(text.trim_start_matches('!')), !text.starts_with('!'))
        })
        .collect();
    let sources =
        parsed.iter().map(|(id, groups, is_reachable)| Source { id, groups, is_reachable: *is_reachable });
    short(&merge(&sources.collect::<Vec<_>>()))
}

#[test]
fn the_rules_are_kube_apiservers() {
    for (servers, expected) in [
        (&["g: v1[r(get)]"][..], "g: v1[r(get)]"),
        (&["g: v1[r(get)]", "g: v1[r(get)]"], "g: v1[r(get)]"),
        (&["", "g: v1[r(get)]"], "g: v1[r(get)]"),
        (&["a: v1[r(get)]", "b: v1[s(get)]"], "a: v1[r(get)]; b: v1[s(get)]"),
        // Groups keep their order.
        (
            &["z: v1[r(get)]; a: v1[r(get)]", "a: v1[r(get)]; m: v1[r(get)]"],
            "z: v1[r(get)]; a: v1[r(get)]; m: v1[r(get)]",
        ),
        // Versions of all, and the preferred one is the most mature.
        (&["g: v1[r(get)]", "g: v2[r(get)] v1[r(get)]"], "g: v2[r(get)] v1[r(get)]"),
        (&["g: v1alpha1[r(get)]", "g: v1beta1[r(get)]"], "g: v1beta1[r(get)] v1alpha1[r(get)]"),
        (&["g: v1beta1[r(get)] v1[r(get)]", "g: v1[r(get)]"], "g: v1beta1[r(get)] v1[r(get)]"),
        // Resources of all, in their order.
        (&["g: v1[a(get) c(get)]", "g: v1[b(get) c(get)]"], "g: v1[a(get) b(get) c(get)]"),
        // Verbs of all, sorted, but only where they differ.
        (&["g: v1[r(watch,get)]", "g: v1[r(list,get)]"], "g: v1[r(get,list,watch)]"),
        (&["g: v1[r(watch,get)]", "g: v1[r(watch,get)]"], "g: v1[r(watch,get)]"),
        // Subresources of all, sorted; the last word counts.
        (
            &["g: v1[r(get)/status(get)/b(get)]", "g: v1[r(get)/a(get)/status(put)]"],
            "g: v1[r(get)/a(get)/b(get)/status(put)]",
        ),
        // About everything else the first word counts.
        (&["g: v1[r=A(get)]", "g: v1[r=B(get)]"], "g: v1[r=A(get)]"),
    ] {
        assert_eq!(merged(servers), expected, "{servers:?}");
    }
}

#[test]
fn a_version_is_stale_only_if_nobody_who_can_be_asked_has_it() {
    for (servers, expected) in [
        (&["!g: v1[r(get)]", "h: v1[r(get)]"][..], "g: v1~[r(get)]; h: v1[r(get)]"),
        (&["!g: v1[r(get)]", "g: v1[r(get)]"], "g: v1[r(get)]"),
        // What a server with a lower ID has only heard of does not make it stale.
        (&["g: v1~[]", "g: v1[r(get)]"], "g: v1[r(get)]"),
        (&["g: v1~[]", "h: v1[r(get)]"], "g: v1~[]; h: v1[r(get)]"),
        (&["!g: v2[r(get)] v1[r(get)]", "g: v1[r(get)]"], "g: v2~[r(get)] v1[r(get)]"),
    ] {
        assert_eq!(merged(servers), expected, "{servers:?}");
    }
}

fn any_groups() -> impl Strategy<Value = Vec<Group>> {
    let resource = (0..4_u8, proptest::collection::btree_set("get|list|watch", 1..3), 0..3_u8);
    let resources = proptest::collection::vec(resource, 0..4);
    let versions = proptest::collection::vec(("v1|v2|v1beta1|v2alpha1", resources), 1..3);
    proptest::collection::vec((0..5_u8, versions), 0..4).prop_map(|drawn| {
        let mut groups: Vec<Group> = Vec::new();
        for (name, versions) in drawn {
            let name = format!("g{name}");
            if groups.iter().any(|group| group.name() == name) {
                continue;
            }
            let mut group = Group { metadata: Metadata { name }, versions: Vec::new() };
            for (version, resources) in versions {
                if group.versions.iter().any(|known| known.version == version) {
                    continue;
                }
                let mut listed: Vec<Resource> = Vec::new();
                for (plural, verbs, below) in resources {
                    let below: String = (0..below).map(|at| format!("/s{at}(get)")).collect();
                    let verbs: Vec<String> = verbs.into_iter().collect();
                    let one = super::tests::resource(&format!("r{plural}({}){below}", verbs.join(",")));
                    if !listed.iter().any(|known| known.resource == one.resource) {
                        listed.push(one);
                    }
                }
                group.versions.push(Version { version, resources: listed, freshness: "Current".into() });
            }
            groups.push(group);
        }
        groups
    })
}

/// Everything that can be asked for.
fn capabilities(groups: &[Group]) -> HashSet<String> {
    let mut all = HashSet::new();
    for group in groups {
        for version in &group.versions {
            for resource in &version.resources {
                let place = format!("{}/{}/{}", group.name(), version.version, resource.resource);
                all.extend(resource.verbs.iter().map(|verb| format!("{place} {verb}")));
                all.extend(
                    resource.subresources.iter().map(|below| format!("{place}/{}", below.subresource)),
                );
            }
        }
    }
    all
}

proptest! {
    #[test]
    fn nothing_is_lost_or_invented_and_every_server_comes_to_the_same(
        lists in proptest::collection::vec(any_groups(), 1..4),
        rotation in 0..3_usize,
    ) {
        let ids = ["a", "b", "c"];
        let mut sources: Vec<Source<'_>> = lists
            .iter()
            .zip(ids)
            .map(|(groups, id)| Source { id, groups, is_reachable: true })
            .collect();
        let merged = merge(&sources);
        let expected: HashSet<String> = lists.iter().flat_map(|groups| capabilities(groups)).collect();
        prop_assert_eq!(capabilities(&merged), expected);
        // In whatever order servers are met.
        let middle = rotation % sources.len();
        sources.rotate_left(middle);
        prop_assert_eq!(&merge(&sources), &merged);
        // Merged once more it stays the same.
        let again = Source { id: "z", groups: &merged, is_reachable: true };
        prop_assert_eq!(merge(&[again]), merged);
    }
}
