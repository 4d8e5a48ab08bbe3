use std::collections::BTreeMap;

use concord_merge::{
    apply::{ConvertError, FieldManager, Managed, ResetFields, ScalePaths, Versions},
    fields::Path,
};
use concord_meta::{
    GroupKind, GroupResource, GroupVersionKind, Status, field, labels::LabelSelector, options::ReadAt,
};
use concord_schema::{Place, Schema};
use serde_json::{Value, json};

use super::{
    PatchRequest,
    change::{Change, bad_patch, text},
    create::stored,
    patch,
    size::Size,
    update::Edit,
};
use crate::{
    Attributes, Context, Form, Object, ObjectName, Part, Registry, Resource, Scaling, Storage, metadata,
    metadata_mut, remote::Conversions,
};

/// The API version and the kind of what `scale` shows.
fn scale_kind() -> GroupVersionKind {
    GroupVersionKind::new("autoscaling", "v1", "Scale")
}

/// The schema of a Scale, which has one version.
#[derive(Clone)]
struct ScaleVersions<'a>(&'a Schema);

impl Versions for ScaleVersions<'_> {
    type Type = Place;

    fn type_of(&self, api_version: &str) -> Option<Place> {
        (api_version == "autoscaling/v1").then(|| self.0.place().clone())
    }

    fn convert(&self, object: &Value, api_version: &str) -> Result<Value, ConvertError> {
        match api_version {
            "autoscaling/v1" => Ok(object.clone()),
            _ => Err(ConvertError::MissingVersion),
        }
    }

    fn empty(&self) -> Value {
        self.0.empty("Scale", "autoscaling/v1")
    }
}

/// What a write to `scale` is made of.
struct ScaleEdit<'a> {
    context: &'a Context,
    resource: &'a Resource,
    scaling: &'a Scaling,
    storage: &'a Storage,
    name: ObjectName<'a>,
}

impl Registry {
    /// How many replicas an object wants and has.
    ///
    /// # Errors
    ///
    /// As [`Registry::get`], and 500 if a custom resource does not say how many it wants: others have a default.
    pub async fn get_scale(
        &self,
        resource: &Resource,
        scaling: &Scaling,
        name: ObjectName<'_>,
        read_at: ReadAt,
    ) -> Result<Object, Status> {
        let item = resource.translate(self.get(stored(resource)?, name, read_at).await?).await?;
        let object = resource.object(&item)?;
        if resource.schema().is_none() {
            must_have_replicas(&object, &scaling.spec_replicas)?;
        }
        Ok(show(&object, scaling))
    }

    /// Changes how many replicas an object wants to what a Scale says.
    ///
    /// # Errors
    ///
    /// As [`Registry::update`].
    pub async fn update_scale(
        &self,
        context: &Context,
        resource: &Resource,
        scaling: &Scaling,
        name: ObjectName<'_>,
        scale: Object,
    ) -> Result<Object, Status> {
        let edit = ScaleEdit { context, resource, scaling, storage: stored(resource)?, name };
        self.write_scale(&edit, &Change::Replace(Value::Object(scale))).await
    }

    /// Changes how many replicas an object wants by a patch of its Scale.
    ///
    /// # Errors
    ///
    /// As [`Registry::patch`].
    pub async fn patch_scale(
        &self,
        context: &Context,
        resource: &Resource,
        scaling: &Scaling,
        request: PatchRequest<'_>,
    ) -> Result<Object, Status> {
        let edit = ScaleEdit { context, resource, scaling, storage: stored(resource)?, name: request.name };
        let change = patch::read(&request, context)?;
        self.write_scale(&edit, &change).await
    }

    async fn write_scale(&self, scale: &ScaleEdit<'_>, change: &Change<'_>) -> Result<Object, Status> {
        let set = |live: Option<&Value>| scale.set(live, change);
        let ScaleEdit { context, resource, scaling, storage, name } = *scale;
        let (part, change) = (Part::Main, Change::Set(&set));
        let (on, conversions) = (Some(scaling), Conversions::default());
        let edit = Edit {
            context,
            resource,
            storage,
            name,
            part,
            change,
            scaling: on,
            conversions,
            size: Size::default(),
        };
        let written = self.edit(&edit).await?;
        let item = resource.translate(written.item).await?;
        Ok(show(&resource.object(&item)?, scaling))
    }

    /// Asks admission about a change of an object by its Scale: it is shown the Scale, and may change its replicas.
    pub(super) async fn admit_scale(
        &self,
        attributes: &Attributes<'_>,
        scaling: &Scaling,
        new: &mut Object,
    ) -> Result<Scales, Status> {
        let mut scales =
            Scales { old: attributes.old.map(|old| show(old, scaling)), new: show(new, scaling) };
        let attributes = Attributes { subresource: "scale", old: scales.old.as_ref(), ..*attributes };
        self.admit(&attributes, &mut scales.new).await?;
        put(new, &scaling.spec_replicas, replicas(&scales.new).into());
        Ok(scales)
    }

    /// Asks admission about the Scale that it let pass before.
    pub(super) async fn validate_scale(
        &self,
        attributes: &Attributes<'_>,
        scales: &Scales,
    ) -> Result<(), Status> {
        let attributes = Attributes { subresource: "scale", old: scales.old.as_ref(), ..*attributes };
        self.validate_admission(&attributes, Some(&scales.new)).await
    }
}

/// The Scales of an object before and after a change.
pub(super) struct Scales {
    old: Option<Object>,
    new: Object,
}

impl ScaleEdit<'_> {
    /// The object with the replicas that the changed Scale asks for.
    fn set(&self, live: Option<&Value>, change: &Change<'_>) -> Result<Value, Status> {
        let not_found = || Status::not_found(&self.storage.resource, self.name.name);
        let parent = live.and_then(Value::as_object).ok_or_else(not_found)?;
        let paths = self.paths();
        let owners = Managed::decode(metadata(parent).get("managedFields").unwrap_or(&Value::Null))
            .unwrap_or_default();
        let mut old = show(parent, self.scaling);
        set_managed(&mut old, paths.to_subresource(&owners).encode());
        let new = self.changed(&Value::Object(old), change)?;
        self.check(&new, parent)?;
        let wrote =
            Managed::decode(metadata(&new).get("managedFields").unwrap_or(&Value::Null)).unwrap_or_default();
        let mut object = parent.clone();
        set_managed(&mut object, paths.to_parent(&owners, wrote).encode());
        let version = metadata(&new).resource_version();
        metadata_mut(&mut object).insert("resourceVersion".to_owned(), version.into());
        put(&mut object, &self.scaling.spec_replicas, replicas(&new).into());
        Ok(Value::Object(object))
    }

    fn changed(&self, old: &Value, change: &Change<'_>) -> Result<Object, Status> {
        let manager = FieldManager {
            kind: scale_kind(),
            subresource: "scale".to_owned(),
            versions: ScaleVersions(&self.scaling.schema),
            reset_fields: ResetFields::none(),
        };
        let new = change.make_with(&manager, self.context, old)?;
        let Value::Object(mut new) = new else { return Err(Status::unprocessable_patch()) };
        // What an update sends was read before; if this is no Scale, a patch made it.
        let before = text(&new);
        let fits = self.scaling.schema.normalize(&mut new);
        fits.map_err(|error| bad_patch(&before, &error.to_string()))?;
        super::decode::finish(&mut new, &self.scaling.schema.clone().into(), &scale_kind())?;
        Ok(new)
    }

    fn check(&self, scale: &Object, parent: &Object) -> Result<(), Status> {
        let wanted = replicas(scale);
        // Of a custom resource its own validation says what is wrong.
        let is_custom = matches!(self.resource.form(), Some(Form::Custom(_)));
        if wanted < 0 && !is_custom {
            let path = field::Path::new("spec").child("replicas");
            let error = field::Error::invalid(&path, wanted, "must be greater than or equal to 0");
            return Err(Status::invalid(&GroupKind::new("autoscaling", "Scale"), self.name.name, &[error]));
        }
        let (required, actual) = (metadata(scale).uid(), metadata(parent).uid());
        if !required.is_empty() && required != actual {
            let resource = &self.storage.resource;
            let resource = GroupResource::new(resource.group.clone(), format!("{}/scale", resource.resource));
            let why =
                format!("Precondition failed: UID in precondition: {required}, UID in object meta: {actual}");
            return Err(Status::conflict(&resource, self.name.name, why));
        }
        Ok(())
    }

    fn paths(&self) -> ScalePaths {
        let path = Path::of_fields(self.scaling.spec_replicas.iter().map(String::as_str));
        let versions = self.storage.forms.keys();
        let paths: BTreeMap<_, _> = versions.map(|version| (version.clone(), Some(path.clone()))).collect();
        ScalePaths { api_version: self.resource.version.to_string(), paths }
    }
}

fn set_managed(object: &mut Object, entries: Option<Value>) {
    crate::object::set(metadata_mut(object), "managedFields", entries);
}

fn replicas(scale: &Object) -> i64 {
    scale.get("spec").and_then(|spec| spec.get("replicas")).and_then(Value::as_i64).unwrap_or_default()
}

fn find<'a>(object: &'a Object, path: &[String]) -> Option<&'a Value> {
    let (first, rest) = path.split_first()?;
    rest.iter().try_fold(object.get(first)?, |value, name| value.get(name))
}

fn must_have_replicas(object: &Object, path: &[String]) -> Result<(), Status> {
    if find(object, path).is_some_and(|replicas| !replicas.is_null()) {
        return Ok(());
    }
    let path = concord_meta::go::quote(&format!(".{}", path.join(".")));
    Err(Status::internal_error(format!("the spec replicas field {path} does not exist")))
}

/// Puts a value at a path, making the objects on the way.
fn put(object: &mut Object, path: &[String], value: Value) {
    match path {
        [] => {}
        [last] => drop(object.insert(last.clone(), value)),
        [first, rest @ ..] => {
            let inner = object.entry(first.as_str()).or_insert_with(|| json!({}));
            if let Some(inner) = inner.as_object_mut() {
                put(inner, rest, value);
            }
        }
    }
}

/// The Scale of an object.
fn show(object: &Object, scaling: &Scaling) -> Object {
    let is = metadata(object);
    let kept = ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"];
    let shown = kept.iter().filter_map(|name| Some(((*name).to_owned(), is.get(name)?.clone())));
    let number = |path: &[String]| find(object, path).and_then(Value::as_i64).unwrap_or_default();
    let mut spec = Object::new();
    if number(&scaling.spec_replicas) != 0 {
        spec.insert("replicas".to_owned(), number(&scaling.spec_replicas).into());
    }
    let mut status = Object::from_iter([("replicas".to_owned(), number(&scaling.status_replicas).into())]);
    let selector = scaling.selector.as_ref().and_then(|path| find(object, path)).map(selector_text);
    if let Some(selector) = selector.filter(|selector| !selector.is_empty()) {
        status.insert("selector".to_owned(), selector.into());
    }
    Object::from_iter([
        ("kind".to_owned(), "Scale".into()),
        ("apiVersion".to_owned(), "autoscaling/v1".into()),
        ("metadata".to_owned(), Value::Object(shown.collect())),
        ("spec".to_owned(), Value::Object(spec)),
        ("status".to_owned(), Value::Object(status)),
    ])
}

/// A selector as text: it is one already, a label selector, or a plain map of labels.
fn selector_text(selector: &Value) -> String {
    use serde::Deserialize as _;
    let Value::Object(members) = selector else {
        return selector.as_str().unwrap_or_default().to_owned();
    };
    let structured = members.contains_key("matchLabels") || members.contains_key("matchExpressions");
    let selector = match structured {
        true => LabelSelector::deserialize(selector).unwrap_or_default(),
        false => LabelSelector::deserialize(json!({ "matchLabels": selector })).unwrap_or_default(),
    };
    selector.to_selector().map(|selector| selector.to_string()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_wants_no_number_has_no_scale_to_show() {
        let path = ["spec", "replicas"].map(ToOwned::to_owned);
        let has = |object: Value| must_have_replicas(object.as_object().expect("an object"), &path);
        assert!(has(json!({"spec": {"replicas": 0}})).is_ok());
        for object in [json!({}), json!({"spec": {}}), json!({"spec": {"replicas": null}})] {
            let refused = has(object).expect_err("no number");
            let text = "Internal error occurred: the spec replicas field \".spec.replicas\" does not exist";
            assert_eq!((refused.code, refused.message.as_str()), (500, text));
        }
    }
}
