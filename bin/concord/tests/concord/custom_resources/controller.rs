//! A controller as kube-rs users write them: it owns objects that it applies, keeps a status, and cleans up by a finalizer.

use std::{sync::Arc, time::Duration};

use futures_util::StreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client, Error, Resource as _, ResourceExt as _,
    api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams},
    runtime::{
        Controller,
        controller::Action,
        finalizer::{Event, finalizer},
        watcher,
    },
};
use serde_json::{Value, json};
use tokio::{task::AbortHandle, time::timeout};

use super::{define, gadget, gadgets, kind};
use crate::support::SOON;

const GROUP: &str = "controlled.example.com";
const FINALIZER: &str = "controlled.example.com/cleanup";

/// What the controller works with.
struct Tools {
    gadgets: Api<DynamicObject>,
    maps: Api<ConfigMap>,
    resource: ApiResource,
}

/// Stops the controller when the test ends, however it does.
struct Running(AbortHandle);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn version() -> Value {
    json!({
        "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {
            "spec": {"type": "object", "properties": {"color": {"type": "string", "default": "red"}}},
            "status": {"type": "object", "properties": {
                "color": {"type": "string"}, "observedGeneration": {"type": "integer"},
            }},
        }}},
    })
}

/// There is to be a ConfigMap with the color, and the status is to say so.
async fn apply(object: &DynamicObject, tools: &Tools) -> Result<Action, Error> {
    let name = object.name_any();
    let color = object.data["spec"]["color"].as_str().unwrap_or_default();
    let owner = object.controller_owner_ref(&tools.resource).expect("it has a name and a uid");
    let map = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "ownerReferences": [owner]},
        "data": {"color": color},
    });
    let params = PatchParams::apply("tests").force();
    tools.maps.patch(&name, &params, &Patch::Apply(map)).await?;
    let status = json!({"status": {"color": color, "observedGeneration": object.metadata.generation}});
    tools.gadgets.patch_status(&name, &PatchParams::default(), &Patch::Merge(status)).await?;
    Ok(Action::await_change())
}

async fn clean_up(object: &DynamicObject, tools: &Tools) -> Result<Action, Error> {
    match tools.maps.delete(&object.name_any(), &DeleteParams::default()).await {
        Ok(_) => {}
        Err(Error::Api(status)) if status.code == 404 => {}
        Err(other) => return Err(other),
    }
    Ok(Action::await_change())
}

fn run(client: &Client, tools: Arc<Tools>) -> Running {
    let reconcile = |object: Arc<DynamicObject>, tools: Arc<Tools>| async move {
        let api = tools.gadgets.clone();
        finalizer(&api, FINALIZER, object, |event| async move {
            match event {
                Event::Apply(object) => apply(&object, &tools).await,
                Event::Cleanup(object) => clean_up(&object, &tools).await,
            }
        })
        .await
    };
    let again = |_: Arc<DynamicObject>, _: &_, _: Arc<Tools>| Action::requeue(Duration::from_millis(50));
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    let config = watcher::Config::default();
    let controller = Controller::new_with(tools.gadgets.clone(), config.clone(), tools.resource.clone());
    let reconciled = controller.owns(maps, config).run(reconcile, again, tools).for_each(|_| async {});
    Running(tokio::spawn(reconciled).abort_handle())
}

/// Waits until the object says that the controller has seen it as it is now.
async fn settled(api: &Api<DynamicObject>, name: &str) -> DynamicObject {
    let settled = async {
        loop {
            let object = api.get(name).await.expect("there");
            let seen = object.data["status"]["observedGeneration"].as_i64();
            if seen.is_some() && seen == object.metadata.generation {
                return object;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(SOON, settled).await.expect("the controller comes round")
}

pub(super) async fn a_controller_does_its_work(client: &Client) {
    define(client, &gadgets(GROUP, &json!([version()]))).await;
    let resource = kind(GROUP, "v1", "Gadget");
    let gadgets: Api<DynamicObject> = Api::namespaced_with(client.clone(), "default", &resource);
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    let tools = Tools { gadgets: gadgets.clone(), maps: maps.clone(), resource: resource.clone() };
    let _running = run(client, Arc::new(tools));

    gadgets.create(&PostParams::default(), &gadget(&resource, "kept", &json!({}))).await.expect("created");
    let object = settled(&gadgets, "kept").await;
    assert_eq!(object.data["status"]["color"], "red", "what it was given by default");
    assert_eq!(object.finalizers(), [FINALIZER]);
    let color = |map: ConfigMap| map.data.and_then(|mut data| data.remove("color"));
    assert_eq!(color(maps.get("kept").await.expect("applied")).as_deref(), Some("red"));

    let patch = Patch::Merge(json!({"spec": {"color": "blue"}}));
    gadgets.patch("kept", &PatchParams::default(), &patch).await.expect("changed");
    assert_eq!(settled(&gadgets, "kept").await.data["status"]["color"], "blue");
    assert_eq!(color(maps.get("kept").await.expect("applied")).as_deref(), Some("blue"));

    maps.delete("kept", &DeleteParams::default()).await.expect("deleted");
    let back = async {
        while maps.get_opt("kept").await.expect("an answer").is_none() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(SOON, back).await.expect("what it owns comes back");

    gadgets.delete("kept", &DeleteParams::default()).await.expect("being deleted");
    let gone = async {
        while gadgets.get_opt("kept").await.expect("an answer").is_some() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(SOON, gone).await.expect("the finalizer is removed");
    assert!(maps.get_opt("kept").await.expect("an answer").is_none(), "and cleaned up before");
}
