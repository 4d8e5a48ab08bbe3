//! Who may approve and sign requests for certificates: who has the verb for the signer.

use std::{borrow::Cow, sync::Arc};

use async_trait::async_trait;
use concord_meta::{GroupKind, Status, UserInfo, field};
use concord_registry::{Admission, Attributes, Object, Operation};
use concord_server::{Attributes as Question, Authorizer, RequestInfo};
use serde_json::Value;

use crate::{at, concerns, forbidden};

const GROUP: &str = "certificates.k8s.io";
const PLURAL: &str = "certificatesigningrequests";
const POD_PLURAL: &str = "podcertificaterequests";

/// Lets only those approve or deny a request who may approve for its signer.
pub struct CertificateApproval {
    authorizer: Arc<dyn Authorizer>,
}

impl CertificateApproval {
    /// `authorizer` is the one that decides about requests.
    pub fn new(authorizer: Arc<dyn Authorizer>) -> Self {
        Self { authorizer }
    }
}

#[async_trait]
impl Admission for CertificateApproval {
    fn name(&self) -> &'static str {
        "CertificateApproval"
    }

    async fn validate(&self, attributes: &Attributes<'_>, _object: Option<&Object>) -> Result<(), Status> {
        match attributes.old.filter(|_| concerned(attributes, "approval")) {
            Some(old) => check(self.authorizer.as_ref(), attributes, "approve", old).await,
            None => Ok(()),
        }
    }
}

/// Lets only those give a certificate, or say something about it, who may sign for the signer of the request.
pub struct CertificateSigning {
    authorizer: Arc<dyn Authorizer>,
}

impl CertificateSigning {
    /// `authorizer` is the one that decides about requests.
    pub fn new(authorizer: Arc<dyn Authorizer>) -> Self {
        Self { authorizer }
    }
}

#[async_trait]
impl Admission for CertificateSigning {
    fn name(&self) -> &'static str {
        "CertificateSigning"
    }

    async fn validate(&self, attributes: &Attributes<'_>, object: Option<&Object>) -> Result<(), Status> {
        let (Some(new), Some(old)) = (object, attributes.old) else { return Ok(()) };
        if is_update_of(attributes, POD_PLURAL, "status") {
            return may_answer(self.authorizer.as_ref(), attributes, new, old).await;
        }
        if !concerned(attributes, "status") {
            return Ok(());
        }
        let same = |field: &str| at(new, &["status", field]) == at(old, &["status", field]);
        if same("certificate") && same("conditions") {
            return Ok(());
        }
        check(self.authorizer.as_ref(), attributes, "sign", old).await
    }
}

/// Lets only those speak for a signer, in a bundle of authorities, who may attest for it.
pub struct ClusterTrustBundleAttest {
    authorizer: Arc<dyn Authorizer>,
}

impl ClusterTrustBundleAttest {
    /// `authorizer` is the one that decides about requests.
    pub fn new(authorizer: Arc<dyn Authorizer>) -> Self {
        Self { authorizer }
    }
}

#[async_trait]
impl Admission for ClusterTrustBundleAttest {
    fn name(&self) -> &'static str {
        "ClusterTrustBundleAttest"
    }

    async fn validate(&self, attributes: &Attributes<'_>, object: Option<&Object>) -> Result<(), Status> {
        let writes = matches!(attributes.operation, Operation::Create | Operation::Update);
        let concerned = writes && concerns(attributes, GROUP, "clustertrustbundles", "");
        let Some(bundle) = object.filter(|_| concerned) else { return Ok(()) };
        let signer = at(bundle, &["spec", "signerName"]).and_then(Value::as_str).unwrap_or_default();
        let is_same = attributes.old.is_some_and(|old| is_collected(bundle, old));
        if signer.is_empty()
            || is_same
            || speaks_for(self.authorizer.as_ref(), attributes, "attest", signer).await
        {
            return Ok(());
        }
        Err(forbidden(attributes, &format!("user not permitted to attest for signerName {signer:?}")))
    }
}

/// Whether only what the garbage collector changes has changed.
fn is_collected(new: &Object, old: &Object) -> bool {
    let rest = |object: &Object| {
        let mut object = object.clone();
        if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
            for field in ["ownerReferences", "finalizers", "managedFields"] {
                metadata.remove(field);
            }
        }
        object
    };
    rest(new) == rest(old)
}

fn concerned(attributes: &Attributes<'_>, subresource: &str) -> bool {
    is_update_of(attributes, PLURAL, subresource)
}

fn is_update_of(attributes: &Attributes<'_>, plural: &str, subresource: &str) -> bool {
    attributes.operation == Operation::Update && concerns(attributes, GROUP, plural, subresource)
}

/// What becomes of a request for a pod's certificate only its signer says. Upstream has this among the rules of the kind,
/// hence the form of the answer.
async fn may_answer(
    authorizer: &dyn Authorizer,
    attributes: &Attributes<'_>,
    new: &Object,
    old: &Object,
) -> Result<(), Status> {
    let signer = at(old, &["spec", "signerName"]).and_then(Value::as_str).unwrap_or_default();
    if new.get("status") == old.get("status") || speaks_for(authorizer, attributes, "sign", signer).await {
        return Ok(());
    }
    let user = &attributes.context.user.name;
    let why = format!("User {user:?} is not permitted to \"sign\" for signer {signer:?}");
    let error = field::Error::forbidden(&field::Path::new("spec").child("signerName"), why);
    Err(Status::invalid(&GroupKind::new(GROUP, "PodCertificateRequest"), attributes.name, &[error]))
}

/// Whether the user has the verb for the signer of the request, or for all signers of its domain.
async fn check(
    authorizer: &dyn Authorizer,
    attributes: &Attributes<'_>,
    verb: &'static str,
    request: &Object,
) -> Result<(), Status> {
    let signer = at(request, &["spec", "signerName"]).and_then(Value::as_str).unwrap_or_default();
    if speaks_for(authorizer, attributes, verb, signer).await {
        return Ok(());
    }
    let why = format!("user not permitted to {verb} requests with signerName {signer:?}");
    Err(forbidden(attributes, &why))
}

async fn speaks_for(
    authorizer: &dyn Authorizer,
    attributes: &Attributes<'_>,
    verb: &'static str,
    signer: &str,
) -> bool {
    let domain = signer.split('/').next().unwrap_or(signer);
    let user = &attributes.context.user;
    allows(authorizer, user, verb, signer.to_owned()).await
        || allows(authorizer, user, verb, format!("{domain}/*")).await
}

async fn allows(authorizer: &dyn Authorizer, user: &UserInfo, verb: &'static str, name: String) -> bool {
    let request = RequestInfo {
        is_resource_request: true,
        verb: Cow::Borrowed(verb),
        api_group: GROUP.to_owned(),
        api_version: "*".to_owned(),
        resource: "signers".to_owned(),
        name,
        ..RequestInfo::default()
    };
    authorizer.authorize(&Question { user, request: &request }).await.is_allowed()
}
