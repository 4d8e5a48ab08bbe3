//! The selectors in access reviews.

use concord_meta::{
    field, fields,
    labels::{self, Operator, Requirement as LabelRequirement},
    names,
};
use serde::Deserialize;

/// A selector by fields, as text or as requirements.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct FieldSelector {
    raw_selector: String,
    requirements: Vec<Requirement>,
}

/// A selector by labels, as text or as requirements.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct LabelSelector {
    raw_selector: String,
    requirements: Vec<Requirement>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Requirement {
    key: String,
    operator: String,
    values: Vec<String>,
}

/// How much of a selector could not be read.
pub(super) type Ignored = &'static str;

impl FieldSelector {
    pub(super) fn validate(&self, path: &field::Path) -> Vec<field::Error> {
        let mut errors = either(&self.raw_selector, &self.requirements, path);
        for (at, requirement) in self.requirements.iter().enumerate() {
            let path = path.child("requirements").index(at);
            if requirement.key.is_empty() {
                errors.push(field::Error::required(&path.child("key"), "must be specified"));
            }
            errors.extend(requirement.value_error(&path));
        }
        errors
    }

    /// What a decision does without, if anything.
    pub(super) fn ignored(&self) -> Option<Ignored> {
        let good = |requirement: &&Requirement| {
            ["In", "NotIn"].contains(&requirement.operator.as_str()) && requirement.values.len() == 1
        };
        match self.requirements.is_empty() {
            true => fields::Selector::parse(&self.raw_selector).is_err().then_some("ignored"),
            false => partly(self.requirements.len(), self.requirements.iter().filter(good).count()),
        }
    }
}

impl LabelSelector {
    pub(super) fn validate(&self, path: &field::Path) -> Vec<field::Error> {
        let mut errors = either(&self.raw_selector, &self.requirements, path);
        for (at, requirement) in self.requirements.iter().enumerate() {
            let path = path.child("requirements").index(at);
            errors.extend(requirement.value_error(&path));
            let key = path.child("key");
            let problems = names::qualified_name(&requirement.key).into_iter();
            errors.extend(problems.map(|why| field::Error::invalid(&key, &requirement.key, why)));
            for (at, value) in requirement.values.iter().enumerate() {
                let path = path.child("values").index(at);
                let problems = names::label_value(value).into_iter();
                errors.extend(problems.map(|why| field::Error::invalid(&path, value, why)));
            }
        }
        errors
    }

    /// What a decision does without, if anything.
    pub(super) fn ignored(&self) -> Option<Ignored> {
        let good = |requirement: &&Requirement| {
            let operator = match requirement.operator.as_str() {
                "In" => Operator::In,
                "NotIn" => Operator::NotIn,
                "Exists" => Operator::Exists,
                "DoesNotExist" => Operator::DoesNotExist,
                _ => return false,
            };
            LabelRequirement::new(&requirement.key, operator, requirement.values.clone()).is_ok()
        };
        match self.requirements.is_empty() {
            true => labels::Selector::parse(&self.raw_selector).is_err().then_some("ignored"),
            false => partly(self.requirements.len(), self.requirements.iter().filter(good).count()),
        }
    }
}

impl Requirement {
    /// Operators that are not known are let through: newer clients may know more.
    fn value_error(&self, path: &field::Path) -> Option<field::Error> {
        let path = path.child("values");
        match (self.operator.as_str(), self.values.is_empty()) {
            ("In" | "NotIn", true) => {
                Some(field::Error::required(&path, "must be specified when `operator` is 'In' or 'NotIn'"))
            }
            ("Exists" | "DoesNotExist", false) => {
                let why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                Some(field::Error::forbidden(&path, why))
            }
            _ => None,
        }
    }
}

/// A selector is written in one of two ways.
fn either(raw: &str, requirements: &[Requirement], path: &field::Path) -> Vec<field::Error> {
    match (raw.is_empty(), requirements.is_empty()) {
        (false, false) => {
            let why = "may not specified at the same time as requirements";
            vec![field::Error::invalid(&path.child("rawSelector"), raw, why)]
        }
        (true, true) => {
            let why = format!("when {path} is specified, requirements or rawSelector is required");
            vec![field::Error::required(&path.child("requirements"), why)]
        }
        _ => Vec::new(),
    }
}

fn partly(all: usize, good: usize) -> Option<Ignored> {
    match good {
        good if good == all => None,
        0 => Some("ignored"),
        _ => Some("partially ignored"),
    }
}
