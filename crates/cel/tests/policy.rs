//! The variables of an admission policy: the request, the objects, parameters, the authorizer, named expressions.

use std::sync::{Arc, Mutex};

use concord_cel::{
    Activation, Authorizer, AuthorizerValue, Budget, Check, CheckTarget, Decision, Decl, Env, EvalError,
    LazyMap, MapValue, Program, ResourceTarget, Type, Val, Version,
};
use serde_json::{Value, json};

fn env() -> Env {
    let request = Decl::object(
        "kubernetes.AdmissionRequest",
        [
            ("operation".to_owned(), Decl::simple(Type::String)),
            (
                "userInfo".to_owned(),
                Decl::object(
                    "kubernetes.UserInfo",
                    [
                        ("username".to_owned(), Decl::simple(Type::String)),
                        ("groups".to_owned(), Decl::list(Decl::simple(Type::String))),
                    ],
                ),
            ),
        ],
    );
    let variables = Decl::object("kubernetes.variables", [("replicas".to_owned(), Decl::simple(Type::Int))]);
    Env::new(Version::CURRENT)
        .variable("object", Decl::dynamic())
        .variable("oldObject", Decl::dynamic())
        .variable("params", Decl::dynamic())
        .variable("request", request)
        .variable("variables", variables)
        .variable("authorizer", AuthorizerValue::new().declaration())
        .variable(
            "authorizer.requestResource",
            AuthorizerValue::request_resource(ResourceTarget::default()).declaration(),
        )
}

fn compile(source: &str) -> Program {
    env().compile(source).unwrap_or_else(|error| panic!("{source}: {error}"))
}

fn evaluate(source: &str, object: &Value, request: &Value) -> Result<Option<bool>, EvalError> {
    let program = compile(source);
    let activation = Activation::new().json("object", object).json("request", request);
    program.eval(&activation, &mut Budget::default()).map(|value| value.as_bool())
}

#[test]
fn objects_are_dynamic_and_requests_are_typed() {
    let object = json!({"spec": {"replicas": 3, "template": {"labels": {"app": "web"}}}});
    let request = json!({"operation": "UPDATE", "userInfo": {"username": "jane", "groups": ["devs"]}});
    for (source, expect) in [
        ("object.spec.replicas <= 5", true),
        ("has(object.spec.template.labels.app) && object.spec.template.labels.app == 'web'", true),
        ("request.operation == 'CREATE'", false),
        ("'devs' in request.userInfo.groups || request.userInfo.username == 'root'", true),
        ("object.spec.?paused.orValue(false)", false),
    ] {
        assert_eq!(evaluate(source, &object, &request), Ok(Some(expect)), "{source}");
    }
    let error = env().compile("request.operatoin == 'CREATE'").expect_err("a typo");
    assert_eq!(
        error.to_string(),
        "ERROR: <input>:1:8: undefined field 'operatoin'\n | request.operatoin == 'CREATE'\n | .......^"
    );
    // A variable that is not bound is an error, not null.
    let error = evaluate("oldObject == null", &object, &request);
    assert_eq!(error, Err(EvalError::Failed("no such attribute(s): oldObject".to_owned())));
}

/// Allows what jane may read, and remembers what it was asked.
#[derive(Default)]
struct Recorder(Mutex<Vec<Check>>);

impl Authorizer for Recorder {
    fn authorize(&self, check: &Check) -> Decision {
        self.0.lock().expect("not poisoned").push(check.clone());
        Decision { allowed: check.verb == "get", reason: format!("verb {}", check.verb), error: None }
    }
}

#[test]
fn an_authorizer_is_asked_once_for_each_check() {
    let recorder = Recorder::default();
    let program = compile(
        "authorizer.group('apps').resource('deployments').subresource('scale').namespace('ns').name('web').check('get').allowed() \
         && !authorizer.serviceAccount('ns', 'bot').path('/metrics').check('post').allowed() \
         && authorizer.requestResource.check('list').reason() == 'verb list'",
    );
    let target = ResourceTarget { resource: "pods".to_owned(), ..ResourceTarget::default() };
    let activation = Activation::new()
        .value("authorizer", Val::Authorizer(AuthorizerValue::new()))
        .value(
            "authorizer.requestResource",
            Val::Authorizer(AuthorizerValue::request_resource(target.clone())),
        )
        .authorizer(&recorder);
    // Each check costs 350 000, so that one expression can make two.
    let mut budget = Budget::default().with_limit_per_call(2_000_000);
    let result = program.eval(&activation, &mut budget).expect("a decision");
    assert_eq!(result.as_bool(), Some(true));
    assert!(Budget::PER_OBJECT - budget.remaining() > 3 * 350_000);
    let checks = recorder.0.lock().expect("not poisoned").clone();
    assert_eq!(checks.len(), 3);
    let CheckTarget::Resource(first) = &checks[0].target else { panic!("{:?}", checks[0]) };
    assert_eq!((&*first.group, &*first.resource, &*first.subresource), ("apps", "deployments", "scale"));
    assert_eq!((&*first.namespace, &*first.name), ("ns", "web"));
    assert_eq!(checks[1].service_account, Some(("ns".to_owned(), "bot".to_owned())));
    assert_eq!(checks[1].target, CheckTarget::Path("/metrics".to_owned()));
    assert_eq!(checks[2].target, CheckTarget::Resource(target));
}

#[test]
fn an_expression_can_afford_two_checks() {
    let check = "authorizer.path('/x').check('get').allowed()";
    for (count, expect) in [(2, Ok(Some(true))), (3, Err(EvalError::CostLimit))] {
        let program = compile(&vec![check; count].join(" && "));
        let recorder = Recorder::default();
        let activation = Activation::new()
            .value("authorizer", Val::Authorizer(AuthorizerValue::new()))
            .authorizer(&recorder);
        let result = program.eval(&activation, &mut Budget::default());
        assert_eq!(result.map(|value| value.as_bool()), expect, "{count}");
    }
}

/// Counts how often a variable is computed.
#[derive(Debug, Default)]
struct Variables(Mutex<u32>);

impl LazyMap for Variables {
    fn get<'v>(&'v self, field: &str) -> Option<Result<Val<'v>, EvalError>> {
        (field == "replicas").then(|| {
            let mut count = self.0.lock().expect("not poisoned");
            *count += 1;
            Ok(Val::Int(i64::from(*count)))
        })
    }
}

#[test]
fn variables_are_computed_when_they_are_read() {
    let program = compile("true || variables.replicas > 0");
    let variables = Variables::default();
    let activation = Activation::new().value("variables", Val::Map(MapValue::Lazy(&variables)));
    assert!(program.eval(&activation, &mut Budget::default()).is_ok());
    assert_eq!(*variables.0.lock().expect("not poisoned"), 0);
    let program = compile("variables.replicas == 1");
    let result = program.eval(&activation, &mut Budget::default()).expect("a value");
    assert_eq!(result.as_bool(), Some(true));
}

#[test]
fn a_program_is_shared_between_threads() {
    let program = Arc::new(compile("object.all(x, x.matches('^[a-z]+$'))"));
    let threads: Vec<_> = (0..2)
        .map(|_| {
            let program = Arc::clone(&program);
            std::thread::spawn(move || {
                let object = json!(["a", "b"]);
                let result = program.eval(&Activation::new().json("object", &object), &mut Budget::default());
                result.map(|value| value.as_bool())
            })
        })
        .collect();
    for thread in threads {
        assert_eq!(thread.join().expect("no panic"), Ok(Some(true)));
    }
}
