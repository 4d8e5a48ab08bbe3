use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use concord_codec::{JSON_AND_YAML, JSON_YAML_AND_PROTOBUF, ListOrder, Offer, PatchType};
use concord_meta::{GroupResource, GroupVersion, GroupVersionKind, Status, is_confidential};
use concord_protobuf::Codec;
use concord_schema::Schema;

use crate::{
    Audience, Context, Form, Object, ObjectName, Registry, Storage, encode, frames::Frames,
    unchanged::Unchanged,
};

/// What the names around a resource are, as discovery lists them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResourceNames {
    /// The resource, in the plural, as it stands in URLs.
    pub plural: String,
    /// One of them.
    pub singular: String,
    /// The kind of an object.
    pub kind: String,
    /// The kind of a list of them.
    pub list_kind: String,
    /// What kubectl takes for the plural too.
    pub short_names: Vec<String>,
    /// The groups of resources it is part of, such as `all`.
    pub categories: Vec<String>,
}

/// What can be done to a resource. The order is that of their names, as discovery lists them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verb {
    /// POST to a collection, or to a subresource.
    Create,
    /// DELETE of an object.
    Delete,
    /// DELETE of a collection.
    DeleteCollection,
    /// GET of an object.
    Get,
    /// GET of a collection.
    List,
    /// PATCH.
    Patch,
    /// PUT.
    Update,
    /// GET of a collection with `watch`.
    Watch,
}

impl Verb {
    /// Every verb.
    pub const ALL: [Self; 8] = [
        Self::Create,
        Self::Delete,
        Self::DeleteCollection,
        Self::Get,
        Self::List,
        Self::Patch,
        Self::Update,
        Self::Watch,
    ];

    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
            Self::Get => "get",
            Self::List => "list",
            Self::Patch => "patch",
            Self::Update => "update",
            Self::Watch => "watch",
        }
    }

    /// The verb of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|verb| verb.as_str() == name)
    }
}

/// The resources that are served at the moment.
pub trait Resources: Send + Sync + 'static {
    /// The resource of that plural in a group and version.
    fn find(&self, version: &GroupVersion, plural: &str) -> Option<Arc<Resource>>;

    /// All of them, in the order of discovery.
    fn all(&self) -> Vec<Arc<Resource>>;

    /// Whether these are all that anybody can have read of: what is defined in the log is served a moment later. Asked
    /// after a state was taken, the answer is about that state.
    fn is_current(&self) -> bool {
        true
    }
}

/// Finds what reads and writes objects of a kind in protobuf.
pub type Protobuf = fn(&GroupVersionKind) -> Option<Codec>;

/// A resource in one of its versions, as it is served.
pub struct Resource {
    /// Group and version.
    pub version: GroupVersion,
    /// What it is called.
    pub names: ResourceNames,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// What can be done, sorted.
    pub verbs: Vec<Verb>,
    /// Where the objects are.
    pub backing: Backing,
    /// The subresources, in the order of discovery.
    pub subresources: Vec<Subresource>,
    /// The order of fields in lists, and whether bodies must say what they are: built-in kinds have it typed.
    pub order: ListOrder,
    /// Whether the version is deprecated.
    pub deprecation: Option<Deprecation>,
    /// The hash of the storage version that discovery shows; empty for what is not stored.
    pub storage_version_hash: String,
    /// How objects are read and written in protobuf, and all else that requests for them have in their bodies; custom
    /// resources are not.
    pub protobuf: Option<Protobuf>,
    /// The frames of recent watch events.
    pub frames: Frames,
    /// Those who watch it, and itself.
    pub audience: Audience,
    prefix: Bytes,
    /// The old objects of it that are as they would be written now.
    pub(crate) unchanged: Unchanged,
}

/// A version that clients should no longer use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deprecation {
    /// What clients are told in every answer.
    pub warning: String,
    /// The release that will not serve it, such as `1.40`; empty if that is not known.
    pub removed_release: String,
}

/// Where the objects of a resource come from.
pub enum Backing {
    /// The log.
    Stored(Arc<Storage>),
    /// Nowhere: the answer is made up on the spot, as for reviews.
    Virtual(Arc<dyn Virtual>),
}

/// A resource or subresource that stores nothing under its own name.
#[async_trait]
pub trait Virtual: Send + Sync + 'static {
    /// The fields of the body it takes.
    fn schema(&self) -> Arc<Schema>;

    /// Answers a create. The body has been decoded and normalised.
    async fn create(&self, invocation: Invocation<'_>, body: Object) -> Result<Object, Status>;

    /// Answers a get. There is nothing to read, unless somebody says so.
    async fn get(&self, resource: &Resource, _name: &str) -> Result<Object, Status> {
        Err(Status::method_not_supported(&resource.group_resource(), "get"))
    }

    /// Answers a list: all objects, with their kind and version.
    async fn list(&self, resource: &Resource) -> Result<Vec<Object>, Status> {
        Err(Status::method_not_supported(&resource.group_resource(), "list"))
    }
}

/// What a [`Virtual`] is used on.
#[derive(Clone, Copy)]
pub struct Invocation<'a> {
    /// Where objects are.
    pub registry: &'a Registry,
    /// The request.
    pub context: &'a Context,
    /// The resource, also for one of its subresources.
    pub resource: &'a Resource,
    /// The object, for a subresource.
    pub name: ObjectName<'a>,
}

/// A subresource.
pub struct Subresource {
    /// Its name in URLs.
    pub name: String,
    /// The kind it takes and gives.
    pub kind: GroupVersionKind,
    /// What can be done.
    pub verbs: Vec<Verb>,
    /// What it is.
    pub behaviour: SubresourceKind,
}

/// What a subresource is.
pub enum SubresourceKind {
    /// The same object, through another door: status, finalize, approval.
    Part,
    /// How many replicas there are.
    Scale(Scaling),
    /// Something that is created, such as a token.
    Virtual(Arc<dyn Virtual>),
    /// A connection to something that has to be reached through the server; the text says why it cannot be.
    Unreachable(&'static str),
}

/// Where an object keeps what `scale` shows, as the names of the members on the way.
#[derive(Debug, Clone)]
pub struct Scaling {
    /// The number wanted.
    pub spec_replicas: Vec<String>,
    /// The number there is.
    pub status_replicas: Vec<String>,
    /// The selector: a label selector, or its text form.
    pub selector: Option<Vec<String>>,
    /// The fields of a Scale.
    pub schema: Arc<Schema>,
}

impl Resource {
    /// A resource with no subresources.
    pub fn new(version: GroupVersion, names: ResourceNames, backing: Backing, verbs: Vec<Verb>) -> Self {
        let namespaced = match &backing {
            Backing::Stored(storage) => storage.namespaced,
            Backing::Virtual(_) => false,
        };
        let prefix = encode::stored_prefix(&names.kind, &version.to_string());
        Self {
            version,
            names,
            namespaced,
            verbs,
            backing,
            subresources: Vec::new(),
            order: ListOrder::Typed,
            deprecation: None,
            storage_version_hash: String::new(),
            protobuf: None,
            frames: Frames::default(),
            audience: Audience::default(),
            prefix,
            unchanged: Unchanged::default(),
        }
    }

    /// The kind in this version.
    pub fn kind(&self) -> GroupVersionKind {
        self.version.with_kind(&self.names.kind)
    }

    /// Group and plural, as errors name it.
    pub fn group_resource(&self) -> GroupResource {
        GroupResource::new(self.version.group.clone(), self.names.plural.clone())
    }

    /// Whether nothing of its objects may stand in an error.
    pub fn is_confidential(&self) -> bool {
        is_confidential(&self.version.group, &self.names.plural, "")
    }

    /// Whether a verb is served.
    pub fn allows(&self, verb: Verb) -> bool {
        self.verbs.contains(&verb)
    }

    /// The subresource of that name.
    pub fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources.iter().find(|subresource| subresource.name == name)
    }

    /// The storage, if objects are stored.
    pub fn storage(&self) -> Option<&Arc<Storage>> {
        match &self.backing {
            Backing::Stored(storage) => Some(storage),
            Backing::Virtual(_) => None,
        }
    }

    /// The form of an object in this version.
    pub fn form(&self) -> Option<Form> {
        match &self.backing {
            Backing::Stored(storage) => storage.form(&self.version.to_string()).cloned(),
            Backing::Virtual(of) => Some(of.schema().into()),
        }
    }

    /// The fields of an object in this version, if the kind is a built-in one.
    pub fn schema(&self) -> Option<Arc<Schema>> {
        match self.form()? {
            Form::BuiltIn(schema) => Some(schema),
            Form::Custom(_) => None,
        }
    }

    /// The forms in which bodies are taken and answers given.
    pub fn offer(&self) -> &'static Offer {
        if self.protobuf.is_some() { JSON_YAML_AND_PROTOBUF } else { JSON_AND_YAML }
    }

    /// What reads and writes objects of a kind in protobuf.
    ///
    /// # Errors
    ///
    /// 500 when there is nothing that does, which would be a mistake in what is offered.
    pub fn codec(&self, kind: &GroupVersionKind) -> Result<Codec, Status> {
        let codec = self.protobuf.and_then(|protobuf| protobuf(kind));
        codec.ok_or_else(|| Status::internal_error(format!("no protobuf for {kind}")))
    }

    /// The kinds of patches it takes.
    pub fn patch_types(&self) -> &'static [PatchType] {
        match self.order {
            ListOrder::Typed => PatchType::BUILT_IN,
            ListOrder::Sorted => PatchType::CUSTOM,
        }
    }

    /// What stored objects of this very version begin with.
    pub(crate) fn stored_prefix(&self) -> &[u8] {
        &self.prefix
    }
}
