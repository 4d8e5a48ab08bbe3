use concord_registry::{Context, Object, metadata};

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
    if spec.get("manualSelector").and_then(serde_json::Value::as_bool) == Some(true) {
        return;
    }
    let labels = member(member(member(spec, "template"), "metadata"), "labels");
    for (label, value) in
        BY_NAME.iter().map(|label| (label, &name)).chain(BY_UID.iter().map(|label| (label, &uid)))
    {
        labels.entry(*label).or_insert_with(|| value.as_str().into());
    }
    let selector = member(member(spec, "selector"), "matchLabels");
    selector.entry(BY_UID[1]).or_insert_with(|| uid.as_str().into());
}
