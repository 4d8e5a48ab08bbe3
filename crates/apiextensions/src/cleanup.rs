//! Definitions that are being deleted lose their objects first.

use concord_meta::{
    Status,
    options::{DeleteOptions, ListOptions, Query},
};
use concord_registry::{Context, ListRequest, Object, Part, Resource, metadata, metadata_mut};
use concord_replica::{Closed, Scope};
use serde_json::{Value, json};

use crate::{
    CustomResourceController,
    conditions::{Condition, set},
    controller::now,
    definition::holds,
};

/// What holds a definition until its objects are gone.
const FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

/// Takes a definition that is being deleted to its end.
pub(crate) async fn advance(
    controller: &CustomResourceController,
    name: &str,
    mut definition: Object,
) -> Result<(), Status> {
    if !metadata(&definition).finalizers().contains(&FINALIZER) {
        return Ok(());
    }
    let group = definition.get("spec").and_then(|spec| spec["group"].as_str()).unwrap_or_default();
    let condition = match holds(&definition, "Established") {
        false => done("NeverEstablished", "resource was never established"),
        // Its keys may be those of the server's own objects.
        true if controller.is_built_in(group) => {
            done("OverlappingBuiltInResource", "instances overlap with built-in resources in storage")
        }
        true => {
            // Objects that cannot be found must not be taken for objects that are not there.
            let resource = controller.customs.any_resource(name, &definition).ok_or_else(|| {
                Status::internal_error(format!("the objects of {name} cannot be found: it cannot be read"))
            })?;
            let begun = pending("InstanceDeletionInProgress", "CustomResource deletion is in progress");
            if tell(&mut definition, begun) {
                // The write makes an event, and with it we come here again.
                return controller.write(name, Part::Sub("status"), definition).await;
            }
            delete_all(controller, &resource).await?;
            done("InstanceDeletionCompleted", "removed all instances")
        }
    };
    if tell(&mut definition, condition) {
        return controller.write(name, Part::Sub("status"), definition).await;
    }
    release(&mut definition);
    controller.write(name, Part::Main, definition).await
}

fn pending(reason: &'static str, message: &str) -> Condition {
    Condition { name: "Terminating", holds: true, reason, message: message.to_owned() }
}

fn done(reason: &'static str, message: &str) -> Condition {
    Condition { holds: false, ..pending(reason, message) }
}

/// Whether a condition is new. A deletion that is over does not begin again.
fn tell(definition: &mut Object, condition: Condition) -> bool {
    let status = definition.entry("status").or_insert_with(|| json!({}));
    let conditions = status["conditions"].as_array().into_iter().flatten();
    let mut told = conditions.filter(|given| given["type"] == "Terminating");
    if condition.holds && told.any(|given| given["status"] == "False") {
        return false;
    }
    set(status, condition, now())
}

fn release(definition: &mut Object) {
    if let Some(Value::Array(finalizers)) = metadata_mut(definition).get_mut("finalizers") {
        finalizers.retain(|finalizer| finalizer != FINALIZER);
    }
}

/// Deletes all objects of a resource, and waits until they are gone: no new one can be written, so looking once is
/// enough.
async fn delete_all(controller: &CustomResourceController, resource: &Resource) -> Result<(), Status> {
    let Some(storage) = resource.storage() else { return Ok(()) };
    let everything = ListOptions::from_query(Query::<&str>(&[]))?;
    let request = ListRequest { namespace: None, options: &everything };
    let context = Context::of_the_server(now());
    let options = DeleteOptions::default();
    controller.registry.delete_collection(&context, resource, request, &options).await?;
    let scope = Scope::prefix(storage.prefix.clone());
    let subscribed = controller.registry.replica().snapshot_and_subscribe(scope.clone());
    let (mut snapshot, mut changes) = subscribed.map_err(Status::internal_error)?;
    while snapshot.scan(&scope.range()).next().is_some() {
        match changes.next().await {
            Ok(_) => {}
            Err(Closed::Shutdown | Closed::Failed) => return Err(Status::internal_error("the log ended")),
            Err(_) => return Err(Status::too_many_requests("fell behind the log", 1)),
        }
        snapshot = controller.registry.replica().newest().map_err(Status::internal_error)?;
    }
    Ok(())
}
