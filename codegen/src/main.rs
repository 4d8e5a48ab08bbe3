//! Writes the generated code to where it is checked in.

use std::fs;

use concord_codegen::{checked_in, generate};

fn main() -> anyhow::Result<()> {
    let directory = checked_in();
    fs::create_dir_all(&directory)?;
    for file in generate()? {
        fs::write(directory.join(&file.name), file.source)?;
    }
    Ok(())
}
