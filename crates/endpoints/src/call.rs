//! One request for a resource, and what its verb has to know about it.

use std::{borrow::Cow, sync::Arc, time::Duration};

use bytes::Bytes;
use concord_codec::{FieldValidation, MediaType, TypeFields, encode_object};
use concord_merge::apply::{Time, manager_of_user_agent};
use concord_meta::{GroupVersionKind, Status, go, names::path_segment, options, options::CreateOptions};
use concord_printers::IncludeObject;
use concord_registry::{Context, Item, Listing, Object, ObjectName, Registry, Resource, Storage};
use concord_server::{
    Accept, Body, Deadline, MAX_BODY_BYTES, Metrics, RequestContext as _, RequestInfo, Response, read_body,
    with_body,
};
use concord_store::Revision;
use http::{HeaderValue, StatusCode, header, request::Parts};
use jiff::Timestamp;

use crate::{
    body::{CHUNK, COMPRESSED, accepts_gzip},
    form::{Form, Transform},
    list_body::{Items, ListWriter},
    protobuf,
    route::Route,
    set::Endpoint,
    shared::{Key, ListBody, SharedLists},
    transform,
};

/// How long a write may take.
const WRITE: Duration = Duration::from_secs(34);

pub(crate) type Pairs<'a> = Vec<(Cow<'a, str>, Cow<'a, str>)>;

/// What all requests share.
#[derive(Clone, Copy)]
pub(crate) struct Common<'a> {
    pub(crate) registry: &'a Registry,
    pub(crate) metrics: &'a Metrics,
    pub(crate) lists: &'a SharedLists,
}

/// One request for a resource.
pub(crate) struct Call<'a> {
    pub(crate) registry: &'a Registry,
    pub(crate) metrics: &'a Metrics,
    lists: &'a SharedLists,
    pub(crate) parts: &'a Parts,
    pub(crate) info: &'a RequestInfo,
    pub(crate) route: Route<'a>,
    pub(crate) form: Form,
    pub(crate) include: IncludeObject,
    pub(crate) pairs: Pairs<'a>,
}

/// The parameters of a request, decoded. As Go does, those with a semicolon or an escape that is none are left out;
/// bytes that are not UTF-8 are taken as they are.
pub(crate) fn pairs(parts: &Parts) -> Pairs<'_> {
    let query = parts.uri.query().unwrap_or_default();
    let readable = |pair: &&str| !pair.contains(';') && escapes_are_valid(pair);
    query.split('&').filter(readable).flat_map(|pair| form_urlencoded::parse(pair.as_bytes())).collect()
}

fn escapes_are_valid(text: &str) -> bool {
    let is_hex =
        |digits: Option<&str>| digits.is_some_and(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()));
    text.match_indices('%').all(|(at, _)| is_hex(text.get(at + 1..at + 3)))
}

impl<'a> Call<'a> {
    /// Reads what is common to all verbs.
    ///
    /// # Errors
    ///
    /// 406 when the client accepts nothing that there is, 400 for a name that no object can have or a table that
    /// cannot be.
    pub(crate) fn new(
        Common { registry, metrics, lists }: Common<'a>,
        parts: &'a Parts,
        info: &'a RequestInfo,
        route: Route<'a>,
        accept: &Accept,
    ) -> Result<Self, Status> {
        let form = Form::of(accept, route.endpoint.resource.offer())?;
        let pairs = pairs(parts);
        let include = match form.transform {
            Transform::Table(_) => {
                let wanted = pairs.iter().find(|(name, _)| name == "includeObject");
                IncludeObject::parse(wanted.map_or("", |(_, value)| value))?
            }
            _ => IncludeObject::default(),
        };
        let call = Self { registry, metrics, lists, parts, info, route, form, include, pairs };
        call.check_name()?;
        Ok(call)
    }

    fn check_name(&self) -> Result<(), Status> {
        // The name of a list is that of its field selector, which may be anything.
        let name = self.info.parts.get(1).map_or("", String::as_str);
        let problems = path_segment(name);
        if problems.is_empty() {
            return Ok(());
        }
        let problems = problems.join(";");
        Err(Status::bad_request(format!("Name parameter invalid: {}: {problems}", go::quote(name))))
    }

    pub(crate) fn endpoint(&self) -> &'a Endpoint {
        self.route.endpoint
    }

    pub(crate) fn resource(&self) -> &'a Arc<Resource> {
        &self.route.endpoint.resource
    }

    /// Where the objects are.
    ///
    /// # Errors
    ///
    /// 405 when they are nowhere.
    pub(crate) fn storage(&self) -> Result<&'a Arc<Storage>, Status> {
        let resource = self.resource();
        let missing = || Status::method_not_supported(&resource.group_resource(), &self.info.verb);
        resource.storage().ok_or_else(missing)
    }

    pub(crate) fn query(&self) -> options::Query<'_, Cow<'a, str>> {
        options::Query(&self.pairs)
    }

    pub(crate) fn parameter(&self, name: &str) -> Option<&str> {
        self.pairs.iter().find(|(key, _)| key == name).map(|(_, value)| &**value)
    }

    /// The namespace of the request; empty for all, and for what is in none.
    pub(crate) fn namespace(&self) -> &'a str {
        if self.resource().namespaced { &self.info.namespace } else { "" }
    }

    pub(crate) fn object_name(&self) -> ObjectName<'a> {
        let name = self.info.parts.get(1).map_or("", String::as_str);
        ObjectName { namespace: self.namespace(), name }
    }

    /// What the answer is of.
    pub(crate) fn kind(&self) -> GroupVersionKind {
        self.route.subresource.map_or_else(|| self.resource().kind(), |subresource| subresource.kind.clone())
    }

    pub(crate) fn header(&self, name: header::HeaderName) -> &'a str {
        self.parts.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// What the registry has to know about a write.
    pub(crate) fn context(&self, options: &CreateOptions) -> Context {
        let mut context = self.bare_context(options.dry_run);
        context.manager = match options.field_manager.as_str() {
            "" => manager_of_user_agent(self.header(header::USER_AGENT)),
            manager => manager.to_owned(),
        };
        for name in ["fieldManager", "fieldValidation"] {
            if let Some(value) = self.parameter(name).filter(|value| !value.is_empty()) {
                context.options.insert(name.to_owned(), value.into());
            }
        }
        context
    }

    /// [`Call::context`] for what sets no fields.
    pub(crate) fn bare_context(&self, dry_run: bool) -> Context {
        let mut context = Context::new(self.parts.user(), Time { unix: Timestamp::now().as_second() });
        context.verb = self.info.verb.clone();
        context.dry_run = dry_run;
        if dry_run {
            context.options.insert("dryRun".to_owned(), vec!["All"].into());
        }
        context
    }

    /// When a write must be done.
    pub(crate) fn deadline(&self) -> Deadline {
        self.parts.deadline().within(WRITE)
    }

    /// Says what object was sent, if that is written down.
    pub(crate) fn audit_sent(&self, object: &Object) {
        if let Some(audit) = self.parts.audit() {
            audit.request_object(object);
        }
    }

    /// Says what is answered in a form that cannot be written down as it is.
    fn audit_answered(&self, object: &Object) {
        if let Some(audit) = self.parts.audit() {
            audit.response_object(object);
        }
    }

    /// The whole body of the request.
    ///
    /// # Errors
    ///
    /// 413 if it is too large, 504 if it does not arrive, 400 if it breaks off.
    pub(crate) async fn read(&self, body: &mut Body) -> Result<Bytes, Status> {
        read_body(body, MAX_BODY_BYTES, self.deadline()).await
    }

    /// An answer with a stored object. If the client wants what is stored, it is not parsed.
    ///
    /// # Errors
    ///
    /// 500 when the object cannot be read, 406 when the client wants a list.
    pub(crate) async fn answer_item(&self, code: StatusCode, item: Item) -> Result<Response, Status> {
        let item = self.resource().translate(item).await?;
        if self.form.transform != Transform::Nothing || self.form.media_type == MediaType::Protobuf {
            return self.answer_object(code, self.resource().object(&item)?);
        }
        let mut out = Vec::with_capacity(item.value.len() + 64);
        self.resource().write_object(&item, TypeFields::Keep, &mut out)?;
        out.push(b'\n');
        self.form.answer(code, out)
    }

    /// An answer with an object.
    ///
    /// # Errors
    ///
    /// 406 when the client wants a list.
    pub(crate) fn answer_object(&self, code: StatusCode, object: Object) -> Result<Response, Status> {
        let object = transform::object(self.endpoint(), &self.kind(), &self.form, self.include, object)?;
        if self.form.media_type == MediaType::Protobuf {
            self.audit_answered(&object);
            let body = protobuf::encode(self.resource(), &object)?;
            return Ok(with_body(code, self.form.media_type.as_str(), body.into()));
        }
        let mut out = Vec::new();
        encode_object(&object, &mut out);
        out.push(b'\n');
        self.form.answer(code, out)
    }

    /// An answer with a Status that is no error: it is never anything else.
    ///
    /// # Errors
    ///
    /// 500, which would be a mistake here.
    pub(crate) fn answer_status(&self, status: &Status) -> Result<Response, Status> {
        let mut response = if self.form.media_type == MediaType::Protobuf {
            let body = protobuf::encode_status(self.resource(), status)?;
            with_body(StatusCode::OK, self.form.media_type.as_str(), body.into())
        } else {
            let mut out = serde_json::to_vec(status).map_err(Status::internal_error)?;
            out.push(b'\n');
            self.form.answer(StatusCode::OK, out)?
        };
        // For who writes down how requests ended.
        response.extensions_mut().insert(Arc::new(status.clone()));
        Ok(response)
    }

    /// Says which list is answered in protobuf, if that is written down.
    fn audit_list(&self, items: Items, listing: Listing) -> Result<(), Status> {
        if let Some(audit) = self.parts.audit().filter(|audit| audit.wants_response()) {
            let bytes = ListWriter::new(self.resource(), items, listing).whole()?;
            audit.response_bytes(&bytes);
        }
        Ok(())
    }

    /// What the items of a list are, if it is one of objects or of their metadata.
    fn items(&self) -> Option<Items> {
        match self.form.transform {
            Transform::Nothing => Some(Items::Objects),
            Transform::MetadataList(version) => Some(Items::Metadata(version)),
            Transform::Metadata(_) | Transform::Table(_) => None,
        }
    }

    /// What makes the list that this asks for the same as another one of that revision.
    fn list_key(&self, revision: Revision) -> Option<Key> {
        let items = self.items().filter(|_| self.form.is_compact_json())?;
        let asked = (self.namespace(), self.parts.uri.query().unwrap_or_default());
        Some(Key::new(self.resource(), asked, (items, accepts_gzip(&self.parts.headers)), revision))
    }

    /// An answer with a list that somebody else is being sent.
    pub(crate) fn answer_shared_list(&self, revision: Option<Revision>) -> Option<Response> {
        let body = self.lists.join(&self.list_key(revision?)?)?;
        Some(self.list_response(body))
    }

    /// An answer with a list, which is written while it is sent unless it is small. If it is settled at a revision, whoever
    /// asks for the same meanwhile gets it, too.
    ///
    /// # Errors
    ///
    /// 500 when an object cannot be read, 406 when the client wants a single object.
    pub(crate) fn answer_list(
        &self,
        listing: Listing,
        settled_at: Option<Revision>,
    ) -> Result<Response, Status> {
        let Some(items) = self.items() else { return self.answer_changed_list(&listing) };
        if self.form.media_type == MediaType::Protobuf {
            let body = protobuf::encode_list(self.resource(), items, &listing)?;
            self.audit_list(items, listing)?;
            return Ok(with_body(StatusCode::OK, self.form.media_type.as_str(), body.into()));
        }
        let list = ListWriter::new(self.resource(), items, listing);
        if list.size() <= CHUNK || !self.form.is_compact_json() {
            return self.form.answer(StatusCode::OK, list.whole()?);
        }
        let size = list.size();
        let compress = size > COMPRESSED && accepts_gzip(&self.parts.headers);
        let key = settled_at.and_then(|revision| self.list_key(revision));
        let body = self.lists.send((key, self.resource().clone()), list, size, compress);
        Ok(self.list_response(body))
    }

    /// An answer with something else than the objects of a list.
    fn answer_changed_list(&self, listing: &Listing) -> Result<Response, Status> {
        let Transform::Table(version) = self.form.transform else {
            return Err(transform::is_a_list(self.resource()));
        };
        let tables = transform::tables(&self.endpoint().columns, version, self.include);
        let table = transform::list_table(self.endpoint(), &tables, listing)?;
        self.form.answer(StatusCode::OK, table)
    }

    fn list_response(&self, (body, compressed): ListBody) -> Response {
        let mut response = Response::new(body);
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(self.form.media_type.as_str()));
        if compressed {
            headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            headers.insert(header::VARY, HeaderValue::from_static("Accept-Encoding"));
        }
        response
    }
}

/// The same in the words of the codec.
pub(crate) fn validation(validation: options::FieldValidation) -> FieldValidation {
    match validation {
        options::FieldValidation::Ignore => FieldValidation::Ignore,
        options::FieldValidation::Warn => FieldValidation::Warn,
        options::FieldValidation::Strict => FieldValidation::Strict,
    }
}
