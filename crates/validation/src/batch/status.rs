//! What a Job's status may become.

use concord_meta::field::BadValue;
use serde_json::Value;

use super::indexes;
use crate::{
    gates::Gate,
    node::{Node, Root},
    rules::same,
};

/// What has changed: most rules are asked only about that.
struct Change<'v> {
    spec: Node<'v>,
    now: Node<'v>,
    before: Node<'v>,
}

fn is(status: Node<'_>, kind: &str, value: &str) -> bool {
    let mut conditions = status.get("conditions").items();
    conditions.any(|condition| condition.str("type") == kind && condition.str("status") == value)
}

fn is_true(status: Node<'_>, kind: &str) -> bool {
    is(status, kind, "True")
}

fn is_finished(status: Node<'_>) -> bool {
    is_true(status, "Complete") || is_true(status, "Failed")
}

impl Change<'_> {
    fn of(&self, member: &str) -> bool {
        !same(self.now.raw(member), self.before.raw(member))
    }

    fn of_condition(&self, kind: &str) -> bool {
        is_true(self.now, kind) != is_true(self.before, kind)
    }

    fn finished(&self) -> bool {
        is_finished(self.now) != is_finished(self.before)
    }

    fn refuse(&self, why: &'static str) {
        self.now.child("conditions").invalid_as_such(why);
    }
}

pub(super) fn update<'v>(new: Root<'v>, old: Root<'v>) {
    let change = Change { spec: new.get("spec"), now: new.get("status"), before: old.get("status") };
    ["active", "succeeded", "failed", "ready", "terminating"]
        .iter()
        .for_each(|name| change.now.get(name).nonnegative());
    uncounted(change.now.get("uncountedTerminatedPods"));
    // Where nobody but Kubernetes writes statuses, they are believed.
    let checked = new.gate(Gate::JobManagedBy);
    if checked {
        conditions_together(&change);
        times(&change);
        targets(&change);
        finished(&change);
        index_lists(&change);
        numbers(&change);
    }
    let of_any_job = checked || new.gate(Gate::JobPodReplacementPolicy);
    criteria(&change, of_any_job || is_true(change.before, "SuccessCriteriaMet"));
    if checked {
        against_before(&change);
    }
    criteria_stay(&change);
}

fn uncounted(pods: Node<'_>) {
    let mut seen: Vec<&str> = Vec::new();
    for pod in ["succeeded", "failed"].into_iter().flat_map(|list| pods.get(list).items()) {
        match pod.text() {
            "" => pod.invalid(BadValue::named(""), "must not be empty"),
            uid if seen.contains(&uid) => pod.duplicate(BadValue::named(uid)),
            uid => seen.push(uid),
        }
    }
}

fn conditions_together(change: &Change<'_>) {
    let complete = is_true(change.now, "Complete");
    let changed = |kind: &str| change.of_condition("Complete") || change.of_condition(kind);
    if changed("Failed") && complete && is_true(change.now, "Failed") {
        change.refuse("cannot set Complete=True and Failed=true conditions");
    }
    if changed("FailureTarget") && complete && is_true(change.now, "FailureTarget") {
        change.refuse("cannot set Complete=True and FailureTarget=true conditions");
    }
}

fn shown_time(node: Node<'_>) -> BadValue {
    if node.is_set() { BadValue::named(node.text()) } else { BadValue::verbatim("null") }
}

fn times(change: &Change<'_>) {
    let (start, end) = (change.now.get("startTime"), change.now.get("completionTime"));
    let complete = is_true(change.now, "Complete");
    if change.of_condition("Complete") || change.of("completionTime") {
        match (end.is_set(), complete) {
            (true, false) => end.invalid(
                shown_time(end),
                "cannot set completionTime when there is no Complete=True condition",
            ),
            (false, true) => end.required("completionTime is required for Complete jobs"),
            _ => {}
        }
    }
    // Both are in UTC and to the second, so texts compare as times do.
    let reversed = start.is_set() && end.is_set() && end.text() < start.text();
    if (change.of("startTime") || change.of("completionTime")) && reversed {
        end.invalid(shown_time(end), "must be equal to or after `startTime`");
    }
}

fn targets(change: &Change<'_>) {
    let failed = is_true(change.now, "Failed");
    if (change.of_condition("Failed") || change.of("failedIndexes"))
        && failed
        && !is_true(change.now, "FailureTarget")
    {
        change.refuse("cannot set Failed=True condition without the FailureTarget=true condition");
    }
    let changed = change.of_condition("Complete") || change.of_condition("SuccessCriteriaMet");
    if changed && is_true(change.now, "Complete") && !is_true(change.now, "SuccessCriteriaMet") {
        change.refuse("cannot set Complete=True condition without the SuccessCriteriaMet=true condition");
    }
}

fn finished(change: &Change<'_>) {
    if !is_finished(change.now) {
        return;
    }
    let now = change.now;
    if (change.finished() || change.of("active")) && now.num("active") > 0 {
        now.get("active").wrong("active>0 is invalid for finished job");
    }
    let nothing_to_do = change.spec.flag("suspend") && change.spec.get("completions").int() == Some(0);
    if (change.finished() || change.of("startTime")) && !nothing_to_do && !now.has("startTime") {
        now.child("startTime").required("startTime is required for finished job");
    }
    let pods = now.get("uncountedTerminatedPods");
    let any = ["failed", "succeeded"].iter().any(|list| !pods.get(list).is_empty());
    if (change.finished() || change.of("uncountedTerminatedPods")) && any {
        let shown = crate::internal::shown("UncountedTerminatedPods", pods.value());
        pods.invalid(shown, "must be empty for finished job");
    }
}

fn index_lists(change: &Change<'_>) {
    let (done, failed) = (change.now.get("completedIndexes"), change.now.get("failedIndexes"));
    let completions = change.spec.get("completions").int();
    let per_index = change.spec.has("backoffLimitPerIndex");
    if change.of("completedIndexes")
        && let Some(Err(problem)) = completions.map(|all| indexes::count(done.text(), all))
    {
        done.invalid(done.text(), format!("error parsing completedIndexes: {problem}"));
    }
    if change.of("failedIndexes")
        && per_index
        && failed.is_set()
        && let Some(Err(problem)) = completions.map(|all| indexes::count(failed.text(), all))
    {
        failed.invalid(BadValue::named(failed.text()), format!("error parsing failedIndexes: {problem}"));
    }
    if change.of("completedIndexes")
        && !done.text().is_empty()
        && change.spec.str("completionMode") != "Indexed"
    {
        done.invalid(done.text(), "cannot set non-empty completedIndexes when non-indexed completion mode");
    }
    if change.of("failedIndexes") && !per_index && failed.is_set() {
        failed.invalid(failed.text(), "cannot set non-null failedIndexes when backoffLimitPerIndex is null");
    }
    let both = !done.text().is_empty() && !failed.text().is_empty();
    if (change.of("failedIndexes") || change.of("completedIndexes"))
        && both
        && let Some(at) = completions.and_then(|all| indexes::overlap(done.text(), failed.text(), all))
    {
        failed.invalid(failed.text(), format!("failedIndexes and completedIndexes overlap at index: {at}"));
    }
}

fn numbers(change: &Change<'_>) {
    let now = change.now;
    if (change.finished() || change.of("terminating")) && now.num("terminating") > 0 && is_finished(now) {
        now.get("terminating").wrong("terminating>0 is invalid for finished job");
    }
    let ready = now.get("ready");
    if (change.of("ready") || change.of("active"))
        && ready.int().is_some_and(|ready| ready > now.num("active"))
    {
        ready.wrong("cannot set more ready pods than active");
    }
}

/// Whether the criteria of success are met is said of any Job, or only of those that have some.
fn criteria(change: &Change<'_>, of_any_job: bool) {
    let met = is_true(change.now, "SuccessCriteriaMet");
    if !of_any_job && met && change.spec.str("completionMode") != "Indexed" {
        change.refuse("cannot set SuccessCriteriaMet to NonIndexed Job");
    }
    if met && is_true(change.now, "Failed") {
        change.refuse("cannot set SuccessCriteriaMet=True and Failed=true conditions");
    }
    if met && is_true(change.now, "FailureTarget") {
        change.refuse("cannot set SuccessCriteriaMet=True and FailureTarget=true conditions");
    }
    if !of_any_job && met && !change.spec.has("successPolicy") {
        change.refuse("cannot set SuccessCriteriaMet=True for Job without SuccessPolicy");
    }
    if change.spec.has("successPolicy") && !met && is_true(change.now, "Complete") {
        change.refuse("cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True");
    }
}

fn against_before(change: &Change<'_>) {
    let (now, before) = (change.now, change.before);
    for kind in ["Failed", "Complete", "FailureTarget"] {
        if is_true(before, kind) && !is_true(now, kind) {
            let why = format!("cannot disable the terminal {kind}=True condition");
            now.child("conditions").invalid_as_such(why);
        }
    }
    let indexed = change.spec.str("completionMode") == "Indexed";
    let scalable = indexed && change.spec.raw("completions") == change.spec.raw("parallelism");
    for (name, checked) in [("failed", true), ("succeeded", !scalable)] {
        let number = now.num(name);
        if checked && number < before.num(name) {
            now.child(name).invalid(number, format!("cannot decrease the {name} counter"));
        }
    }
    let (start, end) = (now.get("startTime"), now.get("completionTime"));
    if end.is_set() && before.has("completionTime") && change.of("completionTime") {
        end.invalid(shown_time(end), "field is immutable");
    }
    let resuming = is_true(before, "Suspended") && is(now, "Suspended", "False");
    let running = !change.spec.raw("suspend").and_then(Value::as_bool).unwrap_or_default();
    if change.of("startTime") && !resuming && before.has("startTime") && running {
        start.invalid(shown_time(start), "field is immutable for unsuspended job once set");
    }
}

fn criteria_stay(change: &Change<'_>) {
    let (now, before) = (change.now, change.before);
    let (met, met_before) = (is_true(now, "SuccessCriteriaMet"), is_true(before, "SuccessCriteriaMet"));
    if met_before && !met {
        change.refuse("cannot disable the SuccessCriteriaMet=True condition");
    }
    if is_true(before, "Complete") && !met_before && met {
        change.refuse("cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions");
    }
}
