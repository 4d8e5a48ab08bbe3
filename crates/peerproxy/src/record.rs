//! Where a server says that it is: the endpoint record.
//!
//! It lies in the store beside the resources, at `peerserverleases/ID`, and no API serves it: nothing that a client can write
//! decides where requests are sent. kube-apiserver writes it as a core/v1 Endpoints object in protobuf and reads JSON too.

use std::{
    collections::HashMap,
    net::{IpAddr, SocketAddr},
};

use bytes::Bytes;
use prost::Message;
use serde_json::{Value, json};

/// What the keys of records begin with, after the prefix of all keys.
pub(crate) const RECORDS: &str = "peerserverleases/";

/// The label that names the server.
const LABEL: &str = "apiserverIdentity";

/// What protobuf values in the store begin with.
const MAGIC: &[u8] = b"k8s\0";

/// Why a record says nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum RecordError {
    /// Neither JSON nor protobuf of the right shape.
    #[error("the record cannot be read")]
    Unreadable,
    /// It is about another server than its key says.
    #[error("the record is about {0:?}")]
    OtherServer(String),
    /// It has no address, as that of a server that is about to end.
    #[error("the record has no address")]
    NoAddress,
    /// No server can be there.
    #[error("no server can be at {0:?}")]
    BadAddress(String),
}

#[derive(Clone, PartialEq, Message)]
struct Unknown {
    #[prost(bytes = "bytes", tag = "2")]
    raw: Bytes,
}

#[derive(Clone, PartialEq, Message)]
struct Endpoints {
    #[prost(message, optional, tag = "1")]
    metadata: Option<ObjectMeta>,
    #[prost(message, repeated, tag = "2")]
    subsets: Vec<EndpointSubset>,
}

#[derive(Clone, PartialEq, Message)]
struct ObjectMeta {
    #[prost(map = "string, string", tag = "11")]
    labels: HashMap<String, String>,
}

#[derive(Clone, PartialEq, Message)]
struct EndpointSubset {
    #[prost(message, repeated, tag = "1")]
    addresses: Vec<EndpointAddress>,
    #[prost(message, repeated, tag = "3")]
    ports: Vec<EndpointPort>,
}

#[derive(Clone, PartialEq, Message)]
struct EndpointAddress {
    #[prost(string, tag = "1")]
    ip: String,
}

#[derive(Clone, PartialEq, Message)]
struct EndpointPort {
    #[prost(int32, tag = "2")]
    port: i32,
}

/// What a record says, in whatever form.
struct Said {
    id: String,
    /// IP and port.
    place: Option<(String, i64)>,
}

/// The record of a server; without an address it says that nothing is to be sent there any more.
pub(crate) fn encode(id: &str, address: Option<SocketAddr>, generation: u64) -> Bytes {
    let subset = |address: SocketAddr| {
        json!({"addresses": [{"ip": address.ip().to_string()}],
            "ports": [{"name": "https", "port": address.port(), "protocol": "TCP"}]})
    };
    let record = json!({
        "kind": "Endpoints", "apiVersion": "v1",
        "metadata": {"generation": generation, "labels": {LABEL: id}},
        "subsets": address.map(subset).into_iter().collect::<Vec<_>>(),
    });
    record.to_string().into()
}

/// Where the server `id` is, by the record at its key.
///
/// # Errors
///
/// [`RecordError`].
pub(crate) fn decode(id: &str, value: &[u8]) -> Result<SocketAddr, RecordError> {
    let said = match value.strip_prefix(MAGIC) {
        Some(envelope) => from_protobuf(envelope),
        None => from_json(value),
    };
    let Said { id: about, place } = said.ok_or(RecordError::Unreadable)?;
    if about != id {
        return Err(RecordError::OtherServer(about));
    }
    let (ip, port) = place.ok_or(RecordError::NoAddress)?;
    let bad = || RecordError::BadAddress(format!("{ip}:{port}"));
    let address: IpAddr = ip.parse().map_err(|_| bad())?;
    let port = u16::try_from(port).ok().filter(|port| *port != 0).ok_or_else(bad)?;
    if is_dialable(address) { Ok(SocketAddr::new(address, port)) } else { Err(bad()) }
}

/// Where a server can be. What reaches many machines or none, and what every machine answers for itself, is no server's.
fn is_dialable(ip: IpAddr) -> bool {
    let is_link_local = match ip.to_canonical() {
        IpAddr::V4(ip) => ip.is_link_local() || ip.is_broadcast(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    };
    let ip = ip.to_canonical();
    !(is_link_local || ip.is_unspecified() || ip.is_multicast())
}

fn from_protobuf(envelope: &[u8]) -> Option<Said> {
    let endpoints = Endpoints::decode(Unknown::decode(envelope).ok()?.raw).ok()?;
    let id = endpoints.metadata?.labels.remove(LABEL).unwrap_or_default();
    let subset = endpoints.subsets.first();
    let ip = subset.and_then(|subset| subset.addresses.first()).map(|address| address.ip.clone());
    let port = subset.and_then(|subset| subset.ports.first()).map(|port| i64::from(port.port));
    Some(Said { id, place: ip.zip(port) })
}

fn from_json(value: &[u8]) -> Option<Said> {
    let endpoints: Value = serde_json::from_slice(value).ok()?;
    let id = endpoints["metadata"]["labels"][LABEL].as_str().unwrap_or_default().to_owned();
    let subset = &endpoints["subsets"][0];
    let ip = subset["addresses"][0]["ip"].as_str().map(ToOwned::to_owned);
    Some(Said { id, place: ip.zip(subset["ports"][0]["port"].as_i64()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a kube-apiserver wrote about itself.
    fn of_kube_apiserver() -> Vec<u8> {
        let id = "apiserver-qkqlewvapptsegjj4bzzcqpmla";
        let label = [&b"\x0a\x11apiserverIdentity\x12\x24"[..], id.as_bytes()].concat();
        let mut metadata = vec![0x0a, 0, 0x12, 0, 0x1a, 0, 0x22, 0, 0x2a, 0, 0x32, 0, 0x38, 3, 0x42, 0];
        metadata.push(0x5a);
        metadata.push(u8::try_from(label.len()).expect("short"));
        metadata.extend(label);
        let address = b"\x0a\x0d\x0a\x09127.0.0.1\x1a\x00";
        let port = b"\x1a\x10\x0a\x05https\x10\xcb\xcb\x02\x1a\x03TCP";
        let subset = [&address[..], &port[..]].concat();
        let sized =
            |tag: u8, body: &[u8]| [&[tag, u8::try_from(body.len()).expect("short")][..], body].concat();
        let raw = [sized(0x0a, &metadata), sized(0x12, &subset)].concat();
        let envelope = b"\x0a\x0f\x0a\x02v1\x12\x09Endpoints";
        [MAGIC, &envelope[..], &sized(0x12, &raw), b"\x1a\x00\x22\x00"].concat()
    }

    #[test]
    fn records_of_kube_apiserver_are_understood() {
        let value = of_kube_apiserver();
        let address = decode("apiserver-qkqlewvapptsegjj4bzzcqpmla", &value).expect("readable");
        assert_eq!(address.to_string(), "127.0.0.1:42443");
        let other = decode("apiserver-other", &value).expect_err("about another one");
        assert_eq!(other, RecordError::OtherServer("apiserver-qkqlewvapptsegjj4bzzcqpmla".to_owned()));
    }

    #[test]
    fn own_records_have_its_shape() {
        let address: SocketAddr = "[2001:db8::7]:6443".parse().expect("an address");
        let value = encode("apiserver-a", Some(address), 3);
        let expected = json!({
            "kind": "Endpoints", "apiVersion": "v1",
            "metadata": {"generation": 3, "labels": {"apiserverIdentity": "apiserver-a"}},
            "subsets": [{"addresses": [{"ip": "2001:db8::7"}],
                "ports": [{"name": "https", "port": 6443, "protocol": "TCP"}]}],
        });
        assert_eq!(serde_json::from_slice::<Value>(&value).expect("JSON"), expected);
        assert_eq!(decode("apiserver-a", &value), Ok(address));
        assert_eq!(decode("apiserver-a", &encode("apiserver-a", None, 4)), Err(RecordError::NoAddress));
    }

    #[test]
    fn nobody_is_sent_where_no_server_can_be() {
        let record = |ip: &str, port: i64| {
            json!({"metadata": {"labels": {LABEL: "a"}},
                "subsets": [{"addresses": [{"ip": ip}], "ports": [{"port": port}]}]})
            .to_string()
        };
        for (ip, port) in [
            ("0.0.0.0", 6443),
            ("::", 6443),
            ("224.0.0.1", 6443),
            ("ff02::1", 6443),
            ("169.254.169.254", 80),
            ("::ffff:169.254.169.254", 80),
            ("fe80::1", 6443),
            ("255.255.255.255", 6443),
            ("example.com", 443),
            ("10.0.0.1:80@evil", 443),
            ("", 443),
            ("10.0.0.1", 0),
            ("10.0.0.1", 65536),
            ("10.0.0.1", -1),
        ] {
            let error = decode("a", record(ip, port).as_bytes()).expect_err(ip);
            assert_eq!(error, RecordError::BadAddress(format!("{ip}:{port}")));
        }
        for garbage in [&b""[..], b"{", b"k8s\0\xff\xff", b"k8s\0", b"[1]", b"{}", b"\xff"] {
            assert!(decode("a", garbage).is_err(), "{garbage:?}");
        }
        assert!(decode("a", record("10.0.0.1", 6443).as_bytes()).is_ok());
    }
}
