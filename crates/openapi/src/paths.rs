//! The paths of a resource.

use std::sync::Arc;

use concord_codec::MediaType;
use concord_meta::GroupVersionKind;
use concord_registry::{Backing, Form, Resource, Subresource, SubresourceKind, Verb};
use concord_schema::Schema;
use http::StatusCode;
use serde_json::{Value, json};

use crate::{
    components::{Components, subresource_schema},
    names,
    operation::{Answer, Body, Operation, PathItem},
    parameters::{DELETE, DELETE_COLLECTION, GET, GET_CUSTOM, LIST, PATCH, Parameter, WRITE, path},
};

const READ: &[StatusCode] = &[StatusCode::OK];
const WRITTEN: &[StatusCode] = &[StatusCode::OK, StatusCode::CREATED];
const CREATED: &[StatusCode] = &[StatusCode::OK, StatusCode::CREATED, StatusCode::ACCEPTED];
const DELETED: &[StatusCode] = &[StatusCode::OK, StatusCode::ACCEPTED];

/// The methods that a proxy passes on.
const PROXIED: [&str; 7] = ["delete", "get", "head", "options", "patch", "post", "put"];

/// The paths of a resource and its subresources; the types they are about are added to `components`.
pub(crate) fn of(resource: &Resource, components: &mut Components<'_>) -> Vec<PathItem> {
    let custom = matches!(resource.form(), Some(Form::Custom(_))).then(|| components.custom(resource));
    let mut describer = Describer { resource, schema: resource.schema(), custom, components };
    let mut items = vec![describer.collection(), describer.object()];
    items.extend(describer.everywhere());
    for subresource in &resource.subresources {
        items.extend(describer.subresource(subresource));
    }
    if resource.allows(Verb::Watch) && describer.custom.is_none() {
        items.extend(describer.watches());
    }
    items.retain(|item| !item.operations.is_empty());
    items
}

struct Describer<'a, 'c> {
    resource: &'a Resource,
    schema: Option<Arc<Schema>>,
    /// References to the types of a custom resource: an object and a list.
    custom: Option<(Value, Value)>,
    components: &'a mut Components<'c>,
}

impl Describer<'_, '_> {
    /// An operation on objects: `rest` is the end of its name.
    fn operation(&self, action: &'static str, rest: &str, answer: Answer) -> Operation {
        let custom = self.custom.is_some();
        let (verb, method, parameters) = match action {
            "deletecollection" if custom => ("delete", "delete", LIST),
            "get" if custom => ("read", "get", GET_CUSTOM),
            "post" => ("create", "post", WRITE),
            "put" => ("replace", "put", WRITE),
            "patch" => ("patch", "patch", PATCH),
            "delete" => ("delete", "delete", DELETE),
            "deletecollection" => ("delete", "delete", DELETE_COLLECTION),
            "list" => ("list", "get", LIST),
            "watch" | "watchlist" => ("watch", "get", LIST),
            _ => ("read", "get", GET),
        };
        Operation {
            method,
            id: format!("{verb}{}{rest}", names::infix(&self.resource.version)),
            description: self.description(action),
            action: Some((action, self.resource.kind())),
            parameters: parameters.to_vec(),
            body: None,
            takes: self.bodies(),
            answer,
        }
    }

    fn description(&self, action: &str) -> String {
        let kind = &self.resource.names.kind;
        match action {
            "post" => format!("Creates an object of kind {kind}."),
            "put" => format!("Replaces an object of kind {kind}."),
            "patch" => format!("Changes parts of an object of kind {kind}."),
            "delete" => format!("Deletes an object of kind {kind}."),
            "deletecollection" => format!("Deletes objects of kind {kind}."),
            "list" => format!("Lists objects of kind {kind}, or watches them."),
            "watch" => format!("Watches an object of kind {kind}. Deprecated: use a list with watch."),
            "watchlist" => format!("Watches objects of kind {kind}. Deprecated: use a list with watch."),
            _ => format!("Reads an object of kind {kind}."),
        }
    }

    /// The forms that bodies can have. Built-in kinds do not say them.
    fn bodies(&self) -> Vec<String> {
        if self.custom.is_some() { self.objects() } else { anything() }
    }

    /// The body that is an object.
    fn whole(&self, schema: Value) -> Body {
        Body { required: true, media_types: self.bodies(), schema }
    }

    /// A reference to the type of the resource's objects.
    fn kind(&mut self) -> Value {
        match &self.custom {
            Some((object, _)) => object.clone(),
            None => self.components.object(self.schema.as_deref()),
        }
    }

    /// The forms that objects can have.
    fn objects(&self) -> Vec<String> {
        self.resource.offer().iter().map(ToString::to_string).collect()
    }

    /// The forms that collections and their watches can have.
    fn collections(&self) -> Vec<String> {
        if self.custom.is_some() {
            return self.objects();
        }
        let offer = self.resource.offer().iter();
        let watches = offer.filter(|media_type| **media_type != MediaType::Yaml);
        self.objects().into_iter().chain(watches.map(|of| format!("{of};stream=watch"))).collect()
    }

    /// What the kind is called in the names of operations.
    fn subject(&self) -> String {
        let kind = names::camel(&self.resource.names.kind);
        if self.resource.namespaced { format!("Namespaced{kind}") } else { kind }
    }

    /// A path of the resource, below `prefix`: that of a collection, or one below it.
    fn item(&self, prefix: &str, end: &str, mut operations: Vec<Operation>) -> PathItem {
        let Resource { version, names, namespaced, .. } = self.resource;
        let scope = if *namespaced { "/namespaces/{namespace}" } else { "" };
        let path = format!("{}{prefix}{scope}/{}{end}", names::root(version), names.plural);
        operations.iter_mut().for_each(|operation| add_path_parameters(operation, &path));
        PathItem { path, operations }
    }

    fn collection(&mut self) -> PathItem {
        let subject = self.subject();
        let mut operations = Vec::new();
        if self.resource.allows(Verb::DeleteCollection) {
            let answer =
                Answer { codes: READ, media_types: self.objects(), schema: self.components.meta("Status") };
            let mut operation = self.operation("deletecollection", &format!("Collection{subject}"), answer);
            operation.body = self.custom.is_none().then(|| self.delete_options());
            operations.push(operation);
        }
        if self.resource.allows(Verb::List) {
            let answer = self.list();
            operations.push(self.operation("list", &subject, answer));
        }
        if self.resource.allows(Verb::Create) {
            let schema = self.kind();
            let answer = Answer { codes: CREATED, media_types: self.objects(), schema: schema.clone() };
            let mut operation = self.operation("post", &subject, answer);
            operation.body = Some(self.whole(schema));
            operations.push(operation);
        }
        self.item("", "", operations)
    }

    fn list(&mut self) -> Answer {
        let kind = self.resource.version.with_kind(&self.resource.names.list_kind);
        let schema = match &self.custom {
            Some((_, list)) => list.clone(),
            None => self.components.list(self.schema.as_deref(), &kind),
        };
        Answer { codes: READ, media_types: self.collections(), schema }
    }

    fn delete_options(&mut self) -> Body {
        let schema = self.components.meta("DeleteOptions");
        Body { required: false, media_types: self.bodies(), schema }
    }

    fn object(&mut self) -> PathItem {
        let subject = self.subject();
        let schema = self.kind();
        let mut operations = self.reads_and_writes(&self.resource.verbs, &subject, &schema);
        if self.resource.allows(Verb::Delete) {
            let returned = match &self.resource.backing {
                Backing::Stored(storage) => storage.strategy.return_deleted_object(),
                Backing::Virtual(_) => false,
            };
            let schema = if returned { schema } else { self.components.meta("Status") };
            let answer = Answer { codes: DELETED, media_types: self.objects(), schema };
            let mut operation = self.operation("delete", &subject, answer);
            operation.body = Some(self.delete_options());
            operations.push(operation);
        }
        self.item("", "/{name}", operations)
    }

    /// What can be done to an object, or to a part of one, except to create or delete it.
    fn reads_and_writes(&mut self, verbs: &[Verb], subject: &str, schema: &Value) -> Vec<Operation> {
        let forms = self.objects();
        let answer = |codes| Answer { codes, media_types: forms.clone(), schema: schema.clone() };
        let mut operations = Vec::new();
        if verbs.contains(&Verb::Get) {
            operations.push(self.operation("get", subject, answer(READ)));
        }
        if verbs.contains(&Verb::Patch) {
            let media_types =
                self.resource.patch_types().iter().map(|patch| patch.as_str().to_owned()).collect();
            let schema = self.components.meta("Patch");
            let codes = if self.custom.is_some() { READ } else { WRITTEN };
            let mut operation = self.operation("patch", subject, answer(codes));
            operation.body = Some(Body { required: true, media_types, schema });
            operations.push(operation);
        }
        if verbs.contains(&Verb::Update) {
            let mut operation = self.operation("put", subject, answer(WRITTEN));
            operation.body = Some(self.whole(schema.clone()));
            operations.push(operation);
        }
        operations
    }

    /// The collection of all namespaces.
    fn everywhere(&mut self) -> Option<PathItem> {
        if !self.resource.namespaced || !self.resource.allows(Verb::List) {
            return None;
        }
        let answer = self.list();
        let rest = format!("{}ForAllNamespaces", names::camel(&self.resource.names.kind));
        let operation = self.operation("list", &rest, answer);
        let path = format!("{}/{}", names::root(&self.resource.version), self.resource.names.plural);
        Some(PathItem { path, operations: vec![operation] })
    }

    /// The paths that watch without being asked to, which are deprecated.
    fn watches(&mut self) -> Vec<PathItem> {
        let subject = self.subject();
        let event = self.components.meta("WatchEvent");
        let forms = self.collections();
        let answer = || Answer { codes: READ, media_types: forms.clone(), schema: event.clone() };
        let list = self.operation("watchlist", &format!("{subject}List"), answer());
        let one = self.operation("watch", &subject, answer());
        let mut items = vec![self.item("/watch", "", vec![list]), self.item("/watch", "/{name}", vec![one])];
        if self.resource.namespaced {
            let rest = format!("{}ListForAllNamespaces", names::camel(&self.resource.names.kind));
            let operations = vec![self.operation("watchlist", &rest, answer())];
            let Resource { version, names, .. } = self.resource;
            items.push(PathItem {
                path: format!("{}/watch/{}", names::root(version), names.plural),
                operations,
            });
        }
        items
    }

    fn subresource(&mut self, subresource: &Subresource) -> Vec<PathItem> {
        let subject = self.subject() + &names::camel(&subresource.name);
        let end = format!("/{{name}}/{}", subresource.name);
        if let SubresourceKind::Unreachable(_) = subresource.behaviour {
            return self.connection(subresource, &subject, &end);
        }
        let schema = match subresource_schema(&subresource.behaviour) {
            Some(own) => self.components.object(Some(&own)),
            None => self.kind(),
        };
        let mut operations = self.reads_and_writes(&subresource.verbs, &subject, &schema);
        if subresource.verbs.contains(&Verb::Create) {
            let answer = Answer { codes: CREATED, media_types: self.objects(), schema: schema.clone() };
            let mut operation = self.operation("post", &subject, answer);
            operation.body = Some(self.whole(schema));
            operations.push(operation);
        }
        if self.custom.is_none() {
            concern(&mut operations, &subresource.kind);
        }
        vec![self.item("", &end, operations)]
    }

    /// A subresource that is no object: a text to read, or something to connect to.
    fn connection(&mut self, subresource: &Subresource, subject: &str, end: &str) -> Vec<PathItem> {
        let text = json!({"type": "string"});
        if subresource.kind == self.resource.kind() {
            let mut media_types = self.objects();
            media_types.push("text/plain".to_owned());
            let answer = Answer { codes: READ, media_types, schema: text };
            return vec![self.item("", end, vec![self.operation("get", subject, answer)])];
        }
        let proxy = subresource.name == "proxy";
        let methods = if proxy { &PROXIED[..] } else { &["get", "post"] };
        let connect = |rest: &str| {
            let operation = |method: &&'static str| Operation {
                method,
                id: format!("connect{}{}{rest}", names::infix(&self.resource.version), names::camel(method)),
                description: format!("Connects to {} of a {}.", subresource.name, self.resource.names.kind),
                action: Some(("connect", subresource.kind.clone())),
                parameters: Vec::new(),
                body: None,
                takes: anything(),
                answer: Answer { codes: READ, media_types: anything(), schema: text.clone() },
            };
            methods.iter().map(operation).collect()
        };
        let mut items = vec![self.item("", end, connect(subject))];
        if proxy {
            let operations = connect(&format!("{subject}WithPath"));
            items.push(self.item("", &format!("{end}/{{path}}"), operations));
        }
        items
    }
}

fn concern(operations: &mut [Operation], kind: &GroupVersionKind) {
    for operation in operations {
        if let Some((_, of)) = &mut operation.action {
            of.clone_from(kind);
        }
    }
}

fn anything() -> Vec<String> {
    vec!["*/*".to_owned()]
}

fn add_path_parameters(operation: &mut Operation, of: &str) {
    const PARAMETERS: [(&str, Parameter); 3] = [
        ("{namespace}", path("namespace", "The namespace of the object.")),
        ("{name}", path("name", "The name of the object.")),
        ("{path}", path("path", "What the request to the object's own server asks for.")),
    ];
    let present = PARAMETERS.into_iter().filter(|(word, _)| of.contains(word));
    operation.parameters.extend(present.map(|(_, parameter)| parameter));
}
