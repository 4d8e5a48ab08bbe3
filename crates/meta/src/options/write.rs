//! The options of creates, updates, patches and deletes.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{Query, refuse};
use crate::Status;
use crate::field::{BadValue, Error, Path};
use crate::objectmeta::validate_field_manager;

/// What is done about unknown and duplicate fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FieldValidation {
    /// They are dropped.
    Ignore,
    /// They are dropped and the client is warned.
    #[default]
    Warn,
    /// The request is refused.
    Strict,
}

/// What a create or an update asks for; the two have the same parameters.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CreateOptions {
    /// Whether nothing is to be written.
    pub dry_run: bool,
    /// Who manages the fields that are set; empty if the client did not say.
    pub field_manager: String,
    /// What is done about unknown and duplicate fields.
    pub field_validation: FieldValidation,
}

/// What a patch asks for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PatchOptions {
    /// What it has in common with an update.
    pub common: CreateOptions,
    /// Whether an apply takes fields from other managers.
    pub force: bool,
}

impl CreateOptions {
    /// Reads and checks the parameters of a create.
    ///
    /// # Errors
    ///
    /// 422 about `CreateOptions`.
    pub fn for_create<S: AsRef<str>>(query: Query<'_, S>) -> Result<Self, Status> {
        refuse("CreateOptions", &check_common(query))?;
        Ok(Self::read(query))
    }

    /// Reads and checks the parameters of an update.
    ///
    /// # Errors
    ///
    /// 422 about `UpdateOptions`.
    pub fn for_update<S: AsRef<str>>(query: Query<'_, S>) -> Result<Self, Status> {
        refuse("UpdateOptions", &check_common(query))?;
        Ok(Self::read(query))
    }

    fn read<S: AsRef<str>>(query: Query<'_, S>) -> Self {
        Self {
            dry_run: query.first("dryRun").is_some(),
            field_manager: query.text("fieldManager").to_owned(),
            field_validation: match query.text("fieldValidation") {
                "Ignore" => FieldValidation::Ignore,
                "Strict" => FieldValidation::Strict,
                _ => FieldValidation::Warn,
            },
        }
    }
}

impl PatchOptions {
    /// Reads and checks the parameters of a patch; `apply` says that it is a server-side apply.
    ///
    /// # Errors
    ///
    /// 422 about `PatchOptions`.
    pub fn from_query<S: AsRef<str>>(query: Query<'_, S>, apply: bool) -> Result<Self, Status> {
        let force = query.flag("force");
        let mut errors = Vec::new();
        if apply && query.text("fieldManager").is_empty() {
            errors.push(Error::required(&Path::new("fieldManager"), "is required for apply patch"));
        }
        if !apply && force.is_some() {
            errors.push(Error::forbidden(&Path::new("force"), "may not be specified for non-apply patch"));
        }
        errors.extend(check_common(query));
        refuse("PatchOptions", &errors)?;
        Ok(Self { common: CreateOptions::read(query), force: force.unwrap_or_default() })
    }
}

fn check_common<S: AsRef<str>>(query: Query<'_, S>) -> Vec<Error> {
    let mut errors = validate_field_manager(query.text("fieldManager"), &Path::new("fieldManager"));
    errors.extend(check_dry_run(&query.all("dryRun").collect::<Vec<_>>()));
    let validation = query.text("fieldValidation");
    let known = ["", "Ignore", "Strict", "Warn"];
    if !known.contains(&validation) {
        errors.push(Error::not_supported(&Path::new("fieldValidation"), validation, &known));
    }
    errors
}

fn check_dry_run<S: AsRef<str>>(values: &[S]) -> Option<Error> {
    let unknown = values.iter().any(|value| value.as_ref() != "All");
    unknown.then(|| Error::not_supported(&Path::new("dryRun"), BadValue::strings(values), &["All"]))
}

/// What becomes of the objects that the deleted one owns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PropagationPolicy {
    /// They lose their owner.
    Orphan,
    /// They are deleted afterwards.
    Background,
    /// They are deleted before.
    Foreground,
}

/// What must hold of an object for it to be deleted.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Preconditions {
    /// The uid it must have.
    pub uid: Option<String>,
    /// The resource version it must have.
    pub resource_version: Option<String>,
}

/// What a delete asks for, in its body or, without one, in its parameters.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeleteOptions {
    /// How long the object may take to end; none is the kind's default.
    pub grace_period_seconds: Option<i64>,
    /// What must hold of the object.
    pub preconditions: Preconditions,
    /// The older form of `propagation_policy`.
    pub orphan_dependents: Option<bool>,
    /// What becomes of dependents; none is the kind's default.
    pub propagation_policy: Option<PropagationPolicy>,
    /// Whether nothing is to be written.
    pub dry_run: bool,
}

/// The members as a body has them; null is absent.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Raw {
    grace_period_seconds: Option<i64>,
    preconditions: Option<Preconditions>,
    orphan_dependents: Option<bool>,
    propagation_policy: Option<String>,
    dry_run: Option<Vec<String>>,
}

impl DeleteOptions {
    /// The options as a body would have them, without their kind; what is not given is absent.
    #[must_use]
    pub fn to_object(&self) -> Map<String, Value> {
        let mut object = Map::new();
        let mut set = |name: &str, value: Option<Value>| {
            if let Some(value) = value {
                object.insert(name.to_owned(), value);
            }
        };
        let Preconditions { uid, resource_version } = &self.preconditions;
        let texts = [("uid", uid), ("resourceVersion", resource_version)];
        let given =
            texts.into_iter().filter_map(|(name, text)| Some((name.to_owned(), text.clone()?.into())));
        let preconditions: Map<String, Value> = given.collect();
        let policy = self.propagation_policy.map(|policy| match policy {
            PropagationPolicy::Orphan => "Orphan",
            PropagationPolicy::Background => "Background",
            PropagationPolicy::Foreground => "Foreground",
        });
        set("gracePeriodSeconds", self.grace_period_seconds.map(Value::from));
        set("preconditions", (!preconditions.is_empty()).then_some(Value::Object(preconditions)));
        set("orphanDependents", self.orphan_dependents.map(Value::from));
        set("propagationPolicy", policy.map(Value::from));
        set("dryRun", self.dry_run.then(|| vec!["All"].into()));
        object
    }

    /// Reads and checks the parameters of a delete.
    ///
    /// # Errors
    ///
    /// 400 for a grace period that is no number, 422 about `DeleteOptions`.
    pub fn from_query<S: AsRef<str>>(query: Query<'_, S>) -> Result<Self, Status> {
        let given =
            |name: &str| Some(query.text(name)).filter(|text| !text.is_empty()).map(ToOwned::to_owned);
        Self::check(Raw {
            grace_period_seconds: query.number("gracePeriodSeconds")?,
            preconditions: Some(Preconditions {
                uid: given("uid"),
                resource_version: given("resourceVersion"),
            }),
            orphan_dependents: query.flag("orphanDependents"),
            propagation_policy: query.first("propagationPolicy").map(ToOwned::to_owned),
            dry_run: Some(query.all("dryRun").map(ToOwned::to_owned).collect()),
        })
    }

    /// Reads and checks the body of a delete; unknown members are ignored.
    ///
    /// # Errors
    ///
    /// 400 for members of a wrong type, 422 about `DeleteOptions`.
    pub fn from_body(body: &serde_json::Value) -> Result<Self, Status> {
        Self::check(Raw::deserialize(body).map_err(|error| Status::bad_request(error.to_string()))?)
    }

    fn check(raw: Raw) -> Result<Self, Status> {
        let path = Path::new("propagationPolicy");
        let dry_run = raw.dry_run.unwrap_or_default();
        let mut errors = Vec::new();
        let mut policy = None;
        if let Some(text) = &raw.propagation_policy {
            if raw.orphan_dependents.is_some() {
                let detail = "orphanDependents and deletionPropagation cannot be both set";
                errors.push(Error::invalid(&path, BadValue::named(text), detail));
            }
            policy = match text.as_str() {
                "Orphan" => Some(PropagationPolicy::Orphan),
                "Background" => Some(PropagationPolicy::Background),
                "Foreground" => Some(PropagationPolicy::Foreground),
                _ => None,
            };
            if policy.is_none() {
                let known = ["Foreground", "Background", "Orphan", "nil"];
                errors.push(Error::not_supported(&path, BadValue::named(text), &known));
            }
        }
        errors.extend(check_dry_run(&dry_run));
        refuse("DeleteOptions", &errors)?;
        Ok(Self {
            grace_period_seconds: raw.grace_period_seconds,
            preconditions: raw.preconditions.unwrap_or_default(),
            orphan_dependents: raw.orphan_dependents,
            propagation_policy: policy,
            dry_run: !dry_run.is_empty(),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const NONE: Query<'_, &str> = Query(&[]);

    #[test]
    fn parameters_of_writes_are_read() {
        let pairs =
            [("dryRun", "All"), ("fieldManager", "me"), ("fieldValidation", "Strict"), ("force", "true")];
        let options = PatchOptions::from_query(Query(&pairs), true).expect("good");
        let expected = CreateOptions {
            dry_run: true,
            field_manager: "me".to_owned(),
            field_validation: FieldValidation::Strict,
        };
        assert_eq!(options, PatchOptions { common: expected.clone(), force: true });
        assert_eq!(CreateOptions::for_create(Query(&pairs)), Ok(expected));
        assert_eq!(CreateOptions::for_update(NONE), Ok(CreateOptions::default()));
        assert_eq!(CreateOptions::default().field_validation, FieldValidation::Warn);
    }

    #[test]
    fn bad_parameters_of_writes_are_refused() {
        let long = "m".repeat(129);
        let table = [
            (("dryRun", "Some"), r#"dryRun: Unsupported value: ["Some"]: supported values: "All""#),
            (("fieldManager", long.as_str()), "fieldManager: Too long: may not be more than 128 bytes"),
            (
                ("fieldManager", "a\n"),
                r#"fieldManager: Invalid value: "a\n": invalid character U+000A (at position 1)"#,
            ),
            (
                ("fieldValidation", "warn"),
                r#"fieldValidation: Unsupported value: "warn": supported values: "", "Ignore", "Strict", "Warn""#,
            ),
        ];
        for (pair, error) in table {
            let status = CreateOptions::for_create(Query(&[pair])).expect_err(error);
            assert_eq!(status.message, format!(r#"CreateOptions.meta.k8s.io "" is invalid: {error}"#));
            let status = CreateOptions::for_update(Query(&[pair])).expect_err(error);
            assert_eq!(status.message, format!(r#"UpdateOptions.meta.k8s.io "" is invalid: {error}"#));
        }
        let patch = |pairs: &[(&str, &str)], apply| {
            PatchOptions::from_query(Query(pairs), apply).expect_err("bad").message
        };
        assert_eq!(
            patch(&[], true),
            r#"PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch"#
        );
        assert_eq!(
            patch(&[("force", "false")], false),
            r#"PatchOptions.meta.k8s.io "" is invalid: force: Forbidden: may not be specified for non-apply patch"#
        );
    }

    #[test]
    fn options_of_deletes_are_read_from_parameters_and_bodies() {
        let pairs =
            [("gracePeriodSeconds", "5"), ("uid", "u"), ("propagationPolicy", "Orphan"), ("dryRun", "All")];
        let from_query = DeleteOptions::from_query(Query(&pairs)).expect("good");
        let body = json!({"kind": "DeleteOptions", "gracePeriodSeconds": 5, "preconditions": {"uid": "u"},
            "propagationPolicy": "Orphan", "orphanDependents": null, "dryRun": ["All"], "other": 1});
        assert_eq!(DeleteOptions::from_body(&body), Ok(from_query.clone()));
        assert_eq!(from_query.grace_period_seconds, Some(5));
        assert_eq!(from_query.preconditions.uid.as_deref(), Some("u"));
        assert_eq!(from_query.propagation_policy, Some(PropagationPolicy::Orphan));
        assert!(from_query.dry_run);
        assert_eq!(DeleteOptions::from_query(NONE), Ok(DeleteOptions::default()));
        assert_eq!(DeleteOptions::from_body(&json!({})), Ok(DeleteOptions::default()));
    }

    #[test]
    fn bad_options_of_deletes_are_refused() {
        let table = [
            (
                json!({"propagationPolicy": "Never"}),
                r#"propagationPolicy: Unsupported value: "Never": supported values: "Foreground", "Background", "Orphan", "nil""#,
            ),
            (
                json!({"propagationPolicy": "Orphan", "orphanDependents": true}),
                r#"propagationPolicy: Invalid value: "Orphan": orphanDependents and deletionPropagation cannot be both set"#,
            ),
            (
                json!({"dryRun": ["All", "x"]}),
                r#"dryRun: Unsupported value: ["All","x"]: supported values: "All""#,
            ),
        ];
        for (body, error) in table {
            let status = DeleteOptions::from_body(&body).expect_err(error);
            assert_eq!(status.message, format!(r#"DeleteOptions.meta.k8s.io "" is invalid: {error}"#));
        }
        assert_eq!(
            DeleteOptions::from_body(&json!({"gracePeriodSeconds": "x"})).expect_err("a string").code,
            400
        );
        let status = DeleteOptions::from_query(Query(&[("gracePeriodSeconds", "x")])).expect_err("no number");
        assert_eq!(
            (status.code, status.message.as_str()),
            (400, r#"strconv.ParseInt: parsing "x": invalid syntax"#)
        );
    }
}
