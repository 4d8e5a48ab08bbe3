//! The spec in upstream's internal form, and the rules about it as a whole.

use concord_meta::{
    field::{BadValue, Error, Path},
    names as rules,
};
use serde_json::Value;

use super::{CelCompiler, Options, conversion, internal, names, openapi, versions};
use crate::props::Props;

/// A spec in which what all versions have in common stands at the top and nowhere else.
pub(super) struct Spec<'a> {
    props: Props<'a>,
    pub(super) versions: Vec<Version<'a>>,
    pub(super) common: Parts<'a>,
}

/// What a version has, or all versions have in common.
#[derive(Clone, Copy, Default)]
pub(super) struct Parts<'a> {
    /// `{"openAPIV3Schema": ...}`.
    pub(super) schema: Option<Props<'a>>,
    pub(super) subresources: Option<Props<'a>>,
    pub(super) columns: Option<&'a [Value]>,
    pub(super) selectable: Option<&'a [Value]>,
}

#[derive(Clone, Copy)]
pub(super) struct Version<'a> {
    pub(super) props: Props<'a>,
    pub(super) parts: Parts<'a>,
}

impl<'a> Parts<'a> {
    fn of(version: Props<'a>) -> Self {
        let list = |name: &str| version.0.get(name).and_then(Value::as_array).map(Vec::as_slice);
        Self {
            schema: version.schema("schema"),
            subresources: version.schema("subresources"),
            columns: list("additionalPrinterColumns"),
            selectable: list("selectableFields"),
        }
    }

    pub(super) fn open_api_schema(&self) -> Option<Props<'a>> {
        self.schema?.schema("openAPIV3Schema")
    }

    pub(super) fn has_status(&self) -> bool {
        self.subresources.is_some_and(|subresources| subresources.schema("status").is_some())
    }
}

/// Moves a part to the top if it is the same in all versions.
fn hoist<'a, T: PartialEq + Copy>(
    versions: &mut [Version<'a>],
    part: impl for<'p> Fn(&'p mut Parts<'a>) -> &'p mut Option<T>,
) -> Option<T> {
    let first = *part(&mut versions.first_mut()?.parts);
    if !versions.iter_mut().all(|version| *part(&mut version.parts) == first) {
        return None;
    }
    versions.iter_mut().for_each(|version| *part(&mut version.parts) = None);
    first
}

impl<'a> Spec<'a> {
    pub(super) fn of(props: Props<'a>) -> Self {
        let version = |props: Props<'a>| Version { props, parts: Parts::of(props) };
        let mut versions: Vec<_> = props.schemas("versions").map(version).collect();
        let common = Parts {
            schema: hoist(&mut versions, |parts| &mut parts.schema),
            subresources: hoist(&mut versions, |parts| &mut parts.subresources),
            columns: hoist(&mut versions, |parts| &mut parts.columns),
            selectable: hoist(&mut versions, |parts| &mut parts.selectable),
        };
        Self { props, versions, common }
    }

    pub(super) fn group(&self) -> &'a str {
        self.props.text("group")
    }

    pub(super) fn scope(&self) -> &'a str {
        self.props.text("scope")
    }

    pub(super) fn names(&self) -> Props<'a> {
        static EMPTY: std::sync::LazyLock<crate::Object> = std::sync::LazyLock::new(crate::Object::new);
        self.props.schema("names").unwrap_or(Props(&EMPTY))
    }

    pub(super) fn conversion(&self) -> Option<Props<'a>> {
        self.props.schema("conversion")
    }

    pub(super) fn preserves_unknown_fields(&self) -> bool {
        self.props.flag("preserveUnknownFields")
    }

    /// All schemas.
    pub(super) fn schemas(&self) -> impl Iterator<Item = Props<'a>> {
        let versions = self.versions.iter().map(|version| version.parts);
        [self.common].into_iter().chain(versions).filter_map(|parts| parts.open_api_schema())
    }

    /// Whether any node of any schema is so.
    pub(super) fn any_schema(&self, holds: impl Fn(Props<'a>) -> bool) -> bool {
        self.schemas().any(|schema| schema.any(&|props| holds(props)))
    }

    /// The schema of a version, wherever it stands.
    pub(super) fn schema_of(&self, version: &Version<'a>) -> Option<Props<'a>> {
        version.parts.schema.or(self.common.schema)
    }

    fn shown_versions(&self) -> BadValue {
        let given = self.props.0.get("versions").is_some_and(Value::is_array);
        BadValue::verbatim(if given { internal::versions(&self.versions) } else { "null".to_owned() })
    }
}

pub(super) fn validate(spec: &Spec<'_>, options: &Options<'_>, cel: &dyn CelCompiler) -> Vec<Error> {
    let path = Path::new("spec");
    let mut errors = Vec::from_iter(group_error(spec.group(), &path));
    errors.extend(one_of(&path.child("scope"), spec.scope(), &["Cluster", "Namespaced"]));
    errors.extend(missing_schemas(spec, options, &path));
    let options = &stricter(spec, options);
    if spec.preserves_unknown_fields() && spec.any_schema(|props| props.value("default").is_some()) {
        let detail = "must be false in order to use defaults in the schema";
        errors.push(Error::invalid(&path.child("preserveUnknownFields"), true, detail));
    }
    for (index, version) in spec.versions.iter().enumerate() {
        let path = path.child("versions").index(index);
        errors.extend(versions::validate(spec, version, &path, options, cel));
    }
    errors.extend(versions_error(spec, &path));
    errors.extend(missing_names(spec, &path));
    errors.extend(names::validate(spec.names(), &path.child("names")));
    let has_status =
        spec.common.has_status() || spec.versions.iter().any(|version| version.parts.has_status());
    let first = spec.versions.first().map_or("", |version| version.props.text("name"));
    let own = options.for_version(first);
    errors.extend(openapi::validate(spec.common.schema, has_status, &own, &path.child("validation"), cel));
    errors.extend(versions::subresources(spec.common.subresources, &path.child("subresources")));
    errors.extend(versions::columns(&spec.common, &path));
    errors.extend(common_selectable(spec, &path, options));
    errors.extend(conversion::validate(spec, options, &path.child("conversion")));
    errors
}

/// Pruning, defaults and extensions demand a structural schema, whatever was stored before.
fn stricter<'a>(spec: &Spec<'_>, options: &Options<'a>) -> Options<'a> {
    let extended = |props: Props<'_>| {
        props.flag("x-kubernetes-embedded-resource")
            || props.optional_flag("x-kubernetes-preserve-unknown-fields").is_some()
            || props.flag("x-kubernetes-int-or-string")
            || props.has("x-kubernetes-list-map-keys")
            || props.optional_text("x-kubernetes-list-type").is_some()
            || props.has("x-kubernetes-validations")
            || props.value("default").is_some()
    };
    let mut options = options.clone();
    options.structural_schema |= !spec.preserves_unknown_fields() || spec.any_schema(extended);
    options
}

fn group_error(group: &str, path: &Path) -> Option<Error> {
    let path = path.child("group");
    if group.is_empty() {
        return Some(Error::required(&path, ""));
    }
    let problems = rules::dns1123_subdomain(group);
    if !problems.is_empty() {
        return Some(Error::invalid(&path, group, problems.join(",")));
    }
    let detail = "should be a domain with at least one dot";
    (!group.contains('.')).then(|| Error::invalid(&path, group, detail))
}

pub(super) fn one_of(path: &Path, value: &str, accepted: &[&str]) -> Option<Error> {
    match value {
        "" => Some(Error::required(path, "")),
        value if accepted.contains(&value) => None,
        value => Some(Error::not_supported(path, value, accepted)),
    }
}

fn missing_schemas(spec: &Spec<'_>, options: &Options<'_>, path: &Path) -> Vec<Error> {
    if spec.common.open_api_schema().is_some() {
        return Vec::new();
    }
    let missing = |version: &Version<'_>| {
        let needed = options.open_api_schema || version.props.flag("served");
        needed && version.parts.open_api_schema().is_none()
    };
    let detail = match (options.open_api_schema, spec.preserves_unknown_fields()) {
        (true, _) => "",
        (false, false) => "because otherwise all fields are pruned",
        (false, true) => return Vec::new(),
    };
    let versions = spec.versions.iter().enumerate().filter(|(_, version)| missing(version));
    let path = path.child("versions");
    let errors = versions.map(|(index, _)| {
        Error::required(&path.index(index).child("schema").child("openAPIV3Schema"), detail)
    });
    errors.collect()
}

fn versions_error(spec: &Spec<'_>, path: &Path) -> Vec<Error> {
    let path = path.child("versions");
    let mut names: Vec<_> = spec.versions.iter().map(|version| version.props.text("name")).collect();
    names.sort_unstable();
    let mut errors = Vec::new();
    if names.windows(2).any(|pair| pair[0] == pair[1]) {
        errors.push(Error::invalid(&path, spec.shown_versions(), "must contain unique version names"));
    }
    if spec.versions.iter().filter(|version| version.props.flag("storage")).count() != 1 {
        let detail = "must have exactly one version marked as storage version";
        errors.push(Error::invalid(&path, spec.shown_versions(), detail));
    }
    let first = spec.versions.first().map_or("", |version| version.props.text("name"));
    let problems = if first.is_empty() { Vec::new() } else { rules::dns1035_label(first) };
    if !problems.is_empty() {
        errors.push(Error::invalid(&Path::new("spec").child("version"), first, problems.join(",")));
    }
    errors
}

fn missing_names(spec: &Spec<'_>, path: &Path) -> Vec<Error> {
    let path = path.child("names");
    let missing = ["plural", "singular", "kind", "listKind"].into_iter();
    let missing = missing.filter(|name| spec.names().text(name).is_empty());
    missing.map(|name| Error::required(&path.child(name), "")).collect()
}

fn common_selectable(spec: &Spec<'_>, path: &Path, options: &Options<'_>) -> Vec<Error> {
    let Some(fields) = spec.common.selectable.filter(|fields| !fields.is_empty()) else { return Vec::new() };
    let path = path.child("selectableFields");
    match spec.common.open_api_schema() {
        None => vec![Error::invalid(&path, "", "may only be set when validations.schema is included")],
        Some(schema) => versions::selectable(fields, schema, &path, options, ""),
    }
}
