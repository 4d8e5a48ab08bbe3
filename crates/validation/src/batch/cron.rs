//! Schedules of CronJobs, read as robfig/cron reads them.

use concord_meta::{field::BadValue, go};

use crate::node::Node;

struct Bounds {
    low: u64,
    high: u64,
    names: &'static [&'static str],
}

/// Minute, hour, day of month, month, day of week. Names count from the lower bound.
const FIELDS: [Bounds; 5] = [
    Bounds { low: 0, high: 59, names: &[] },
    Bounds { low: 0, high: 23, names: &[] },
    Bounds { low: 1, high: 31, names: &[] },
    Bounds {
        low: 1,
        high: 12,
        names: &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
    },
    Bounds { low: 0, high: 6, names: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"] },
];

const DESCRIPTORS: [&str; 7] =
    ["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"];

/// A schedule; whether its zone may stand in it, and whether there is another field that says the zone.
pub(super) fn schedule(node: Node<'_>, may_have_zone: bool, has_zone_field: bool) {
    let text = node.text();
    if let Err(problem) = parse(text) {
        node.invalid(text, problem);
    }
    match (text.contains("TZ"), may_have_zone) {
        (true, true) if has_zone_field => {
            node.invalid(text, "cannot use both timeZone field and TZ or CRON_TZ in schedule");
        }
        (true, false) => {
            node.invalid(text, "cannot use TZ or CRON_TZ in schedule, use timeZone field instead")
        }
        _ => {}
    }
}

/// What is wrong with a schedule, if something is.
pub(super) fn parse(text: &str) -> Result<(), String> {
    let mut text = text;
    if text.starts_with("TZ=") || text.starts_with("CRON_TZ=") {
        let (zone, rest) = text
            .split_once(' ')
            .ok_or("invalid schedule format: runtime error: slice bounds out of range [:-1]".to_owned())?;
        let zone = zone.split_once('=').map_or("", |(_, zone)| zone);
        location(zone).map_err(|why| format!("provided bad location {zone}: {why}"))?;
        text = rest.trim();
    }
    if text.starts_with('@') {
        return descriptor(text);
    }
    let fields: Vec<&str> = text.split_whitespace().collect();
    if fields.len() != FIELDS.len() {
        let found = fields.join(" ");
        return Err(format!("expected exactly {} fields, found {}: [{found}]", FIELDS.len(), fields.len()));
    }
    for (field, bounds) in fields.iter().zip(&FIELDS) {
        field.split(',').filter(|range| !range.is_empty()).try_for_each(|part| range(part, bounds))?;
    }
    Ok(())
}

fn descriptor(text: &str) -> Result<(), String> {
    if DESCRIPTORS.contains(&text) {
        return Ok(());
    }
    match text.strip_prefix("@every ") {
        Some(every) => go::parse_duration(every)
            .map(drop)
            .map_err(|problem| format!("failed to parse duration {text}: {problem}")),
        None => Err(format!("unrecognized descriptor: {text}")),
    }
}

fn number(text: &str) -> Result<u64, String> {
    let number = go::parse_int(text).map_err(|problem| {
        format!("failed to parse int from {text}: {}", problem.replacen("ParseInt", "Atoi", 1))
    })?;
    u64::try_from(number).map_err(|_| format!("negative number ({number}) not allowed: {text}"))
}

fn number_or_name(text: &str, bounds: &Bounds) -> Result<u64, String> {
    let named = bounds.names.iter().position(|name| name.eq_ignore_ascii_case(text));
    match named {
        Some(at) => Ok(bounds.low + u64::try_from(at).unwrap_or_default()),
        None => number(text),
    }
}

fn range(text: &str, bounds: &Bounds) -> Result<(), String> {
    let parts: Vec<&str> = text.split('/').collect();
    let ends: Vec<&str> = parts[0].split('-').collect();
    let (start, mut end) = match ends.as_slice() {
        ["*" | "?", ..] => (bounds.low, bounds.high),
        [one] => {
            let one = number_or_name(one, bounds)?;
            (one, one)
        }
        [low, high] => (number_or_name(low, bounds)?, number_or_name(high, bounds)?),
        [low, ..] => {
            number_or_name(low, bounds)?;
            return Err(format!("too many hyphens: {text}"));
        }
        [] => return Ok(()),
    };
    let step = match parts.as_slice() {
        [_] => 1,
        [_, step] => {
            if ends.len() == 1 {
                end = bounds.high;
            }
            number(step)?
        }
        _ => return Err(format!("too many slashes: {text}")),
    };
    if start < bounds.low {
        return Err(format!("beginning of range ({start}) below minimum ({}): {text}", bounds.low));
    }
    if end > bounds.high {
        return Err(format!("end of range ({end}) above maximum ({}): {text}", bounds.high));
    }
    if start > end {
        return Err(format!("beginning of range ({start}) beyond end of range ({end}): {text}"));
    }
    if step == 0 {
        return Err(format!("step of range should be a positive number: {text}"));
    }
    Ok(())
}

fn looks_like_zone(zone: &str) -> bool {
    zone.split('/').all(|part| {
        (1..=14).contains(&part.len())
            && ![".", ".."].contains(&part)
            && !part.starts_with('-')
            && part.bytes().all(|b| b.is_ascii_alphanumeric() || b".-_+".contains(&b))
    })
}

/// What is wrong with the name of a zone, as Go looks it up.
fn location(zone: &str) -> Result<(), String> {
    match zone {
        "" | "Local" => Ok(()),
        _ if zone.contains("..") || zone.starts_with(['/', '\\']) => {
            Err("time: invalid location name".to_owned())
        }
        _ if is_zone(zone) => Ok(()),
        _ => Err(format!("unknown time zone {zone}")),
    }
}

/// Whether the IANA database has a zone of this name, in exactly these letters.
fn is_zone(name: &str) -> bool {
    const ZONES: &str = include_str!("zones.txt");
    let (area, zone) = name.rsplit_once('/').unwrap_or(("", name));
    let mut within = "";
    ZONES.lines().filter(|line| !line.starts_with('#')).any(|line| {
        let zones = match line.split_once(':') {
            Some((area, zones)) => {
                within = area;
                zones
            }
            None => line,
        };
        within == area && zones.split_ascii_whitespace().any(|known| known == zone)
    })
}

pub(super) fn time_zone(node: Node<'_>) {
    if !node.is_set() {
        return;
    }
    let zone = node.text();
    let shown = || BadValue::named(zone);
    if zone.is_empty() {
        return node.invalid(shown(), "timeZone must be nil or non-empty string");
    }
    if !looks_like_zone(zone) {
        return node.invalid(shown(), format!("unknown time zone {zone}"));
    }
    if zone.eq_ignore_ascii_case("Local") {
        let detail = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones";
        node.invalid(shown(), detail);
    }
    if let Err(why) = location(zone) {
        node.invalid(shown(), why);
    }
}
