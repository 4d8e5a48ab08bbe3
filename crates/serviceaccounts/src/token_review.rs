use std::sync::Arc;

use async_trait::async_trait;
use concord_meta::{Status, UserInfo};
use concord_registry::{Invocation, Object, Virtual, with_owners};
use concord_schema::Schema;
use concord_server::{TokenAuthenticator, Unauthenticated};
use serde_json::{Map, Value, json};

use crate::{Config, ServiceAccountAuthenticator, authenticator::Known};

/// What every token is called that nobody knows.
const INVALID: &str = "invalid bearer token";

/// Answers TokenReviews: whose is this token?
pub struct TokenReviews {
    schema: Arc<Schema>,
    config: Arc<Config>,
    accounts: Arc<ServiceAccountAuthenticator>,
    others: Vec<Arc<dyn TokenAuthenticator>>,
}

impl TokenReviews {
    /// Asks these, in this order: `others`, which know of no audiences and whose tokens are for this server, and then
    /// `accounts`.
    pub fn new(
        schema: Arc<Schema>,
        config: Arc<Config>,
        others: Vec<Arc<dyn TokenAuthenticator>>,
        accounts: Arc<ServiceAccountAuthenticator>,
    ) -> Self {
        Self { schema, config, accounts, others }
    }

    async fn find(&self, token: &str, audiences: &[String]) -> Result<Known, Vec<String>> {
        let mut complaints = vec![INVALID.to_owned()];
        let mut complain = |Unauthenticated(complaint): Unauthenticated| {
            if !complaints.contains(&complaint) {
                complaints.push(complaint);
            }
        };
        let common: Vec<String> =
            audiences.iter().filter(|one| self.config.api_audiences.contains(one)).cloned().collect();
        // Tokens of a file are for this server, and for nobody else.
        let others = if common.is_empty() { &[][..] } else { &self.others };
        for authenticator in others {
            match authenticator.authenticate_token(token).await {
                Ok(Some(user)) => return Ok(Known { user, audiences: common }),
                Ok(None) => {}
                Err(refused) => complain(refused),
            }
        }
        match self.accounts.authenticate(token, audiences).await {
            Ok(Some(known)) => return Ok(known),
            Ok(None) => {}
            Err(refused) => complain(refused),
        }
        Err(complaints)
    }
}

#[async_trait]
impl Virtual for TokenReviews {
    fn schema(&self) -> Arc<Schema> {
        self.schema.clone()
    }

    async fn create(&self, invocation: Invocation<'_>, body: Object) -> Result<Object, Status> {
        let kind = invocation.resource.kind();
        let mut body = with_owners(&self.schema, kind, "", invocation.context, body);
        let spec = body.get("spec").and_then(Value::as_object);
        let member = |name: &str| spec.and_then(|spec| spec.get(name));
        let token = member("token").and_then(Value::as_str).unwrap_or_default();
        if token.is_empty() {
            return Err(Status::bad_request("token is required for TokenReview in authentication"));
        }
        let audiences = member("audiences").and_then(Value::as_array);
        let audiences = audiences.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned);
        let mut audiences: Vec<String> = audiences.collect();
        if audiences.is_empty() {
            audiences.clone_from(&self.config.api_audiences);
        }
        // As it would be read in a header: up to the first space.
        let token = token.split(' ').next().unwrap_or_default().to_owned();
        let status = match self.find(&token, &audiences).await {
            Ok(Known { user, audiences }) => {
                json!({"authenticated": true, "user": user_json(&user), "audiences": audiences})
            }
            Err(complaints) => json!({"user": {}, "error": in_one(&complaints)}),
        };
        body.insert("status".to_owned(), status);
        Ok(body)
    }
}

/// Several errors in one, as upstream writes them.
fn in_one(complaints: &[String]) -> String {
    match complaints {
        [one] => one.clone(),
        several => format!("[{}]", several.join(", ")),
    }
}

fn user_json(user: &UserInfo) -> Value {
    let mut members = Map::new();
    members.insert("username".to_owned(), user.name.as_str().into());
    if !user.uid.is_empty() {
        members.insert("uid".to_owned(), user.uid.as_str().into());
    }
    if !user.groups.is_empty() {
        members.insert("groups".to_owned(), user.groups.clone().into());
    }
    if !user.extra.is_empty() {
        members.insert("extra".to_owned(), json!(user.extra));
    }
    members.into()
}

#[cfg(test)]
mod tests;
