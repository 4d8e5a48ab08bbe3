//! The rules of a served schema.

use std::fmt;
use std::sync::{Arc, OnceLock};

use concord_cel::Budget;
use concord_meta::field::{Error, Path};
use concord_structural::{Object, Schema, unchecked_rules};

use crate::{json::Json, place::Place, walk::Walk};

/// All rules of a schema, compiled once and shared by all requests.
///
/// They are compiled when the first object is validated: they take many times the memory of their text, and a cluster
/// has many kinds that nobody writes.
///
/// ```
/// use std::sync::Arc;
/// use concord_rules::Rules;
/// use concord_structural::Schema;
/// use serde_json::json;
///
/// let schema = Arc::new(Schema::compile(&json!({
///     "type": "object",
///     "properties": {"spec": {
///         "type": "object",
///         "properties": {"replicas": {"type": "integer"}, "max": {"type": "integer"}},
///         "x-kubernetes-validations": [{"rule": "self.replicas <= self.max", "message": "too many"}],
///     }},
/// }))?);
/// let rules = Rules::compile(&schema);
/// let object = json!({"spec": {"replicas": 5, "max": 3}});
/// let errors = rules.validate(object.as_object().unwrap(), None, &[]);
/// assert_eq!(errors[0].to_string(), "spec: Invalid value: too many");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Rules {
    schema: Arc<Schema>,
    root: OnceLock<Option<Place>>,
}

/// What rules say of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// The rules that are broken, or that could not be evaluated.
    pub errors: Vec<Error>,
    /// The rules that are broken by what an update left alone: clients are warned of them.
    pub warnings: Vec<Error>,
}

impl Rules {
    /// The rules of a schema. A schema without rules costs nothing. A rule that cannot be compiled is an error of every
    /// object that has its field; definitions with such rules are refused when they are stored.
    #[must_use]
    pub fn compile(schema: &Arc<Schema>) -> Self {
        Self { schema: Arc::clone(schema), root: OnceLock::new() }
    }

    /// Whether there are no rules.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        !self.schema.has_rules()
    }

    /// Whether there is something to compile before objects are checked.
    #[must_use]
    pub fn needs_preparation(&self) -> bool {
        !self.is_empty() && self.root.get().is_none()
    }

    /// Compiles what has not been compiled yet. Who does not ask for it has the first check do it.
    pub fn prepare(&self) {
        self.compiled();
    }

    fn compiled(&self) -> Option<&Place> {
        self.root.get_or_init(|| Place::new(self.schema.root(), true)).as_ref()
    }

    /// Which rules an object breaks; `old` is the object that it replaces. `errors_so_far` is what was wrong with it
    /// without its rules: if that is too much, one error says that rules were not evaluated.
    #[must_use]
    pub fn validate(&self, object: &Object, old: Option<&Object>, errors_so_far: &[Error]) -> Vec<Error> {
        self.check(object, old, errors_so_far).errors
    }

    /// The same, with what clients are warned of.
    #[must_use]
    pub fn check(&self, object: &Object, old: Option<&Object>, errors_so_far: &[Error]) -> Findings {
        if self.is_empty() {
            return Findings::default();
        }
        if let Some(error) = unchecked_rules(errors_so_far) {
            return Findings { errors: vec![error], warnings: Vec::new() };
        }
        let mut walk = Walk::new(Budget::PER_OBJECT);
        if let Some(root) = self.compiled() {
            walk.object(self.schema.root(), root, &Path::nil(), Json::Root(object), old.map(Json::Root));
        }
        walk.finish().0
    }
}

impl fmt::Debug for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rules").field("schema", &self.schema).finish_non_exhaustive()
    }
}
