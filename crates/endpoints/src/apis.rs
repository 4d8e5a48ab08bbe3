//! The handler of everything below `/api` and `/apis`.

use std::sync::Arc;

use arc_swap::{ArcSwap, ArcSwapOption};
use async_trait::async_trait;
use bytes::Bytes;
use concord_codec::Warnings;
use concord_meta::{GroupResource, GroupVersion, Status};
use concord_registry::{Deprecation, Registry, Resource, Resources};
use concord_server::{
    Accept, Deprecated, Handler, Metrics, Request, RequestContext as _, RequestInfo, Response, Served,
    not_found, respond_status,
};

use crate::{
    call::{Call, Common},
    discovery::{self, Shown},
    extensions::{ExtensionSource, Extensions},
    form::check_accept,
    route::{Action, Miss, Route, route},
    set::{ApiSet, Origin},
    shared::SharedLists,
    verbs,
};

/// What an [`Apis`] has to know about the server it is part of.
#[derive(Clone, Default)]
pub struct Settings {
    /// Where clients reach this server, as `host:port`: discovery tells it.
    pub server_address: String,
    /// Where to count what is sent.
    pub metrics: Arc<Metrics>,
    /// Who replaces the set of the [`Apis`] as something else changes.
    pub follower: Option<Arc<dyn Follower>>,
    /// What other servers serve, which discovery shows, too.
    pub extensions: Option<Arc<ExtensionSource>>,
    /// Who knows what other servers of the fleet serve.
    pub peers: Option<Arc<dyn PeerDiscovery>>,
    /// Whether aggregated discovery is served as v2beta1, too. Default: no, as upstream since 1.33, unless
    /// `AggregatedDiscoveryRemoveBetaType` is turned off.
    pub beta_discovery: bool,
}

/// Knows what all servers of a fleet serve together.
pub trait PeerDiscovery: Send + Sync {
    /// The aggregated document of all servers about all groups but core, made from this server's, which has this tag.
    /// `None` if there is nobody else.
    fn merged(&self, local: &Bytes, etag: &str) -> Option<Arc<MergedDiscovery>>;

    /// The same about the core group, of which another server may have more resources, subresources or verbs.
    fn merged_core(&self, local: &Bytes, etag: &str) -> Option<Arc<MergedDiscovery>>;

    /// Somebody asked for what this server serves alone.
    fn local_was_asked(&self);
}

/// An aggregated document about all servers of a fleet.
#[derive(Debug, Clone)]
pub struct MergedDiscovery {
    /// In version v2, with a newline at its end.
    pub document: Bytes,
    /// With its quotes.
    pub etag: String,
}

/// Replaces the set of an [`Apis`] a moment after a change that it follows can be read. Requests wait for that moment:
/// a client that has read of a change finds it served.
#[async_trait]
pub trait Follower: Send + Sync {
    /// Whether the set has every change that anybody can have read of.
    fn is_current(&self) -> bool;

    /// Waits until the set has every change that can be read of by now, but not for ever.
    async fn catch_up(&self);
}

/// Serves the resources of an [`ApiSet`] that can be replaced at any time. Requests under way keep the set they
/// began with.
pub struct Apis {
    registry: Arc<Registry>,
    set: ArcSwap<ApiSet>,
    /// What discovery showed last.
    shown: ArcSwapOption<Shown>,
    /// What other servers serve if nobody tells.
    nothing: Arc<Extensions>,
    /// The lists that are being sent.
    lists: SharedLists,
    settings: Settings,
}

impl Apis {
    /// Serves these resources from this registry.
    pub fn new(registry: Arc<Registry>, set: ApiSet, settings: Settings) -> Self {
        Self {
            registry,
            set: ArcSwap::from_pointee(set),
            shown: ArcSwapOption::empty(),
            nothing: Arc::default(),
            lists: SharedLists::default(),
            settings,
        }
    }

    /// What is served now.
    pub fn set(&self) -> Arc<ApiSet> {
        self.set.load_full()
    }

    /// What is served now, with every change in it that anybody can have read of.
    pub async fn current(&self) -> Arc<ApiSet> {
        match &self.settings.follower {
            Some(follower) if !follower.is_current() => follower.catch_up().await,
            _ => {}
        }
        self.set()
    }

    /// What a request is about. The server's own groups never change, and their requests never wait.
    async fn set_for(&self, info: &RequestInfo) -> Arc<ApiSet> {
        let set = self.set();
        let origin = set.group(&info.api_group).map(|group| group.origin());
        match info.is_resource_request && origin == Some(Origin::BuiltIn) {
            true => set,
            false => self.current().await,
        }
    }

    /// Serves something else from now on.
    pub fn replace(&self, set: ApiSet) {
        self.set.store(Arc::new(set));
    }

    /// What discovery shows of a set, with what other servers serve.
    fn shown(&self, set: Arc<ApiSet>) -> Arc<Shown> {
        let extensions: Arc<Extensions> =
            self.settings.extensions.as_ref().map_or_else(|| self.nothing.clone(), |source| source());
        if let Some(shown) = self.shown.load_full().filter(|shown| shown.is_of(&set, &extensions)) {
            return shown;
        }
        // Whoever is here at the same time makes the same; one of the two is kept.
        let shown = Arc::new(Shown::new(set, extensions));
        self.shown.store(Some(shown.clone()));
        shown
    }

    async fn resource(
        &self,
        set: &ApiSet,
        info: &RequestInfo,
        accept: &Accept,
        request: Request,
    ) -> Response {
        let route = match route(set, info, request.method()) {
            Ok(route) => route,
            Err(miss) => return missed(&miss, info, accept),
        };
        let mut warnings = Warnings::default();
        let deprecation = route.endpoint.resource.deprecation.clone();
        if let Some(deprecation) = &deprecation {
            warnings.add(&deprecation.warning);
            annotate(&request, deprecation);
        }
        let mut warnings = warnings.headers().to_vec();
        let answer = self.answer(set, info, accept, route, request, &mut warnings).await;
        let mut response = answer.unwrap_or_else(|status| respond_status(&status, accept));
        verbs::warn(&mut response, &warnings);
        response.extensions_mut().insert(Served);
        if let Some(Deprecation { removed_release, .. }) = deprecation {
            response.extensions_mut().insert(Deprecated { removed_release });
        }
        response
    }

    async fn answer(
        &self,
        set: &ApiSet,
        info: &RequestInfo,
        accept: &Accept,
        route: Route<'_>,
        request: Request,
        warnings: &mut Vec<String>,
    ) -> Result<Response, Status> {
        let built_in = set.group(&info.api_group).is_some_and(|group| group.origin() == Origin::BuiltIn);
        if built_in && route.action != Action::Connect {
            let watchable = matches!(route.action, Action::List | Action::WatchPath);
            check_accept(accept.header(), route.endpoint.resource.offer(), watchable)?;
        }
        let (parts, mut body) = request.into_parts();
        let common = Common { registry: &self.registry, metrics: &self.settings.metrics, lists: &self.lists };
        let call = Call::new(common, &parts, info, route, accept)?;
        verbs::carry_out(&call, &mut body, warnings).await
    }
}

impl Resources for Apis {
    fn find(&self, version: &GroupVersion, plural: &str) -> Option<Arc<Resource>> {
        self.set.load().find(version, plural)
    }

    fn all(&self) -> Vec<Arc<Resource>> {
        self.set.load().all()
    }

    fn is_current(&self) -> bool {
        self.settings.follower.as_ref().is_none_or(|follower| follower.is_current())
    }
}

/// Writes down that a request should not have been made as it was.
fn annotate(request: &Request, deprecation: &Deprecation) {
    let Some(audit) = request.audit() else { return };
    audit.annotate("k8s.io/deprecated", "true");
    if !deprecation.removed_release.is_empty() {
        audit.annotate("k8s.io/removed-release", &deprecation.removed_release);
    }
}

/// The answer to a request that is about nothing.
fn missed(miss: &Miss, info: &RequestInfo, accept: &Accept) -> Response {
    let resource = || GroupResource::new(info.api_group.as_str(), info.resource.as_str());
    let status = match miss {
        Miss::Path => return not_found(),
        Miss::Resource => Status::unknown_resource(),
        Miss::Method => Status::method_not_allowed(),
        Miss::CustomSubresource => Status::not_found(&resource(), &info.name),
        Miss::CustomVerb => Status::method_not_supported(&resource(), &info.verb),
        Miss::CustomName => Status::bad_request("name must be provided"),
    };
    respond_status(&status, accept)
}

#[async_trait]
impl Handler for Apis {
    async fn handle(&self, request: Request) -> Response {
        let info = request.info();
        let accept = Accept::of(&request);
        let set = self.set_for(&info).await;
        if info.is_resource_request {
            return self.resource(&set, &info, &accept, request).await;
        }
        discovery::answer(&self.shown(set), &self.settings, &info.path, &request, &accept)
    }
}
