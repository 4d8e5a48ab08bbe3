//! Expressions that try to take more than they may, and random ones: always an answer, never a panic.

use std::time::{Duration, Instant};

use concord_cel::{Activation, Budget, CompileError, Decl, Env, EvalError, Type, Version};
use proptest::prelude::*;
use serde_json::{Value, json};

fn env() -> Env {
    Env::new(Version::CURRENT).variable("self", Decl::dynamic())
}

fn eval(source: &str, data: &Value) -> Result<Option<bool>, EvalError> {
    let program = env().compile(source).unwrap_or_else(|error| panic!("{source}: {error}"));
    let result = program.eval(&Activation::new().json("self", data), &mut Budget::default());
    result.map(|value| value.as_bool())
}

#[test]
fn an_expression_stops_at_its_limit() {
    let data = json!((0..2000).collect::<Vec<i64>>());
    let error = eval("self.all(x, self.all(y, x + y >= 0))", &data);
    assert_eq!(error, Err(EvalError::CostLimit));
    // An error that is a limit is not absorbed.
    assert_eq!(eval("self.all(x, self.all(y, x + y >= 0)) || true", &data), Err(EvalError::CostLimit));
}

#[test]
fn a_budget_is_shared_by_the_expressions_of_an_object() {
    let program = env().compile("self.all(x, x >= 0)").expect("valid");
    let data = json!((0..1000).collect::<Vec<i64>>());
    let mut budget = Budget::new(10_000);
    let mut runs = 0;
    let error = loop {
        match program.eval(&Activation::new().json("self", &data), &mut budget) {
            Ok(_) => runs += 1,
            Err(error) => break error,
        }
    };
    assert_eq!((error, runs, budget.remaining()), (EvalError::Budget, 1, 0));
}

#[test]
fn values_that_double_take_neither_time_nor_memory() {
    let started = Instant::now();
    // Each step names the value before it twice.
    let doubled = |value: &str, join: &str, times: usize| {
        (0..times)
            .fold(value.to_owned(), |value, _| format!("optional.of({value}).optMap(v, {join}).value()"))
    };
    let lists = doubled("[1]", "v + v", 9);
    assert_eq!(eval(&format!("{lists}.size() == 512"), &Value::Null), Ok(Some(true)));
    let nested = doubled("[1]", "[v, v]", 9);
    assert_eq!(eval(&format!("{nested} == {nested}"), &Value::Null), Ok(Some(true)));
    let data = json!("x".repeat(10_000));
    assert_eq!(eval("self.replace('', self).size() > 0", &data), Err(EvalError::CostLimit));
    let numbers = json!(i64::MAX);
    assert_eq!(eval("lists.range(self).size() > 0", &numbers), Err(EvalError::CostLimit));
    assert!(started.elapsed() < Duration::from_secs(20), "took {:?}", started.elapsed());
}

#[test]
fn expressions_that_expand_too_far_are_refused() {
    let chain = (0..40).fold("optional.of(1)".to_owned(), |value, _| format!("{value}.optMap(v, v)"));
    let error = env().compile(&chain).expect_err("a million nodes");
    assert!(error.to_string().contains("nodes"), "{error}");
    let long = format!("'{}'", "x".repeat(100_001));
    let error = env().compile(&long).expect_err("too long").to_string();
    assert_eq!(
        error,
        "ERROR: <input>:-1:0: expression code point size exceeds limit: size: 100003, limit 100000"
    );
}

#[test]
fn the_deepest_expression_fits_on_a_small_stack() {
    let check = || {
        let deep = format!("{}1{}", "(".repeat(240), ")".repeat(240));
        assert!(env().compile(&format!("{deep} == 1")).is_ok());
        let chain = vec!["self"; 200].join(" + ");
        let program = env().compile(&chain).expect("a chain");
        let one = json!(1);
        assert!(program.eval(&Activation::new().json("self", &one), &mut Budget::default()).is_ok());
        let all = vec!["self == 1"; 5000].join(" && ");
        let program = env().compile(&all).expect("a balanced chain");
        let result = program.eval(&Activation::new().json("self", &one), &mut Budget::default());
        assert_eq!(result.expect("true").as_bool(), Some(true));
    };
    let thread = std::thread::Builder::new().stack_size(2 << 20).spawn(check).expect("a thread");
    thread.join().expect("no stack overflow");
}

#[test]
fn a_program_says_what_it_uses_and_returns() {
    let env = Env::new(Version::CURRENT)
        .variable("self", Decl::simple(Type::Int))
        .variable("oldSelf", Decl::simple(Type::Int));
    let program = env.compile("self >= oldSelf").expect("valid");
    assert!(program.uses("oldSelf") && program.uses("self") && !program.uses("other"));
    assert_eq!(program.output_type(), &Type::Bool);
    let program = env.compile("[1].exists(oldSelf, oldSelf == self)").expect("valid");
    assert_eq!(program.output_type(), &Type::Bool);
    assert!(matches!(env.compile("int('a') == 1"), Err(CompileError::Instantiation(_))));
}

const TOKENS: &[&str] = &[
    "self",
    "x",
    "1",
    "2u",
    "1.5",
    "'a'",
    "b'b'",
    "true",
    "null",
    "[",
    "]",
    "{",
    "}",
    "(",
    ")",
    ".",
    ",",
    ":",
    "?",
    "+",
    "-",
    "*",
    "/",
    "%",
    "<",
    "==",
    "!=",
    "&&",
    "||",
    "!",
    "in",
    ".all(x, ",
    ".map(x, ",
    ".filter(x, ",
    "has(",
    ".size()",
    ".?a",
    "[?0]",
    "optional.of(",
    ".matches(",
    "duration('1s')",
    "timestamp('2020-01-01T00:00:00Z')",
    "type(",
    "dyn(",
    "string(",
    ".a",
    ".b.c",
    "[0]",
    ".sort()",
    ".flatten()",
    "quantity('1')",
    "ip('::1')",
    "'%s'.format([",
    "])",
    ".substring(1)",
    ".split('')",
    ".join()",
    ".optMap(x, ",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    #[test]
    fn random_text_never_panics(source in ".{0,60}") {
        let _ignored = env().compile(&source).is_ok();
    }

    #[test]
    fn random_tokens_never_panic(tokens in prop::collection::vec(prop::sample::select(TOKENS), 1..14)) {
        let data = json!({"a": [1, "x", null, 2.5], "b": {"c": "d"}});
        if let Ok(program) = env().compile(&tokens.concat()) {
            let _ignored = program.eval(&Activation::new().json("self", &data), &mut Budget::default()).is_ok();
        }
    }

    /// The estimate is a promise: what is measured is never more.
    #[test]
    fn the_measured_cost_is_within_the_estimate(
        items in prop::collection::vec("[a-z]{0,5}", 0..10),
        rule in prop::sample::select(vec![
            "self.all(x, x.size() < 10)",
            "self.exists(x, x.startsWith('a') && x.contains('b'))",
            "self.map(x, x + 'suffix').filter(y, y.matches('^a')).size() > 0",
            "self.join(',').split('a').size() > 1",
        ]),
    ) {
        let schema = json!({"type": "array", "maxItems": 10, "items": {"type": "string", "maxLength": 5}});
        let decl = Decl::from_schema(&schema, "self", false).expect("a list");
        let program = Env::new(Version::CURRENT).variable("self", decl).compile(rule).expect("valid");
        let data = json!(items);
        let mut budget = Budget::default();
        let result = program.eval(&Activation::new().json("self", &data), &mut budget);
        prop_assert!(result.is_ok());
        let cost = Budget::PER_OBJECT - budget.remaining();
        prop_assert!(cost <= program.cost_estimate().max, "{} > {}", cost, program.cost_estimate().max);
    }
}
