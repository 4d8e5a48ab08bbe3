//! Comprehensions.

use std::sync::Arc;

use super::build::{Local, PlanError, Planner};
use super::{Attribute, Base, Fold, Node};
use crate::ast::{ACCUMULATOR, Comprehension, Expr, Kind, Name};

impl Planner<'_> {
    fn new_slot(&mut self) -> usize {
        self.slots += 1;
        self.slots - 1
    }

    pub(super) fn fold(&mut self, fold: &Comprehension) -> Result<Node, PlanError> {
        if fold.is_bind() {
            return self.bind(fold);
        }
        let range = self.node(&fold.range)?;
        let init = self.node(&fold.init)?;
        let accu = self.new_slot();
        self.scopes.push((Arc::clone(&fold.accu), Local::Slot(accu)));
        let var = self.new_slot();
        self.scopes.push((Arc::clone(&fold.var), Local::Slot(var)));
        let var2 = fold.var2.as_ref().map(|name| {
            let slot = self.new_slot();
            self.scopes.push((Arc::clone(name), Local::Slot(slot)));
            slot
        });
        let condition = self.node(&fold.condition)?;
        let step = self.step(&fold.step, accu)?;
        let loop_variables = 1 + usize::from(var2.is_some());
        self.scopes.truncate(self.scopes.len() - loop_variables);
        let result = self.node(&fold.result)?;
        self.scopes.pop();
        Ok(Node::Fold(Box::new(Fold { range, var, var2, accu, init, condition, step, result })))
    }

    /// A named value is computed when it is first read, and not at all when it is not.
    fn bind(&mut self, fold: &Comprehension) -> Result<Node, PlanError> {
        let init = self.node(&fold.init)?;
        self.bound.push(init);
        let slot = self.new_slot();
        self.scopes.push((Arc::clone(&fold.accu), Local::Bound(slot, self.bound.len() - 1)));
        let body = self.node(&fold.result)?;
        self.scopes.pop();
        Ok(Node::Bind { slot, body: Box::new(body) })
    }

    /// The step of a loop. Growing the accumulator is done in place, or a loop would take quadratic time.
    fn step(&mut self, step: &Expr, slot: usize) -> Result<Node, PlanError> {
        let Kind::Call(call) = &step.kind else { return self.node(step) };
        match (&*call.function, &call.args[..]) {
            ("_?_:_", [condition, then, otherwise]) => {
                let branches = [self.node(condition)?, self.step(then, slot)?, self.node(otherwise)?];
                let base = Base::Conditional(Box::new(branches));
                Ok(Attribute { base, qualifiers: Vec::new() }.into())
            }
            ("_+_", [accu, added]) if is_accumulator(accu) => match &added.kind {
                Kind::List(elements) if elements.len() == 1 && !elements[0].optional => {
                    let element = self.node(&elements[0].value)?;
                    let constant = element.as_const().is_some();
                    Ok(Node::Append { slot, element: Box::new(element), constant })
                }
                _ => self.node(step),
            },
            ("cel.@mapInsert", [accu, args @ ..]) if is_accumulator(accu) => {
                let args = args.iter().map(|arg| self.node(arg)).collect::<Result<_, _>>()?;
                Ok(Node::Insert { slot, args })
            }
            _ => self.node(step),
        }
    }
}

fn is_accumulator(expr: &Expr) -> bool {
    let is = |name: &Name| &**name == ACCUMULATOR;
    matches!(&expr.kind, Kind::Ident(name) if is(name))
}
