//! A controller as kube-rs users write them: its kind is a type of the program, it owns objects that it applies, keeps a
//! status, and cleans up by a finalizer.

use std::{sync::Arc, time::Duration};

use futures_util::StreamExt as _;
use k8s_openapi::{
    api::core::v1::ConfigMap, apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, CustomResource, CustomResourceExt as _, Error, Resource as _, ResourceExt as _,
    api::{DeleteParams, Patch, PatchParams, PostParams},
    runtime::{
        Controller,
        conditions::is_crd_established,
        controller::Action,
        finalizer::{Event, finalizer},
        wait::await_condition,
        watcher,
    },
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::{task::AbortHandle, time::timeout};

use crate::support::SOON;

const FINALIZER: &str = "controlled.example.com/cleanup";

/// A lamp of some color.
#[derive(CustomResource, Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[kube(group = "controlled.example.com", version = "v1", kind = "Lamp", namespaced)]
#[kube(status = "LampStatus", shortname = "lp", selectable = ".spec.color")]
#[kube(printcolumn = r#"{"name":"Color","type":"string","jsonPath":".spec.color"}"#)]
struct LampSpec {
    /// Given by the server if nobody says one.
    #[serde(default = "red")]
    color: String,
    /// How bright it is, if it is on.
    brightness: Option<u8>,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct LampStatus {
    color: String,
    observed_generation: i64,
}

fn red() -> String {
    "red".to_owned()
}

/// What the controller works with.
struct Tools {
    lamps: Api<Lamp>,
    maps: Api<ConfigMap>,
}

/// Stops the controller when the test ends, however it does.
struct Running(AbortHandle);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// There is to be a ConfigMap with the color, and the status is to say so.
async fn apply(lamp: &Lamp, tools: &Tools) -> Result<Action, Error> {
    let (name, color) = (lamp.name_any(), &lamp.spec.color);
    let owner = lamp.controller_owner_ref(&()).expect("it has a name and a uid");
    let map = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "ownerReferences": [owner]},
        "data": {"color": color},
    });
    let params = PatchParams::apply("tests").force();
    tools.maps.patch(&name, &params, &Patch::Apply(map)).await?;
    let observed_generation = lamp.metadata.generation.unwrap_or_default();
    let status = json!({
        "apiVersion": Lamp::api_version(&()), "kind": Lamp::kind(&()),
        "status": LampStatus { color: color.clone(), observed_generation },
    });
    tools.lamps.patch_status(&name, &params, &Patch::Apply(status)).await?;
    Ok(Action::await_change())
}

async fn clean_up(lamp: &Lamp, tools: &Tools) -> Result<Action, Error> {
    match tools.maps.delete(&lamp.name_any(), &DeleteParams::default()).await {
        Ok(_) => {}
        Err(Error::Api(status)) if status.code == 404 => {}
        Err(other) => return Err(other),
    }
    Ok(Action::await_change())
}

fn run(client: &Client, tools: Arc<Tools>) -> Running {
    let reconcile = |lamp: Arc<Lamp>, tools: Arc<Tools>| async move {
        let api = tools.lamps.clone();
        finalizer(&api, FINALIZER, lamp, |event| async move {
            match event {
                Event::Apply(lamp) => apply(&lamp, &tools).await,
                Event::Cleanup(lamp) => clean_up(&lamp, &tools).await,
            }
        })
        .await
    };
    let again = |_: Arc<Lamp>, _: &_, _: Arc<Tools>| Action::requeue(Duration::from_millis(50));
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let config = watcher::Config::default();
    let controller = Controller::new(tools.lamps.clone(), config.clone());
    let reconciled = controller.owns(maps, config).run(reconcile, again, tools).for_each(|_| async {});
    Running(tokio::spawn(reconciled).abort_handle())
}

/// The definition comes from the type, and is applied, as programs do that bring their kinds along.
async fn define(client: &Client) {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let (params, definition) = (PatchParams::apply("tests").force(), Lamp::crd());
    for _ in 0..2 {
        let applied = definitions.patch(Lamp::crd_name(), &params, &Patch::Apply(&definition)).await;
        applied.expect("a definition");
    }
    let established = await_condition(definitions, Lamp::crd_name(), is_crd_established());
    timeout(SOON, established).await.expect("in time").expect("established");
}

/// Waits until the object says that the controller has seen it as it is now.
async fn settled(api: &Api<Lamp>, name: &str) -> Lamp {
    let settled = async {
        loop {
            let lamp = api.get(name).await.expect("there");
            let seen = lamp.status.as_ref().map(|status| status.observed_generation);
            if seen.is_some() && seen == lamp.metadata.generation {
                return lamp;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(SOON, settled).await.expect("the controller comes round")
}

pub(super) async fn a_controller_does_its_work(client: &Client) {
    define(client).await;
    let lamps: Api<Lamp> = Api::default_namespaced(client.clone());
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let _running = run(client, Arc::new(Tools { lamps: lamps.clone(), maps: maps.clone() }));

    let plain = json!({"apiVersion": Lamp::api_version(&()), "kind": "Lamp", "metadata": {"name": "kept"}, "spec": {}});
    lamps.patch("kept", &PatchParams::apply("user"), &Patch::Apply(plain)).await.expect("applied");
    let lamp = settled(&lamps, "kept").await;
    assert_eq!(lamp.spec.color, "red", "what it was given by default");
    assert_eq!(lamp.status.as_ref().map(|status| status.color.as_str()), Some("red"));
    assert_eq!(lamp.finalizers(), [FINALIZER]);
    let managers =
        lamp.managed_fields().iter().map(|entry| (entry.manager.as_deref(), entry.subresource.as_deref()));
    let managers: Vec<_> = managers.collect();
    assert!(managers.contains(&(Some("user"), None)) && managers.contains(&(Some("tests"), Some("status"))));
    let color = |map: ConfigMap| map.data.and_then(|mut data| data.remove("color"));
    assert_eq!(color(maps.get("kept").await.expect("applied")).as_deref(), Some("red"));

    let patch = Patch::Merge(json!({"spec": {"color": "blue"}}));
    lamps.patch("kept", &PatchParams::default(), &patch).await.expect("changed");
    assert_eq!(settled(&lamps, "kept").await.status.map(|status| status.color).as_deref(), Some("blue"));
    assert_eq!(color(maps.get("kept").await.expect("applied")).as_deref(), Some("blue"));
    let mut lamp = lamps.get("kept").await.expect("there");
    lamp.spec.brightness = Some(7);
    lamps.replace("kept", &PostParams::default(), &lamp).await.expect("replaced");
    assert_eq!(settled(&lamps, "kept").await.spec.brightness, Some(7));

    maps.delete("kept", &DeleteParams::default()).await.expect("deleted");
    let back = async {
        while maps.get_opt("kept").await.expect("an answer").is_none() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(SOON, back).await.expect("what it owns comes back");

    lamps.delete("kept", &DeleteParams::default()).await.expect("being deleted");
    let gone = async {
        while lamps.get_opt("kept").await.expect("an answer").is_some() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(SOON, gone).await.expect("the finalizer is removed");
    assert!(maps.get_opt("kept").await.expect("an answer").is_none(), "and cleaned up before");
}
