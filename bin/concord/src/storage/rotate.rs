//! The rotation of a key, in the one order in which nothing becomes unreadable.

use std::time::Duration;

use anyhow::{bail, ensure};
use serde_json::json;

use super::{
    Api, INTERRUPTED, RotateOptions, UNCLEAN, YOUR_TURN,
    migrate::{ask, interrupts, until_interrupted},
    status::{Resource, resources},
};
use crate::say;

const LOOK: Duration = Duration::from_secs(1);

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

/// What is next for resources on the way to a key.
fn step(resources: &[Resource], key: &str) -> Step {
    let servers = |is_behind: &dyn Fn(&concord_storageversion::Keys) -> bool| {
        let all = resources.iter().flat_map(|resource| &resource.servers);
        let mut behind: Vec<String> =
            all.filter(|(_, (_, keys))| is_behind(keys)).map(|(id, _)| id.clone()).collect();
        behind.sort();
        behind.dedup();
        behind
    };
    let unable = servers(&|keys| !keys.opens.iter().any(|known| known == key));
    if !unable.is_empty() {
        return Step::Add(unable);
    }
    match servers(&|keys| keys.seals_with != key) {
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

/// Goes through it as far as it can.
pub(crate) async fn run(api: &Api, options: &RotateOptions) -> anyhow::Result<u8> {
    let key = options.to.trim_start_matches("k8s:enc:").trim_end_matches(':');
    ensure!(key.split(':').count() == 3, "--to must look like aescbc:v1:NAME");
    let mut said = None;
    let concerned = loop {
        let all = concerned(api, options).await?;
        let step = step(&all, key);
        let Some(text) = instruction(&step, key) else { break all };
        if said.as_ref() != Some(&text) {
            say(&text)?;
            said = Some(text);
        }
        if !options.wait {
            return Ok(YOUR_TURN);
        }
        tokio::time::sleep(LOOK).await;
    };
    say(&format!("Step 3 of 4: all servers write with {key}. What is stored is written again."))?;
    let mut interrupts = interrupts()?;
    for resource in &concerned {
        let title = resource.title();
        let name = ask(api, &title, &json!({})).await?;
        let output = options.connection.output;
        let Some(ended) = until_interrupted(api, &name, &title, output, &mut interrupts).await? else {
            return Ok(INTERRUPTED);
        };
        if !ended.succeeded() {
            say(&format!("{title}: {}\nThe old key is still needed. Keep it.", ended.why()))?;
            return Ok(UNCLEAN);
        }
        say(&format!("{title}: everything is encrypted with {key}."))?;
    }
    // Somebody may have changed a file in the meantime.
    if step(&self::concerned(api, options).await?, key) != Step::Migrate {
        bail!("the servers no longer agree on {key}: the old key is still needed, begin again");
    }
    let old = others(&concerned, key);
    say(&match old.as_slice() {
        [] => "Step 4 of 4: nothing is left to remove.".to_owned(),
        old => format!(
            "Step 4 of 4: nothing needs {} any more. You may remove it from all files.",
            old.join(", ")
        ),
    })?;
    Ok(0)
}

/// The keys that servers can read besides this one.
fn others(resources: &[Resource], key: &str) -> Vec<String> {
    let opens =
        resources.iter().flat_map(|resource| resource.servers.values()).flat_map(|(_, keys)| &keys.opens);
    let mut others: Vec<String> = opens.filter(|known| !known.is_empty() && *known != key).cloned().collect();
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
    use concord_storageversion::Keys;

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
}
