use super::*;

#[test]
fn images_that_say_latest() {
    let latest = [
        "a",
        "a:latest",
        "a/b",
        "a/b/c:latest",
        "localhost/a",
        "localhost:5000/a",
        "EXAMPLE/a",
        "example.com/a/b-c--d_e__f.g",
        "[fd00::1]:80/a",
        "index.docker.io/a",
        "docker.io/a:latest",
    ];
    for image in latest {
        assert!(is_latest(image), "{image}");
    }
    let digest = format!("a:latest@sha256:{}", "0f".repeat(32));
    assert!(is_latest(&digest), "{digest}");
}

#[test]
fn images_that_say_something_else_or_nothing() {
    let other = [
        "",
        "a:1",
        "a:latest2",
        "localhost:5000/a:1",
        "a:5000/b/c:latest:latest",
        "A",
        "a/B",
        "a//b",
        "/a",
        "a/",
        "a b",
        "a_",
        "a..b",
        "a___b",
        "a.-b",
        "ex_ample.com./a",
        "-a.b/c",
        "a.b:/c",
        "a.b:port/c",
        "[]/a",
        "[g]:80/a",
        "a@sha256:0",
        "a:latest@sha256:0",
        "a:latest@md5:00000000000000000000000000000000",
        "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
    ];
    for image in other {
        assert!(!is_latest(image), "{image}");
    }
    assert!(!is_latest(&format!("a@sha256:{}", "0f".repeat(32))));
    assert!(!is_latest(&format!("a:latest@sha256:{}", "0F".repeat(32))));
}

#[test]
fn paths_have_a_longest() {
    assert!(is_latest(&"a".repeat(247)), "255 with the library");
    assert!(!is_latest(&"a".repeat(248)));
    assert!(is_latest(&format!("a/{}", "b".repeat(253))));
    assert!(!is_latest(&format!("a/{}", "b".repeat(254))));
}
