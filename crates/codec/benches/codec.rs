//! What one ConfigMap of 1 KiB costs to read, write and serve.

use concord_codec::{Options, Splice, TypeFields, decode, encode, encode_into};
use divan::{Bencher, black_box};
use serde_json::{Value, json};

fn main() {
    divan::main();
}

fn config_map() -> Value {
    let data: serde_json::Map<String, Value> =
        (0..8).map(|n| (format!("key-{n}"), Value::from("0123456789abcdef".repeat(6)))).collect();
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": "config-1234",
            "namespace": "default",
            "uid": "0b7d8e0e-4d6c-4f0a-9d38-5f2f3a1c9b11",
            "creationTimestamp": "2026-11-15T22:04:45Z",
            "labels": {"app": "bench"},
        },
        "data": data,
    })
}

#[divan::bench]
fn decode_object(bencher: Bencher<'_, '_>) {
    let body = encode(&config_map());
    bencher.bench(|| decode(black_box(&body), &Options::default()));
}

/// What decoding is to be compared with.
#[divan::bench]
fn decode_by_serde_json(bencher: Bencher<'_, '_>) {
    let body = encode(&config_map());
    bencher.bench(|| serde_json::from_slice::<Value>(black_box(&body)).is_ok());
}

#[divan::bench]
fn encode_object(bencher: Bencher<'_, '_>) {
    let value = config_map();
    let mut out = Vec::new();
    bencher.bench_local(|| {
        out.clear();
        encode_into(black_box(&value), &mut out);
    });
}

#[divan::bench]
fn find_splice(bencher: Bencher<'_, '_>) {
    let stored = encode(&config_map());
    bencher.bench(|| Splice::find(black_box(&stored)));
}

#[divan::bench(args = [false, true])]
fn write_spliced(bencher: Bencher<'_, '_>, omits_type: bool) {
    let stored = encode(&config_map());
    let splice = Splice::find(&stored).expect("an object with metadata");
    let type_fields = if omits_type { TypeFields::Omit } else { TypeFields::Keep };
    let mut out = Vec::new();
    bencher.bench_local(|| {
        out.clear();
        splice.write(black_box(&stored), 123_456, type_fields, &mut out);
    });
}
