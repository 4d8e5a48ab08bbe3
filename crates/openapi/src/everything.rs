//! The document of version 2, put together from what each of the others says in it.
//!
//! What a version of a group says is packed when the document is first asked for, and again only when it changed. The
//! document is all of that in the order of names: to follow a change costs what the change is about, and something for
//! each pack, however long that is. Nothing has the size of the whole.

use std::{
    collections::HashMap,
    panic::resume_unwind,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use aws_lc_rs::digest;
use parking_lot::Mutex;
use tokio::{sync::OnceCell, task::JoinError};

use crate::{
    deflated::{Deflated, Pieces},
    document::Subject,
    extensions::ExtensionDocument,
    leaf::{Document, Form},
    member::Members,
    merge::{self, Whole},
    names,
    publication::{Publication, hexadecimal, to_json},
    run::{Run, Section, Sorted},
    sendable::Sendable,
    swagger::{Common, Frame, Part},
};

/// How many threads make what version 2 says: few, so that something is left for requests.
const THREADS: usize = 2;

/// What the document gets from a version of custom resources.
pub(crate) struct Told {
    definitions: Option<Arc<Run>>,
    paths: Option<Arc<Run>>,
    common: Arc<Common>,
}

/// What the document gets from what is built in, where types are used by many.
struct Base {
    /// What it is about.
    leaves: Vec<Arc<Document>>,
    definitions: Vec<Arc<Run>>,
    paths: Vec<Arc<Run>>,
    common: Common,
}

/// What the next document has, too, in all likelihood.
#[derive(Default)]
pub(crate) struct Kept {
    base: Mutex<Option<Arc<Base>>>,
    /// What was not said by one alone.
    merged: Mutex<Vec<Arc<Run>>>,
    /// What versions of custom resources have in common: there are as many as there are sets of subresources.
    commons: Mutex<HashMap<Vec<u8>, Arc<Common>>>,
}

/// The document of version 2.
pub(crate) struct Everything {
    hash: Arc<str>,
    frame: Frame,
    definitions: Vec<Arc<Run>>,
    paths: Vec<Arc<Run>>,
    json: OnceCell<Arc<Sendable>>,
    protobuf: OnceCell<Arc<Sendable>>,
}

impl Told {
    pub(crate) fn new(subject: &Subject, publication: &Publication) -> Self {
        let part = Part::new(subject, &publication.sources(subject.is_custom()));
        let part = part.of_package(&subject.version().map(names::package).unwrap_or_default());
        let known = to_json(&part.common);
        let mut commons = publication.kept().commons.lock();
        let common = commons.entry(known).or_insert_with(|| Arc::new(part.common)).clone();
        drop(commons);
        Self {
            definitions: Run::new(Section::Definitions, &part.definitions),
            paths: Run::new(Section::Paths, &part.paths),
            common,
        }
    }
}

impl Base {
    fn new(leaves: Vec<Arc<Document>>, publication: &Publication) -> Self {
        // They are unpacked once for all.
        let sources = publication.sources(false);
        let parts = each(&leaves, |leaf| leaf.subject().map(|subject| Part::new(subject, &sources)));
        let parts: Vec<Part> = parts.into_iter().flatten().collect();
        let paths = each(&parts, |part| Run::new(Section::Paths, &part.paths));
        let all = parts.into_iter().fold(Part::default(), Part::with);
        let packages = packages(all.definitions);
        let definitions = each(&packages, |package| Run::new(Section::Definitions, package));
        Self {
            leaves,
            definitions: definitions.into_iter().flatten().collect(),
            paths: paths.into_iter().flatten().collect(),
            common: all.common,
        }
    }

    /// What is known of these leaves, or made of them.
    fn of(leaves: Vec<Arc<Document>>, publication: &Publication) -> Arc<Self> {
        let kept = &publication.kept().base;
        let same = |base: &Arc<Self>| {
            let pairs = || base.leaves.iter().zip(&leaves);
            base.leaves.len() == leaves.len() && pairs().all(|(one, other)| Arc::ptr_eq(one, other))
        };
        let known = kept.lock().clone().filter(same);
        known.unwrap_or_else(|| {
            let base = Arc::new(Self::new(leaves, publication));
            *kept.lock() = Some(base.clone());
            base
        })
    }
}

/// Types by their packages: no type of a custom resource is among those of a package.
fn packages(definitions: Members) -> Vec<Members> {
    let package = |name: &str| name.rsplit_once('.').map(|(package, _)| package.to_owned());
    let mut packages: Vec<(Option<String>, Members)> = Vec::new();
    for (name, member) in definitions {
        let of = package(&name);
        match packages.last_mut().filter(|(last, _)| *last == of) {
            Some((_, members)) => drop(members.insert(name, member)),
            None => packages.push((of, [(name, member)].into())),
        }
    }
    packages.into_iter().map(|(_, members)| members).collect()
}

impl Everything {
    /// What all documents say.
    pub(crate) fn new(publication: &Publication) -> Self {
        let leaves = || publication.leaves().filter(|leaf| leaf.subject().is_some());
        let (custom, built_in): (Vec<_>, Vec<_>) = leaves().cloned().partition(|leaf| leaf.is_custom());
        let base = Base::of(built_in, publication);
        let unknown: Vec<_> = custom.iter().filter(|leaf| !leaf.is_told()).collect();
        each(&unknown, |leaf| leaf.told(publication).is_some());

        let (mut definitions, mut paths) = (Sorted::default(), Sorted::default());
        base.definitions.iter().for_each(|run| definitions.put(run));
        base.paths.iter().for_each(|run| paths.put(run));
        let mut commons: Vec<&Arc<Common>> = Vec::new();
        for told in custom.iter().filter_map(|leaf| leaf.told(publication)) {
            told.definitions.iter().for_each(|run| definitions.put(run));
            told.paths.iter().for_each(|run| paths.put(run));
            if !commons.iter().any(|known| Arc::ptr_eq(known, &told.common)) {
                commons.push(&told.common);
            }
        }
        let mut common = base.common.clone();
        commons.into_iter().for_each(|other| common.append(Common::clone(other)));
        let versions = leaves().filter_map(|leaf| leaf.subject()?.version().cloned()).collect();
        let shared = common.shared_types(versions, &publication.sources(true));
        for (name, member) in common.borrowed.into_iter().chain(shared) {
            definitions.add(name, member);
        }
        let mut parameters = common.parameters;
        let mut whole =
            Whole { paths: &mut paths, definitions: &mut definitions, parameters: &mut parameters };
        let others = publication.extensions().filter_map(ExtensionDocument::swagger);
        others.for_each(|part| merge::add(&mut whole, part));
        Self::of(Frame::new(publication.release(), parameters), definitions, paths, publication.kept())
    }

    fn of(frame: Frame, definitions: Sorted, paths: Sorted, kept: &Kept) -> Self {
        let mut merged = kept.merged.lock();
        let (definitions, mut new) = definitions.pack(Section::Definitions, &merged);
        let (paths, more) = paths.pack(Section::Paths, &merged);
        new.extend(more);
        *merged = new;
        drop(merged);
        let hash = hash(&frame, [&definitions, &paths]);
        Self { hash, frame, definitions, paths, json: OnceCell::new(), protobuf: OnceCell::new() }
    }

    /// What tells it from all others: equal documents have the same, here and on other servers.
    pub(crate) fn hash(&self) -> &Arc<str> {
        &self.hash
    }

    /// Whether it has this form already.
    pub(crate) fn has(&self, form: Form) -> bool {
        self.form(form).get().is_some()
    }

    fn form(&self, form: Form) -> &OnceCell<Arc<Sendable>> {
        match form {
            Form::Json => &self.json,
            Form::Protobuf => &self.protobuf,
        }
    }

    /// The document in a form.
    ///
    /// # Errors
    ///
    /// When making it ended in an unexpected way.
    pub(crate) async fn published(self: &Arc<Self>, form: Form) -> Result<Arc<Sendable>, JoinError> {
        let make = async || {
            let everything = Arc::clone(self);
            tokio::task::spawn_blocking(move || Arc::new(everything.make(form))).await
        };
        self.form(form).get_or_try_init(make).await.cloned()
    }

    pub(crate) fn make(&self, form: Form) -> Sendable {
        let mut pieces = Pieces::new();
        match form {
            Form::Json => {
                let [begin, between, end] = self.frame.json().map(|text| Deflated::new(text.as_bytes()));
                let comma = Deflated::stored(b",");
                for (before, runs) in [(begin, &self.definitions), (between, &self.paths)] {
                    pieces.push(&before);
                    for (at, run) in runs.iter().enumerate() {
                        (at > 0).then(|| pieces.push(&comma));
                        pieces.push(run.form(form));
                    }
                }
                pieces.push(&end);
            }
            Form::Protobuf => {
                let runs: Vec<&Arc<Run>> = self.definitions.iter().chain(&self.paths).collect();
                pieces.push(&Deflated::new(&self.frame.protobuf()));
                each(&runs, |run| run.form(form)).into_iter().for_each(|run| pieces.push(run));
            }
        }
        pieces.finish()
    }
}

/// The hash of a document is that of the hashes of what it consists of, which follows from what is served, and not from what
/// was served before.
fn hash(frame: &Frame, sections: [&Vec<Arc<Run>>; 2]) -> Arc<str> {
    let mut context = digest::Context::new(&digest::SHA512);
    context.update(&to_json(frame));
    for runs in sections {
        context.update(&(runs.len() as u64).to_be_bytes());
        runs.iter().for_each(|run| context.update(run.hash()));
    }
    hexadecimal(context.finish().as_ref())
}

/// Does something with each of them, on a few threads. What comes out is in the order of what went in.
fn each<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let share = || {
        let items = std::iter::from_fn(|| {
            let at = next.fetch_add(1, Ordering::Relaxed);
            items.get(at).map(|item| (at, item))
        });
        items.map(|(at, item)| (at, work(item))).collect::<Vec<_>>()
    };
    let mut done: Vec<(usize, R)> = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS.min(items.len())).map(|_| scope.spawn(share)).collect();
        let join = |thread: thread::ScopedJoinHandle<'_, _>| {
            thread.join().unwrap_or_else(|panic| resume_unwind(panic))
        };
        threads.into_iter().flat_map(join).collect()
    });
    done.sort_unstable_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
pub(crate) mod tests;
