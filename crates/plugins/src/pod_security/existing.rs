//! Pods that were there before: what a new policy would make of them, and which changes of them matter.

use std::{
    collections::{BTreeMap, HashSet},
    time::{Duration, Instant},
};

use concord_meta::Status;
use concord_registry::{Object, metadata};
use serde_json::Value;

use super::check::{Pod, Violation, reasons};
use crate::at;

/// Of how many pods a namespace that gets a policy is told, and for how long they are looked at.
const MOST: usize = 3000;
const LONGEST: Duration = Duration::from_secs(1);

/// What there is to say of the pods of a namespace that is to have another level.
pub(super) fn warnings(
    pods: impl Iterator<Item = Result<Object, Status>>,
    namespace: &str,
    is_exempt: impl Fn(&Object) -> bool,
    check: impl Fn(Pod<'_>) -> Vec<Violation>,
    level: &str,
) -> Result<Vec<String>, Status> {
    let started = Instant::now();
    let (mut first, mut others, mut controllers, mut all) = (Vec::new(), Vec::new(), HashSet::new(), 0);
    for pod in pods {
        let pod = pod?;
        if pod.get("spec").and_then(Value::as_object).is_some_and(&is_exempt) {
            continue;
        }
        all += 1;
        let is_new = controller(&pod).is_none_or(|uid| controllers.insert(uid.to_owned()));
        let list = if is_new { &mut first } else { &mut others };
        if list.len() < MOST {
            list.push(pod);
        }
    }
    // Pods of one controller are alike: those of others are looked at before.
    let pods = first.iter().chain(&others).take(MOST);
    let (mut told, mut checked): (BTreeMap<String, (&str, usize)>, _) = (BTreeMap::new(), 0);
    for pod in pods {
        checked += 1;
        let violations = Pod::of(pod).map(&check).unwrap_or_default();
        if !violations.is_empty() {
            let name = metadata(pod).name();
            let entry = told.entry(reasons(&violations)).or_insert((name, 0));
            *entry = (entry.0.min(name), entry.1 + 1);
        }
        if started.elapsed() > LONGEST {
            break;
        }
    }
    let mut warnings = Vec::new();
    if checked < all {
        warnings.push(format!(
            "new PodSecurity enforce level only checked against the first {checked} of {all} existing pods"
        ));
    }
    if !told.is_empty() {
        warnings.push(format!(
            "existing pods in namespace \"{namespace}\" violate the new PodSecurity enforce level \"{level}\""
        ));
    }
    let mut lines: Vec<String> = told.iter().map(|(why, pods)| line(why, *pods)).collect();
    lines.sort();
    warnings.extend(lines);
    Ok(warnings)
}

fn line(why: &str, (name, count): (&str, usize)) -> String {
    match count {
        0 | 1 => format!("{name}: {why}"),
        2 => format!("{name} (and 1 other pod): {why}"),
        _ => format!("{name} (and {} other pods): {why}", count - 1),
    }
}

fn controller(pod: &Object) -> Option<&str> {
    let owners = metadata(pod).get("ownerReferences").and_then(Value::as_array)?;
    owners.iter().find(|owner| owner["controller"] == true)?.get("uid")?.as_str()
}

/// Whether an update makes a pod something else: all that can change is which images it runs.
pub(super) fn is_significant(new: &Object, old: &Object) -> bool {
    let list = |pod: &'_ Object, name: &str| -> Vec<(String, String)> {
        let containers = at(pod, &["spec", name]).and_then(Value::as_array).into_iter().flatten();
        let text = |container: &Value, field: &str| container[field].as_str().unwrap_or_default().to_owned();
        containers.map(|container| (text(container, "name"), text(container, "image"))).collect()
    };
    let images = |pod: &Object, name: &str| -> Vec<String> {
        list(pod, name).into_iter().map(|(_, image)| image).collect()
    };
    let changed = |name: &&str| images(new, name) != images(old, name);
    let before = list(old, "ephemeralContainers");
    ["containers", "initContainers"].iter().any(changed)
        || list(new, "ephemeralContainers").iter().any(|container| !before.contains(container))
}
