//! Upstream's protocol, version 2: gRPC on a unix socket.

use std::{collections::BTreeMap, time::Duration};

use concord_encryption::{Kms, SourceType, Wrapped};
use rand::RngExt as _;
use tonic::{
    Code, Request, Status,
    client::Grpc,
    codegen::http::{Uri, uri::PathAndQuery},
    transport::{Channel, Endpoint},
};
use tonic_prost::ProstCodec;
use zeroize::Zeroizing;

#[derive(Clone, PartialEq, prost::Message)]
struct StatusRequest {}

/// What a service says about itself.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct StatusResponse {
    #[prost(string, tag = "1")]
    pub(super) version: String,
    #[prost(string, tag = "2")]
    pub(super) healthz: String,
    #[prost(string, tag = "3")]
    pub(super) key_id: String,
}

#[derive(Clone, PartialEq, prost::Message)]
struct DecryptRequest {
    #[prost(bytes = "vec", tag = "1")]
    ciphertext: Vec<u8>,
    #[prost(string, tag = "2")]
    uid: String,
    #[prost(string, tag = "3")]
    key_id: String,
    #[prost(btree_map = "string, bytes", tag = "4")]
    annotations: BTreeMap<String, Vec<u8>>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct DecryptResponse {
    #[prost(bytes = "vec", tag = "1")]
    plaintext: Vec<u8>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct EncryptRequest {
    #[prost(bytes = "vec", tag = "1")]
    plaintext: Vec<u8>,
    #[prost(string, tag = "2")]
    uid: String,
}

#[derive(Clone, PartialEq, prost::Message)]
struct EncryptResponse {
    #[prost(bytes = "vec", tag = "1")]
    ciphertext: Vec<u8>,
    #[prost(string, tag = "2")]
    key_id: String,
    #[prost(btree_map = "string, bytes", tag = "3")]
    annotations: BTreeMap<String, Vec<u8>>,
}

/// Why a service did not do what it was asked for.
pub(super) struct Failure {
    /// As upstream prints it.
    pub(super) text: String,
    /// Whether it could not be asked at all, or did not answer.
    pub(super) is_of_the_service: bool,
}

impl From<Status> for Failure {
    fn from(status: Status) -> Self {
        let is_of_the_service = matches!(
            status.code(),
            Code::Unavailable | Code::DeadlineExceeded | Code::Cancelled | Code::Unknown
        );
        let text = format!("rpc error: code = {:?} desc = {}", status.code(), status.message());
        Self { text, is_of_the_service }
    }
}

pub(super) struct Client {
    /// Nothing if it can never be reached: its address makes no sense.
    channel: Option<Channel>,
    timeout: Duration,
}

impl Client {
    /// Connects when it is asked something.
    pub(super) fn new(service: &Kms) -> Self {
        let endpoint = Endpoint::from_shared(service.endpoint.clone()).ok();
        let endpoint = endpoint.map(|endpoint| endpoint.origin(Uri::from_static("http://localhost")));
        let timeout = Duration::from_nanos(service.timeout.try_into().unwrap_or_default());
        Self { channel: endpoint.map(|endpoint| endpoint.connect_lazy()), timeout }
    }

    pub(super) async fn status(&self) -> Result<StatusResponse, Failure> {
        self.call("/v2.KeyManagementService/Status", StatusRequest {}).await
    }

    pub(super) async fn encrypt(&self, plain: &[u8]) -> Result<Wrapped, Failure> {
        let request = EncryptRequest { plaintext: plain.to_vec(), uid: uid() };
        let answer: EncryptResponse = self.call("/v2.KeyManagementService/Encrypt", request).await?;
        let EncryptResponse { ciphertext: source, key_id, annotations } = answer;
        Ok(Wrapped { source, source_type: SourceType::Seed, key_id, annotations })
    }

    pub(super) async fn decrypt(&self, wrapped: &Wrapped) -> Result<Zeroizing<Vec<u8>>, Failure> {
        let Wrapped { source, key_id, annotations, .. } = wrapped.clone();
        let request = DecryptRequest { ciphertext: source, uid: uid(), key_id, annotations };
        let answer: DecryptResponse = self.call("/v2.KeyManagementService/Decrypt", request).await?;
        Ok(Zeroizing::new(answer.plaintext))
    }

    async fn call<Q, A>(&self, method: &'static str, request: Q) -> Result<A, Failure>
    where
        Q: prost::Message + Send + Sync + 'static,
        A: prost::Message + Default + Send + Sync + 'static,
    {
        let channel =
            self.channel.clone().ok_or_else(|| Status::unavailable("the address cannot be used"))?;
        let mut grpc = Grpc::new(channel);
        let ask = async {
            grpc.ready().await.map_err(|error| Status::unavailable(error.to_string()))?;
            let codec = ProstCodec::<Q, A>::default();
            grpc.unary(Request::new(request), PathAndQuery::from_static(method), codec).await
        };
        let late = |_| Status::deadline_exceeded("context deadline exceeded");
        let answer = tokio::time::timeout(self.timeout, ask).await.map_err(late)??;
        Ok(answer.into_inner())
    }
}

/// By which a request is found in the logs of both.
fn uid() -> String {
    uuid::Builder::from_random_bytes(rand::rng().random()).into_uuid().to_string()
}
