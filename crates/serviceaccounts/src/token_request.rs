use std::sync::Arc;

use async_trait::async_trait;
use concord_merge::apply::Time;
use concord_meta::{GroupKind, GroupResource, GroupVersion, Status, field, options::ReadAt};
use concord_registry::{Invocation, Object, ObjectName, Virtual, metadata, metadata_mut, with_owners};
use concord_schema::Schema;
use serde_json::{Map, Value, json};

use crate::{
    Config, Objects, TokenGenerator,
    claims::{Bound, Claims, Reference, username},
    objects::Kind,
};

const MIN_SECONDS: i64 = 10 * 60;
const MAX_SECONDS: i64 = 1 << 32;
const DEFAULT_SECONDS: i64 = 60 * 60;

/// The audit annotation that says which token was issued. Who uses it has the same among the user's extras.
const ISSUED: &str = "authentication.kubernetes.io/issued-credential-id";

/// How long the tokens live that pods get without asking: an hour and a little, so that they can be told from those that
/// somebody asked for.
pub(crate) const INJECTED_SECONDS: i64 = 60 * 60 + 7;
/// How long such tokens are good nevertheless: not all clients read them again.
const EXTENDED_SECONDS: i64 = 365 * 24 * 60 * 60;

/// Answers TokenRequests: `create` on the subresource `token` of service accounts.
pub struct TokenRequests {
    schema: Arc<Schema>,
    config: Arc<Config>,
    generator: Arc<TokenGenerator>,
    objects: Arc<Objects>,
}

/// What is asked for.
struct Request {
    audiences: Vec<String>,
    seconds: i64,
    bound_to: Option<BoundObject>,
}

/// The object that a token is to end with.
struct BoundObject {
    group: String,
    version: String,
    kind: String,
    name: String,
    uid: String,
}

impl TokenRequests {
    /// Takes bodies with these fields.
    pub fn new(
        schema: Arc<Schema>,
        config: Arc<Config>,
        generator: Arc<TokenGenerator>,
        objects: Arc<Objects>,
    ) -> Self {
        Self { schema, config, generator, objects }
    }

    /// The claims of the token.
    async fn bind(
        &self,
        invocation: Invocation<'_>,
        account: &Object,
        bound_to: Option<&BoundObject>,
    ) -> Result<Bound, Status> {
        let name = invocation.name;
        let mut bound =
            Bound { namespace: name.namespace.to_owned(), account: reference(account), ..Bound::default() };
        let Some(object) = bound_to else { return Ok(bound) };
        let BoundObject { group, version, kind, .. } = object;
        let slot = match (group.as_str(), kind.as_str()) {
            ("", "Pod") => {
                let pod = self.get(invocation, Kind::Pod, name.namespace, &object.name).await?;
                if spec(&pod, "serviceAccountName") != name.name {
                    let name = concord_meta::go::quote(name.name);
                    return Err(Status::bad_request(format!(
                        "cannot bind token for serviceaccount {name} to pod running with different serviceaccount name."
                    )));
                }
                bound.node = self.node_of(invocation, &pod).await?;
                bound.pod.insert(reference(&pod))
            }
            ("", "Node") => {
                bound.node.insert(reference(&self.get(invocation, Kind::Node, "", &object.name).await?))
            }
            ("", "Secret") => {
                let secret = self.get(invocation, Kind::Secret, name.namespace, &object.name).await?;
                bound.secret.insert(reference(&secret))
            }
            _ => {
                let of_type = format!("{group}/{version}, Kind={kind}");
                return Err(Status::bad_request(format!("cannot bind token to object of type {of_type}")));
            }
        };
        object.check_uid(&slot.uid)?;
        Ok(bound)
    }

    /// The node that a pod runs on, as far as it is known.
    async fn node_of(&self, invocation: Invocation<'_>, pod: &Object) -> Result<Option<Reference>, Status> {
        let name = spec(pod, "nodeName");
        if name.is_empty() {
            return Ok(None);
        }
        match self.get(invocation, Kind::Node, "", name).await {
            Ok(node) => Ok(Some(reference(&node))),
            Err(status) if status.code == 404 => {
                Ok(Some(Reference { name: name.to_owned(), uid: String::new() }))
            }
            Err(status) => Err(Status::internal_error(status.message)),
        }
    }

    async fn get(
        &self,
        invocation: Invocation<'_>,
        kind: Kind,
        namespace: &str,
        name: &str,
    ) -> Result<Object, Status> {
        let storage = self.objects.storage(kind)?;
        let item =
            invocation.registry.get(storage, ObjectName { namespace, name }, ReadAt::MostRecent).await?;
        storage.object(&item)
    }

    /// Nothing is made in a namespace that is not there, or about to go.
    async fn check_namespace(&self, invocation: Invocation<'_>) -> Result<(), Status> {
        let ObjectName { namespace, name } = invocation.name;
        let found = self.get(invocation, Kind::Namespace, "", namespace).await?;
        if metadata(&found).is_terminating() {
            let resource = invocation.resource.group_resource();
            return Err(Status::namespace_terminating(&resource, name, namespace));
        }
        Ok(())
    }

    /// For how long the token is good, and after which time it should have been replaced.
    fn lifetime(&self, request: &Request, bound: &Bound) -> (i64, Option<i64>) {
        let own = request.audiences.iter().all(|audience| self.config.api_audiences.contains(audience));
        let injected = bound.pod.is_some() && request.seconds == INJECTED_SECONDS && own;
        match self.config.extend_expiration && injected {
            true => (EXTENDED_SECONDS, Some(request.seconds)),
            false => (request.seconds, None),
        }
    }

    /// A token, and what it is called where it is used.
    fn token(&self, request: &Request, mut bound: Bound, now: i64) -> Result<(String, String), Status> {
        let (seconds, warn_after) = self.lifetime(request, &bound);
        let claims = Claims {
            subject: username(&bound.namespace, &bound.account.name),
            audiences: request.audiences.clone(),
            id: uuid::Builder::from_random_bytes(rand::random()).into_uuid().to_string(),
            issued_at: Some(now),
            not_before: Some(now),
            expires: Some(now.saturating_add(seconds)),
        };
        bound.warn_after = warn_after.map(|seconds| now.saturating_add(seconds));
        let token = self.generator.bound_token(&claims, &bound);
        let token =
            token.map_err(|error| Status::internal_error(format!("failed to generate token: {error}")))?;
        Ok((token, claims.credential_id()))
    }
}

#[async_trait]
impl Virtual for TokenRequests {
    fn schema(&self) -> Arc<Schema> {
        self.schema.clone()
    }

    async fn create(&self, invocation: Invocation<'_>, mut body: Object) -> Result<Object, Status> {
        let ObjectName { namespace, name } = invocation.name;
        self.check_namespace(invocation).await?;
        check_name(&body, name)?;
        let account = self.get(invocation, Kind::ServiceAccount, namespace, name).await?;
        check_uid(&body, &account, name)?;
        let mut request = Request::read(&body, &self.config.api_audiences);
        request.validate()?;
        let spec = body.entry("spec").or_insert_with(|| Value::Object(Map::new()));
        if let Some(spec) = spec.as_object_mut() {
            spec.insert("expirationSeconds".to_owned(), request.seconds.into());
        }
        let kind = GroupVersion::new("authentication.k8s.io", "v1").with_kind("TokenRequest");
        body = with_owners(&self.schema, kind, "token", invocation.context, body);
        let bound = Box::pin(self.bind(invocation, &account, request.bound_to.as_ref())).await?;
        let max = self.config.max_expiration.and_then(|max| i64::try_from(max.as_secs()).ok());
        if let Some(max) = max.filter(|max| request.seconds > *max) {
            let asked = request.seconds;
            invocation
                .context
                .warn(&format!("requested expiration of {asked} seconds shortened to {max} seconds"));
            request.seconds = max;
        }
        let now = invocation.context.now;
        let (token, id) = self.token(&request, bound, now.unix)?;
        invocation.context.annotate(ISSUED, id);
        let expires = Time { unix: now.unix.saturating_add(request.seconds) };
        let status = json!({"token": token, "expirationTimestamp": expires.to_string()});
        answer(&mut body, &account, now, &request, status);
        Ok(body)
    }
}

/// Completes what was sent.
fn answer(body: &mut Object, account: &Object, now: Time, request: &Request, status: Value) {
    let said = metadata(account);
    let own = [("name", said.name()), ("namespace", said.namespace()), ("uid", said.uid())];
    let metadata = metadata_mut(body);
    for (name, value) in own {
        metadata.insert(name.to_owned(), value.into());
    }
    metadata.insert("creationTimestamp".to_owned(), now.to_string().into());
    let spec = body.entry("spec").or_insert_with(|| Value::Object(Map::new()));
    if let Some(spec) = spec.as_object_mut() {
        spec.insert("audiences".to_owned(), request.audiences.clone().into());
        spec.insert("expirationSeconds".to_owned(), request.seconds.into());
        spec.entry("boundObjectRef").or_insert(Value::Null);
    }
    body.insert("status".to_owned(), status);
}

impl Request {
    fn read(body: &Object, api_audiences: &[String]) -> Self {
        let none = Map::new();
        let spec = body.get("spec").and_then(Value::as_object).unwrap_or(&none);
        let audiences = spec.get("audiences").and_then(Value::as_array);
        let audiences = audiences.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned);
        let mut audiences: Vec<String> = audiences.collect();
        if audiences.is_empty() {
            audiences = api_audiences.to_vec();
        }
        let seconds = spec.get("expirationSeconds").and_then(Value::as_i64).unwrap_or(DEFAULT_SECONDS);
        let bound_to = spec.get("boundObjectRef").and_then(Value::as_object).map(BoundObject::read);
        Self { audiences, seconds, bound_to }
    }

    fn validate(&self) -> Result<(), Status> {
        let path = field::Path::new("spec").child("expirationSeconds");
        let problem = match self.seconds {
            ..MIN_SECONDS => "may not specify a duration less than 10 minutes",
            MIN_SECONDS..=MAX_SECONDS => return Ok(()),
            _ => "may not specify a duration larger than 2^32 seconds",
        };
        let error = field::Error::invalid(&path, self.seconds, problem);
        Err(Status::invalid(&kind(), "", &[error]))
    }
}

impl BoundObject {
    fn read(reference: &Map<String, Value>) -> Self {
        let text = |name: &str| reference.get(name).and_then(Value::as_str).unwrap_or_default();
        // What is no group and version is neither, as upstream reads it.
        let version: GroupVersion = text("apiVersion").parse().unwrap_or_else(|_| GroupVersion::new("", ""));
        Self {
            group: version.group.to_string(),
            version: version.version.to_string(),
            kind: text("kind").to_owned(),
            name: text("name").to_owned(),
            uid: text("uid").to_owned(),
        }
    }

    /// Refuses an object that took the place of the one that is meant.
    fn check_uid(&self, uid: &str) -> Result<(), Status> {
        if self.uid.is_empty() || self.uid == uid {
            return Ok(());
        }
        let why = format!(
            "the UID in the bound object reference ({}) does not match the UID in record. The object might have been \
             deleted and then recreated",
            self.uid
        );
        Err(Status::conflict(&GroupResource::new(self.group.clone(), self.kind.clone()), &self.name, why))
    }
}

fn kind() -> GroupKind {
    GroupKind::new("authentication.k8s.io", "TokenRequest")
}

fn reference(object: &Object) -> Reference {
    let metadata = metadata(object);
    Reference { name: metadata.name().to_owned(), uid: metadata.uid().to_owned() }
}

fn spec<'a>(pod: &'a Object, name: &str) -> &'a str {
    pod.get("spec").and_then(|spec| spec.get(name)?.as_str()).unwrap_or_default()
}

fn check_name(body: &Object, name: &str) -> Result<(), Status> {
    let said = metadata(body).name();
    if said.is_empty() || said == name {
        return Ok(());
    }
    let path = field::Path::new("metadata").child("name");
    let error = field::Error::invalid(&path, said, "must match the service account name if specified");
    Err(Status::invalid(&kind(), name, &[error]))
}

fn check_uid(body: &Object, account: &Object, name: &str) -> Result<(), Status> {
    let (said, uid) = (metadata(body).uid(), metadata(account).uid());
    if said.is_empty() || said == uid {
        return Ok(());
    }
    let why = format!(
        "the UID in the token request ({said}) does not match the UID of the service account ({uid})"
    );
    Err(Status::conflict(&GroupResource::new("authentication.k8s.io", "TokenRequest"), name, why))
}

#[cfg(test)]
mod tests;
