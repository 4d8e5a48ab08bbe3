//! ComponentStatuses: how the other parts of a control plane are, as far as they are on this machine.

use std::{net::Ipv4Addr, sync::Arc, time::Duration};

use async_trait::async_trait;
use concord_forward::{Backend, Connector, ForwardError, TcpDial};
use concord_meta::{GroupResource, Status};
use concord_pki::{Trust, client_tls};
use concord_registry::{Invocation, Object, Resource, Schema, Virtual};
use concord_server::{Deadline, full, read_body};
use concord_store::Store;
use concord_webhook::reason;
use rustls::pki_types::ServerName;
use serde_json::{Value, json};
use tokio::time::timeout;

/// Where upstream looks for them: on the machine, at the ports they have if nobody says otherwise.
const SERVERS: [(&str, u16); 2] = [("controller-manager", 10257), ("scheduler", 10259)];
const STORE: &str = "etcd-0";
/// How long one may take to answer, and how much of that is told.
const PATIENCE: Duration = Duration::from_secs(20);
const MOST: usize = 10 << 10;

/// Asks all of them whenever somebody wants to know.
pub(crate) struct ComponentStatuses {
    pub(crate) schema: Arc<Schema>,
    pub(crate) store: Arc<dyn Store>,
}

#[async_trait]
impl Virtual for ComponentStatuses {
    fn schema(&self) -> Arc<Schema> {
        self.schema.clone()
    }

    async fn create(&self, invocation: Invocation<'_>, _: Object) -> Result<Object, Status> {
        Err(Status::method_not_supported(&invocation.resource.group_resource(), "create"))
    }

    async fn get(&self, _: &Resource, name: &str) -> Result<Object, Status> {
        let server = SERVERS.iter().find(|(server, _)| *server == name);
        match server {
            Some((_, port)) => Ok(object(name, &probe(*port).await)),
            None if name == STORE => Ok(object(name, &probe_store(self.store.clone()).await)),
            // Upstream's name for the resource, which is not the one in its path.
            None => Err(Status::not_found(&GroupResource::new("", "componentstatus"), name)),
        }
    }

    async fn list(&self, _: &Resource) -> Result<Vec<Object>, Status> {
        let [(manager, manager_port), (scheduler, scheduler_port)] = SERVERS;
        let (first, second, store) =
            tokio::join!(probe(manager_port), probe(scheduler_port), probe_store(self.store.clone()));
        Ok(vec![object(manager, &first), object(scheduler, &second), object(STORE, &store)])
    }
}

async fn probe_store(store: Arc<dyn Store>) -> Value {
    match timeout(PATIENCE, store.health()).await {
        Ok(Ok(())) => healthy("ok"),
        Ok(Err(error)) => json!({"type": "Healthy", "status": "False", "error": error.to_string()}),
        Err(_) => json!({"type": "Healthy", "status": "False", "error": "context deadline exceeded"}),
    }
}

fn object(name: &str, condition: &Value) -> Object {
    Object::from_iter([
        ("kind".to_owned(), "ComponentStatus".into()),
        ("apiVersion".to_owned(), "v1".into()),
        ("metadata".to_owned(), json!({"name": name})),
        ("conditions".to_owned(), json!([condition])),
    ])
}

fn healthy(message: &str) -> Value {
    json!({"type": "Healthy", "status": "True", "message": message})
}

fn unhealthy(message: &str) -> Value {
    json!({"type": "Healthy", "status": "False", "message": message})
}

/// How a server says that it is, at this port of the machine.
async fn probe(port: u16) -> Value {
    let failed = |why: &str| unhealthy(&format!("Get \"https://127.0.0.1:{port}/healthz\": {why}"));
    match timeout(PATIENCE, ask(port)).await {
        Ok(Ok((200..400, text))) => healthy(&text),
        Ok(Ok((code, _))) => unhealthy(&format!("HTTP probe failed with statuscode: {code}")),
        Ok(Err(why)) => failed(&why),
        Err(_) => failed("context deadline exceeded (Client.Timeout exceeded while awaiting headers)"),
    }
}

async fn ask(port: u16) -> Result<(u16, String), String> {
    let place = (Ipv4Addr::LOCALHOST, port);
    // Whoever can be reached at these ports of the machine is believed, as by upstream: nothing secret is said.
    let tls = client_tls(&Trust::Anybody, None).map_err(|error| error.to_string())?;
    let name = ServerName::from(std::net::IpAddr::from(place.0));
    let connector = Connector::new(Arc::new(TcpDial(place.into())), &tls, name, PATIENCE);
    let authority = format!("127.0.0.1:{port}").parse().map_err(|error| format!("{error}"))?;
    let request = http::Request::get("/healthz").header("user-agent", "kube-probe/").body(full(""));
    let request = request.map_err(|error| error.to_string())?;
    let answer = Backend::new(authority, connector).ask(request).await.map_err(|error| match &error {
        ForwardError::Connect(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => {
            format!("dial tcp 127.0.0.1:{port}: connect: connection refused")
        }
        ForwardError::Connect(error) => reason(&**error),
        other => other.to_string(),
    })?;
    let code = answer.status().as_u16();
    let body = read_body(&mut answer.into_body(), MOST, Deadline::NONE).await.unwrap_or_default();
    Ok((code, String::from_utf8_lossy(&body).into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn nobody_at_a_port_is_told_as_go_does() {
        // A port that was free a moment ago.
        let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = free.local_addr().expect("an address").port();
        drop(free);
        let why = format!(
            "Get \"https://127.0.0.1:{port}/healthz\": dial tcp 127.0.0.1:{port}: connect: connection refused"
        );
        assert_eq!(probe(port).await, unhealthy(&why));
    }
}
