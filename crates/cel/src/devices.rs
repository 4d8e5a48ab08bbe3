//! The expressions that select devices.

use std::sync::Arc;

use crate::decl::Decl;
use crate::program::{CompileError, Env, Program};
use crate::types::Type;
use crate::version::Version;

/// Compiles the expression of a selector, about a variable `device`. What an attribute is, is known only when it is read.
///
/// # Errors
///
/// Upstream's text.
pub fn compile(source: &str) -> Result<Program, String> {
    let program = environment().compile(source).map_err(|error| match error {
        CompileError::Issues(issues) => format!("compilation failed: {issues}"),
        CompileError::Instantiation(text) => format!("program instantiation failed: {text}"),
    })?;
    match program.output_type() {
        Type::Bool | Type::Dyn => Ok(program),
        other => Err(format!("must evaluate to bool or the unknown type, not {other}")),
    }
}

fn environment() -> Env {
    let by_name = |of: Decl| Decl::map(Decl::map(of));
    let quantity = Type::Opaque(Arc::from("kubernetes.Quantity"), Vec::new());
    let fields = [
        ("allowMultipleAllocations", Decl::simple(Type::Bool)),
        ("attributes", by_name(Decl::dynamic())),
        ("capacity", by_name(Decl::simple(quantity))),
        ("driver", Decl::simple(Type::String)),
    ];
    let device = Decl::object("kubernetes.DRADevice", fields.map(|(name, decl)| (name.to_owned(), decl)));
    Env::new(Version::CURRENT).with_bindings().variable("device", device)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_are_checked_against_devices() {
        for source in [
            "true",
            "device.driver == 'a.io'",
            "device.attributes['a.io'].healthy",
            "device.attributes['a.io'].version.isGreaterThan(semver('1.0.0'))",
            "device.capacity['a.io'].memory.compareTo(quantity('1Gi')) >= 0",
            "'a.io' in device.attributes && device.allowMultipleAllocations",
            "cel.bind(dra, device.attributes['a.io'], dra.one && dra.two == 'x')",
        ] {
            assert!(compile(source).is_ok(), "{source}: {:?}", compile(source).err());
        }
        for (source, why) in [
            ("device.driver", "must evaluate to bool or the unknown type, not string"),
            (
                "device.name == 'x'",
                "compilation failed: ERROR: <input>:1:7: undefined field 'name'\n | device.name == 'x'\n | ......^",
            ),
            (
                "cel.bind(a.b, 1, true)",
                "compilation failed: ERROR: <input>:1:11: cel.bind() variable names must be simple identifiers\n | \
                 cel.bind(a.b, 1, true)\n | ..........^",
            ),
        ] {
            assert_eq!(compile(source).err().as_deref(), Some(why), "{source}");
        }
    }

    #[test]
    fn names_are_bound_only_here() {
        let elsewhere = Env::new(Version::CURRENT).compile("cel.bind(a, 1, a == 1)");
        assert!(elsewhere.is_err());
    }
}
