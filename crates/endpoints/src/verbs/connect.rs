//! Connections to what cannot be reached.

use concord_meta::{Status, options::ReadAt};
use concord_registry::{Object, Operation, SubresourceKind};
use concord_server::Response;
use serde_json::Value;

use super::{behaviour, in_time, keep, unsupported};
use crate::call::Call;

/// Upstream asks admission first, then looks for the object, and then for the machine it runs on, of which there is none
/// here.
pub(super) async fn connect(call: &Call<'_>, warnings: &mut Vec<String>) -> Result<Response, Status> {
    let Some(SubresourceKind::Unreachable(why)) = behaviour(call) else { return Err(unsupported(call)) };
    if call.parameter("dryRun").is_some() {
        return Err(Status::bad_request("dryRun is not supported"));
    }
    let context = call.bare_context(false);
    let mut options = options(call);
    let used = (&**call.resource(), call.info.subresource.as_str());
    let admitted =
        call.registry.admit_use(&context, used, call.object_name(), Operation::Connect, &mut options);
    let admitted = Box::pin(in_time(call.deadline(), admitted)).await;
    keep(call, warnings, &context, admitted)?;
    call.registry.get(call.storage()?, call.object_name(), ReadAt::MostRecent).await?;
    Err(Status::bad_request(*why))
}

/// The parameters of a connection as the object that admission is shown.
fn options(call: &Call<'_>) -> Object {
    let kind = call.kind();
    let mut options = Object::from_iter([
        ("kind".to_owned(), kind.kind.as_str().into()),
        ("apiVersion".to_owned(), kind.group_version().to_string().into()),
    ]);
    for (name, value) in &call.pairs {
        add(&mut options, name, value);
    }
    let rest = call.info.parts.get(3..).unwrap_or_default();
    if !rest.is_empty() {
        options.insert("path".to_owned(), format!("/{}", rest.join("/")).into());
    }
    options
}

/// What options of connections consist of. The zero of a type is left out, as Go does; of several values for one that can
/// have only one the first counts.
fn add(options: &mut Object, name: &str, value: &str) {
    let is_new = !options.contains_key(name);
    let value: Option<Value> = match name {
        "stdin" | "stdout" | "stderr" | "tty" => {
            (!["", "0", "false"].contains(&value)).then_some(true.into())
        }
        "container" | "path" => (!value.is_empty()).then(|| value.into()),
        "command" | "ports" => {
            let item =
                if name == "ports" { value.parse::<i32>().ok().map(Value::from) } else { Some(value.into()) };
            let list = options.entry(name.to_owned()).or_insert_with(|| Value::Array(Vec::new()));
            if let (Value::Array(list), Some(item)) = (list, item) {
                list.push(item);
            }
            return;
        }
        _ => None,
    };
    if let (Some(value), true) = (value, is_new) {
        options.insert(name.to_owned(), value);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn parameters_become_options() {
        let mut options = Object::new();
        for (name, value) in [
            ("command", "sh"),
            ("command", "-c"),
            ("stdin", "true"),
            ("stdout", "1"),
            ("tty", "false"),
            ("container", "c"),
            ("container", "d"),
            ("ports", "80"),
            ("ports", "x"),
            ("unknown", "x"),
        ] {
            add(&mut options, name, value);
        }
        let expect =
            json!({"command": ["sh", "-c"], "stdin": true, "stdout": true, "container": "c", "ports": [80]});
        assert_eq!(Value::Object(options), expect);
    }
}
