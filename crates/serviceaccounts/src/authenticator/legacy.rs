//! Tokens in Secrets.

use aws_lc_rs::constant_time::verify_slices_are_equal;
use base64::{Engine as _, prelude::BASE64_STANDARD};
use concord_codec::{FieldValidation, PatchType};
use concord_merge::apply::Time;
use concord_meta::UserInfo;
use concord_registry::{Context, Object, ObjectName, Part, PatchRequest, metadata};
use concord_replica::Snapshot;
use serde_json::{Value, json};

use super::bound::account_user;
use crate::{Objects, claims::Legacy, objects::Kind};

const LAST_USED: &str = "kubernetes.io/legacy-token-last-used";
const INVALID_SINCE: &str = "kubernetes.io/legacy-token-invalid-since";

const DAY: i64 = 24 * 60 * 60;
const INVALIDATED: &str = "Token has been invalidated";

/// The day on which a Secret was last used, to be noted in it.
pub(super) struct LastUsed {
    uid: String,
    today: String,
}

/// Everything that the token depends on.
pub(super) fn references(legacy: &Legacy) -> Vec<(Kind, ObjectName<'_>)> {
    vec![(Kind::Secret, secret_name(legacy)), (Kind::ServiceAccount, account_name(legacy))]
}

fn secret_name(legacy: &Legacy) -> ObjectName<'_> {
    ObjectName { namespace: &legacy.namespace, name: &legacy.secret }
}

fn account_name(legacy: &Legacy) -> ObjectName<'_> {
    ObjectName { namespace: &legacy.namespace, name: &legacy.account.name }
}

/// Whether the Secret is there and has this very token, and the account is the same as when the token was made. Answers
/// what to note in the Secret.
pub(super) fn check(
    objects: &Objects,
    legacy: &Legacy,
    token: &str,
    snapshot: &Snapshot,
    now: i64,
) -> Result<Option<LastUsed>, String> {
    let Legacy { namespace, account, secret: secret_name_ } = legacy;
    let secret = objects.get(snapshot, Kind::Secret, secret_name(legacy));
    let secret = secret.ok().filter(|secret| !metadata(secret).is_terminating());
    let secret = secret.ok_or(INVALIDATED)?;
    let stored = secret.get("data").and_then(|data| data.get("token")).and_then(Value::as_str);
    let stored = stored.and_then(|stored| BASE64_STANDARD.decode(stored).ok()).unwrap_or_default();
    if verify_slices_are_equal(&stored, token.as_bytes()).is_err() {
        return Err("Token does not match server's copy".to_owned());
    }
    let found = objects.get(snapshot, Kind::ServiceAccount, account_name(legacy));
    let found = found.map_err(|status| status.message)?;
    if metadata(&found).is_terminating() {
        return Err(format!("ServiceAccount {namespace}/{} has been deleted", account.name));
    }
    let uid = metadata(&found).uid();
    if uid != account.uid {
        return Err(format!("ServiceAccount UID ({uid}) does not match claim ({})", account.uid));
    }
    if !label(&secret, INVALID_SINCE).is_empty() {
        return Err(format!(
            "the token in secret {namespace}/{secret_name_} for service account {namespace}/{} has been marked \
             invalid. Use tokens from the TokenRequest API or manually created secret-based tokens, or remove the \
             '{INVALID_SINCE}' label from the secret to temporarily allow use of this token",
            account.name
        ));
    }
    Ok(last_used(&secret, now))
}

fn label<'a>(object: &'a Object, name: &str) -> &'a str {
    metadata(object).labels().and_then(|labels| labels.get(name)?.as_str()).unwrap_or_default()
}

fn day(unix: i64) -> String {
    let mut day = Time { unix }.to_string();
    day.truncate("2026-11-16".len());
    day
}

/// The last second of the day.
pub(super) fn end_of_day(now: i64) -> i64 {
    now.div_euclid(DAY) * DAY + (DAY - 1)
}

/// What to note in the Secret, unless it says so already. Another server may already live tomorrow.
fn last_used(secret: &Object, now: i64) -> Option<LastUsed> {
    let (said, today) = (label(secret, LAST_USED), day(now));
    let known = said == today || said == day(now.saturating_add(DAY));
    (!known).then(|| LastUsed { uid: metadata(secret).uid().to_owned(), today })
}

/// Notes the day in the Secret. The token is good whether or not that works.
pub(super) async fn label_secret(objects: &Objects, legacy: &Legacy, last_used: LastUsed) {
    let (Some(registry), Ok(secrets)) = (objects.registry(), objects.resource(Kind::Secret)) else { return };
    let LastUsed { uid, today } = last_used;
    let patch = json!({"metadata": {"uid": uid, "labels": {LAST_USED: today}}}).to_string();
    let request = PatchRequest {
        name: secret_name(legacy),
        part: Part::Main,
        patch_type: PatchType::Merge,
        body: patch.as_bytes(),
        force: false,
        validation: FieldValidation::Ignore,
    };
    let context = Context::of_the_server(Time { unix: super::now() });
    if let Err(error) = registry.patch(&context, secrets, request).await {
        let Legacy { namespace, secret, .. } = legacy;
        tracing::debug!(%error, namespace, secret, "The last use of a token could not be noted in its secret.");
    }
}

/// The user that the token stands for.
pub(super) fn user(legacy: &Legacy) -> UserInfo {
    account_user(&legacy.namespace, &legacy.account)
}
