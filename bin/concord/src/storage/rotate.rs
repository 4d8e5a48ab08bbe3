//! The rotation of a key, in the one order in which nothing becomes unreadable.

use std::{collections::BTreeSet, time::Duration};

use anyhow::{bail, ensure};
use concord_storageversion::Keys;
use serde_json::{Value, json};

use super::{
    Api, INTERRUPTED, Output, RotateOptions, UNCLEAN, YOUR_TURN,
    migrate::{ask, interrupts, until_interrupted},
    status::{Resource, resources},
};
use crate::say;

const LOOK: Duration = Duration::from_secs(1);

/// Not encrypted at all.
const IDENTITY: &str = "identity";

/// Where a rotation is.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    /// These servers could not read what others would write.
    Add(Vec<String>),
    /// All can read it, but these do not write it yet.
    Promote(Vec<String>),
    /// All write it: what is stored can be written again.
    Migrate,
}

/// Whether what a server says of a key is this one: with or without its tag, since only servers know that. `identity` is
/// none.
fn is(said: &str, key: &str) -> bool {
    match key {
        IDENTITY => said.is_empty(),
        key => said.strip_prefix(key).is_some_and(|tag| tag.is_empty() || tag.starts_with(':')),
    }
}

/// Whether a server can read what was written with a key. One that knows of no encryption reads what is not encrypted.
fn opens(keys: &Keys, key: &str) -> bool {
    (key == IDENTITY && keys.opens.is_empty()) || keys.opens.iter().any(|known| is(known, key))
}

/// The key that is meant.
fn parse(to: &str) -> anyhow::Result<&str> {
    let key = to.trim_start_matches("k8s:enc:").trim_end_matches(':');
    let is_known = key == IDENTITY || key.split(':').count() >= 3;
    ensure!(is_known, "--to must look like aescbc:v1:NAME, kms:v2:NAME or identity");
    Ok(key)
}

/// Refuses a name that several keys have. Those of a key management service follow each other under one name.
fn unambiguous(resources: &[Resource], key: &str) -> anyhow::Result<()> {
    let all = resources.iter().flat_map(|resource| resource.servers.values());
    let known: BTreeSet<&String> =
        all.flat_map(|(_, keys)| &keys.opens).filter(|known| is(known, key)).collect();
    if known.len() > 1 && !key.starts_with("kms:") {
        let known: Vec<&str> = known.into_iter().map(String::as_str).collect();
        bail!("several keys are called {key}; say which one is meant: {}", known.join(", "));
    }
    Ok(())
}

/// What is next for resources on the way to a key.
fn step(resources: &[Resource], key: &str) -> Step {
    let servers = |is_behind: &dyn Fn(&Keys) -> bool| {
        let all = resources.iter().flat_map(|resource| &resource.servers);
        let mut behind: Vec<String> =
            all.filter(|(_, (_, keys))| is_behind(keys)).map(|(id, _)| id.clone()).collect();
        behind.sort();
        behind.dedup();
        behind
    };
    let unable = servers(&|keys| !opens(keys, key));
    if !unable.is_empty() {
        return Step::Add(unable);
    }
    match servers(&|keys| !is(&keys.seals_with, key)) {
        behind if behind.is_empty() => Step::Migrate,
        behind => Step::Promote(behind),
    }
}

/// What somebody has to do, if anybody has.
fn instruction(step: &Step, key: &str) -> Option<String> {
    match step {
        Step::Add(servers) => Some(format!(
            "Step 1 of 4: add the key {key} AFTER the one that is first now, in the encryption configuration of: {}.\n\
             Do not put it first on any server before all of them know it: the others could not read what it writes.",
            servers.join(", ")
        )),
        Step::Promote(servers) => Some(format!(
            "Step 2 of 4: all servers can read {key}. Put it FIRST in the encryption configuration of: {}.\n\
             Keep the old key: what is stored was written with it.",
            servers.join(", ")
        )),
        Step::Migrate => None,
    }
}

/// What is said on the way, for people; and in the end, for programs.
struct Told<'a> {
    key: &'a str,
    output: Output,
    resources: Vec<Value>,
}

impl Told<'_> {
    fn text(&self, text: &str) -> anyhow::Result<()> {
        if self.output == Output::Text { say(text) } else { Ok(()) }
    }

    fn end(&self, step: &str, servers: &[String], removable: &[String]) -> anyhow::Result<()> {
        if self.output == Output::Text {
            return Ok(());
        }
        say(&serde_json::to_string_pretty(&json!({
            "key": self.key, "step": step, "servers": servers, "resources": self.resources, "removable": removable,
        }))?)
    }
}

/// Goes through it as far as it can.
pub(crate) async fn run(api: &Api, options: &RotateOptions) -> anyhow::Result<u8> {
    let key = parse(&options.to)?;
    let mut told = Told { key, output: options.connection.output, resources: Vec::new() };
    let mut said = None;
    let concerned = loop {
        let all = concerned(api, options).await?;
        unambiguous(&all, key)?;
        let step = step(&all, key);
        let Some(text) = instruction(&step, key) else { break all };
        if said.as_ref() != Some(&text) {
            told.text(&text)?;
            said = Some(text);
        }
        if !options.wait {
            match &step {
                Step::Add(servers) => told.end("add", servers, &[])?,
                Step::Promote(servers) => told.end("promote", servers, &[])?,
                Step::Migrate => {}
            }
            return Ok(YOUR_TURN);
        }
        tokio::time::sleep(LOOK).await;
    };
    told.text(&format!("Step 3 of 4: all servers write with {key}. What is stored is written again."))?;
    if let Some(code) = rewrite(api, &concerned, &mut told).await? {
        return Ok(code);
    }
    // Somebody may have changed a file in the meantime.
    if step(&self::concerned(api, options).await?, key) != Step::Migrate {
        bail!("the servers no longer agree on {key}: the old key is still needed, begin again");
    }
    let old = others(&concerned, key);
    told.text(&match old.as_slice() {
        [] => "Step 4 of 4: nothing is left to remove.".to_owned(),
        old => format!(
            "Step 4 of 4: nothing needs {} any more. You may remove it from all files.",
            old.join(", ")
        ),
    })?;
    told.end("done", &[], &old)?;
    Ok(0)
}

/// Has everything written again, one resource after the other. The exit code, if that did not go well.
async fn rewrite(api: &Api, concerned: &[Resource], told: &mut Told<'_>) -> anyhow::Result<Option<u8>> {
    let mut interrupts = interrupts()?;
    for resource in concerned {
        let title = resource.title();
        let name = ask(api, &title, &json!({})).await?;
        let ended = until_interrupted(api, &name, &title, told.output, &mut interrupts).await?;
        let Some(ended) = ended else { return Ok(Some(INTERRUPTED)) };
        told.resources.push(json!({
            "resource": title, "migration": name, "succeeded": ended.succeeded(), "message": ended.why(),
        }));
        if !ended.succeeded() {
            told.text(&format!("{title}: {}\nThe old key is still needed. Keep it.", ended.why()))?;
            told.end("failed", &[], &[])?;
            return Ok(Some(UNCLEAN));
        }
        told.text(&format!("{title}: everything is stored with {}.", told.key))?;
    }
    Ok(None)
}

/// The keys that servers can read besides this one.
fn others(resources: &[Resource], key: &str) -> Vec<String> {
    let opens =
        resources.iter().flat_map(|resource| resource.servers.values()).flat_map(|(_, keys)| &keys.opens);
    let mut others: Vec<String> =
        opens.filter(|known| !known.is_empty() && !is(known, key)).cloned().collect();
    others.sort();
    others.dedup();
    others
}

/// What is rotated: what is asked for, or all that is encrypted.
async fn concerned(api: &Api, options: &RotateOptions) -> anyhow::Result<Vec<Resource>> {
    let is_encrypted = |resource: &Resource| {
        resource.servers.values().any(|(_, keys)| keys.opens.iter().any(|known| !known.is_empty()))
    };
    let all = resources(api).await?;
    let mut found: Vec<Resource> = match options.resources.is_empty() {
        true => all.into_iter().filter(is_encrypted).collect(),
        false => all.into_iter().filter(|resource| options.resources.contains(&resource.title())).collect(),
    };
    found.sort_by_key(Resource::title);
    if let Some(missing) =
        options.resources.iter().find(|name| !found.iter().any(|resource| resource.title() == **name))
    {
        bail!("no server stores {missing}");
    }
    ensure!(!found.is_empty(), "no server encrypts anything: start them with --encryption-provider-config");
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource(servers: &[(&str, &str, &[&str])]) -> Resource {
        let server = |(id, seals_with, opens): &(&str, &str, &[&str])| {
            let opens = opens.iter().map(|key| (*key).to_owned()).collect();
            let keys = Keys { seals_with: (*seals_with).to_owned(), opens };
            ((*id).to_owned(), ("v1".to_owned(), keys))
        };
        let servers = servers.iter().map(server).collect();
        Resource { group: String::new(), name: "secrets".to_owned(), servers }
    }

    #[test]
    fn no_server_writes_what_another_one_cannot_read() {
        let ids = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>();
        let (old, both, new): (&[&str], &[&str], &[&str]) =
            (&["k1", ""], &["k1", "k2", ""], &["k2", "k1", ""]);
        for (servers, expected) in [
            ([("a", "k1", old), ("b", "k1", old)], Step::Add(ids(&["a", "b"]))),
            ([("a", "k1", both), ("b", "k1", old)], Step::Add(ids(&["b"]))),
            ([("a", "k2", new), ("b", "k1", old)], Step::Add(ids(&["b"]))),
            ([("a", "k1", both), ("b", "k1", both)], Step::Promote(ids(&["a", "b"]))),
            ([("a", "k2", new), ("b", "k1", both)], Step::Promote(ids(&["b"]))),
            ([("a", "k2", new), ("b", "k2", new)], Step::Migrate),
        ] {
            let resource = resource(&servers);
            assert_eq!(step(std::slice::from_ref(&resource), "k2"), expected, "{servers:?}");
            assert_eq!(instruction(&expected, "k2").is_none(), expected == Step::Migrate);
        }
        assert_eq!(others(&[resource(&[("a", "k2", new)])], "k2"), ["k1"]);
    }

    #[test]
    fn keys_are_meant_by_their_names_and_tags() {
        let (first, second) = ("aescbc:v1:k:0001", "aescbc:v1:k:0002");
        for (said, key, expected) in [
            (first, "aescbc:v1:k", true),
            (first, first, true),
            (first, second, false),
            ("aescbc:v1:k2:0001", "aescbc:v1:k", false),
            ("kms:v2:p:0123", "kms:v2:p", true),
            ("", "identity", true),
            ("", "aescbc:v1:k", false),
            (first, "identity", false),
        ] {
            assert_eq!(is(said, key), expected, "{said} {key}");
        }
        let both = [resource(&[("a", second, &[second, first])])];
        let refused = unambiguous(&both, "aescbc:v1:k").expect_err("which one?").to_string();
        assert!(refused.contains(first) && refused.contains(second), "{refused}");
        assert!(unambiguous(&both, second).is_ok());
        assert_eq!(
            (step(&both, second), step(&both, first)),
            (Step::Migrate, Step::Promote(vec!["a".to_owned()]))
        );
        assert_eq!(others(&both, second), [first]);
        let plain = [resource(&[("a", "", &["", first]), ("b", "", &[])])];
        assert_eq!(step(&plain, "identity"), Step::Migrate);
        assert_eq!(others(&plain, "identity"), [first]);
        assert!(parse("k8s:enc:aescbc:v1:k:").is_ok() && parse("kms:v2:p").is_ok() && parse("key1").is_err());
    }
}
