//! Label selectors as they stand in objects.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{Operator, Requirement, Selector, SelectorError};
use crate::field::{self, BadValue, Path};
use crate::{go, names};

/// The `LabelSelector` of a workload, a webhook or a policy.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct LabelSelector {
    /// Labels that must have exactly these values.
    pub match_labels: BTreeMap<String, String>,
    /// Further requirements.
    pub match_expressions: Vec<LabelSelectorRequirement>,
}

/// One of `matchExpressions`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct LabelSelectorRequirement {
    /// The label.
    pub key: String,
    /// `In`, `NotIn`, `Exists` or `DoesNotExist`.
    pub operator: String,
    /// The values, for `In` and `NotIn`.
    pub values: Vec<String>,
}

impl LabelSelectorRequirement {
    fn operator(&self) -> Option<Operator> {
        match self.operator.as_str() {
            "In" => Some(Operator::In),
            "NotIn" => Some(Operator::NotIn),
            "Exists" => Some(Operator::Exists),
            "DoesNotExist" => Some(Operator::DoesNotExist),
            _ => None,
        }
    }

    fn validate(&self, path: &Path) -> Vec<field::Error> {
        let mut errors = Vec::new();
        let values = path.child("values");
        match (self.operator(), self.values.len()) {
            (Some(Operator::In | Operator::NotIn), 0) => {
                errors.push(field::Error::required(
                    &values,
                    "must be specified when `operator` is 'In' or 'NotIn'",
                ));
            }
            (Some(Operator::Exists | Operator::DoesNotExist), 1..) => {
                let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                errors.push(field::Error::forbidden(&values, detail));
            }
            (Some(_), _) => {}
            (None, _) => {
                let operator = BadValue::named(&self.operator);
                let path = path.child("operator");
                errors.push(field::Error::invalid(&path, operator, "not a valid selector operator"));
            }
        }
        let key = path.child("key");
        let problems = names::qualified_name(&self.key).into_iter();
        errors.extend(problems.map(|problem| field::Error::invalid(&key, &self.key, problem)));
        for (at, value) in self.values.iter().enumerate() {
            let problems = names::label_value(value).into_iter();
            errors.extend(problems.map(|problem| field::Error::invalid(&values.index(at), value, problem)));
        }
        errors
    }
}

impl LabelSelector {
    /// What is wrong with the selector that stands at `path`.
    #[must_use]
    pub fn validate(&self, path: &Path) -> Vec<field::Error> {
        let mut errors = crate::objectmeta::validate_label_map(
            self.match_labels.iter().map(|(key, value)| (key.as_str(), value.as_str())),
            &path.child("matchLabels"),
        );
        for (at, requirement) in self.match_expressions.iter().enumerate() {
            errors.extend(requirement.validate(&path.child("matchExpressions").index(at)));
        }
        errors
    }

    /// The selector as requirements. An empty one selects everything; where an absent one stands,
    /// upstream selects nothing ([`Selector::nothing`]).
    ///
    /// # Errors
    ///
    /// When a requirement is not valid; the error is upstream's text.
    pub fn to_selector(&self) -> Result<Selector, SelectorError> {
        let labels = self.match_labels.iter();
        let labels = labels.map(|(key, value)| Requirement::new(key, Operator::Equals, vec![value.clone()]));
        let expressions = self.match_expressions.iter().map(|requirement| {
            let Some(operator) = requirement.operator() else {
                let operator = go::quote(&requirement.operator);
                return Err(SelectorError(format!("{operator} is not a valid label selector operator")));
            };
            Requirement::new(&requirement.key, operator, requirement.values.clone())
                .map_err(|errors| aggregate(&errors))
        });
        labels
            .map(|requirement| requirement.map_err(|errors| aggregate(&errors)))
            .chain(expressions)
            .collect()
    }
}

fn aggregate(errors: &[field::Error]) -> SelectorError {
    SelectorError(field::aggregate(errors))
}
