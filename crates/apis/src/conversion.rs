use std::sync::Arc;

use concord_meta::GroupVersion;
use concord_registry::{ConversionError, Converter, Object, Renaming};

/// How the versions of a kind become one another.
pub(crate) fn converter(group: &str, plural: &str) -> Arc<dyn Converter> {
    match (group, plural) {
        ("autoscaling", "horizontalpodautoscalers")
        | ("" | "events.k8s.io", "events")
        | ("resource.k8s.io", _) => Arc::new(OneVersion),
        _ => Arc::new(Renaming),
    }
}

/// For kinds whose versions differ in more than their name. Rather no answer than a wrong one.
struct OneVersion;

impl Converter for OneVersion {
    fn convert(&self, object: &mut Object, to: &GroupVersion) -> Result<(), ConversionError> {
        let text = |name: &str| object.get(name).and_then(|value| value.as_str()).unwrap_or_default();
        Err(ConversionError(format!(
            "a {} of version {} cannot be converted to {to}",
            text("kind"),
            text("apiVersion")
        )))
    }
}
