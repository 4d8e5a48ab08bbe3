use std::{
    any::{Any, TypeId},
    borrow::Cow,
    collections::{BTreeMap, HashMap},
    fmt,
    sync::Arc,
};

use concord_codec::Warnings;
use concord_merge::apply::Time;
use concord_meta::UserInfo;
use concord_store::Revision;
use parking_lot::Mutex;

use crate::{Condition, Object};

/// Something about a request for whoever audits it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Note {
    /// Anybody who audits may read it.
    Open(String),
    /// It holds a part of the object, and is for those only who are to read what was sent.
    Contents(String),
}

/// What whoever makes a request knows of how an object is kept, see [`Context::kept`].
pub trait Kept: fmt::Debug + Send + Sync {
    /// Whether what is kept since `revision` would be kept in another form now; `None` if that is not known.
    fn is_stale(&self, revision: Revision) -> Option<bool>;
}

/// What the verbs have to know about the request they are part of.
#[derive(Debug)]
pub struct Context {
    /// Who asks.
    pub user: Arc<UserInfo>,
    /// What is asked for, as authorizers call it, such as `patch`; empty if the server itself asks.
    pub verb: Cow<'static, str>,
    /// When the request arrived. All times written by one request are this one.
    pub now: Time,
    /// Who owns the fields that are written: the `fieldManager`, or what the user agent says.
    pub manager: String,
    /// Whether nothing is to be stored.
    pub dry_run: bool,
    /// The options that the client gave, as admission is shown them; without their kind, which the operation says.
    pub options: Object,
    /// What must hold when something is committed, besides what admission demands.
    pub condition: Option<Arc<dyn Condition>>,
    /// What is known of how the object is kept, so that the store does not have to be asked before a write that changes
    /// nothing else.
    pub kept: Option<Arc<dyn Kept>>,
    /// Whether what is written may share its revision with other writes, see [`concord_store::Txn::together`]: for whoever
    /// writes many objects of which none is urgent.
    pub together: bool,
    warnings: Mutex<Warnings>,
    annotations: Mutex<BTreeMap<String, Note>>,
    memory: Mutex<HashMap<TypeId, Arc<dyn Any + Send + Sync>>>,
}

impl Context {
    /// A request of `user` at `now`.
    pub fn new(user: impl Into<Arc<UserInfo>>, now: Time) -> Self {
        Self {
            user: user.into(),
            verb: Cow::Borrowed(""),
            now,
            manager: String::new(),
            dry_run: false,
            options: Object::new(),
            condition: None,
            kept: None,
            together: false,
            warnings: Mutex::new(Warnings::default()),
            annotations: Mutex::default(),
            memory: Mutex::default(),
        }
    }

    /// A request of the server itself, which is in the group of those who may do everything.
    pub fn of_the_server(now: Time) -> Self {
        let user = UserInfo {
            name: "system:apiserver".to_owned(),
            groups: vec![UserInfo::PRIVILEGED.to_owned()],
            ..UserInfo::default()
        };
        Self { manager: "kube-apiserver".to_owned(), ..Self::new(user, now) }
    }

    /// Tells the client something that does not make the request fail.
    pub fn warn(&self, text: &str) {
        self.warnings.lock().add(text);
    }

    /// The values of the `Warning` headers so far.
    pub fn warning_headers(&self) -> Vec<String> {
        self.warnings.lock().headers().to_vec()
    }

    /// Notes something about the request for whoever audits it. The last word on a key counts.
    pub fn annotate(&self, key: impl Into<String>, value: impl Into<String>) {
        self.annotations.lock().insert(key.into(), Note::Open(value.into()));
    }

    /// As [`Self::annotate`], of something that holds a part of the object.
    pub fn annotate_contents(&self, key: impl Into<String>, value: impl Into<String>) {
        self.annotations.lock().insert(key.into(), Note::Contents(value.into()));
    }

    /// What was noted about the request so far.
    pub fn annotations(&self) -> BTreeMap<String, Note> {
        self.annotations.lock().clone()
    }

    /// What a part of the server remembers for as long as the request lasts, by its type: the verbs may have to decide
    /// more than once.
    pub fn memory<T: Any + Send + Sync + Default>(&self) -> Arc<T> {
        let mut memory = self.memory.lock();
        let slot = memory.entry(TypeId::of::<T>()).or_insert_with(|| Arc::new(T::default()));
        slot.clone().downcast().unwrap_or_else(|_| unreachable!("the slot is that of the type"))
    }
}
