//! Many definitions at once: how long until all of them are served, and what they cost.

mod documents;

use std::{
    fmt::Write as _,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use clap::Args;
use hdrhistogram::Histogram;
use http::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::{
    args::{Pid, duration, pid},
    client::{Call, Connection, JSON, Protocol, Refusal, Server},
    kubeconfig,
    process::{self, Sample, Watched},
    run::Ending,
    scan,
    stats::{Latency, histogram, micros, per},
};
use documents::{Documents, Took};

const GROUP: &str = "crds.concord-bench.example.com";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
/// Between two looks at whether a definition is served.
const PAUSE: Duration = Duration::from_millis(1);

/// How to measure definitions.
#[derive(Args, Clone)]
pub(crate) struct Crds {
    /// Which server, and who we are [default: $KUBECONFIG, else ~/.kube/config].
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig to use [default: its current one].
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// Definitions to create.
    #[arg(long, default_value_t = 1000, value_name = "N")]
    definitions: usize,
    /// Fields that each of them has.
    #[arg(long, default_value_t = 60, value_name = "N")]
    fields: usize,
    /// Bytes of description that each field has.
    #[arg(long, default_value_t = 0, value_name = "BYTES")]
    description: usize,
    /// How many of them are in one group [default: all].
    #[arg(long, value_name = "N")]
    per_group: Option<usize>,
    /// How many of them are changed then, one after the other, to see what becomes of the OpenAPI documents.
    #[arg(long, default_value_t = 8, value_name = "N")]
    changes: usize,
    /// Clients that create them.
    #[arg(long, default_value_t = 8, value_name = "N")]
    concurrency: usize,
    /// A process of the server, whose memory is reported; may be given several times.
    #[arg(long, value_parser = pid, value_name = "[NAME=]PID")]
    pid: Vec<Pid>,
    /// How long after the last one is served memory is looked at again, and after documents of OpenAPI were read.
    #[arg(long, default_value = "10s", value_parser = duration, value_name = "TIME")]
    later: Duration,
    /// How long one request may take, and how long a definition may take to be served.
    #[arg(long, default_value = "30s", value_parser = duration, value_name = "TIME")]
    request_timeout: Duration,
}

/// What was found out.
#[derive(Default)]
struct Found {
    served: Duration,
    usable: Latency,
    index: Duration,
    everything: Took,
    documents: Documents,
    /// Resident memory before, when all were served, later, with the index of OpenAPI, and with its version 2.
    resident: [u64; 5],
}

/// Measures, prints and removes what it made.
pub(crate) async fn run(args: Crds) -> Result<Ending> {
    ensure!((1..=100_000).contains(&args.definitions), "--definitions must be 1 to 100000");
    ensure!((1..=1024).contains(&args.concurrency), "--concurrency must be 1 to 1024");
    let size = args.fields.saturating_mul(args.description.saturating_add(32));
    ensure!(size < 1_000_000, "such definitions are too large to be stored");
    let path = args.kubeconfig.clone().map_or_else(kubeconfig::default_path, Ok)?;
    let access = kubeconfig::load(&path, args.context.as_deref())?;
    let server = Server::new(&access, Protocol::Http2, false, args.request_timeout)
        .with_context(|| format!("kubeconfig {}", path.display()))?;
    let watched = args.pid.iter().map(|pid| process::identify(pid.pid, pid.name.as_deref()));
    let watched: Vec<Watched> = watched.collect::<Result<_>>()?;
    let args = Arc::new(args);
    let measured = measure(&server, &args, &watched).await;
    let removed =
        each(&server, &args, remove).await.context("definitions are left behind, delete them yourself");
    crate::print(&table(&args, &measured?));
    removed.map(|_| Ending::Good)
}

async fn measure(server: &Server, args: &Arc<Crds>, watched: &[Watched]) -> Result<Found> {
    let resident = || -> Result<u64> {
        let now = Sample::take(watched)?;
        Ok(now.until(&now).server_rss_bytes())
    };
    let before = resident()?;
    let begun = Instant::now();
    let usable = each(server, args, define).await?;
    let served = begun.elapsed();
    let at_once = resident()?;
    tokio::time::sleep(args.later).await;
    let later = resident()?;
    let mut connection = server.connect().await?;
    let begun = Instant::now();
    scan::drain(connection.expect(Call::get(documents::INDEX)).await?.into_body()).await?;
    let index = begun.elapsed();
    tokio::time::sleep(args.later).await;
    let indexed = resident()?;
    let everything = documents::read_everything(&mut connection).await?;
    tokio::time::sleep(args.later).await;
    let resident = [before, at_once, later, indexed, resident()?];
    let documents = documents::measure(&mut connection, args).await?;
    Ok(Found { served, usable: Latency::of(&usable), index, everything, documents, resident })
}

/// Does something with every definition, from as many clients as are asked for, and answers how long each took.
async fn each<F>(
    server: &Server,
    args: &Arc<Crds>,
    work: impl Fn(Connection, Arc<Crds>, usize) -> F + Copy + Send + Sync + 'static,
) -> Result<Histogram<u64>>
where
    F: Future<Output = Result<(Connection, Duration)>> + Send + 'static,
{
    let next = Arc::new(AtomicUsize::new(0));
    let mut clients = JoinSet::new();
    for _ in 0..args.concurrency {
        let (mut connection, args, next) = (server.connect().await?, args.clone(), next.clone());
        clients.spawn(async move {
            let mut times = histogram();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= args.definitions {
                    return Ok::<_, anyhow::Error>(times);
                }
                let (back, time) = work(connection, args.clone(), number).await?;
                connection = back;
                times.saturating_record(micros(time));
            }
        });
    }
    let mut all = histogram();
    while let Some(times) = clients.join_next().await {
        all.add(times??)?;
    }
    Ok(all)
}

/// Creates a definition. The time is how long after that its objects could be listed.
async fn define(
    mut connection: Connection,
    args: Arc<Crds>,
    number: usize,
) -> Result<(Connection, Duration)> {
    let body = Bytes::from(definition(&args, number).to_string());
    let call = Call::with_body(Method::POST, DEFINITIONS, JSON, body);
    scan::drain(connection.expect(call).await?.into_body()).await?;
    let acknowledged = Instant::now();
    let objects = format!("/apis/{}/v1/things{number}", group(&args, number));
    loop {
        match connection.expect(Call::get(&objects)).await {
            Ok(answer) => {
                scan::drain(answer.into_body()).await?;
                return Ok((connection, acknowledged.elapsed()));
            }
            Err(failure) if is_waiting(&failure) && acknowledged.elapsed() < args.request_timeout => {
                tokio::time::sleep(PAUSE).await;
            }
            Err(failure) => return Err(failure),
        }
    }
}

fn is_waiting(failure: &anyhow::Error) -> bool {
    let waiting = [StatusCode::NOT_FOUND, StatusCode::TOO_MANY_REQUESTS, StatusCode::SERVICE_UNAVAILABLE];
    failure.downcast_ref::<Refusal>().is_some_and(|refusal| waiting.contains(&refusal.status))
}

async fn remove(
    mut connection: Connection,
    args: Arc<Crds>,
    number: usize,
) -> Result<(Connection, Duration)> {
    let begun = Instant::now();
    let path = format!("{DEFINITIONS}/things{number}.{}", group(&args, number));
    match connection.expect(Call { method: Method::DELETE, ..Call::get(&path) }).await {
        Ok(answer) => drop(scan::drain(answer.into_body()).await?),
        Err(failure) => match failure.downcast_ref::<Refusal>() {
            Some(refusal) if refusal.status == StatusCode::NOT_FOUND => {}
            _ => return Err(failure),
        },
    }
    Ok((connection, begun.elapsed()))
}

/// The group that a definition is in.
fn group(args: &Crds, number: usize) -> String {
    match args.per_group {
        Some(members) if members > 0 => format!("g{}.{GROUP}", number / members),
        _ => GROUP.to_owned(),
    }
}

/// A text of so many bytes, another one for each number. Of one letter again and again a server that compresses what it keeps
/// would keep next to nothing; descriptions are words.
fn prose(number: usize, length: usize) -> String {
    const WORDS: [&str; 32] = [
        "the",
        "resource",
        "is",
        "not",
        "set",
        "when",
        "controller",
        "observes",
        "a",
        "condition",
        "of",
        "this",
        "field",
        "must",
        "be",
        "one",
        "names",
        "defaults",
        "to",
        "if",
        "it",
        "specified",
        "by",
        "which",
        "status",
        "reports",
        "ready",
        "replicas",
        "in",
        "namespace",
        "and",
        "optional",
    ];
    let mut text = String::with_capacity(length + 16);
    let mut state = number as u64 + 1;
    while text.len() < length {
        // Knuth's multiplier; the upper bits are the random ones.
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        text.push_str(WORDS[(state >> 59) as usize]);
        text.push(' ');
    }
    text.truncate(length);
    text
}

fn definition(args: &Crds, number: usize) -> Value {
    let group = group(args, number);
    let field = |field: usize| {
        let mut schema = match field % 3 {
            0 => json!({"type": "string", "maxLength": 63}),
            1 => json!({"type": "integer", "minimum": 0, "default": field}),
            _ => json!({"type": "array", "maxItems": 16, "items": {"type": "string", "maxLength": 63}}),
        };
        if args.description > 0 {
            schema["description"] = prose(number * args.fields + field, args.description).into();
        }
        (format!("field{field}"), schema)
    };
    let spec = json!({"type": "object", "properties": (0..args.fields).map(field).collect::<Value>()});
    let names = json!({"plural": format!("things{number}"), "kind": format!("Thing{number}")});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("things{number}.{group}")},
        "spec": {"group": group, "scope": "Cluster", "names": names, "versions": [{
            "name": "v1", "served": true, "storage": true,
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
        }]},
    })
}

fn table(args: &Crds, found: &Found) -> String {
    let millis = |time: Duration| time.as_secs_f64() * 1000.0;
    let [before, at_once, later, indexed, everything] = found.resident;
    let each = |bytes: u64| per(bytes.saturating_sub(before) as f64 / 1024.0, args.definitions as f64);
    let mut text = format!("{} definitions of {} fields\n", args.definitions, args.fields);
    let mut line = |name: &str, value: f64, unit: &str| {
        // Writing to a String cannot fail.
        let _written = writeln!(text, "{name:<33} {value:>10.2} {unit}");
    };
    line("all served after", millis(found.served), "ms");
    line("usable after ack, p50", found.usable.p50, "ms");
    line("usable after ack, p99", found.usable.p99, "ms");
    line("index of OpenAPI v3", millis(found.index), "ms");
    line("document of OpenAPI v2", millis(found.everything.whole), "ms");
    line("its first byte", millis(found.everything.begun), "ms");
    line("its size", found.everything.bytes as f64 / 1e6, "MB");
    let Documents { index, document, unchanged, object, begun, whole } = &found.documents;
    let latencies = [
        ("index shows a change after", index),
        ("its document takes", document),
        ("one that is not new", unchanged),
        ("a get beside that", object),
        ("v2 has a change, first byte", begun),
        ("v2 has a change, last byte", whole),
    ];
    for (name, times) in latencies.into_iter().filter(|(_, times)| !times.is_empty()) {
        let times = Latency::of(times);
        line(&format!("{name}, p50"), times.p50, "ms");
        line(&format!("{name}, p99"), times.p99, "ms");
    }
    if before > 0 {
        line("memory each, at once", each(at_once), "KiB");
        line("memory each, later", each(later), "KiB");
        line("memory each, with the index", each(indexed), "KiB");
        line("memory each, with v2", each(everything), "KiB");
    }
    text
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::args::{Cli, Command};

    fn args(text: &str) -> Crds {
        match Cli::try_parse_from(text.split(' ')).expect("arguments").command {
            Command::Crds(args) => args,
            _ => panic!("another command"),
        }
    }

    #[test]
    fn definitions_are_as_large_as_is_asked_for() {
        let args = args("concord-bench crds --fields 3 --description 5");
        assert_eq!((args.definitions, args.concurrency), (1000, 8));
        let made = definition(&args, 7);
        assert_eq!(made["metadata"]["name"], "things7.crds.concord-bench.example.com");
        let spec = &made["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
        let fields = spec["properties"].as_object().expect("fields");
        assert_eq!(fields.len(), 3);
        let texts: Vec<&str> = fields.values().filter_map(|field| field["description"].as_str()).collect();
        assert!(texts.iter().all(|text| text.len() == 5), "{texts:?}");
        assert_ne!(prose(7, 100), prose(8, 100));
    }

    #[test]
    fn definitions_are_in_as_many_groups_as_is_asked_for() {
        let args = args("concord-bench crds --per-group 4");
        let names = [0, 3, 4].map(|number| definition(&args, number)["metadata"]["name"].clone());
        let expected = ["things0.g0", "things3.g0", "things4.g1"];
        assert_eq!(names, expected.map(|name| format!("{name}.crds.concord-bench.example.com")));
    }

    #[test]
    fn the_table_says_what_each_definition_takes() {
        let args = args("concord-bench crds --definitions 2");
        let found = Found { resident: [1024, 5120, 3072, 3072, 7168], ..Found::default() };
        let text = table(&args, &found);
        assert!(text.contains("memory each, at once                    2.00 KiB"), "{text}");
        assert!(text.contains("memory each, later                      1.00 KiB"), "{text}");
        assert!(text.contains("memory each, with v2                    3.00 KiB"), "{text}");
        let nothing = table(&args, &Found::default());
        assert!(!nothing.contains("memory"), "nobody was watched");
        assert!(!nothing.contains("not new"), "nothing was changed");
    }
}
