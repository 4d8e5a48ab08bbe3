use concord_registry::{Context, Object, metadata, metadata_mut};
use serde_json::Value;

use super::{Hooks, image_volumes::TEMPLATES, member};

pub(super) const HOOKS: Hooks =
    Hooks { create: Some(create), deletion_warning: Some(PODS_STAY), ..TEMPLATES };

const PODS_STAY: &str = "child pods are preserved by default when jobs are deleted; set \
                         propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress \
                         this warning";

/// The labels by which a Job finds its pods: by its name and by its identity, each under its old and its new name.
const BY_NAME: [&str; 2] = ["job-name", "batch.kubernetes.io/job-name"];
const BY_UID: [&str; 2] = ["controller-uid", "batch.kubernetes.io/controller-uid"];

/// Makes the selector, unless the client took that over. Labels that are there already stay: validation refuses wrong ones.
fn create(_: &Context, object: &mut Object) {
    let (name, uid) = (metadata(object).name().to_owned(), metadata(object).uid().to_owned());
    let spec = member(object, "spec");
    if spec.get("manualSelector").and_then(Value::as_bool) == Some(true) {
        return;
    }
    let labels = member(member(member(spec, "template"), "metadata"), "labels");
    for (label, value) in
        BY_NAME.iter().map(|label| (label, &name)).chain(BY_UID.iter().map(|label| (label, &uid)))
    {
        labels.entry(*label).or_insert_with(|| value.as_str().into());
    }
    let labels = labels.clone();
    let selector = member(member(spec, "selector"), "matchLabels");
    selector.entry(BY_UID[1]).or_insert_with(|| uid.as_str().into());
    label(object, labels);
}

/// A Job without any labels has those of its pods, also the ones that were just made.
fn label(object: &mut Object, labels: Object) {
    if metadata(object).labels().is_none_or(Object::is_empty) {
        metadata_mut(object).insert("labels".to_owned(), Value::Object(labels));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_job_has_the_labels_of_its_pods_unless_it_has_others() {
        let of_pods = json!({"job-name": "a"}).as_object().expect("an object").clone();
        for (metadata, expected) in [
            (json!({}), json!({"job-name": "a"})),
            (json!({"labels": {}}), json!({"job-name": "a"})),
            (json!({"labels": {"b": "c"}}), json!({"b": "c"})),
        ] {
            let mut job = Object::from_iter([("metadata".to_owned(), metadata)]);
            label(&mut job, of_pods.clone());
            assert_eq!(job["metadata"]["labels"], expected);
        }
    }
}
