use concord_replica::EventKind;
use concord_server::{RequestInfo, UserInfo};
use concord_store::KeyValue;

use super::*;

fn put(view: &mut RulesView, revision: Revision, key: &str, value: &str) {
    let entry = KeyValue {
        key: format!("/registry/{key}").into(),
        value: value.to_owned().into(),
        create_revision: revision,
        mod_revision: revision,
    };
    view.apply(revision, &[Event { revision, kind: EventKind::Created(Arc::new(entry)) }]);
}

fn delete(view: &mut RulesView, revision: Revision, key: &str) {
    let previous = KeyValue {
        key: format!("/registry/{key}").into(),
        value: Bytes::new(),
        create_revision: 1,
        mod_revision: 1,
    };
    let kind = EventKind::Deleted { previous: Arc::new(previous) };
    view.apply(revision, &[Event { revision, kind }]);
}

fn allowed(view: &RulesView, namespace: &str) -> bool {
    let user = UserInfo { name: "alice".to_owned(), ..UserInfo::default() };
    let request = RequestInfo {
        is_resource_request: true,
        verb: "get".into(),
        namespace: namespace.to_owned(),
        resource: "pods".to_owned(),
        ..RequestInfo::default()
    };
    view.policy().load().decide(&user, &request).is_ok()
}

const ROLE: &str =
    r#"{"metadata":{"name":"r"},"rules":[{"verbs":["get"],"apiGroups":[""],"resources":["pods"]}]}"#;
const BINDING: &str = r#"{"metadata":{"name":"b","namespace":"elsewhere"},"roleRef":{"kind":"Role","name":"r"},"subjects":[{"kind":"User","name":"alice"}]}"#;

#[test]
fn every_change_counts_from_its_revision_on() {
    let mut view = RulesView::new("/registry/");
    put(&mut view, 5, "rolebindings/n/b", BINDING);
    let before = view.policy().load_full();
    put(&mut view, 6, "roles/n/r", ROLE);
    // Where a binding is, its key says.
    assert!(allowed(&view, "n") && !allowed(&view, "elsewhere"));
    assert_eq!((before.revision(), view.policy().load().revision()), (5, 6));
    delete(&mut view, 7, "roles/n/r");
    assert!(!allowed(&view, "n"));
    put(&mut view, 8, "roles/n/r", ROLE);
    delete(&mut view, 9, "rolebindings/n/b");
    assert!(!allowed(&view, "n"));
    assert_eq!(view.policy().load().bindings(), 0);
}

#[test]
fn what_cannot_be_read_grants_nothing() {
    for value in [
        "",
        "{",
        "[]",
        "{}",
        r#"{"metadata":{}}"#,
        r#"{"metadata":{"name":"r"},"rules":[7]}"#,
        "k8s\u{0}protobuf",
    ] {
        let mut view = RulesView::new("/registry/");
        put(&mut view, 1, "roles/n/r", ROLE);
        put(&mut view, 2, "rolebindings/n/b", BINDING);
        assert!(allowed(&view, "n"));
        // What was there before does not stay in its place.
        put(&mut view, 3, "roles/n/r", value);
        assert!(!allowed(&view, "n"), "{value:?}");
        put(&mut view, 4, "roles/n/r", ROLE);
        put(&mut view, 5, "rolebindings/n/b", value);
        assert!(!allowed(&view, "n"), "{value:?}");
    }
    let mut view = RulesView::new("/registry/");
    for key in ["roles/r", "roles//r", "rolebindings/b", "rolebindings//b", "pods/n/p"] {
        put(&mut view, 1, key, if key.contains("binding") { BINDING } else { ROLE });
    }
    assert!(!allowed(&view, "n") && !allowed(&view, ""));
}
