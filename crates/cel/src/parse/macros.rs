//! The macros: calls that become other expressions before anything is checked.

use std::sync::Arc;

use super::{Parse, Parser};
use crate::ast::{ACCUMULATOR, Call, Comprehension, Element, Expr, Kind, Literal, Name, Select};
use crate::version::Features;

/// How many nodes an expression may have before a macro copies a part of it.
const MAX_NODES: u32 = 200_000;

/// Which macro a call is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Macro {
    Has,
    All,
    Exists,
    ExistsOne,
    Map,
    Filter,
    TransformList,
    TransformMap,
    TransformMapEntry,
    OptMap,
    OptFlatMap,
    SortBy,
    Bind,
}

/// The macro of a call without receiver, if it is one.
pub(super) fn global(name: &str, args: usize) -> Option<Macro> {
    (name == "has" && args == 1).then_some(Macro::Has)
}

/// The macro of a call with receiver, if it is one in this environment.
pub(super) fn receiver(operand: &Expr, name: &str, args: usize, features: Features) -> Option<Macro> {
    let is_cel = || matches!(&operand.kind, Kind::Ident(name) if &**name == "cel");
    let (kind, available) = match (name, args) {
        ("all", 2) => (Macro::All, true),
        ("exists", 2) => (Macro::Exists, true),
        ("exists_one", 2) => (Macro::ExistsOne, true),
        ("map", 2 | 3) => (Macro::Map, true),
        ("filter", 2) => (Macro::Filter, true),
        ("all", 3) => (Macro::All, features.two_variables),
        ("exists", 3) => (Macro::Exists, features.two_variables),
        ("exists_one" | "existsOne", 3) => (Macro::ExistsOne, features.two_variables),
        ("transformList", 3 | 4) => (Macro::TransformList, features.two_variables),
        ("transformMap", 3 | 4) => (Macro::TransformMap, features.two_variables),
        ("transformMapEntry", 3 | 4) => (Macro::TransformMapEntry, features.two_variables),
        ("optMap", 2) => (Macro::OptMap, features.optional_types),
        ("optFlatMap", 2) => (Macro::OptFlatMap, features.optional_types),
        ("sortBy", 2) => (Macro::SortBy, features.lists),
        ("bind", 3) => (Macro::Bind, features.bindings && is_cel()),
        _ => return None,
    };
    available.then_some(kind)
}

/// Takes exactly this many arguments out of a vector.
fn exactly<const N: usize>(args: Vec<Expr>) -> [Expr; N] {
    args.try_into().unwrap_or_else(|_| unreachable!("the number of arguments chose the macro"))
}

impl Parser<'_> {
    pub(super) fn expand(
        &mut self,
        kind: Macro,
        at: u32,
        target: Option<Expr>,
        args: Vec<Expr>,
    ) -> Parse<Expr> {
        let Some(target) = target else { return self.has(at, exactly::<1>(args)) };
        match kind {
            Macro::OptMap | Macro::OptFlatMap => self.opt_map(kind, at, target, exactly::<2>(args)),
            Macro::SortBy => self.sort_by(at, target, exactly::<2>(args)),
            Macro::Bind => self.named(at, exactly::<3>(args)),
            Macro::Map | Macro::Filter => self.map_or_filter(kind, at, target, args),
            _ if args.len() == 2 => {
                let [var, body] = exactly::<2>(args);
                let var = self.variable(&var, "argument must be a simple name")?;
                Ok(self.looped(kind, at, target, (var, None), None, body))
            }
            _ => self.two_variables(kind, at, target, args),
        }
    }

    fn has(&mut self, at: u32, [argument]: [Expr; 1]) -> Parse<Expr> {
        match argument.kind {
            Kind::Select(select) if !select.test_only => {
                Ok(self.node(at, Kind::Select(Box::new(Select { test_only: true, ..*select }))))
            }
            _ => Err(self.error(argument.at, "invalid argument to has() macro".to_owned())),
        }
    }

    /// The name of an iteration variable.
    fn variable(&mut self, expr: &Expr, otherwise: &str) -> Parse<Name> {
        match &expr.kind {
            Kind::Ident(name) if &**name == "__result__" => {
                Err(self.error(expr.at, "iteration variable overwrites accumulator variable".to_owned()))
            }
            Kind::Ident(name) => Ok(Arc::clone(name)),
            _ => Err(self.error(expr.at, otherwise.to_owned())),
        }
    }

    fn map_or_filter(&mut self, kind: Macro, at: u32, target: Expr, args: Vec<Expr>) -> Parse<Expr> {
        let mut args = args.into_iter();
        let mut next =
            || args.next().unwrap_or_else(|| unreachable!("the number of arguments chose the macro"));
        let var = next();
        let name = self.variable(&var, "argument is not an identifier")?;
        let first = next();
        let (filter, body) = match (kind, args.next()) {
            (Macro::Filter, _) => (Some(first), var),
            (_, Some(second)) => (Some(first), second),
            (_, None) => (None, first),
        };
        Ok(self.looped(Macro::Map, at, target, (name, None), filter, body))
    }

    fn two_variables(&mut self, kind: Macro, at: u32, target: Expr, args: Vec<Expr>) -> Parse<Expr> {
        let mut args = args.into_iter();
        let mut next =
            || args.next().unwrap_or_else(|| unreachable!("the number of arguments chose the macro"));
        let (first, second) = (next(), next());
        let var = self.variable(&first, "argument must be a simple name")?;
        let var2 = self.variable(&second, "argument must be a simple name")?;
        if var == var2 {
            return Err(self.error(second.at, format!("duplicate variable name: {var}")));
        }
        let third = next();
        let (filter, body) = match args.next() {
            Some(body) => (Some(third), body),
            None => (None, third),
        };
        Ok(self.looped(kind, at, target, (var, Some(var2)), filter, body))
    }

    fn accu(&mut self, at: u32) -> Expr {
        self.node(at, Kind::Ident(Arc::from(ACCUMULATOR)))
    }

    fn bool_literal(&mut self, at: u32, value: bool) -> Expr {
        self.node(at, Kind::Literal(Literal::Bool(value)))
    }

    fn int_literal(&mut self, at: u32, value: i64) -> Expr {
        self.node(at, Kind::Literal(Literal::Int(value)))
    }

    /// The comprehension of a macro that loops. The expansions are those of cel-go, because the estimated and the
    /// measured cost of an expression are defined on them.
    fn looped(
        &mut self,
        kind: Macro,
        at: u32,
        range: Expr,
        (var, var2): (Name, Option<Name>),
        filter: Option<Expr>,
        body: Expr,
    ) -> Expr {
        let (init, condition, step, result) = match kind {
            Macro::All | Macro::Exists => self.quantifier(kind, at, body),
            Macro::ExistsOne => self.exists_one(at, body),
            _ => self.transform(kind, at, &var, filter, body),
        };
        let accu = Arc::from(ACCUMULATOR);
        let comprehension = Comprehension { range, var, var2, accu, init, condition, step, result };
        self.node(at, Kind::Comprehension(Box::new(comprehension)))
    }

    fn quantifier(&mut self, kind: Macro, at: u32, body: Expr) -> (Expr, Expr, Expr, Expr) {
        let all = kind == Macro::All;
        let init = self.bool_literal(at, all);
        let mut condition = self.accu(at);
        if !all {
            condition = self.call(at, "!_", vec![condition]);
        }
        let condition = self.call(at, "@not_strictly_false", vec![condition]);
        let accu = self.accu(at);
        let step = self.call(at, if all { "_&&_" } else { "_||_" }, vec![accu, body]);
        (init, condition, step, self.accu(at))
    }

    fn exists_one(&mut self, at: u32, body: Expr) -> (Expr, Expr, Expr, Expr) {
        let init = self.int_literal(at, 0);
        let condition = self.bool_literal(at, true);
        let (accu, one) = (self.accu(at), self.int_literal(at, 1));
        let more = self.call(at, "_+_", vec![accu, one]);
        let same = self.accu(at);
        let step = self.call(at, "_?_:_", vec![body, more, same]);
        let (accu, one) = (self.accu(at), self.int_literal(at, 1));
        let result = self.call(at, "_==_", vec![accu, one]);
        (init, condition, step, result)
    }

    fn transform(
        &mut self,
        kind: Macro,
        at: u32,
        var: &Name,
        filter: Option<Expr>,
        body: Expr,
    ) -> (Expr, Expr, Expr, Expr) {
        let to_list = matches!(kind, Macro::Map | Macro::TransformList);
        let init = self.node(at, if to_list { Kind::List(Vec::new()) } else { Kind::Map(Vec::new()) });
        let condition = self.bool_literal(at, true);
        let accu = self.accu(at);
        let mut step = match kind {
            Macro::TransformMap => {
                let key = self.node(at, Kind::Ident(Arc::clone(var)));
                self.call(at, "cel.@mapInsert", vec![accu, key, body])
            }
            Macro::TransformMapEntry => self.call(at, "cel.@mapInsert", vec![accu, body]),
            _ => {
                let one = self.node(at, Kind::List(vec![Element { value: body, optional: false }]));
                self.call(at, "_+_", vec![accu, one])
            }
        };
        if let Some(filter) = filter {
            let same = self.accu(at);
            step = self.call(at, "_?_:_", vec![filter, step, same]);
        }
        (init, condition, step, self.accu(at))
    }

    /// A name for a value: a comprehension over nothing whose accumulator is the value.
    fn bind(&mut self, at: u32, name: &Name, value: Expr, body: Expr) -> Expr {
        let comprehension = Comprehension {
            range: self.node(at, Kind::List(Vec::new())),
            var: Arc::from("#unused"),
            var2: None,
            accu: Arc::clone(name),
            init: value,
            condition: self.bool_literal(at, false),
            step: self.node(at, Kind::Ident(Arc::clone(name))),
            result: body,
        };
        self.node(at, Kind::Comprehension(Box::new(comprehension)))
    }

    /// `cel.bind(name, value, body)`
    fn named(&mut self, at: u32, [name, value, body]: [Expr; 3]) -> Parse<Expr> {
        let Kind::Ident(name) = &name.kind else {
            let why = "cel.bind() variable names must be simple identifiers";
            return Err(self.error(name.at, why.to_owned()));
        };
        Ok(self.bind(at, name, value, body))
    }

    fn method(&mut self, at: u32, target: Expr, function: &str, args: Vec<Expr>) -> Expr {
        let call = Call { target: Some(target), function: Arc::from(function), args };
        self.node(at, Kind::Call(Box::new(call)))
    }

    fn opt_map(&mut self, kind: Macro, at: u32, target: Expr, [var, body]: [Expr; 2]) -> Parse<Expr> {
        let name = if kind == Macro::OptMap { "optMap" } else { "optFlatMap" };
        let Kind::Ident(var) = &var.kind else {
            return Err(self.error(var.at, format!("{name}() variable name must be a simple identifier")));
        };
        let copy = self.copy(&target)?;
        let present = self.method(at, target, "hasValue", Vec::new());
        let value = self.method(at, copy, "value", Vec::new());
        let mut then = self.bind(at, var, value, body);
        if kind == Macro::OptMap {
            then = self.call(at, "optional.of", vec![then]);
        }
        let none = self.call(at, "optional.none", Vec::new());
        Ok(self.call(at, "_?_:_", vec![present, then, none]))
    }

    fn sort_by(&mut self, at: u32, target: Expr, args: [Expr; 2]) -> Parse<Expr> {
        if matches!(target.kind, Kind::Literal(_) | Kind::Map(_) | Kind::Struct(_)) {
            let message =
                "sortBy can only be applied to a list, identifier, comprehension, call or select expression";
            return Err(self.error(target.at, message.to_owned()));
        }
        let input: Name = Arc::from("@__sortBy_input__");
        let range = self.node(at, Kind::Ident(Arc::clone(&input)));
        let keys = self.map_or_filter(Macro::Map, at, range, Vec::from(args))?;
        let list = self.node(at, Kind::Ident(Arc::clone(&input)));
        let sorted = self.method(at, list, "@sortByAssociatedKeys", vec![keys]);
        Ok(self.bind(at, &input, target, sorted))
    }

    /// The same expression with ids of its own. A chain of such copies doubles each time, so there is a limit.
    fn copy(&mut self, expr: &Expr) -> Parse<Expr> {
        if self.ids > MAX_NODES {
            return Err(self.error(expr.at, format!("expression expands to more than {MAX_NODES} nodes")));
        }
        let mut copy = expr.clone();
        self.renumber(&mut copy);
        Ok(copy)
    }

    fn renumber(&mut self, expr: &mut Expr) {
        expr.id = self.ids;
        self.ids += 1;
        match &mut expr.kind {
            Kind::Literal(_) | Kind::Ident(_) => {}
            Kind::Struct(message) => {
                message.fields.iter_mut().for_each(|field| self.renumber(&mut field.value));
            }
            Kind::Select(select) => self.renumber(&mut select.operand),
            Kind::Call(call) => {
                call.target.iter_mut().chain(&mut call.args).for_each(|arg| self.renumber(arg));
            }
            Kind::List(elements) => elements.iter_mut().for_each(|element| self.renumber(&mut element.value)),
            Kind::Map(entries) => entries.iter_mut().for_each(|entry| {
                self.renumber(&mut entry.key);
                self.renumber(&mut entry.value);
            }),
            Kind::Comprehension(fold) => {
                let parts =
                    [&mut fold.range, &mut fold.init, &mut fold.condition, &mut fold.step, &mut fold.result];
                parts.into_iter().for_each(|part| self.renumber(part));
            }
        }
    }
}
