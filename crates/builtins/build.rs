//! Writes the field schemas of all built-in kinds into one text that the crate embeds.
//!
//! The names and types of fields come from the schemas of the `k8s-openapi` crate, which is never linked
//! into the server; what it lacks comes from the tables in `facts/`. What the text looks like is said where
//! it is read: `src/schemas/text.rs`. What documents say about fields besides their types is written into a
//! second file, compressed, which nobody reads before a document is asked for.

#[path = "build/annotations.rs"]
mod annotations;
#[path = "build/compile.rs"]
mod compile;
#[path = "build/fact.rs"]
mod fact;
#[path = "build/fields.rs"]
mod fields;
#[path = "build/kinds.rs"]
mod kinds;
#[path = "build/past.rs"]
mod past;

use std::{env, error::Error, fs, path::Path};

use fact::Facts;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=build");
    println!("cargo::rerun-if-changed=facts");
    let facts = Facts::read(Path::new("facts"))?;
    let mut kinds = kinds::kinds();
    past::add(&mut kinds)?;
    let annotations = annotations::annotations(&kinds.definitions, &facts)?;
    let text = compile::compile(kinds, &facts)?;
    let out = env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?;
    let out = Path::new(&out);
    fs::write(out.join("schemas.txt"), text)?;
    fs::write(out.join("annotations.json.z"), annotations)?;
    Ok(())
}
