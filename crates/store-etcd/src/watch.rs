//! One watch on one member: opening it, reading it, and what its end means.

use std::time::Duration;

use bytes::Bytes;
use concord_store::{Error, Revision};
use futures_util::stream;
use tokio::time::{Instant, timeout, timeout_at};
use tonic::Streaming;

use crate::{
    call::{Client, with_leader},
    convert,
    member::{MAX_RESPONSE_BYTES, Member, backoff, chain},
    pb::{
        etcdserverpb::{
            WatchCreateRequest, WatchRequest, WatchResponse, watch_client::WatchClient,
            watch_request::RequestUnion,
        },
        mvccpb::Event,
    },
    status::judge,
};

/// Why a watch gives nothing more.
#[derive(Debug, PartialEq)]
pub(crate) enum End {
    /// The connection or the member failed; another watch may go on.
    Lost(String),
    /// The start revision was compacted.
    Compacted { oldest: Revision },
}

impl From<String> for End {
    fn from(reason: String) -> Self {
        Self::Lost(reason)
    }
}

/// Events as they came.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) events: Vec<Event>,
    /// The last revision may go on in the next batch.
    pub(crate) partial: bool,
}

/// A watch that was created. Its connection is its own.
#[derive(Debug)]
pub(crate) struct Watch {
    responses: Streaming<WatchResponse>,
    /// The member's revision when the watch was created.
    pub(crate) revision: Revision,
}

impl Watch {
    /// Watches all keys from `start` on, which must not be 0: that would mean from now.
    pub(crate) async fn all_keys(client: &Client, member: &Member, start: Revision) -> Result<Self, End> {
        let zero = || Bytes::from_static(b"\0");
        Self::open(client, member, create(zero(), zero(), start)).await
    }

    async fn open(client: &Client, member: &Member, create: WatchCreateRequest) -> Result<Self, End> {
        let limit = client.request_timeout;
        let opened = timeout(limit, Self::open_unbounded(client, member, create)).await;
        opened.unwrap_or_else(|_| Err(End::Lost(format!("no watch was created within {limit:?}"))))
    }

    async fn open_unbounded(
        client: &Client,
        member: &Member,
        create: WatchCreateRequest,
    ) -> Result<Self, End> {
        let channel = member.endpoint.connect().await.map_err(|error| chain(&error))?;
        let mut watch = WatchClient::new(channel).max_decoding_message_size(MAX_RESPONSE_BYTES);
        let request = WatchRequest { request_union: Some(RequestUnion::CreateRequest(create)) };
        // The request stream stays open: its end would end the watch.
        let requests = stream::StreamExt::chain(stream::once(async { request }), stream::pending());
        let response = watch.watch(with_leader(requests)).await.map_err(|status| judge(&status).reason())?;
        let mut responses = response.into_inner();
        let created = receive(&mut responses).await?;
        client.check_cluster(created.header.as_ref())?;
        if !created.created {
            return Err(End::Lost("the member did not create the watch".to_owned()));
        }
        let revision = convert::revision(created.header.as_ref()).map_err(|error| error.to_string())?;
        Ok(Self { responses, revision })
    }

    /// Waits for events.
    ///
    /// # Cancel safety
    ///
    /// A dropped future loses nothing.
    pub(crate) async fn next(&mut self) -> Result<Batch, End> {
        let response = receive(&mut self.responses).await?;
        Ok(Batch { events: response.events, partial: response.fragment })
    }
}

fn create(key: Bytes, range_end: Bytes, start: Revision) -> WatchCreateRequest {
    WatchCreateRequest { key, range_end, start_revision: convert::wire_revision(start), fragment: true }
}

async fn receive(responses: &mut Streaming<WatchResponse>) -> Result<WatchResponse, End> {
    let response = match responses.message().await {
        Ok(Some(response)) => response,
        Ok(None) => return Err(End::Lost("the member closed the watch".to_owned())),
        Err(status) => return Err(End::Lost(judge(&status).reason())),
    };
    match (response.canceled, response.compact_revision) {
        (true, 0) => Err(End::Lost(format!("the member cancelled the watch: {}", response.cancel_reason))),
        (true, oldest) => Err(End::Compacted { oldest: convert::key_revision(oldest) }),
        (false, _) => Ok(response),
    }
}

/// The oldest revision that is left, for a caller who was told that another one is not.
pub(crate) async fn oldest_revision(client: &Client) -> Result<Revision, Error> {
    let deadline = Instant::now() + client.request_timeout;
    let start = client.members.preferred();
    let mut attempt = 0;
    loop {
        let member = client.members.at(start.wrapping_add(attempt));
        let reason = match timeout_at(deadline, ask_oldest(client, member)).await {
            Ok(End::Compacted { oldest }) => return Ok(oldest),
            Ok(End::Lost(reason)) => reason,
            Err(_) => "it does not tell what it compacted".to_owned(),
        };
        attempt += 1;
        let pause = backoff(u32::try_from(attempt).unwrap_or(u32::MAX), Duration::from_secs(1));
        if Instant::now() + pause >= deadline {
            return Err(Error::unavailable(format!("{}: {reason}", member.url)));
        }
        tokio::time::sleep(pause).await;
    }
}

/// Watches a key that nobody writes from the beginning of history, which etcd cancels, saying where
/// history begins.
async fn ask_oldest(client: &Client, member: &Member) -> End {
    let opened = Watch::open(client, member, create(Bytes::from_static(b"\0"), Bytes::new(), 1)).await;
    let mut watch = match opened {
        Ok(watch) => watch,
        Err(end) => return end,
    };
    loop {
        if let Err(end) = watch.next().await {
            return end;
        }
    }
}
