use std::sync::Arc;

use concord_codec::Warnings;
use concord_merge::apply::Time;
use concord_meta::UserInfo;
use parking_lot::Mutex;

/// What the verbs have to know about the request they are part of.
#[derive(Debug)]
pub struct Context {
    /// Who asks.
    pub user: Arc<UserInfo>,
    /// When the request arrived. All times written by one request are this one.
    pub now: Time,
    /// Who owns the fields that are written: the `fieldManager`, or what the user agent says.
    pub manager: String,
    /// Whether nothing is to be stored.
    pub dry_run: bool,
    warnings: Mutex<Warnings>,
}

impl Context {
    /// A request of `user` at `now`.
    pub fn new(user: impl Into<Arc<UserInfo>>, now: Time) -> Self {
        Self {
            user: user.into(),
            now,
            manager: String::new(),
            dry_run: false,
            warnings: Mutex::new(Warnings::default()),
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
}
