//! Watches.

mod encode;
mod pace;
mod schedule;
mod stream;
mod websocket;

use std::time::Duration;

use bytes::Bytes;
use concord_codec::{MediaType, meta_transforms, negotiate_stream};
use concord_meta::{Status, fields, options::ListOptions};
use concord_registry::WatchRequest;
use concord_server::{BoxError, RequestContext as _, Response};
use futures_util::stream::unfold;
use http::{HeaderValue, header};
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::Frame;
use tokio::time::Instant;

use crate::{call::Call, form::refused};
use encode::Encoder;
use schedule::Schedule;
use stream::EventStream;

/// The shortest that a watch lasts if the client does not say; the longest is twice that.
const SHORTEST: Duration = Duration::from_secs(1800);
/// What is longer is taken for this: no clock is good for everything a client may ask for.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);

/// Answers a watch, which the parameters ask for or, with `by_path`, the path itself.
///
/// # Errors
///
/// Only for what is wrong with the request. What is wrong with the state it asks for is told by an event.
pub(crate) async fn watch(call: &Call<'_>, by_path: bool) -> Result<Response, Status> {
    if !call.resource().allows(concord_registry::Verb::Watch) {
        return Err(Status::method_not_supported(&call.resource().group_resource(), "watch"));
    }
    let storage = call.storage()?;
    let (options, bookmarks) = options(call, by_path)?;
    let accept = call.header(header::ACCEPT);
    let choice = negotiate_stream(accept, call.resource().offer(), meta_transforms).map_err(refused)?;
    let handshake = websocket::Handshake::of(call)?;
    // Over a websocket events are texts, whatever the client would rather have.
    let media_type = if handshake.is_some() { MediaType::Json } else { choice.media_type };
    let namespace = Some(call.namespace()).filter(|namespace| !namespace.is_empty());
    let request = WatchRequest { namespace, options: &options };
    let watch = call.registry.watch(storage, request).await?;
    let schedule =
        Schedule::new(Instant::now(), lifetime(options.timeout_seconds), options.allow_watch_bookmarks);
    let version = &call.resource().version;
    let count = call.metrics.watch_events(&version.group, &version.version, &call.resource().names.plural);
    let encoder = Encoder::new(call.endpoint(), call.form.transform, call.include, media_type, count);
    let shutdown = call.parts.shutdown();
    let stream = EventStream::new(watch, encoder, schedule, bookmarks, async move { shutdown.begun().await });
    match handshake {
        Some(handshake) => Ok(handshake.serve(&call.parts.connection(), stream)),
        None => Ok(over_http(stream, media_type)),
    }
}

/// The options, and whether the end of the initial state is told.
fn options(call: &Call<'_>, by_path: bool) -> Result<(ListOptions, bool), Status> {
    let mut options = ListOptions::from_query(call.query())?;
    let mut told = options.allow_watch_bookmarks;
    if by_path {
        options.watch = true;
        // These paths are older than the way to ask for the initial state, which they always begin with.
        let unversioned = ["", "0"].contains(&options.resource_version.as_str());
        if unversioned && options.send_initial_events.is_none() {
            options.send_initial_events = Some(true);
            told = false;
        }
        select_name(&mut options, call.object_name().name)?;
    }
    Ok((options, told))
}

/// The name in a path means the same as one in the selector.
fn select_name(options: &mut ListOptions, name: &str) -> Result<(), Status> {
    if name.is_empty() {
        return Ok(());
    }
    if options.field_selector.is_everything() {
        options.field_selector = fields::Selector::name(name);
        return Ok(());
    }
    if options.field_selector.requires_exact_match("metadata.name") == Some(name) {
        return Ok(());
    }
    Err(Status::bad_request("fieldSelector metadata.name doesn't match requested name"))
}

/// How long a watch lasts. Those that do not say end at different times, so that not all clients come back at once.
fn lifetime(timeout_seconds: Option<i64>) -> Duration {
    match timeout_seconds {
        None | Some(0) => SHORTEST.mul_f64(rand::random_range(1.0..2.0)),
        Some(seconds) => Duration::from_secs(u64::try_from(seconds).unwrap_or_default()).min(LONGEST),
    }
}

/// A watch as a body without an end of its own.
fn over_http(stream: EventStream, media_type: MediaType) -> Response {
    let chunks = unfold(Box::new(stream), |mut stream| async move {
        let chunk: Bytes = stream.chunk().await?;
        Some((Ok::<_, BoxError>(Frame::data(chunk)), stream))
    });
    let mut response = Response::new(StreamBody::new(chunks).boxed_unsync());
    let content_type = match media_type {
        MediaType::Protobuf => "application/vnd.kubernetes.protobuf;stream=watch",
        _ => "application/json",
    };
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn watches_last_as_long_as_they_are_asked_to() {
        for (asked, expected) in [
            (1, Duration::from_secs(1)),
            (-5, Duration::ZERO),
            (i64::MIN, Duration::ZERO),
            (i64::MAX, LONGEST),
        ] {
            assert_eq!(lifetime(Some(asked)), expected, "{asked}");
        }
        for unasked in [None, Some(0)] {
            let lifetime = lifetime(unasked);
            assert!(lifetime >= SHORTEST && lifetime < 2 * SHORTEST, "{lifetime:?}");
        }
    }

    #[test]
    fn a_name_in_the_path_selects_the_object() {
        let parse = |query: &[(&str, &str)]| ListOptions::from_query(concord_meta::options::Query(query));
        let mut options = parse(&[]).expect("good");
        select_name(&mut options, "").expect("no name");
        assert!(options.field_selector.is_everything());
        select_name(&mut options, "a,b").expect("a name");
        assert_eq!(options.field_selector.requires_exact_match("metadata.name"), Some("a,b"));
        select_name(&mut options, "a,b").expect("the same name");
        assert_eq!(select_name(&mut options, "c").map_err(|status| status.code), Err(400));
    }
}
