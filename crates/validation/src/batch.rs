//! Jobs and CronJobs.

mod cron;
mod indexes;
mod policies;
mod status;

use concord_meta::{field::BadValue, names};
use serde_json::{Map, Value};

use crate::{
    apps::is_new_generation,
    gates::Gate,
    internal,
    labels::{self, Values, selector},
    meta,
    node::{Node, Root},
    pod::{self, Options},
    rules::{IMMUTABLE, domain_prefixed_path, same},
};

const MANY: i64 = 100_000;
const MANY_IN_BIG_JOBS: i64 = 10_000;
const MAX_MANAGED_BY: usize = 63;
const MAX_CRON_JOB_NAME: usize = 52;
/// The labels by which a Job finds its pods, old and new; the first pair goes by the Job's identity, the second by name.
const LEGACY_LABELS: [&str; 2] = ["controller-uid", "job-name"];
const LABELS: [&str; 2] = ["batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name"];

pub(crate) fn job(root: Root<'_>) {
    whole_job(root, &Options::default(), true);
}

fn whole_job<'v>(root: Root<'v>, options: &Options<'v>, prefixed_labels: bool) {
    generated_selector(root, prefixed_labels);
    let spec = root.get("spec");
    job_spec(spec, options);
    let completions = spec.num("completions");
    if spec.str("completionMode") == "Indexed" && completions > 0 {
        let name = root.name();
        let hostname = format!("{name}-{}", completions - 1);
        if !names::dns1123_label(&hostname).is_empty() {
            let detail = format!("will not able to create pod with invalid DNS label: {hostname}");
            root.child("metadata").child("name").invalid(name, detail);
        }
    }
}

/// What the server puts into a Job is there, unless the client took that over.
fn generated_selector(root: Root<'_>, prefixed_labels: bool) {
    let spec = root.get("spec");
    if spec.flag("manualSelector") || !spec.has("selector") {
        return;
    }
    let metadata = root.metadata();
    let uid = metadata.str("uid");
    if uid.is_empty() {
        metadata.child("uid").required("");
    }
    let template = spec.get("template").get2("metadata", "labels");
    let mut expected = Map::new();
    let all = if prefixed_labels { &[LEGACY_LABELS, LABELS][..] } else { &[LEGACY_LABELS][..] };
    for [by_uid, by_name] in all {
        for (label, value) in [(by_uid, uid), (by_name, root.name())] {
            expected.insert((*label).to_owned(), value.into());
            let detail = || format!("must be '{value}'");
            match template.raw(label) {
                None => template.key(label).required(detail()),
                Some(found) if found != value => template.key(label).invalid(template.shown(), detail()),
                Some(_) => {}
            }
        }
    }
    let node = spec.get("selector");
    if labels::matches(node, Some(&expected)) == Some(false) {
        node.invalid(labels::shown(node), "`selector` not auto-generated");
    }
}

fn job_spec<'v>(spec: Node<'v>, options: &Options<'v>) {
    common_spec(spec, options);
    let node = spec.get("selector");
    match node.is_set() {
        true => selector(node, options.selector_values),
        false => node.required(""),
    }
    let template = spec.get("template");
    let found = template.get2("metadata", "labels");
    if labels::matches(node, found.object()) == Some(false) {
        found.invalid(found.shown(), "`selector` does not match template `labels`");
    }
}

fn common_spec<'v>(spec: Node<'v>, options: &Options<'v>) {
    const COUNTS: [&str; 7] = [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ];
    COUNTS.iter().for_each(|name| spec.get(name).nonnegative());
    let per_index = spec.get("backoffLimitPerIndex");
    if spec.has("maxFailedIndexes") && !per_index.is_set() {
        per_index.required("when maxFailedIndexes is specified");
    }
    let manager = spec.get("managedBy");
    if manager.is_set() {
        domain_prefixed_path(manager, manager.text());
        if manager.text().len() > MAX_MANAGED_BY {
            manager.too_long(MAX_MANAGED_BY);
        }
    }
    completion_mode(spec);
    policies::failure(spec);
    policies::success(spec);
    policies::replacement(spec);
    let template = spec.get("template");
    pod::template(template, options);
    restart_policy(spec, template.get2("spec", "restartPolicy"));
}

fn completion_mode(spec: Node<'_>) {
    let mode = spec.get("completionMode");
    if mode.is_set() {
        mode.one_of(&["NonIndexed", "Indexed"]);
    }
    if mode.text() == "Indexed" {
        return indexed(spec);
    }
    if !mode.is_set() || mode.text() == "NonIndexed" {
        for name in ["backoffLimitPerIndex", "maxFailedIndexes"] {
            let node = spec.get(name);
            if node.is_set() {
                node.wrong("requires indexed completion mode");
            }
        }
    }
}

fn indexed(spec: Node<'_>) {
    let (completions, parallelism, failed) =
        (spec.get("completions"), spec.get("parallelism"), spec.get("maxFailedIndexes"));
    if !completions.is_set() {
        completions.required("when completion mode is Indexed");
    }
    let at_most = |node: Node<'_>, most: i64, when: &str| {
        if let Some(number) = node.int().filter(|number| *number > most) {
            node.invalid(number, format!("must be less than or equal to {most}{when}"));
        }
    };
    at_most(parallelism, MANY, " when completion mode is Indexed");
    if let (Some(all), Some(number)) = (completions.int(), failed.int())
        && number > all
    {
        failed.invalid(number, "must be less than or equal to completions");
    }
    at_most(failed, MANY, "");
    if completions.int().is_some_and(|all| all > MANY) && spec.has("backoffLimitPerIndex") {
        if !failed.is_set() {
            failed.required(format!("must be specified when completions is above {MANY}"));
        }
        let when = format!(" when completions are above {MANY} and used with backoff limit per index");
        at_most(parallelism, MANY_IN_BIG_JOBS, &when);
        at_most(failed, MANY_IN_BIG_JOBS, &when);
    }
}

fn restart_policy(spec: Node<'_>, policy: Node<'_>) {
    match policy.text() {
        "" | "Always" => policy.required("valid values: \"OnFailure\", \"Never\""),
        "OnFailure" if spec.has("podFailurePolicy") => policy.invalid(
            BadValue::named("OnFailure"),
            "only \"Never\" is supported when podFailurePolicy is specified",
        ),
        _ => policy.one_of(&["OnFailure", "Never"]),
    }
}

pub(crate) fn job_update<'v>(subresource: &str, new: Root<'v>, old: Root<'v>) {
    if subresource == "status" {
        meta::update(new, old);
        return status::update(new, old);
    }
    let (spec, before) = (new.get("spec"), old.get("spec"));
    let mut options = Options::for_template(before.get("template"));
    if before.get("selector").breaks(|node| selector(node, Values::Labels)) {
        options.selector_values = Values::Any;
    }
    let labels = before.get("template").get2("metadata", "labels");
    meta::whole(new);
    whole_job(new, &options, LABELS.iter().all(|label| labels.has(label)));
    meta::update(new, old);
    job_spec(spec, &options);
    unchanged(spec, before, old.get("status"));
}

fn unchanged<'v>(spec: Node<'v>, before: Node<'v>, old_status: Node<'v>) {
    completions(spec, before);
    let node = spec.get("selector");
    if !same(node.value(), before.raw("selector")) {
        node.invalid(labels::shown(node), IMMUTABLE);
    }
    template_update(spec, before, old_status);
    let fixed = |name: &'static str, shown: fn(Node<'_>) -> BadValue| {
        let node = spec.get(name);
        if !same(node.value(), before.raw(name)) {
            node.invalid(shown(node), IMMUTABLE);
        }
    };
    fixed("completionMode", named_or_null);
    fixed("podFailurePolicy", |node| struct_or_null("PodFailurePolicy", node));
    fixed("backoffLimitPerIndex", |node| node.shown());
    fixed("managedBy", named_or_null);
    fixed("successPolicy", |node| struct_or_null("SuccessPolicy", node));
}

fn named_or_null(node: Node<'_>) -> BadValue {
    if node.is_set() { BadValue::named(node.text()) } else { BadValue::verbatim("null") }
}

fn struct_or_null(type_name: &'static str, node: Node<'_>) -> BadValue {
    if node.is_set() { internal::shown(type_name, node.value()) } else { BadValue::verbatim("null") }
}

fn completions(spec: Node<'_>, before: Node<'_>) {
    let node = spec.get("completions");
    if node.value() == before.raw("completions") {
        return;
    }
    if spec.str("completionMode") != "Indexed" {
        node.wrong(IMMUTABLE);
    } else if node.is_set() && node.value() != spec.raw("parallelism") {
        node.wrong("can only be modified in tandem with spec.parallelism");
    }
}

/// Whether a Job is suspended and none of its pods runs.
fn is_stopped(spec: Node<'_>, status: Node<'_>) -> bool {
    let is_true = |kind: &str| {
        let mut conditions = status.get("conditions").items();
        conditions.any(|condition| condition.str("type") == kind && condition.str("status") == "True")
    };
    spec.flag("suspend") && (!status.has("startTime") || is_true("Suspended")) && status.num("active") == 0
}

/// The template of a Job that does not run may get other directives for scheduling, and other resources; of what else it
/// says only the pods count then.
fn template_update(spec: Node<'_>, before: Node<'_>, old_status: Node<'_>) {
    let (template, old) = (spec.get("template"), before.get("template"));
    let (Some(new_value), Some(mut expected)) = (template.value(), old.value().cloned()) else { return };
    let stopped = is_stopped(before, old_status);
    let directives = match spec.gate(Gate::MutableSchedulingDirectivesForSuspendedJobs) {
        true => stopped,
        false => before.flag("suspend") && !old_status.has("startTime"),
    };
    let mutable = stopped && spec.gate(Gate::MutablePodResourcesForSuspendedJobs);
    if directives {
        for path in [
            "/metadata/annotations",
            "/metadata/labels",
            "/spec/nodeSelector",
            "/spec/tolerations",
            "/spec/schedulingGates",
        ] {
            copy(&mut expected, new_value, path);
        }
        copy(&mut expected, new_value, "/spec/affinity/nodeAffinity");
    }
    if mutable {
        for list in ["containers", "initContainers"] {
            resources(&mut expected, new_value, list);
        }
    }
    if mutable {
        if !same(new_value.get("spec"), expected.get("spec")) {
            let shown = internal::shown("PodSpec", template.raw("spec"));
            spec.child("template.spec").invalid(shown, IMMUTABLE);
        }
    } else if !same(Some(new_value), Some(&expected)) {
        template.invalid(internal::shown("PodTemplateSpec", template.value()), IMMUTABLE);
    }
}

/// Makes what is at a path what it is in another value, with the objects on the way.
fn copy(target: &mut Value, source: &Value, path: &str) {
    let found = source.pointer(path).cloned();
    let mut place = target;
    let mut names = path.split('/').skip(1).peekable();
    while let Some(name) = names.next() {
        let Some(members) = place.as_object_mut() else { return };
        if names.peek().is_none() {
            match found {
                Some(found) => drop(members.insert(name.to_owned(), found)),
                None => drop(members.remove(name)),
            }
            return;
        }
        place = members.entry(name).or_insert_with(|| Value::Object(Map::new()));
    }
}

fn resources(expected: &mut Value, new: &Value, list: &str) {
    let path = format!("/spec/{list}");
    let containers = new.pointer(&path).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let Some(olds) = expected.pointer_mut(&path).and_then(Value::as_array_mut) else { return };
    if olds.len() == containers.len() {
        for (old, new) in
            olds.iter_mut().zip(containers).filter(|(old, new)| old.get("name") == new.get("name"))
        {
            copy(old, new, "/resources");
        }
    }
}

pub(crate) fn cron_job(root: Root<'_>) {
    cron_job_spec(root.get("spec"), None, &Options::default());
    let name = root.name();
    if name.len() > MAX_CRON_JOB_NAME {
        let detail = format!("must be no more than {MAX_CRON_JOB_NAME} characters");
        root.child("metadata").child("name").invalid(name, detail);
    }
}

fn cron_job_spec<'v>(spec: Node<'v>, before: Option<Node<'v>>, options: &Options<'v>) {
    let schedule = spec.get("schedule");
    if schedule.text().is_empty() {
        schedule.required("");
    } else {
        let had_zone = before.is_some_and(|before| before.str("schedule").contains("TZ"));
        cron::schedule(schedule, had_zone, spec.has("timeZone"));
    }
    spec.get("startingDeadlineSeconds").nonnegative();
    if before.is_none_or(|before| before.raw("timeZone") != spec.raw("timeZone")) {
        cron::time_zone(spec.get("timeZone"));
    }
    spec.get("concurrencyPolicy").required_one_of(&["Allow", "Forbid", "Replace"]);
    let job = spec.get("jobTemplate").get("spec");
    common_spec(job, options);
    let node = job.get("selector");
    if node.is_set() {
        node.invalid(labels::shown(node), "`selector` will be auto-generated");
    }
    if job.flag("manualSelector") {
        job.child("manualSelector").not_supported(true, &["nil", "false"]);
    }
    spec.get("successfulJobsHistoryLimit").nonnegative();
    spec.get("failedJobsHistoryLimit").nonnegative();
}

pub(crate) fn cron_job_update<'v>(subresource: &str, new: Root<'v>, old: Root<'v>) {
    if subresource == "status" {
        return;
    }
    meta::update(new, old);
    let (spec, before) = (new.get("spec"), old.get("spec"));
    let options = Options::for_template(before.get("jobTemplate").get2("spec", "template"));
    cron_job_spec(spec, Some(before), &options);
}

/// What to tell who writes a Job.
pub(crate) fn job_warnings<'v>(new: Root<'v>, old: Option<Root<'v>>) {
    spec_warnings(new, old, new.get("spec"));
}

fn spec_warnings<'v>(new: Root<'v>, old: Option<Root<'v>>, spec: Node<'v>) {
    if old.is_none() {
        meta::warn_name(new, meta::POD_NAMES);
    }
    if !is_new_generation(new, old) {
        return;
    }
    let many = spec.num("completions") > MANY && spec.num("parallelism") > MANY_IN_BIG_JOBS;
    if spec.str("completionMode") == "Indexed" && many {
        spec.warn("In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, Kubernetes might not be able to track completedIndexes when a big number of indexes fail");
    }
    pod::template_warnings(spec.get("template"));
}

/// What to tell who writes a CronJob.
pub(crate) fn cron_job_warnings<'v>(new: Root<'v>, old: Option<Root<'v>>) {
    let spec = new.get("spec");
    spec_warnings(new, old, spec.get("jobTemplate").get("spec"));
    if old.is_some() && spec.str("schedule").contains("TZ") {
        new.warn("cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details");
    }
}
