use std::sync::Arc;

use async_trait::async_trait;
use http::request::Parts;

use super::{
    Authenticated, Authenticator, ClientAuthorities, RequestHeader, TokenAuthenticator, Unauthenticated,
    bearer::Bearer, websocket::WebSocketBearer,
};
use crate::UserInfo;

/// How a server finds out who its clients are.
#[derive(Clone, Default)]
pub struct Authentication {
    /// The proxies that may say who their clients are; asked first.
    pub request_header: Option<Arc<RequestHeader>>,
    /// Whose client certificates are accepted; without it none are asked for.
    pub client_ca: Option<Arc<ClientAuthorities>>,
    /// Who knows bearer tokens, in the order they are asked.
    pub tokens: Vec<Arc<dyn TokenAuthenticator>>,
    /// Who else knows clients; asked before certificates are looked at.
    pub others: Vec<Arc<dyn Authenticator>>,
    /// Whether clients without credentials are refused rather than anonymous.
    pub forbid_anonymous: bool,
}

impl Authentication {
    /// All of them as one, in upstream's order.
    pub(crate) fn into_authenticator(self) -> impl Authenticator {
        let proxies = self.request_header.map(|proxies| proxies as Arc<dyn Authenticator>);
        let mut members: Vec<_> = proxies.into_iter().chain(self.others).collect();
        if let Some(client_ca) = self.client_ca {
            members.push(client_ca);
        }
        if !self.tokens.is_empty() {
            let tokens: Arc<[_]> = self.tokens.into();
            members.push(Arc::new(Bearer(tokens.clone())));
            members.push(Arc::new(WebSocketBearer(tokens)));
        }
        let anonymous = (!self.forbid_anonymous).then(|| Arc::new(UserInfo::anonymous()));
        Union { members, anonymous }
    }
}

struct Union {
    members: Vec<Arc<dyn Authenticator>>,
    anonymous: Option<Arc<UserInfo>>,
}

#[async_trait]
impl Authenticator for Union {
    /// The first that knows the client decides. Only who presents nothing is anonymous: wrong credentials
    /// are never taken for none.
    async fn authenticate(&self, request: &mut Parts) -> Authenticated {
        let mut complaints = Vec::new();
        for member in &self.members {
            match member.authenticate(request).await {
                Ok(Some(user)) if user.is_classified() => return Ok(Some(user)),
                Ok(Some(user)) => return Ok(Some(Arc::new(UserInfo::clone(&user).authenticated()))),
                Ok(None) => {}
                Err(Unauthenticated(complaint)) => complaints.push(complaint),
            }
        }
        match &complaints[..] {
            [] => Ok(self.anonymous.clone()),
            complaints => Err(Unauthenticated(complaints.join(", "))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::testing::request;

    struct Says(Authenticated);

    #[async_trait]
    impl Authenticator for Says {
        async fn authenticate(&self, _: &mut Parts) -> Authenticated {
            self.0.clone()
        }
    }

    async fn ask(members: Vec<Authenticated>, forbid_anonymous: bool) -> Result<Option<String>, String> {
        let others = members.into_iter().map(|says| Arc::new(Says(says)) as _).collect();
        let authentication = Authentication { others, forbid_anonymous, ..Authentication::default() };
        let mut parts = request("GET", "/").into_parts().0;
        let user = authentication.into_authenticator().authenticate(&mut parts).await;
        let describe = |user: Arc<UserInfo>| format!("{} {}", user.name, user.groups.join(","));
        user.map(|user| user.map(describe)).map_err(|error| error.to_string())
    }

    #[tokio::test]
    async fn the_first_who_knows_the_client_decides() {
        let user = |name: &str, group: &str| {
            let groups = [group].into_iter().filter(|group| !group.is_empty()).map(str::to_owned).collect();
            Ok(Some(Arc::new(UserInfo { name: name.to_owned(), groups, ..UserInfo::default() })))
        };
        let wrong = |text: &str| Err(Unauthenticated(text.to_owned()));
        let found = |text: &str| Ok(Some(text.to_owned()));
        for (members, forbid_anonymous, expected) in [
            (vec![], false, found("system:anonymous system:unauthenticated")),
            (vec![Ok(None)], false, found("system:anonymous system:unauthenticated")),
            (vec![Ok(None)], true, Ok(None)),
            (vec![Ok(None), user("a", "g"), user("b", "")], false, found("a g,system:authenticated")),
            (vec![wrong("x"), user("b", "")], false, found("b system:authenticated")),
            (vec![user("b", "system:authenticated")], false, found("b system:authenticated")),
            (vec![user("b", "system:unauthenticated")], false, found("b system:unauthenticated")),
            (vec![wrong("x"), Ok(None), wrong("y")], false, Err("x, y".to_owned())),
        ] {
            assert_eq!(ask(members, forbid_anonymous).await, expected);
        }
    }
}
