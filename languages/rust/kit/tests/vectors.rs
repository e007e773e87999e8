//! Tests the kit with the golden vectors of the contract.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;
use wattwire_kit::payload::{Checked, Payload, Shape, Verdict};
use wattwire_kit::record::RecordPayload;
use wattwire_kit::recorder::{Record as Sample, Recorder};
use wattwire_kit::spec::Spec;
use wattwire_kit::{Error, Record};

fn vectors(name: &str) -> Value {
    let contract = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../contract/vectors");
    let text = fs::read(contract.join(format!("{name}.json"))).expect("the contract's vectors");
    serde_json::from_slice(&text).expect("JSON")
}

fn cases(vectors: &Value) -> &[Value] {
    let cases = vectors.as_array().expect("a list of cases");
    assert!(!cases.is_empty());
    cases
}

fn integer<T: TryFrom<i128>>(case: &Value, key: &str) -> T {
    let value = &case[key];
    let digits = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    digits
        .parse::<i128>()
        .ok()
        .and_then(|n| T::try_from(n).ok())
        .unwrap_or_else(|| panic!("{key} of {case}"))
}

fn bytes_of(hex: &str) -> Vec<u8> {
    let digits = hex.as_bytes().chunks_exact(2);
    digits.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

fn shape(case: &Value, full: bool) -> Shape {
    Shape {
        bytes: integer(case, "bytes"),
        text: case["encoding"] == "text",
        seed: integer(case, "seed"),
        literal: Vec::new(),
        full,
    }
}

fn verdict_and_seq(checked: &Checked) -> (&'static str, Option<u64>) {
    let verdict = match checked.verdict {
        Verdict::Ok => "ok",
        Verdict::Corrupt => "corrupt",
        Verdict::Foreign => "foreign",
    };
    (verdict, checked.seq)
}

#[test]
fn stamped_payloads_have_the_golden_bytes() {
    let mut compared = 0;
    for case in cases(&vectors("payload")) {
        let payload = Payload::new(shape(case, true), &[0]);
        let mut buffer = payload.buffer();
        payload.stamp(&mut buffer, 1, 2); // the second stamp must overwrite all bytes of the first
        payload.stamp(&mut buffer, integer(case, "seq"), integer(case, "begin_ns"));
        assert_eq!(buffer.len(), integer::<usize>(case, "bytes"));
        // Long payloads have only a digest. The suite compares them on the wire.
        if let Some(hex) = case["hex"].as_str() {
            assert_eq!(buffer, bytes_of(hex), "{case}");
            compared += 1;
        }
    }
    assert!(compared >= 80);
}

#[test]
fn arrivals_get_the_golden_verdicts() {
    for case in cases(&vectors("check")) {
        for verify in ["header", "full"] {
            let payload =
                Payload::new(shape(case, verify == "full"), &[case["nodes"][0].as_i64().unwrap()]);
            let checked = payload.check(&bytes_of(case["hex"].as_str().unwrap()), &mut 0);
            let expected = (case[verify].as_str().unwrap(), case["seq"].as_u64());
            assert_eq!(verdict_and_seq(&checked), expected, "{verify}: {case}");
        }
    }
}

#[test]
fn short_payloads_are_completed() {
    for case in cases(&vectors("short")) {
        let node: u64 = integer(case, "node");
        let payload = Payload::new(shape(case, true), &[node as i64]);
        let mut expected = 0;
        for (hex, counter) in cases(&case["arrivals_hex"]).iter().zip(cases(&case["counters"])) {
            let checked = payload.check(&bytes_of(hex.as_str().unwrap()), &mut expected);
            let seq = node << 48 | counter.as_u64().unwrap();
            assert_eq!(verdict_and_seq(&checked), ("ok", Some(seq)), "{case}");
        }
    }
}

#[test]
fn records_have_the_golden_fields() {
    for case in cases(&vectors("record")["made"]) {
        let payload = RecordPayload::new(integer(case, "bytes"), integer(case, "seed"), true, &[0]);
        let mut record = payload.buffer();
        RecordPayload::stamp(&mut record, integer(case, "seq"), integer(case, "begin_ns"));
        let mut text = Vec::new();
        record.write_json(&mut text);
        let read = Record::from_json(&text).expect("the kit reads its own JSON");
        assert_eq!(read, record);
        let golden = Record::from_json(case["record"].to_string().as_bytes());
        assert_eq!(Some(record), golden, "{case}");
    }
}

#[test]
fn records_get_the_golden_verdicts() {
    for case in cases(&vectors("record")["check"]) {
        for verify in ["header", "full"] {
            let nodes: Vec<i64> =
                cases(&case["nodes"]).iter().map(|node| node.as_i64().unwrap()).collect();
            let (bytes, seed) = (integer(case, "bytes"), integer(case, "seed"));
            let payload = RecordPayload::new(bytes, seed, verify == "full", &nodes);
            let (verdict, _) = match Record::from_json(case["record"].to_string().as_bytes()) {
                Some(record) => verdict_and_seq(&payload.check(&record)),
                None => ("corrupt", None),
            };
            assert_eq!(verdict, case[verify].as_str().unwrap(), "{verify}: {case}");
        }
    }
}

#[test]
fn a_sample_file_has_the_golden_bytes() {
    for (at, case) in cases(&vectors("samples")).iter().enumerate() {
        let golden: Vec<Sample> = case["records"]
            .as_array()
            .unwrap()
            .iter()
            .map(|record| Sample {
                seq: integer(record, "seq"),
                intended_ns: integer(record, "intended_ns"),
                begin_ns: integer(record, "begin_ns"),
                end_ns: integer(record, "end_ns"),
                bytes: integer(record, "bytes"),
                peer: integer(record, "peer"),
                kind: integer(record, "kind"),
                flags: integer(record, "flags"),
            })
            .collect();
        let mut recorder = Recorder::new(golden.len()).unwrap();
        golden.iter().for_each(|&record| recorder.add(record));
        let overflow: u64 = integer(case, "overflow");
        let further = Sample {
            seq: 0,
            intended_ns: 0,
            begin_ns: 0,
            end_ns: 0,
            bytes: 0,
            peer: 0,
            kind: 0,
            flags: 0,
        };
        (0..overflow).for_each(|_| recorder.add(golden.first().copied().unwrap_or(further)));
        let path = scratch(&format!("samples-{at}.bin"));
        recorder
            .write(&path, integer(case, "role"), integer(case, "node"), integer(case, "seed"))
            .unwrap();
        assert_eq!(fs::read(&path).unwrap(), bytes_of(case["hex"].as_str().unwrap()));
        assert_eq!((recorder.recorded(), recorder.overflow()), (golden.len() as u64, overflow));
    }
}

#[test]
fn specifications_are_accepted_or_rejected_with_the_key() {
    let specs = vectors("spec");
    let path = scratch("spec.json");
    let rejected_key = |text: String| {
        fs::write(&path, text).unwrap();
        match Spec::read(&path) {
            Ok(_) => "ok".to_owned(),
            Err(Error::BadSpec { key, .. }) => key,
            Err(other) => panic!("{other}"),
        }
    };
    for case in cases(&specs["valid"]) {
        assert_eq!(rejected_key(case["spec"].to_string()), "ok", "{}", case["name"]);
    }
    for case in cases(&specs["invalid"]) {
        assert_eq!(rejected_key(case["spec"].to_string()), case["key"], "{}", case["name"]);
    }
    for case in cases(&specs["texts"]) {
        assert_eq!(rejected_key(case["text"].as_str().unwrap().into()), case["key"], "{case}");
    }
}

#[test]
fn only_specifications_of_pipelines_have_a_hop() {
    let specs = vectors("spec");
    let path = scratch("hop.json");
    for (pattern, hop, accepted) in [
        ("pipeline", Some(0.into()), true),
        ("pipeline", Some(Value::from("0")), false),
        ("pipeline", None, false),
        ("topic", Some(0.into()), false),
    ] {
        let mut spec = specs["valid"][0]["spec"].clone();
        spec["pattern"] = pattern.into();
        if let Some(hop) = hop {
            spec["hop"] = hop;
        }
        fs::write(&path, spec.to_string()).unwrap();
        match Spec::read(&path) {
            Ok(_) => assert!(accepted, "{spec}"),
            Err(Error::BadSpec { key, .. }) => assert!(!accepted && key == "hop", "{key}: {spec}"),
            Err(other) => panic!("{other}"),
        }
    }
}

fn scratch(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name)
}
