use super::*;

/// For each format: texts that have it, and texts that do not. Where upstream's rule is odd, so is the table.
const TABLE: [(&str, &[&str], &[&str]); 26] = [
    (
        "bsonobjectid",
        &["507f1f77bcf86cd799439011"],
        &["", "507f1f77bcf86cd79943901", "507f1f77bcf86cd79943901x"],
    ),
    ("uri", &["http://a.b/c?d", "/path", "mailto:x", "*"], &["", "a", "http://[::1", "/%zz", "http://a b"]),
    (
        "email",
        &["a@b", "a.b@c.d", "Name <a@b.c>", "\"q q\"@b", "a@[127.0.0.1]", "a@b (d)", "A B <a@b>"],
        &["", "a", "a@", "@b", ".a@b", "a..b@c", "a@b c", "<a@b", "a@[x]", "(c) a@b"],
    ),
    (
        "hostname",
        &["a", "a-b", "example.com", "1.example.london", "é.com", "☃.net"],
        &["", "-a", "a.", "a.b", "exa_mple.com", "a..com", "example.c0m"],
    ),
    ("ipv4", &["1.2.3.4", "01.02.003.4", "::ffff:1.2.3.4"], &["", "1.2.3", "1.2.3.256", "::1", "1.2.3.4.5"]),
    ("ipv6", &["::1", "fe80::1", "::ffff:1.2.3.4"], &["", "1.2.3.4", "::1%eth0", ":::", "12345::"]),
    (
        "cidr",
        &["10.0.0.0/8", "010.0.0.1/32", "::/0"],
        &["", "10.0.0.0", "10.0.0.0/33", "::/129", "10.0.0.0/-1"],
    ),
    (
        "mac",
        &["00:00:5e:00:53:01", "00-00-5E-00-53-01", "0000.5e00.5301", "02:00:5e:10:00:00:00:01"],
        &["", "00:00:5e:00:53", "00:00:5e:00:53:0g", "00005e005301", "00:00-5e:00:53:01"],
    ),
    (
        "uuid",
        &["f47ac10b-58cc-0372-8567-0e02b2c3d479", "F47AC10B58CC037285670E02B2C3D479"],
        &["", "f47ac10b-58cc-0372-8567-0e02b2c3d47", "g47ac10b-58cc-0372-8567-0e02b2c3d479"],
    ),
    ("uuid3", &["bcd02e22-68f0-3046-a512-327cca9def8f"], &["bcd02e22-68f0-4046-a512-327cca9def8f"]),
    ("uuid4", &["025b0d74-00a2-4048-bf57-227c5111bb34"], &["025b0d74-00a2-4048-cf57-227c5111bb34", ""]),
    ("uuid5", &["886313e1-3b8a-5372-9b90-0c9aee199e5d"], &["886313e1-3b8a-4372-9b90-0c9aee199e5d", ""]),
    ("isbn", &["0321751043", "978-0321751041", "3-8362-2119-5"], &["", "0321751044", "978-0321751042"]),
    ("isbn10", &["0321751043", "007462542X"], &["978-0321751041", "007462542Y"]),
    ("isbn13", &["978-0321751041"], &["0321751043", "978-032175104"]),
    ("creditcard", &["4111-1111-1111-1111", "375556917985515"], &["", "4111-1111-1111-1112", "411111"]),
    ("ssn", &["111-11-1111", "111 11 1111"], &["111111111", "", "11-111-1111"]),
    ("hexcolor", &["#fff", "FFFFFF"], &["", "#ffff", "#ggg"]),
    ("rgbcolor", &["rgb(0,10,255)", "rgb( 1 , 2 , 3 )"], &["", "rgb(0,10,256)", "rgb(0,1)", "RGB(0,1,2)"]),
    ("byte", &["QQ==", "QUI=", "QUJD"], &["", "QQ", "Q===", "QU-D", "QQ==QQ=="]),
    ("password", &["", "anything"], &[]),
    ("date", &["2014-12-15", "2016-02-29"], &["", "2014-13-15", "2015-02-29", "2014-12-1", "2014-12-15T"]),
    (
        "duration",
        &["0", "1h30m", "22 ns", "1 week", "3 Minutes", "in 5 days", "1d"],
        &["", "1", "abc", "5 years", "99999999999999999999 days"],
    ),
    (
        "date-time",
        &[
            "2014-12-15T19:30:20Z",
            "2014-12-15t19:30:20.000z",
            "2014-12-15T19:30:20+25:99",
            "2014-12-15T19:30:20x1z",
        ],
        &[
            "",
            "2014-12-15",
            "2014-12-15T24:30:20Z",
            "2014-12-15T19:60:20Z",
            "2014-12-15T19:30:20",
            "2014-12-15 19:30:20Z",
        ],
    ),
    ("k8s-short-name", &["a", "a-1"], &["", "-a", "A", "a.b", "a-"]),
    ("k8s-long-name", &["a", "a.b-c.1"], &["", "a..b", "a.-b", "A.b"]),
];

#[test]
fn texts_have_the_formats_that_upstream_sees_in_them() {
    for (name, good, bad) in TABLE {
        let format = Format::parse(Kind::String, name);
        assert_ne!(format, Format::Unknown, "{name}");
        for text in good {
            assert!(format.holds(text), "{name} {text:?}");
        }
        for text in bad {
            assert!(!format.holds(text), "{name} {text:?}");
        }
    }
}

#[test]
fn formats_mean_something_only_for_their_type() {
    assert_eq!(Format::parse(Kind::Integer, "int32"), Format::Int32);
    assert_eq!(Format::parse(Kind::Number, "float"), Format::Float);
    assert_eq!(Format::parse(Kind::Any, "date-time"), Format::parse(Kind::String, "datetime"));
    let nothing =
        [(Kind::String, "int32"), (Kind::Integer, "float"), (Kind::Object, "date"), (Kind::String, "x")];
    for (kind, name) in nothing {
        assert_eq!(Format::parse(kind, name), Format::Unknown, "{name}");
    }
}

#[test]
fn urls_are_refused_in_gos_words() {
    let table = [
        ("https://a b/", "invalid character \" \" in host name"),
        (":x", "missing protocol scheme"),
        ("a:b/c:d", ""),
        ("1:b", "first path segment in URL cannot contain colon"),
        ("https://h:x", "invalid port \":x\" after host"),
        ("https://[::1", "missing ']' in host"),
        ("https://h/%4", "invalid URL escape \"%4\""),
        ("https://%41", "invalid URL escape \"%41\""),
        ("https://a\\b@h", "net/url: invalid userinfo"),
        ("a\n", "net/url: invalid control character in URL"),
    ];
    for (text, error) in table {
        let expected = format!("parse {}: {error}", concord_meta::go::quote(text));
        match url::parse(text) {
            Ok(_) => assert_eq!(error, "", "{text}"),
            Err(found) => assert_eq!(found, expected),
        }
    }
    let url = url::parse("HTTPS://u:p@h:1/p?q#f").expect("a URL");
    let parts = (url.scheme.as_str(), url.user, url.host, url.query, url.fragment);
    assert_eq!(parts, ("https", Some("u:p"), "h:1", "q", "f"));
}
