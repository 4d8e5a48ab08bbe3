use std::sync::Arc;

use async_trait::async_trait;
use concord_meta::Status;
use concord_registry::{Invocation, Object, Virtual};
use concord_schema::Schema;
use serde_json::{Value, json};

/// Who am I: the user as the server sees it.
pub(super) struct SelfSubjectReview(pub(super) Arc<Schema>);

#[async_trait]
impl Virtual for SelfSubjectReview {
    fn schema(&self) -> Arc<Schema> {
        self.0.clone()
    }

    async fn create(&self, invocation: Invocation<'_>, mut body: Object) -> Result<Object, Status> {
        let context = invocation.context;
        let user = &context.user;
        let mut info = Object::from_iter([("username".to_owned(), Value::from(user.name.as_str()))]);
        if !user.uid.is_empty() {
            info.insert("uid".to_owned(), user.uid.as_str().into());
        }
        if !user.groups.is_empty() {
            info.insert("groups".to_owned(), user.groups.clone().into());
        }
        if !user.extra.is_empty() {
            info.insert("extra".to_owned(), json!(user.extra));
        }
        // Upstream answers with an object of its own: nothing of what was sent comes back.
        body.insert("metadata".to_owned(), json!({"creationTimestamp": context.now.to_string()}));
        body.insert("status".to_owned(), json!({ "userInfo": info }));
        Ok(body)
    }
}
