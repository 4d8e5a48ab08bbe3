//! `concord store` and `concord version` as an operator meets them.

use std::{fs, path::Path};

use crate::support::{Program, refused, run};
use tempfile::tempdir;

fn text(path: &Path) -> &str {
    path.to_str().expect("test paths are text")
}

#[tokio::test]
async fn a_backup_of_a_running_server_becomes_a_new_one() {
    let directory = tempdir().expect("a directory");
    let (data, backup) = (directory.path().join("data"), directory.path().join("backup.db"));
    let restored = directory.path().join("restored");
    let server = Program::start(&data).await;
    server.ready(200).await;

    let made = run(&["store", "backup", text(&backup), "--data-dir", text(&data)]).await;
    assert!(made.status.success(), "{}", made.stderr);
    assert!(made.stdout.contains("backed up") && made.stdout.contains("revision "), "{}", made.stdout);
    let again = run(&["store", "backup", text(&backup), "--data-dir", text(&data)]).await;
    assert!(!again.status.success() && again.stderr.contains("never overwritten"), "{}", again.stderr);

    for arguments in [&["store", "check", text(&backup)][..], &["store", "check", "--data-dir", text(&data)]]
    {
        let checked = run(arguments).await;
        assert!(checked.status.success() && checked.stdout.contains("is sound"), "{}", checked.stderr);
    }

    let over = run(&["store", "restore", text(&backup), "--data-dir", text(&data)]).await;
    assert!(!over.status.success(), "a store in use must not be replaced");
    let made = run(&["store", "restore", text(&backup), "--data-dir", text(&restored)]).await;
    assert!(made.status.success(), "{}", made.stderr);
    Program::start(&restored).await.ready(200).await;
}

#[tokio::test]
async fn a_file_that_is_no_store_is_refused_and_left_alone() {
    let directory = tempdir().expect("a directory");
    let file = directory.path().join("store.db");
    fs::write(&file, "something else entirely, and longer than a header of SQLite would be: ".repeat(4))
        .expect("written");
    let before = fs::read(&file).expect("read");
    let checked = run(&["store", "check", text(&file)]).await;
    assert!(
        !checked.status.success() && checked.stderr.contains("not a Concord store"),
        "{}",
        checked.stderr
    );
    let served = refused(directory.path(), &[]).await;
    assert!(served.stderr.contains("not a Concord store"), "{}", served.stderr);
    assert_eq!(fs::read(&file).expect("read"), before);
}

#[tokio::test]
async fn a_missing_store_is_named() {
    let directory = tempdir().expect("a directory");
    let data = directory.path().join("none");
    for command in ["check", "backup"] {
        let target = directory.path().join("target.db");
        let mut arguments = vec!["store", command, "--data-dir", text(&data)];
        if command == "backup" {
            arguments.push(text(&target));
        }
        let ended = run(&arguments).await;
        assert!(!ended.status.success() && ended.stderr.contains("store.db"), "{}", ended.stderr);
        assert!(!target.exists());
    }
}

#[tokio::test]
async fn the_version_is_one_line() {
    let ended = run(&["version"]).await;
    assert!(ended.status.success());
    assert!(ended.stdout.starts_with("Concord ") && ended.stdout.contains("v1.36"), "{}", ended.stdout);
    assert_eq!(ended.stdout.lines().count(), 1);
}

#[tokio::test]
async fn help_is_grouped_as_upstreams() {
    let help = run(&["serve", "--help"]).await.stdout;
    for heading in ["Storage:", "Secure serving:", "Etcd:", "Shutdown:", "Logs:"] {
        assert!(help.contains(heading), "{heading} is missing in {help}");
    }
}
