//! ConversionReviews: what a conversion webhook is asked, and what it may answer.

use concord_codec::{Options, decode};
use concord_meta::{
    GroupVersion, field, go,
    names::NameRule,
    objectmeta::{self, Scope},
};
use concord_registry::{Object, metadata, metadata_mut};
use serde_json::{Value, json};

/// The versions of ConversionReview that can be spoken.
const KNOWN: [&str; 2] = ["v1", "v1beta1"];

/// A ConversionReview that is sent.
pub(crate) struct Review<'a> {
    /// One of those that are known.
    pub(crate) version: &'static str,
    pub(crate) uid: &'a str,
    pub(crate) objects: &'a [Object],
    pub(crate) to: &'a GroupVersion,
}

/// The first of the versions that a webhook understands and this server does too.
pub(crate) fn version(understood: &[String]) -> Result<&'static str, String> {
    let known = understood.iter().find_map(|version| KNOWN.into_iter().find(|known| known == version));
    known.ok_or_else(|| "no supported conversion review versions".to_owned())
}

impl Review<'_> {
    pub(crate) fn body(&self) -> Value {
        let response = json!({"uid": "", "convertedObjects": null, "result": {"metadata": {}}});
        json!({
            "kind": "ConversionReview",
            "apiVersion": format!("apiextensions.k8s.io/{}", self.version),
            "request": {"uid": self.uid, "desiredAPIVersion": self.to.to_string(), "objects": self.objects},
            "response": response,
        })
    }

    /// The converted objects that an answer has.
    ///
    /// # Errors
    ///
    /// Upstream's text about what is wrong with it, to follow `conversion webhook for <kind> `.
    pub(crate) fn read(&self, answer: &[u8]) -> Result<Vec<Object>, String> {
        let failed = |why: String| format!("failed: {why}");
        let converted = self.converted(answer).map_err(failed)?;
        if converted.len() != self.objects.len() {
            return Err(format!("returned {} objects, expected {}", converted.len(), self.objects.len()));
        }
        let one = self.objects.len() == 1;
        let checked =
            converted.into_iter().zip(self.objects).enumerate().map(|(index, (converted, original))| {
                self.check(converted, original).map_err(|problem| problem.text(index, one))
            });
        checked.collect()
    }

    fn converted(&self, answer: &[u8]) -> Result<Vec<Value>, String> {
        let mut options = Options::default();
        options.limits.max_bytes = usize::MAX;
        let review = decode(answer, &options).map_err(|error| error.to_string())?.object;
        if self.version == "v1" {
            let (api_version, kind) = (text(&review, "apiVersion"), text(&review, "kind"));
            if (api_version, kind) != ("apiextensions.k8s.io/v1", "ConversionReview") {
                let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
                return Err(format!(
                    "expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got \
                     {group}/{version}, Kind={kind}"
                ));
            }
        }
        let Some(response) = review.get("response").and_then(Value::as_object) else {
            return Err("no response provided".to_owned());
        };
        let uid = text(response, "uid");
        if self.version == "v1" && uid != self.uid {
            return Err(format!("expected response.uid={}, got {}", go::quote(self.uid), go::quote(uid)));
        }
        let result = response.get("result").and_then(Value::as_object);
        match result.map_or("", |result| text(result, "status")) {
            "Success" => {}
            status => {
                let message = result.map_or("", |result| text(result, "message"));
                return Err(match message {
                    "" => format!("response.result.status was '{status}', not 'Success'"),
                    message => message.to_owned(),
                });
            }
        }
        Ok(response.get("convertedObjects").and_then(Value::as_array).cloned().unwrap_or_default())
    }

    fn check(&self, converted: Value, original: &Object) -> Result<Object, Problem> {
        let Value::Object(mut converted) = converted else {
            return Err(Problem::Object("it is not an object".to_owned()));
        };
        let (api_version, to) = (text(&converted, "apiVersion"), self.to.to_string());
        if api_version != to {
            let why = format!("invalid groupVersion (expected {to}, received {api_version})");
            return Err(Problem::Type(why));
        }
        let (kind, expected) = (text(&converted, "kind"), text(original, "kind"));
        if kind != expected {
            return Err(Problem::Type(format!("invalid kind (expected {expected}, received {kind})")));
        }
        let (is, was) = (metadata(&converted), metadata(original));
        for (name, is, was) in [
            ("name", is.name(), was.name()),
            ("namespace", is.namespace(), was.namespace()),
            ("UID", is.uid(), was.uid()),
        ] {
            if is != was {
                return Err(Problem::Object(format!("must have the same {name}: {was} != {is}")));
            }
        }
        restore_metadata(&mut converted, original).map_err(Problem::Metadata)?;
        Ok(converted)
    }
}

/// What is wrong with one of the objects.
enum Problem {
    Type(String),
    Object(String),
    Metadata(String),
}

impl Problem {
    fn text(self, index: usize, one: bool) -> String {
        match (self, one) {
            (Self::Type(why), true) => format!("returned invalid object at index 0: {why}"),
            (Self::Object(why), true) => format!("returned invalid object: {why}"),
            (Self::Metadata(why), true) => format!("returned invalid metadata: {why}"),
            (Self::Type(why) | Self::Object(why), false) => {
                format!("returned invalid converted object at index {index}: {why}")
            }
            (Self::Metadata(why), false) => {
                format!("returned invalid metadata in object at index {index}: {why}")
            }
        }
    }
}

fn text<'a>(object: &'a Object, name: &str) -> &'a str {
    object.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// A conversion may change labels and annotations, and nothing else of the metadata.
fn restore_metadata(converted: &mut Object, original: &Object) -> Result<(), String> {
    let given = match converted.get("metadata") {
        None => return Err("missing metadata in converted object".to_owned()),
        Some(Value::Object(given)) => given.clone(),
        Some(other) => {
            return Err(format!("invalid metadata of type {} in converted object", type_name(other)));
        }
    };
    let before = original.get("metadata").cloned().unwrap_or_else(|| json!({}));
    converted.insert("metadata".to_owned(), before);
    let restored = metadata_mut(converted);
    for name in ["labels", "annotations"] {
        let now = match given.get(name) {
            None | Some(Value::Null) => {
                restored.remove(name);
                continue;
            }
            Some(Value::Object(now)) => now,
            Some(other) => {
                return Err(format!(
                    "invalid metadata.{name} of type {} in converted object",
                    type_name(other)
                ));
            }
        };
        if let Some((key, value)) = now.iter().find(|(_, value)| !value.is_string()) {
            let found = type_name(value);
            return Err(format!(
                "metadata.{name}[{key}] must be a string, but is {found} in converted object"
            ));
        }
        if restored.get(name).and_then(Value::as_object) != Some(now) {
            check_changed(name, now)?;
        }
        restored.insert(name.to_owned(), Value::Object(now.clone()));
    }
    Ok(())
}

fn check_changed(name: &str, members: &Object) -> Result<(), String> {
    let subject = Object::from_iter([
        ("name".to_owned(), Value::from("a")),
        (name.to_owned(), Value::Object(members.clone())),
    ]);
    let path = field::Path::new("metadata");
    let errors = objectmeta::validate_create(&subject, Scope::Cluster, NameRule::PathSegment, &path);
    if errors.is_empty() { Ok(()) } else { Err(field::aggregate(&errors)) }
}

/// What Go calls the type of a value.
fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

#[cfg(test)]
mod tests;
