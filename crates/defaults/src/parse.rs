//! The text of the tables; see [`crate::table`].

use std::collections::HashMap;

use serde_json::Value;

use crate::{
    code,
    table::{Action, Condition, Field, Kind, Rule, Step, Table, Test, TypeId},
};

/// What is wrong with a line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Wrong {
    pub(crate) line: String,
    pub(crate) why: &'static str,
}

type Result<T> = std::result::Result<T, &'static str>;

/// The table that these texts are.
pub(crate) fn table(texts: &[&'static str]) -> std::result::Result<Table, Wrong> {
    let lines = || texts.iter().flat_map(|text| text.lines()).filter(|line| !is_comment(line));
    let mut reader = Reader { ids: HashMap::new(), kinds: Vec::new() };
    for line in lines().filter(|line| !line.starts_with(' ')) {
        reader.header(line).map_err(|why| wrong(line, why))?;
    }
    // The types are numbered in the order of their headers.
    let mut types: Vec<Vec<Rule>> = Vec::new();
    for line in lines() {
        if line.starts_with(' ') {
            let rule = reader.rule(line.trim()).map_err(|why| wrong(line, why))?;
            types.last_mut().ok_or_else(|| wrong(line, "a rule of no type"))?.push(rule);
        } else {
            types.push(Vec::new());
        }
    }
    Ok(Table { types: types.into_iter().map(Into::into).collect(), kinds: reader.kinds })
}

fn wrong(line: &str, why: &'static str) -> Wrong {
    Wrong { line: line.to_owned(), why }
}

fn is_comment(line: &str) -> bool {
    line.trim().is_empty() || line.trim_start().starts_with('#')
}

struct Reader {
    ids: HashMap<&'static str, TypeId>,
    kinds: Vec<Kind>,
}

impl Reader {
    /// `Kind in group/version` or `Type`
    fn header(&mut self, line: &'static str) -> Result<()> {
        let (name, versions) = line.split_once(" in ").unwrap_or((line, ""));
        let id = TypeId(u16::try_from(self.ids.len()).map_err(|_| "too many types")?);
        if self.ids.insert(name, id).is_some() {
            return Err("a type of that name exists");
        }
        let kind = name.split('.').next().unwrap_or(name);
        let versions = each_version(versions).into_iter();
        self.kinds.extend(versions.map(|api_version| Kind { api_version, name: kind, id }));
        Ok(())
    }

    fn type_id(&self, name: &str) -> Result<TypeId> {
        self.ids.get(name).copied().ok_or("no such type")
    }

    fn rule(&self, line: &'static str) -> Result<Rule> {
        let (action, conditions) = line.split_once(" if ").unwrap_or((line, ""));
        let conditions = conditions.split(", ").filter(|text| !text.is_empty()).map(condition);
        Ok(Rule { conditions: conditions.collect::<Result<_>>()?, action: self.action(action.trim())? })
    }

    fn action(&self, text: &'static str) -> Result<Action> {
        let words: Vec<&'static str> = text.splitn(3, ' ').collect();
        match words[..] {
            ["like", name] => Ok(Action::Like(self.type_id(name)?)),
            ["drop", name] => Ok(Action::Drop(field(name)?)),
            ["do", name] => code::named(name).map(Action::Do).ok_or("no such code"),
            [path, "->", name] => Ok(Action::Visit(steps(path)?, self.type_id(name)?)),
            [path, "<-", from] => Ok(Action::Copy(field(path)?, field(from)?)),
            [path, "+=", from] => Ok(Action::Fill(field(path)?, field(from)?)),
            [path, "=", json] => Ok(Action::Set(field(path)?, value(json)?)),
            _ => Err("neither of the kinds of rules"),
        }
    }
}

/// `group/{v1,v2}` stands for `group/v1` and `group/v2`.
fn each_version(text: &str) -> Vec<String> {
    match text.split_once('{') {
        Some((group, versions)) => {
            versions.trim_end_matches('}').split(',').map(|version| format!("{group}{version}")).collect()
        }
        None if text.is_empty() => Vec::new(),
        None => vec![text.to_owned()],
    }
}

/// `path is set`, `path is unset` or `path is "A" or "B"`
fn condition(text: &'static str) -> Result<Condition> {
    let (path, test) = text.split_once(" is ").ok_or("a condition needs a test")?;
    let test = match test.trim() {
        "set" => Test::Set,
        "unset" => Test::Unset,
        values => Test::Is(values.split(" or ").map(value).collect::<Result<_>>()?),
    };
    Ok(Condition { field: field(path.trim())?, test })
}

fn value(json: &str) -> Result<Value> {
    serde_json::from_str(json).map_err(|_| "not JSON")
}

fn field(path: &'static str) -> Result<Field> {
    let pointer = path.starts_with('*');
    let mut names: Vec<&str> = path.trim_start_matches('*').split('.').collect();
    let name = names.pop().filter(|name| !name.is_empty()).ok_or("a field without a name")?;
    if path.contains(['[', '{']) {
        return Err("a rule about many things: give them a type");
    }
    Ok(Field { parents: names.into(), name, pointer })
}

fn steps(path: &'static str) -> Result<Box<[Step]>> {
    let mut steps = Vec::new();
    for part in path.split('.') {
        let name = part.trim_end_matches(['[', ']', '{', '}']);
        if name.is_empty() {
            return Err("a field without a name");
        }
        steps.push(Step::Field(name));
        match &part[name.len()..] {
            "" => {}
            "[]" => steps.push(Step::Items),
            "{}" => steps.push(Step::Values),
            _ => return Err("brackets that mean nothing"),
        }
    }
    Ok(steps.into())
}

#[cfg(test)]
mod tests;
