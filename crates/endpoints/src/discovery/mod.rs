//! Discovery: which resources there are.
//!
//! There are two forms: the legacy documents, one for each group and version, and the aggregated one with everything
//! in it. All are made when first asked for and kept with what they are about, so a change of one group costs the
//! documents of that group and two concatenations.

mod aggregated;
mod legacy;
mod shown;

use std::sync::Arc;

use bytes::Bytes;
use concord_codec::{JSON_AND_YAML, JSON_YAML_AND_PROTOBUF, MediaType, negotiate};
use concord_meta::Status;
use concord_protobuf::group_discovery_list;
use concord_server::{Accept, Request, Response, Served, full, not_found, respond_status, with_body};
use http::{HeaderValue, Method, StatusCode, header};

pub(crate) use shown::Shown;

use crate::{
    apis::{MergedDiscovery, Settings},
    form::{Form, check_accept},
    set::{ApiSet, Origin},
};
use aggregated::Generation;

/// What a path below `/api` or `/apis` that is no resource's asks for.
enum Page<'a> {
    /// `/api`
    Core,
    /// `/apis`
    Groups,
    /// `/apis/G`
    Group(&'a str),
    /// `/api/V`, `/apis/G/V`
    Version(&'a str, &'a str),
}

impl<'a> Page<'a> {
    fn of(path: &'a str) -> Option<Self> {
        let mut segments = path.strip_prefix('/')?.trim_end_matches('/').split('/');
        let page = match (segments.next()?, segments.next(), segments.next()) {
            ("api", None, _) => Self::Core,
            ("api", Some(version), None) => Self::Version("", version),
            ("apis", None, _) => Self::Groups,
            ("apis", Some(group), None) => Self::Group(group),
            ("apis", Some(group), Some(version)) => Self::Version(group, version),
            _ => return None,
        };
        segments.next().is_none().then_some(page)
    }

    /// Upstream serves some of these pages through its router, which takes only GET and looks at the `Accept`
    /// header for itself.
    fn is_routed(&self, set: &ApiSet) -> bool {
        match self {
            Self::Core => true,
            Self::Version(group, _) => {
                set.group(group).is_some_and(|group| group.origin() == Origin::BuiltIn)
            }
            Self::Groups | Self::Group(_) => false,
        }
    }
}

/// Answers a request for discovery.
pub(crate) fn answer(
    shown: &Shown,
    settings: &Settings,
    path: &str,
    request: &Request,
    accept: &Accept,
) -> Response {
    let Some(page) = Page::of(path) else { return not_found() };
    let mut response = match find(shown, settings, &page, request, accept) {
        Ok(Some(response)) => response,
        Ok(None) => return not_found(),
        Err(status) => respond_status(&status, accept),
    };
    response.extensions_mut().insert(Served);
    response
}

/// `None` for a group that does not exist.
fn find(
    shown: &Shown,
    settings: &Settings,
    page: &Page<'_>,
    request: &Request,
    accept: &Accept,
) -> Result<Option<Response>, Status> {
    let set = &*shown.set;
    let document = match page {
        Page::Core => legacy::core(set, settings),
        Page::Groups => legacy::groups(shown),
        Page::Group(name) => {
            let Some(group) = shown.group(name).filter(|_| !name.is_empty()) else { return Ok(None) };
            legacy::group(group)
        }
        Page::Version(group, version) => {
            let Some(group) = set.group(group) else { return Ok(None) };
            match (group.version(version), group.origin()) {
                (Some(version), origin) => legacy::version(version, origin),
                (None, Origin::BuiltIn) => return Err(Status::unknown_resource()),
                (None, Origin::Custom) => return Ok(None),
            }
        }
    };
    if page.is_routed(set) && *request.method() != Method::GET {
        return Err(Status::method_not_allowed());
    }
    if let (Page::Core | Page::Groups, Some(choice)) =
        (page, aggregated_choice(accept, settings.beta_discovery))
    {
        let is_core = matches!(page, Page::Core);
        return aggregated_answer(shown, settings, is_core, &choice, request).map(Some);
    }
    if page.is_routed(set) {
        check_accept(accept.header(), JSON_AND_YAML, false)?;
    }
    let form = Form::plain(accept)?;
    let document = document?;
    let body = if form.is_compact_json() { document } else { form.present(document.to_vec())? };
    Ok(Some(with_body(StatusCode::OK, form.media_type.as_str(), body)))
}

/// The aggregated form that is asked for.
struct Choice {
    generation: Generation,
    /// Whether what this server serves alone is asked for: upstream's word for it, or that of KEP-4020.
    is_local: bool,
    form: Form,
}

impl Choice {
    /// The document, which is JSON, in the form that is asked for. Only JSON is kept: nobody is known to ask for another.
    fn present(&self, document: &Bytes) -> Result<Bytes, Status> {
        if self.form.media_type == MediaType::Protobuf {
            let list = serde_json::from_slice(document).map_err(Status::internal_error)?;
            return Ok(group_discovery_list(self.generation.api_version(), &list).into());
        }
        if self.form.is_compact_json() { Ok(document.clone()) } else { self.form.present(document.to_vec()) }
    }
}

/// Any clause that asks for the aggregated form wins over those that do not, as upstream has it.
fn aggregated_choice(accept: &Accept, with_beta: bool) -> Option<Choice> {
    let is_served = |generation| generation == Generation::V2 || with_beta;
    let choice = negotiate(accept.header(), JSON_YAML_AND_PROTOBUF, |_, convert| {
        convert.and_then(Generation::of).is_some_and(is_served)
    });
    let choice = choice.ok()?;
    let generation = Generation::of(choice.convert.as_ref()?)?;
    let form = Form { media_type: choice.media_type, ..Form::json(choice.pretty || accept.pretty()) };
    let is_local = matches!(choice.profile.as_str(), "nopeer" | "local");
    Some(Choice { generation, is_local, form })
}

fn aggregated_answer(
    shown: &Shown,
    settings: &Settings,
    core: bool,
    choice: &Choice,
    request: &Request,
) -> Result<Response, Status> {
    let documents = aggregated::document(shown, core, &settings.metrics)?;
    let merged = merged(settings, documents, core, choice);
    let (document, etag) = match &merged {
        Some(merged) => (&merged.document, &merged.etag),
        None => (documents.bytes(choice.generation), &documents.etag),
    };
    let known = request.headers().get(header::IF_NONE_MATCH);
    let mut response = if known.is_some_and(|known| *known == **etag) {
        let mut unchanged = Response::new(full(Bytes::new()));
        *unchanged.status_mut() = StatusCode::NOT_MODIFIED;
        unchanged
    } else {
        let mut response = Response::new(full(choice.present(document)?));
        let content_type = choice.generation.content_type(choice.form.media_type);
        let content_type = HeaderValue::try_from(content_type).map_err(Status::internal_error)?;
        response.headers_mut().insert(header::CONTENT_TYPE, content_type);
        response
    };
    let headers = response.headers_mut();
    let etag = HeaderValue::from_str(etag).map_err(Status::internal_error)?;
    headers.insert(header::ETAG, etag);
    headers.insert(header::VARY, HeaderValue::from_static("Accept"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("public"));
    Ok(response)
}

/// What all servers serve, if that is asked for and there are others.
fn merged(
    settings: &Settings,
    local: &aggregated::Aggregated,
    core: bool,
    choice: &Choice,
) -> Option<Arc<MergedDiscovery>> {
    let peers = settings.peers.as_ref()?;
    if choice.is_local {
        peers.local_was_asked();
        return None;
    }
    if choice.generation != Generation::V2 {
        return None;
    }
    let bytes = local.bytes(Generation::V2);
    if core { peers.merged_core(bytes, &local.etag) } else { peers.merged(bytes, &local.etag) }
}
