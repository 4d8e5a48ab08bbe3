//! The cost of everything but calls.

use std::sync::Arc;

use super::{CostEstimate, Coster, EntrySize, Local, SizeEstimate};
use crate::ast::{Comprehension, Element, Entry, Expr, Kind, Name, Select};
use crate::check::Reference;
use crate::types::Type;

const LIST: u64 = 10;
const MAP: u64 = 30;
const STRUCT: u64 = 40;

impl<'e> Coster<'e> {
    pub(super) fn cost(&mut self, expr: &'e Expr) -> CostEstimate {
        // A selection that is the name of a variable or type is one identifier.
        match (&expr.kind, self.checked.reference(expr)) {
            (Kind::Select(_), Some(Reference::Variable(name))) => return self.ident(expr, &Arc::clone(name)),
            (Kind::Select(_), Some(Reference::TypeName(named))) => {
                return self.ident(expr, &Arc::from(named.to_string()));
            }
            _ => {}
        }
        match &expr.kind {
            Kind::Literal(_) => CostEstimate::ZERO,
            Kind::Ident(name) => self.ident(expr, name),
            Kind::Select(select) => self.select(expr, select),
            Kind::Call(call) => self.call(expr, call),
            Kind::List(elements) => self.list(expr, elements),
            Kind::Map(entries) => self.map(expr, entries),
            Kind::Struct(message) => {
                let values = message.fields.iter().map(|field| self.cost(&field.value));
                values.fold(CostEstimate::fixed(STRUCT), CostEstimate::plus)
            }
            Kind::Comprehension(fold) if fold.is_bind() => self.bind(expr, fold),
            Kind::Comprehension(fold) => self.fold(expr, fold),
        }
    }

    fn ident(&mut self, expr: &Expr, name: &Name) -> CostEstimate {
        let path = match self.local(name) {
            Some(local) => local.path.clone(),
            None => vec![Arc::clone(name)],
        };
        self.paths.insert(expr.id, path);
        CostEstimate::fixed(1)
    }

    fn select(&mut self, expr: &Expr, select: &'e Select) -> CostEstimate {
        let operand = self.cost(&select.operand);
        if select.test_only {
            return operand;
        }
        let charged = match self.type_of(&select.operand) {
            Type::Map(..) | Type::Object(_) | Type::Param(_) => true,
            Type::Opaque(name, _) => name.starts_with("kubernetes."),
            _ => false,
        };
        let path = self.subpath(&select.operand, &select.field);
        self.paths.insert(expr.id, path);
        operand.plus(CostEstimate::fixed(u64::from(charged)))
    }

    fn list(&mut self, expr: &Expr, elements: &'e [Element]) -> CostEstimate {
        let mut sum = CostEstimate::fixed(LIST);
        let mut item = none_yet(elements.is_empty());
        for element in elements {
            sum = sum.plus(self.cost(&element.value));
            item = item.union(self.size_or_unknown(&element.value));
        }
        let entry = EntrySize { list: true, key: SizeEstimate::fixed(1), value: item };
        self.set_entry(expr, Some(entry));
        sum
    }

    fn map(&mut self, expr: &Expr, entries: &'e [Entry]) -> CostEstimate {
        let mut sum = CostEstimate::fixed(MAP);
        let (mut key, mut value) = (none_yet(entries.is_empty()), none_yet(entries.is_empty()));
        for entry in entries {
            sum = sum.plus(self.cost(&entry.key)).plus(self.cost(&entry.value));
            key = key.union(self.size_or_unknown(&entry.key));
            value = value.union(self.size_or_unknown(&entry.value));
        }
        self.set_entry(expr, Some(EntrySize { list: false, key, value }));
        sum
    }

    fn push_accumulator(&mut self, fold: &Comprehension) {
        let local = Local {
            name: Arc::clone(&fold.accu),
            path: self.path(&fold.init),
            size: self.size(&fold.init),
            entry: self.entry(&fold.init),
        };
        self.scopes.push(local);
    }

    fn push_variable(&mut self, name: &Name, range: &Expr, size: Option<SizeEstimate>, step: &str) {
        let path = self.subpath(range, step);
        self.scopes.push(Local { name: Arc::clone(name), path, size, entry: None });
    }

    fn push_iteration(&mut self, fold: &Comprehension) {
        let range = &fold.range;
        let entry = self.entry(range);
        let is_list = match entry {
            Some(entry) => entry.list,
            None => matches!(self.type_of(range), Type::List(_)),
        };
        let (key, value) = (entry.map(|entry| entry.key), entry.map(|entry| entry.value));
        match (&fold.var2, is_list) {
            (None, true) => self.push_variable(&fold.var, range, value, "@items"),
            (None, false) => self.push_variable(&fold.var, range, key, "@keys"),
            (Some(var2), true) => {
                self.push_variable(&fold.var, range, key, "@indices");
                self.push_variable(var2, range, value, "@items");
            }
            (Some(var2), false) => {
                self.push_variable(&fold.var, range, key, "@keys");
                self.push_variable(var2, range, value, "@values");
            }
        }
    }

    fn fold(&mut self, expr: &Expr, fold: &'e Comprehension) -> CostEstimate {
        let mut sum = self.cost(&fold.range).plus(self.cost(&fold.init));
        self.push_accumulator(fold);
        self.push_iteration(fold);
        let each = self.cost(&fold.condition).plus(self.cost(&fold.step));
        let loop_variables = 1 + usize::from(fold.var2.is_some());
        self.scopes.truncate(self.scopes.len() - loop_variables);
        sum = sum.plus(self.cost(&fold.result));
        self.scopes.pop();
        let count = self.size_or_unknown(&fold.range);
        sum = sum.plus(count.times_cost(each));
        match &fold.init.kind {
            Kind::Literal(_) => {
                let size = self.size(&fold.init);
                self.set_size(expr, size);
            }
            Kind::List(_) | Kind::Map(_) => {
                self.set_size(expr, Some(count));
                let entry = self.entry(&fold.step);
                self.set_entry(expr, entry);
            }
            _ => {}
        }
        sum
    }

    fn bind(&mut self, expr: &Expr, fold: &'e Comprehension) -> CostEstimate {
        let mut sum = self.cost(&fold.range).plus(self.cost(&fold.init));
        self.push_accumulator(fold);
        sum = sum.plus(self.cost(&fold.result));
        self.copy_sizes(expr, &fold.result);
        self.scopes.pop();
        sum
    }
}

/// The range that every union replaces; of no elements at all, zero.
fn none_yet(empty: bool) -> SizeEstimate {
    SizeEstimate { min: if empty { 0 } else { u64::MAX }, max: 0 }
}
